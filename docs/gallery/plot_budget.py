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
    "grbb_ext: labelled and unlabelled rows": GRBBClassifier(booster, **settings),
    "Greedy Miser: labelled rows": GRBBClassifier(booster, rule="labeled", **settings),
}
accuracy = {name: np.zeros((5, len(budgets))) for name in models}
everything = np.zeros(5)
for draw in range(5):
    labeled = np.random.default_rng(draw).choice(len(X), 40, replace=False)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    rest = y == -1
    for place, budget in enumerate(budgets):
        for name, model in models.items():
            model.set_params(budget=budget).fit(X, y)
            accuracy[name][draw, place] = np.mean((model.predict(X) == truth)[rest])
    plain = LGBMClassifier(n_estimators=40, num_leaves=6, min_child_samples=2)
    plain.set_params(verbosity=-1).fit(X[~rest], truth[~rest])
    everything[draw] = np.mean((plain.predict(X) == truth)[rest])

# %%
# Means of five draws of 40 labels, and the range of the draws. The total price never exceeds the budget. Plain LightGBM
# may use every feature.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in accuracy.items():
    (line,) = ax.plot(budgets, values.mean(axis=0), marker="o", label=name)
    low, high = values.min(axis=0), values.max(axis=0)
    ax.fill_between(budgets, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
price = costs.total(list(X))
ax.plot(price, everything.mean(), "s", color="C3", label="plain LightGBM, all features")
ax.set(xscale="symlog", xlabel="budget for features, dollars per patient")
ax.set(xticks=[*budgets, price], xticklabels=[*budgets, int(price)])
ax.set(ylabel="accuracy on unlabelled rows")
ax.minorticks_off()
ax.legend(loc="lower right", frameon=False)
plt.show()
