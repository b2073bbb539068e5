"""The teacher: what the labels imply for any row.

Experts learn from the labelled rows: labels propagated on a neighbour graph, which trees refine, and a forest. On some
tables neighbours have nothing to do with the labels, on others nearly everything. So experts are averaged, with weights
from held-out labels (:func:`weigh`). A fitted :class:`Teacher` predicts targets for any rows.
"""

from grbb_ext.teacher._evidence import Evidence, GraphEvidenceWarning, smoothness, weigh
from grbb_ext.teacher._forest import ForestExpert
from grbb_ext.teacher._graph import GraphExpert, GraphNodes, Refinement
from grbb_ext.teacher._targets import centered_labels, finish_targets, sharpened, soft_targets
from grbb_ext.teacher._teacher import TEACHERS, Committee, Lesson, Teacher, spread, teach

__all__ = [
    "TEACHERS",
    "Committee",
    "Evidence",
    "ForestExpert",
    "GraphEvidenceWarning",
    "GraphExpert",
    "GraphNodes",
    "Lesson",
    "Refinement",
    "Teacher",
    "centered_labels",
    "finish_targets",
    "sharpened",
    "smoothness",
    "soft_targets",
    "spread",
    "teach",
    "weigh",
]
