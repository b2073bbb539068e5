"""How far to trust the graph: two experts, weighed by what each says about labels it has not seen.

On some tables neighbours say nothing about the labels, and a booster that is told propagated labels does worse than
one that sees the labelled rows alone. So a forest on the labelled rows (:func:`labeled_forest`) speaks beside the
graph, and the labels tell how much each counts (:func:`weigh`), together with all rows: a graph on which the
function of the forest is smooth deserves more trust (:func:`smoothness`).
"""

from grbb_ext.guard._evidence import Evidence, GraphEvidenceWarning, weigh
from grbb_ext.guard._forest import labeled_forest
from grbb_ext.guard._smoothness import smoothness

__all__ = ["Evidence", "GraphEvidenceWarning", "labeled_forest", "smoothness", "weigh"]
