"""
Which rows to label next
========================

Ten labels at a time, chosen by the model or at random, on handwritten digits.
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
for name, choose in (("suggest_labels", suggested), ("random rows", at_random)):
    runs = np.array([learn(choose, draw) for draw in range(2)])
    (line,) = ax.plot([10, 20, 30, 40], runs.mean(axis=0), marker="o", label=name)
    ax.plot([10, 20, 30, 40], runs.T, color=line.get_color(), alpha=0.3)
ax.set(xlabel="labels", ylabel="accuracy, unlabelled rows", xticks=[10, 20, 30, 40])
ax.legend(loc="lower right")
plt.show()
