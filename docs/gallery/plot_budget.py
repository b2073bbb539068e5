"""
Accuracy against the price of the features
==========================================

Diabetes patients: will the disease progress faster than in the median patient? Blood values cost 8 each and share a
blood draw for 5. Body mass index and blood pressure cost 1. The prices are made up, the patients are real.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_diabetes

from grbb_ext import FeatureCosts, GRBBClassifier

patients = load_diabetes(as_frame=True, scaled=False)
X = patients.data
truth = (patients.target > patients.target.median()).astype(int).to_numpy()
blood = ["s1", "s2", "s3", "s4", "s5", "s6"]
costs = FeatureCosts(
    needs={name: ["draw", name] if name in blood else [name] for name in X},
    prices={"age": 0, "sex": 0, "bmi": 1, "bp": 1, "draw": 5} | dict.fromkeys(blood, 8),
)
budgets = [0, 1, 2, 15, 31]

booster = LGBMClassifier(n_estimators=40, num_leaves=6)
settings = {"feature_costs": costs, "mu": 0.02}
models = {
    "grbb_ext": GRBBClassifier(booster, **settings),
    "labelled rows only, same costs": GRBBClassifier(
        booster, rule="labeled", **settings
    ),
}
accuracy = {name: np.zeros((3, len(budgets))) for name in models}
for draw in range(3):
    labeled = np.random.default_rng(draw).choice(len(X), 40, replace=False)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    for place, budget in enumerate(budgets):
        for name, model in models.items():
            model.set_params(budget=budget).fit(X, y)
            right = model.predict(X) == truth
            accuracy[name][draw, place] = right[y == -1].mean()

# %%
# Means of three draws of 40 labels. The total price never exceeds the budget.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in accuracy.items():
    ax.plot(budgets, values.mean(axis=0), marker="o", label=name)
ax.set(xscale="symlog", xticks=budgets, xlabel="budget, dollars per patient")
ax.set(xticklabels=budgets, ylabel="accuracy, unlabelled rows")
ax.minorticks_off()
ax.legend(loc="lower right")
plt.show()
