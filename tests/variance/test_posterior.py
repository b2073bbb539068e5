import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons

from grbb_ext import grbb_objective
from grbb_ext.variance import prediction_variance
from grbb_ext.variance._posterior import hutchpp, squared_norm


def test_hutchpp_is_unbiased_and_its_error_is_honest():
    random = np.random.default_rng(0)
    U, _ = np.linalg.qr(random.normal(size=(60, 60)))
    A = U * (1.0 / np.arange(1, 61)) @ U.T
    found = [hutchpp(lambda Z: A @ Z, 60, 6, np.random.default_rng(seed)) for seed in range(400)]
    values = np.array([f.value for f in found])
    assert abs(values.mean() - np.trace(A)) < 4 * values.std() / 20
    assert_allclose(np.sqrt(np.mean([f.standard_error**2 for f in found])), values.std(), rtol=0.25)


@pytest.mark.parametrize("r", [0, 3])
def test_orthonormal_probes_are_unbiased_and_their_error_is_honest(r):
    random = np.random.default_rng(1)
    G = random.normal(size=(30, 20)) * np.arange(1, 21)
    leading = np.eye(20)[:, 20 - r :]
    found = [squared_norm(lambda z: G @ z, leading, 8, np.random.default_rng(seed)) for seed in range(400)]
    values = np.array([f.value for f in found])
    assert abs(values.mean() - (G**2).sum()) < 4 * values.std() / 20
    assert_allclose(np.sqrt(np.mean([f.standard_error**2 for f in found])), values.std(), rtol=0.15)


@pytest.mark.parametrize(("propagation", "n_rows"), [("smooth", 3200), ("smooth", 700), ("harmonic", 700)])
@pytest.mark.parametrize("kind", ["sandwich", "fisher"])
def test_stochastic_lies_within_its_interval_as_often_as_it_says(propagation, n_rows, kind):
    X, truth = make_moons(n_rows, noise=0.2, random_state=0)
    y = np.where(np.arange(n_rows) < 40, truth, -1)
    obj = grbb_objective(X, y, propagation=propagation, teacher="graph", verbose=False)
    H = 3.0 * truth - 1.5
    exact = prediction_variance(obj, H, lam=1.0, kind=kind, method="schur").mean
    inside = []
    for seed in range(12):
        found = prediction_variance(obj, H, lam=1.0, kind=kind, method="stochastic", random_state=seed)
        low, high = found.confidence_interval
        inside.append(low <= exact <= high)
        assert found.standard_error < 0.25 * exact
    assert np.mean(inside) >= 0.75


def test_as_many_probes_as_labels_make_the_sandwich_exact():
    X, truth = make_moons(400, noise=0.2, random_state=0)
    y = np.where(np.arange(400) < 10, truth, -1)
    obj = grbb_objective(X, y)
    found = prediction_variance(obj, truth - 0.5, lam=1.0, method="stochastic", n_probes=10)
    assert found.standard_error == 0
    assert_allclose(found.mean, prediction_variance(obj, truth - 0.5, lam=1.0).mean, rtol=1e-4)
