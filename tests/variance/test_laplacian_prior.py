import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons

from grbb_ext import Harmonic, Poisson, knn_graph
from grbb_ext.losses import LogisticLoss
from grbb_ext.variance import LaplacianPrior, choose_lam


@pytest.fixture(scope="module")
def problem():
    X, truth = make_moons(3100, noise=0.2, random_state=0)
    graph, labeled = knn_graph(X), np.arange(20)
    return graph, labeled, truth[labeled].astype(float), LaplacianPrior(Harmonic(solver="direct").on(graph, labeled))


@pytest.mark.parametrize("spec", [Harmonic(), Poisson()])
def test_beyond_3000_rows_the_prior_is_that_of_a_direct_solver(problem, spec):
    graph, labeled, y, exact = problem
    prior = LaplacianPrior(spec.on(graph, labeled, verbose=False))
    assert prior.columns.dtype == np.float32
    assert_allclose(prior.columns, exact.columns, atol=1e-7)
    assert_allclose(prior.typical_lam, exact.typical_lam, rtol=1e-6)
    found, expected = (choose_lam(p, y, np.ones(20), LogisticLoss()) for p in (prior, exact))
    assert_allclose(found.lam, expected.lam, rtol=1e-5)
