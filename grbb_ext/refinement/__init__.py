"""The refined graph: neighbours by distance, ranked again by what trees say about the propagated labels.

Distances on raw columns count every column alike. Trees grown on the propagated labels do not: two rows that often
share a leaf agree in the columns that matter. So labels are propagated on the plain graph, trees are fitted to them,
and the neighbours of each row are chosen anew among its nearest (:class:`grbb_ext.RefinedGraph`).
"""

from grbb_ext.refinement._refine import Refinement
from grbb_ext.refinement._settings import RefinedGraph

__all__ = ["RefinedGraph", "Refinement"]
