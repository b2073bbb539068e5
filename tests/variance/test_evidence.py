import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.datasets import make_moons

from grbb_ext import knn_graph
from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss
from grbb_ext.propagation import HarmonicPropagation, SmoothPropagation
from grbb_ext.variance import KernelPrior, LaplacianPrior, choose_lam


@pytest.fixture(scope="module")
def graph():
    X, _ = make_moons(200, noise=0.1, random_state=0)
    return knn_graph(X)


def test_laplace_evidence_of_one_label_equals_its_integral_roughly(graph):
    # One label: p(y) = E[sigma(f)] = 1/2 for f ~ N(0, s^2); Laplace is close for small s.
    prior = KernelPrior(SmoothPropagation(graph, [0]))
    found = choose_lam(prior, np.array([1.0]), np.ones(1), LogisticLoss(), lam=4.0)
    assert_allclose(np.exp(found.log_evidence), 0.5, rtol=0.01)


def test_evidence_of_two_labels_agrees_with_numerical_integration(graph):
    prior = KernelPrior(SmoothPropagation(graph, [0, 100]))
    K = prior.labeled_covariance(1.0)
    y = np.array([1.0, 0.0])
    f = np.random.default_rng(0).multivariate_normal(np.zeros(2), K, size=400_000)
    expected = np.mean(expit(f[:, 0]) * expit(-f[:, 1]))
    found = choose_lam(prior, y, np.ones(2), LogisticLoss(), lam=1.0)
    assert_allclose(np.exp(found.log_evidence), expected, rtol=0.05)


@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_lam_of_a_drawn_function_is_found(graph, lam):
    labeled = np.arange(200)
    prior = KernelPrior(SmoothPropagation(graph, labeled, tau=0.05))
    random = np.random.default_rng(0)
    f = random.multivariate_normal(np.zeros(200), prior.labeled_covariance(lam), size=6, method="cholesky")
    y = (random.random(f.shape) < expit(f)).astype(float)
    found = [choose_lam(prior, row, np.ones(200), LogisticLoss()).lam for row in y]
    assert lam / 4 < np.exp(np.mean(np.log(found))) < 4 * lam


def test_chosen_lam_beats_its_neighbours(graph):
    labeled = np.arange(0, 200, 4)
    y = (np.random.default_rng(1).random(50) < 0.5).astype(float)
    y[:20] = 1.0
    for prior in (
        KernelPrior(SmoothPropagation(graph, labeled)),
        LaplacianPrior(HarmonicPropagation(graph, labeled)),
    ):
        found = choose_lam(prior, y, np.ones(50), LogisticLoss())
        for factor in (0.8, 1.25):
            other = choose_lam(prior, y, np.ones(50), LogisticLoss(), lam=found.lam * factor)
            assert other.log_evidence <= found.log_evidence + 1e-3 or found.at_bound


def test_several_classes_are_summed(graph):
    prior = KernelPrior(SmoothPropagation(graph, [0, 50, 100]))
    Y = np.eye(3)
    total = choose_lam(prior, Y, np.ones(3), SoftmaxLoss(), lam=1.0).log_evidence
    parts = [choose_lam(prior, Y[:, k], np.ones(3), LogisticLoss(), lam=1.0).log_evidence for k in range(3)]
    assert_allclose(total, sum(parts))


def test_a_weight_of_two_is_the_label_twice_as_certain_and_of_none_absent(graph):
    both = KernelPrior(SmoothPropagation(graph, [0, 50, 100], tau=0.05))
    found = choose_lam(both, np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0]), LogisticLoss(), lam=1.0)
    K = both.labeled_covariance(1.0)[:2, :2]
    f = np.random.default_rng(0).multivariate_normal(np.zeros(2), K, size=400_000)
    assert_allclose(np.exp(found.log_evidence), np.mean(expit(f[:, 0]) * expit(-f[:, 1])), rtol=0.05)


def test_restricted_likelihood_does_not_see_the_level(graph):
    prior = KernelPrior(SmoothPropagation(graph, np.arange(0, 200, 5)))
    t = np.random.default_rng(0).normal(size=40)
    one = choose_lam(prior, t, np.ones(40), SquaredErrorLoss())
    shifted = choose_lam(prior, 10 * t + 1000, np.ones(40), SquaredErrorLoss())
    assert_allclose(shifted.lam, one.lam, rtol=1e-3)
    assert_allclose(shifted.noise_variance, 100 * one.noise_variance, rtol=1e-3)


def test_more_than_a_thousand_labels_are_thinned():
    X, truth = make_moons(1500, noise=0.2, random_state=0)
    prior = KernelPrior(SmoothPropagation(knn_graph(X), np.arange(1500), verbose=False))
    found = choose_lam(prior, truth.astype(float), np.ones(1500), LogisticLoss(), lam=1.0)
    assert np.isfinite(found.log_evidence)
