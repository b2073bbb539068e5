"""
Are more labels worth their price?
==================================

A forecast of the variance of the predictions, for up to 30 more labels at 2 dollars each. The dashed line is the
recommended number: the fewest labels that bring 80 % of what all 30 would.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import make_moons

from grbb_ext import GRBBClassifier, plan_labels

X, truth = make_moons(400, noise=0.2, random_state=0)
y = np.where(np.arange(400) < 12, truth, -1)
model = GRBBClassifier(LGBMClassifier(n_estimators=30)).fit(X, y)
plan = plan_labels(model.objective_, model.raw_scores_, 30, price=2.0, X=X, lam=1.0)
print(plan.recommendation)
plan.plot()
plt.show()
