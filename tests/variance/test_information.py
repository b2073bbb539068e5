import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.datasets import make_moons

from grbb_ext import Harmonic, Smooth, grbb_objective, knn_graph, plan_labels, prediction_variance, suggest_labels
from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss
from grbb_ext.variance import KernelPrior, LaplacianPrior, _information, choose_lam, prior_of


@pytest.fixture(scope="module")
def graph():
    X, _ = make_moons(200, noise=0.1, random_state=0)
    return knn_graph(X)


def test_laplace_evidence_of_one_label_equals_its_integral_roughly(graph):
    # One label: p(y) = E[sigma(f)] = 1/2 for f ~ N(0, s^2); Laplace is close for small s.
    prior = KernelPrior(Smooth().on(graph, [0]))
    found = choose_lam(prior, np.array([1.0]), np.ones(1), LogisticLoss(), lam=4.0)
    assert_allclose(np.exp(found.log_likelihood), 0.5, rtol=0.01)


def test_evidence_of_two_labels_agrees_with_numerical_integration(graph):
    prior = KernelPrior(Smooth().on(graph, [0, 100]))
    K = prior.labeled_covariance(1.0)
    y = np.array([1.0, 0.0])
    f = np.random.default_rng(0).multivariate_normal(np.zeros(2), K, size=400_000)
    expected = np.mean(expit(f[:, 0]) * expit(-f[:, 1]))
    found = choose_lam(prior, y, np.ones(2), LogisticLoss(), lam=1.0)
    assert_allclose(np.exp(found.log_likelihood), expected, rtol=0.05)


@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_lam_of_a_drawn_function_is_found(graph, lam):
    labeled = np.arange(200)
    prior = KernelPrior(Smooth(tau=0.05).on(graph, labeled))
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
        KernelPrior(Smooth().on(graph, labeled)),
        LaplacianPrior(Harmonic().on(graph, labeled)),
    ):
        found = choose_lam(prior, y, np.ones(50), LogisticLoss())
        for factor in (0.8, 1.25):
            other = choose_lam(prior, y, np.ones(50), LogisticLoss(), lam=found.lam * factor)
            assert other.log_likelihood <= found.log_likelihood + 1e-3 or found.at_bound


def test_several_classes_are_summed(graph):
    prior = KernelPrior(Smooth().on(graph, [0, 50, 100]))
    Y = np.eye(3)
    total = choose_lam(prior, Y, np.ones(3), SoftmaxLoss(), lam=1.0).log_likelihood
    parts = [choose_lam(prior, Y[:, k], np.ones(3), LogisticLoss(), lam=1.0).log_likelihood for k in range(3)]
    assert_allclose(total, sum(parts))


def test_a_weight_of_two_is_the_label_twice_as_certain_and_of_none_absent(graph):
    both = KernelPrior(Smooth(tau=0.05).on(graph, [0, 50, 100]))
    found = choose_lam(both, np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0]), LogisticLoss(), lam=1.0)
    K = both.labeled_covariance(1.0)[:2, :2]
    f = np.random.default_rng(0).multivariate_normal(np.zeros(2), K, size=400_000)
    assert_allclose(np.exp(found.log_likelihood), np.mean(expit(f[:, 0]) * expit(-f[:, 1])), rtol=0.05)


def test_restricted_likelihood_does_not_see_the_level(graph):
    prior = KernelPrior(Smooth().on(graph, np.arange(0, 200, 5)))
    t = np.random.default_rng(0).normal(size=40)
    one = choose_lam(prior, t, np.ones(40), SquaredErrorLoss())
    shifted = choose_lam(prior, 10 * t + 1000, np.ones(40), SquaredErrorLoss())
    assert_allclose(shifted.lam, one.lam, rtol=1e-3)
    assert_allclose(shifted.noise_variance, 100 * one.noise_variance, rtol=1e-3)


def test_many_classes_are_a_sample_of_the_sum(graph):
    labeled, n_classes = np.arange(0, 200, 2), 90
    prior = KernelPrior(Smooth().on(graph, labeled))
    Y = np.eye(n_classes)[np.random.default_rng(0).permutation(np.arange(100) % n_classes)]
    found = choose_lam(prior, Y, np.ones(100), SoftmaxLoss(), lam=1.0).log_likelihood
    parts = [choose_lam(prior, Y[:, k], np.ones(100), LogisticLoss(), lam=1.0).log_likelihood for k in range(90)]
    assert_allclose(found, sum(parts), rtol=0.05)


@pytest.fixture
def fits(monkeypatch):
    """The number of labelled rows, for each time that the likelihood of one class at one lam was computed."""
    counted = []
    original = _information._laplace

    def counting(K, y, w, alpha):
        counted.append(K.shape[0])
        return original(K, y, w, alpha)

    monkeypatch.setattr(_information, "_laplace", counting)
    return counted


def moons():
    X, truth = make_moons(80, noise=0.2, random_state=0)
    return grbb_objective(X, np.where(np.arange(80) < 10, truth, -1)), 2.0 * truth - 1.0


def test_lam_is_searched_once_for_each_objective(fits):
    obj, H = moons()
    first = prediction_variance(obj, H)
    once = len(fits)
    assert 9 < once < 30
    assert suggest_labels(obj, H, 3).lam == first.lam
    assert plan_labels(obj, {1.0: H, 2.0: 2 * H}, 3, price=1.0).lam == first.lam
    assert prediction_variance(obj, 2 * H, kind="fisher").lam_chosen
    assert len(fits) == once
    other, _ = moons()
    assert prediction_variance(other, H).lam == first.lam
    assert len(fits) == 2 * once


def test_many_classes_take_a_bounded_number_of_fits(fits, graph):
    for n_classes in (30, 90):
        y = np.where(np.arange(200) < 100, np.arange(200) % n_classes, -1)
        _information.lam_in_use(grbb_objective(None, y, graph=graph), None)
        assert 9 * 30 < len(fits) <= 30 * 30  # lams times classes
        fits.clear()


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 1000), (30, 643)])
def test_each_fit_takes_a_bounded_number_of_labelled_rows(fits, n_classes, n_rows):
    W = knn_graph(np.random.default_rng(0).normal(size=(1200, 3)), 5, verbose=False)
    prior = KernelPrior(Smooth().on(W, np.arange(1100), verbose=False))
    Y = np.eye(n_classes)[np.arange(1100) % n_classes]
    choose_lam(prior, Y, np.ones(1100), SoftmaxLoss(), lam=1.0)
    assert fits == [n_rows] * n_classes


def test_what_is_kept_neither_holds_the_objective_nor_is_pickled_with_it():
    obj, H = moons()
    before = len(pickle.dumps(obj))
    prediction_variance(obj, H)
    assert len(pickle.dumps(obj)) == before
    again = pickle.loads(pickle.dumps(obj))
    assert prior_of(again) is not prior_of(obj)
    assert prior_of(obj) is prior_of(obj)
    known = len(_information._known)
    alive = weakref.ref(obj)
    del obj
    gc.collect()
    assert alive() is None
    assert len(_information._known) == known - 1


def test_threads_get_the_same_prior_and_the_same_lam():
    obj, _ = moons()
    with ThreadPoolExecutor(4) as pool:
        priors = list(pool.map(prior_of, [obj] * 8))
        found = list(pool.map(lambda _: _information.lam_in_use(obj, None), range(8)))
    assert len({id(prior) for prior in priors}) == 1
    assert len(set(found)) == 1
