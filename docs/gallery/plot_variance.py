"""
How far to trust a prediction
=============================

The standard deviation of each prediction if the same rows were labelled again (the *sandwich* estimate of
:doc:`/variance`). It leaves out bias.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import make_moons

from grbb_ext import GRBBClassifier, VarianceDisplay

X, truth = make_moons(400, noise=0.25, random_state=0)
y = np.where(np.arange(400) < 30, truth, -1)
model = GRBBClassifier(LGBMClassifier(n_estimators=30)).fit(X, y)
VarianceDisplay.from_estimator(model, lam=1.0)
plt.show()
