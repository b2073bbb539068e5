"""How far to trust the graph: two experts, weighed by what each says about labels it has not seen.

On some tables neighbours say nothing about the labels, and a booster that is told propagated labels does worse than
one that sees the labelled rows alone. So a forest on the labelled rows (:func:`labeled_forest`) speaks beside the
graph, and the labels tell how much each counts (:func:`weigh`), together with all rows: a graph on which the
function of the forest is smooth deserves more trust (:func:`smoothness`).


The refined graph: neighbours by distance, ranked again by what trees say about the propagated labels.

Distances on raw columns count every column alike. Trees grown on the propagated labels do not: two rows that often
share a leaf agree in the columns that matter. So labels are propagated on the plain graph, trees are fitted to them,
and the neighbours of each row are chosen anew among its nearest (:class:`grbb_ext.RefinedGraph`).
"""

from grbb_ext.teacher._evidence import Evidence, GraphEvidenceWarning, smoothness, weigh
from grbb_ext.teacher._forest import labeled_forest
from grbb_ext.teacher._refine import Refinement, refine
from grbb_ext.teacher._refined_graph import RefinedGraph, RefinementBasis, make_basis
from grbb_ext.teacher._targets import centered_labels, finish_targets, sharpened, soft_targets

__all__ = [
    "Evidence",
    "GraphEvidenceWarning",
    "RefinedGraph",
    "Refinement",
    "RefinementBasis",
    "centered_labels",
    "finish_targets",
    "labeled_forest",
    "make_basis",
    "refine",
    "sharpened",
    "smoothness",
    "soft_targets",
    "weigh",
]
