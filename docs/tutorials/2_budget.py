"""
Predict within a budget
=======================

Will the disease of a diabetes patient progress faster than in the median patient? Age and sex
are free, body mass index and blood pressure cost a little, and blood values need a blood draw.
The 442 patients are real and come with scikit-learn; the prices are made up.
"""

import numpy as np
from sklearn.datasets import load_diabetes

patients = load_diabetes(as_frame=True, scaled=False)
X = patients.data
truth = (patients.target > patients.target.median()).astype(int).to_numpy()

labeled = np.random.default_rng(1).choice(len(X), 60, replace=False)
y = np.full(len(X), -1)  # -1: no label
y[labeled] = truth[labeled]
rest = y == -1

# %%
# Prices
# ------
# A feature needs *sources*. A source has a price and is paid once, however many features need
# it. So the blood draw is paid with the first blood value.

from grbb_ext import FeatureCosts

blood = ["s1", "s2", "s3", "s4", "s5", "s6"]
costs = FeatureCosts(
    needs={name: ["draw", name] if name in blood else [name] for name in X},
    prices={"age": 0, "sex": 0, "bmi": 1, "bp": 1, "draw": 5} | dict.fromkeys(blood, 8),
)
print("s5 alone:", costs.total(["s5"]), " s5 and s3:", costs.total(["s5", "s3"]))

# %%
# A hard budget
# -------------
# The total never exceeds the budget, at any round. ``mu`` sets how much gain a dollar must
# bring.

from lightgbm import LGBMClassifier

from grbb_ext import GRBBClassifier

for budget in (0, 2, 15, 31, 55):
    booster = LGBMClassifier(n_estimators=40, num_leaves=6, n_jobs=1)
    model = GRBBClassifier(booster, feature_costs=costs, budget=budget, mu=0.02)
    model.fit(X, y)
    right = np.mean(model.predict(X[rest]) == truth[rest])
    print(f"budget {budget:2d}: pays {model.feature_cost_:2.0f}, accuracy {right:.2f}")

# %%
# The ledger lists what was bought, in which round:

model.ledger_

# %%
# The teacher reads all columns, also those that the model may not buy. So a cheap model learns
# from expensive columns without needing them later (:doc:`/teacher`).
#
# Let cross-validation choose
# ---------------------------
# ``cost_curve`` fits several budgets, and ``fit_best`` trains the best model that stays within
# yours.

import matplotlib.pyplot as plt

from grbb_ext import CostCurveDisplay

booster = LGBMClassifier(n_estimators=30, num_leaves=6, n_jobs=1)
model = GRBBClassifier(booster, feature_costs=costs, mu=0.02)
curve = model.cost_curve(X, y, budgets=[0, 2, 15, 23, 31], cv=3, verbose=False)
CostCurveDisplay.from_curve(curve, cost_unit="dollars")
plt.show()

# %%
# Sixty labels give wide error bars. The best model for at most 31 dollars:

best = curve.fit_best(X, y, 31)
print(f"pays {best.feature_cost_:.0f} for", ", ".join(best.paid_))

# %%
# The bill of each patient
# ------------------------
# Even if the model uses blood values, not every patient needs a blood draw. With features on
# demand, a patient pays only for what their own path through the trees needs.
# ``early_exit="decision"`` stops as soon as no unknown feature can change the class. For each
# source, pass a function of row numbers:

model = model.set_params(budget=31).fit(X, y)


def source(name):
    return lambda rows: {name: X[name].to_numpy()[rows]}


fetch = {name: source(name) for name in X} | {"draw": lambda rows: {}}
predictor = model.on_demand(fetch, early_exit="decision", verbose=False)
bill = predictor.predict(np.flatnonzero(rest))

amounts, counts = np.unique(bill.spent, return_counts=True)
figure, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
bars = ax.bar(range(len(amounts)), counts, tick_label=amounts.astype(int))
ax.bar_label(bars)
ax.margins(y=0.1)
ax.set(xlabel="bill of a patient, dollars", ylabel="patients")
plt.show()
print(f"all sources {model.feature_cost_:.0f}, mean bill {bill.spent.mean():.0f}")
print("equal classes:", np.array_equal(bill.predictions, model.predict(X[rest])))

# %%
# Next: :doc:`/costs` describes all kinds of prices, and :doc:`/forest` prediction on demand.
