"""
Accuracy against the number of labels
=====================================

Is a handwritten digit above 4? Three models get the same labels. Only the first one also uses the unlabelled rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from grbb_ext import GRBBClassifier

X, digit = load_digits(return_X_y=True)
X, truth = X[:600], (digit[:600] > 4).astype(int)
sizes = [10, 20, 50]

models = {
    "grbb_ext, with unlabelled rows": GRBBClassifier(LGBMClassifier(n_estimators=20)),
    "LightGBM, labelled rows only": LGBMClassifier(
        n_estimators=20, min_child_samples=2, verbosity=-1
    ),
    "logistic regression, labelled rows only": make_pipeline(
        StandardScaler(), LogisticRegression()
    ),
}
accuracy = {name: np.zeros((3, len(sizes))) for name in models}
for draw in range(3):
    order = np.random.default_rng(draw).permutation(len(X))
    for place, size in enumerate(sizes):
        labeled, rest = order[:size], order[size:]
        y = np.full(len(X), -1)
        y[labeled] = truth[labeled]
        for name, model in models.items():
            if name.startswith("grbb"):
                model.fit(X, y)
            else:
                model.fit(X[labeled], truth[labeled])
            accuracy[name][draw, place] = np.mean(model.predict(X[rest]) == truth[rest])

# %%
# Means of three draws of the labels, with bars from the lowest to the highest accuracy.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for shift, (name, values) in zip([0.98, 1, 1.02], accuracy.items(), strict=True):
    mean = values.mean(axis=0)
    ends = [mean - values.min(axis=0), values.max(axis=0) - mean]
    ax.errorbar(
        np.multiply(sizes, shift), mean, ends, marker="o", capsize=3, label=name
    )
ax.set(
    xscale="log", xticks=sizes, xlabel="labels", ylabel="accuracy on unlabelled rows"
)
ax.set_xticklabels(sizes)
ax.minorticks_off()
ax.legend(loc="upper left", frameon=False)
plt.show()
