"""
Labels that were collected at another rate
==========================================

Ten rows of each class were labelled, although one row in ten is positive. The targets, the probabilities that the
teacher predicts, are then too high. ``Committee(class_prior=...)`` corrects them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from grbb_ext import Committee, grbb_objective

X, truth = make_classification(
    2000, n_features=8, n_informative=5, weights=[0.9], class_sep=1.2, random_state=0
)
y = np.full(2000, -1)
for label in (0, 1):
    y[np.flatnonzero(truth == label)[:10]] = label

asked = {
    "as labelled": None,
    "known shares": {0: 0.9, 1: 0.1},
    "estimated": "unlabeled",
}
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, prior in asked.items():
    obj = grbb_objective(X, y, teacher=Committee(class_prior=prior))
    q, _ = obj.soft_labels()
    label = f"{name}: mean {q[y == -1].mean():.2f}"
    ax.hist(q[y == -1], bins=25, histtype="step", linewidth=2, label=label)
ax.set(xlabel="predicted probability that a row is positive", ylabel="rows")
ax.legend(title=f"{truth.mean():.2f} of the rows are positive")
plt.show()
