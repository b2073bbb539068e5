"""
The best model under a budget
=============================

Cross-validated accuracy for several trade-offs between gain and price, and the best model that costs at most 15.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_wine

from grbb_ext import CostCurveDisplay, GRBBClassifier, cost_curve

wine = load_wine(as_frame=True)
y = np.where(np.random.default_rng(0).random(178) < 0.3, wine.target, -1)
costs = dict.fromkeys(wine.data, 5.0) | {"proline": 12.0}
booster = LGBMClassifier(n_estimators=15, num_leaves=4, verbosity=-1)
model = GRBBClassifier(booster, feature_costs=costs)
curve = cost_curve(
    model, wine.data, y, mus=[0, 1, 4], budgets=[5, 10], cv=3, verbose=False
)

print(curve.best_under(15))
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
CostCurveDisplay.from_curve(curve, cost_unit="EUR", ax=axes[0])
CostCurveDisplay.from_curve(curve, x="rounds", ax=axes[1])
plt.show()
