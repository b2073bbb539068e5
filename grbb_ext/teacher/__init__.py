"""The teacher: what the labels imply for any row.

Experts learn from the labelled rows: labels propagated on a neighbour graph, a forest, a linear model, and whatever a
user adds. On some tables neighbours have nothing to do with the labels, on others nearly everything. So experts are
averaged, with weights from held-out labels (:func:`weigh`). A fitted :class:`Teacher` predicts targets for any rows.
"""

from grbb_ext.teacher._evidence import Evidence, simplex, weigh
from grbb_ext.teacher._forest import ForestExpert
from grbb_ext.teacher._graph import GraphExpert, GraphNodes, Refinement, Spread, spread
from grbb_ext.teacher._held_out import EstimatorExpert
from grbb_ext.teacher._linear import LinearExpert
from grbb_ext.teacher._shares import class_shares, matched_shares
from grbb_ext.teacher._targets import centered_labels, finish_targets, sharpened, shifted, soft_targets
from grbb_ext.teacher._teacher import TEACHERS, Committee, Lesson, Teacher, teach

__all__ = [
    "TEACHERS",
    "Committee",
    "EstimatorExpert",
    "Evidence",
    "ForestExpert",
    "GraphExpert",
    "GraphNodes",
    "Lesson",
    "LinearExpert",
    "Refinement",
    "Spread",
    "Teacher",
    "centered_labels",
    "class_shares",
    "finish_targets",
    "matched_shares",
    "sharpened",
    "shifted",
    "simplex",
    "soft_targets",
    "spread",
    "teach",
    "weigh",
]
