"""
Weights of the experts
======================

Held-out labels decide how much each expert of the teacher counts. On digits similar rows have the same label, so the
graph gets most of the weight. On the second table one column decides and the graph gets little.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from grbb_ext import EvidenceDisplay, grbb_objective

X, truth = load_digits(return_X_y=True)
digits = grbb_objective(X, np.where(np.arange(len(X)) < 60, truth, -1))

rows = np.random.default_rng(0).normal(size=(500, 12))
side = (rows[:, 3] > 0).astype(int)
column = grbb_objective(rows, np.where(np.arange(500) < 60, side, -1))

pictures = {"digits": digits, "one column decides": column}
figure, axes = plt.subplots(2, 1, figsize=(6.4, 4.6), layout="constrained")
for ax, (name, obj) in zip(axes, pictures.items(), strict=True):
    EvidenceDisplay.from_estimator(obj, ax=ax)
    ax.set_title(f"{name}: {ax.get_title()}")
plt.show()

# %%
# The same as a table:

print(column.evidence_)
