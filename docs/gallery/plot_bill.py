"""
The bill of each patient
========================

The model uses features for 31 dollars. With features on demand, a patient pays only for what their own path through the
trees needs, and only until the class is certain.
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
y = np.where(np.arange(len(X)) % 8 == 0, truth, -1)
booster = LGBMClassifier(n_estimators=40, num_leaves=6)
model = GRBBClassifier(booster, feature_costs=costs, mu=0.02, budget=31).fit(X, y)

# A source is a function of row numbers; here it looks into the table.
fetch = {
    name: (lambda ids, name=name: {name: X[name].to_numpy()[ids]}) for name in X.columns
}
fetch["draw"] = lambda ids: {}
predictor = model.on_demand(fetch, early_exit="decision", verbose=False)
result = predictor.predict(np.arange(len(X)))

amounts, counts = np.unique(result.spent, return_counts=True)
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
bars = ax.bar(range(len(amounts)), counts, tick_label=amounts.astype(int))
ax.bar_label(bars)
ax.set(
    xlabel="bill of a patient, dollars", ylabel="patients", ylim=(0, 1.1 * max(counts))
)
ax.set_title(
    f"all features of the model: {model.feature_cost_:.0f}, "
    f"mean bill: {result.spent.mean():.0f}"
)
plt.show()
