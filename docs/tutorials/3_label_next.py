"""
Decide what to label next
=========================

Labels cost money. This tutorial starts with ten labelled digits, asks the model which rows to
label, and stops when more labels are not worth their price. The data are 1,797 handwritten
digits of scikit-learn.
"""

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits

from grbb_ext import GRBBClassifier

X, truth = load_digits(return_X_y=True)
start = np.full(len(X), -1)  # -1: no label
first = np.random.default_rng(0).choice(len(X), 10, replace=False)
start[first] = truth[first]
booster = LGBMClassifier(n_estimators=15, num_leaves=8, n_jobs=1)


def fit(y):
    model = GRBBClassifier(booster)
    return model.fit(X, y, classes=np.arange(10))  # ten labels may miss a class


def accuracy(model, y):
    rest = y == -1
    return np.mean(model.predict(X[rest]) == truth[rest])


# %%
# Ask the model
# -------------
# ``suggest_labels`` names rows that represent many others: it clusters the rows and takes the
# middle of each cluster that has no label.

model = fit(start)
model.suggest_labels(5, X=X)

# %%
# Label, and fit again
# --------------------
# In practice you write the chosen rows to a file, have them labelled, and read the answers. Here
# they are looked up. For comparison, the same is done with random rows.

import matplotlib.pyplot as plt

random = np.random.default_rng(0)
ways = {
    "suggested rows": lambda model, rest: model.suggest_labels(10, X=X).rows,
    "random rows": lambda model, rest: random.choice(rest, 10, replace=False),
}
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for name, choose in ways.items():
    y = start.copy()
    scores = []
    for _ in range(4):
        model = fit(y)
        scores.append(accuracy(model, y))
        rows = choose(model, np.flatnonzero(y == -1))
        y[rows] = truth[rows]
    ax.plot([10, 20, 30, 40], scores, marker="o", label=name)
    print(name, [f"{score:.2f}" for score in scores])
ax.set(xlabel="labels", ylabel="accuracy on unlabelled rows", xticks=[10, 20, 30, 40])
ax.legend()
plt.show()

# %%
# One draw proves little. :doc:`/variance_results` has means over many draws, and data where the
# choice matters less.
#
# When to stop
# ------------
# ``plan_labels`` forecasts the variance of the predictions for more labels and divides the gain by
# their price. For speed the forecast is made for one question: is the digit above 4?

high = np.where(start == -1, -1, start > 4)
binary = GRBBClassifier(booster).fit(X, high)
plan = binary.plan_labels(40, price=0.5, X=X, lam=1.0)
plan.plot()
plt.show()
print(plan.recommendation)

# %%
# The forecast does not retrain the model, so the shape of its curve is more reliable than its height.
#
# Next: :doc:`/variance` explains the numbers.
