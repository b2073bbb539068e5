"""
What few labels imply for all rows
==================================

Two moons with ten labels. The colour of a row is the step of its score that the first tree is trained on: towards one
class or the other, and how far.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons

from grbb_ext import PropagationDisplay, grbb_objective

X, truth = make_moons(400, noise=0.1, random_state=0)
moons = grbb_objective(X, np.where(np.arange(400) < 10, truth, -1))
PropagationDisplay.from_objective(moons, X)
plt.show()

# %%
# Digits with fifty labels, drawn on two principal components. The colour is the most probable class, and it is fainter
# where the class is less certain.

X, truth = load_digits(return_X_y=True)
digits = grbb_objective(X, np.where(np.arange(len(X)) % 36 == 0, truth, -1))
PropagationDisplay.from_objective(digits, X)
plt.show()
