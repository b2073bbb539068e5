"""
Which rows to label next
========================

Ten labels at a time, chosen by the model or at random, on handwritten digits. Lines are means of four draws of the
first ten labels, and bands their range.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits

from grbb_ext import GRBBClassifier

X, truth = load_digits(return_X_y=True)
X, truth = X[:800], truth[:800]


def learn(choose, draw):
    """Label ten rows, four times, and return the accuracy on the others."""
    random = np.random.default_rng(draw)
    y = np.full(len(X), -1)
    chosen = random.choice(len(X), 10, replace=False)
    accuracy = []
    for _ in range(4):
        y[chosen] = truth[chosen]
        model = GRBBClassifier(LGBMClassifier(n_estimators=10, num_leaves=8))
        model.fit(X, y)
        rest = y == -1
        accuracy.append(np.mean(model.predict(X[rest]) == truth[rest]))
        chosen = choose(model, np.flatnonzero(rest), random)
    return accuracy


def suggested(model, rest, random):
    return model.suggest_labels(10, X=X).rows


def at_random(model, rest, random):
    return random.choice(rest, 10, replace=False)


figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
sizes = [10, 20, 30, 40]
for name, choose in (("suggested rows", suggested), ("random rows", at_random)):
    runs = np.array([learn(choose, draw) for draw in range(4)])
    (line,) = ax.plot(sizes, runs.mean(axis=0), marker="o", label=name)
    low, high = runs.min(axis=0), runs.max(axis=0)
    ax.fill_between(sizes, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
ax.set(xlabel="labels", ylabel="accuracy on unlabelled rows", xticks=sizes)
ax.legend(loc="lower right", frameon=False)
plt.show()
