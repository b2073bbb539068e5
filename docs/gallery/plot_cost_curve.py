"""
The best model under a budget
=============================

Cross-validated accuracy against the cost of the features, for three values of ``mu`` and two hard budgets. The line is
the best model within each budget.
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
CostCurveDisplay.from_curve(curve, cost_unit="EUR")
plt.show()

# %%
# The best model that costs at most 15:

print(curve.best_under(15))

# %%
# Accuracy after each boosting round:

CostCurveDisplay.from_curve(curve, x="rounds")
plt.show()
