"""Principal components for distances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from grbb_ext import RefinedGraph, grbb_objective
from grbb_ext.graph import prepare_graph
from grbb_ext.table import NormalScores, PrincipalComponents, read_table


def prepared(X, settings):
    return prepare_graph(settings, read_table(X), len(X))


def principal_columns(X, n_components, scores=None):
    return PrincipalComponents.fit(X, n_components, scores)(X)


def crossed(variances: list[float], n: int = 64) -> np.ndarray:
    """Rows whose covariance is diagonal with exactly these variances: columns of a Hadamard matrix are orthogonal."""
    from scipy.linalg import hadamard

    signs = hadamard(n)[:, 1 : len(variances) + 1].astype(np.float64)
    return signs * np.sqrt(np.array(variances) * (n - 1) / n)


def test_by_hand() -> None:
    # Variances 16, 4, 1: the third is noise. Factors: 16**-.25 * sqrt(1 - 1/16) and 4**-.25 * sqrt(1 - 1/4).
    X = crossed([16.0, 4.0, 1.0])
    result = principal_columns(X, 2)
    assert result.shape == (64, 2)
    expected = [np.sqrt(16) * 16**-0.25 * np.sqrt(15 / 16), np.sqrt(4) * 4**-0.25 * np.sqrt(3 / 4)]
    np.testing.assert_allclose(result.std(axis=0, ddof=1), expected)
    # Each component is one of the columns, up to its sign.
    for j in range(2):
        assert abs(np.corrcoef(result[:, j], X[:, j])[0, 1]) == pytest.approx(1.0)


@given(seed=st.integers(0, 10_000), shift=st.sampled_from([0.0, 1e6]))
def test_distances_do_not_depend_on_place_or_direction(seed: int, shift: float) -> None:
    random = np.random.default_rng(seed)
    X = random.standard_normal((40, 8)) * np.arange(1, 9)
    rotation = np.linalg.qr(random.standard_normal((8, 8)))[0]
    np.testing.assert_allclose(
        pdist(principal_columns(X @ rotation + shift, 3)), pdist(principal_columns(X, 3)), rtol=1e-5, atol=1e-7
    )


def test_few_columns_sparse_rows_and_none_are_left_alone() -> None:
    X = np.random.default_rng(0).standard_normal((50, 6))
    assert principal_columns(X, 6) is X
    assert principal_columns(X, None) is X
    rows = sp.csr_array(X)
    assert principal_columns(rows, 2) is rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repeated_and_constant_columns(dtype: type) -> None:
    # Rank one: all components but the first are zeros, none of them NaN, and the order of the rows is kept.
    t = np.linspace(0, 1, 60)
    X = np.column_stack([t, t, t, t, np.ones(60), t]).astype(dtype)
    result = principal_columns(X, 2)
    assert result.dtype == dtype
    assert np.isfinite(result).all()
    assert abs(np.corrcoef(result[:, 0], t)[0, 1]) == pytest.approx(1.0)
    np.testing.assert_allclose(result[:, 1], 0, atol=1e-6)
    assert not pdist(principal_columns(np.ones((60, 4), dtype=dtype), 2)).any()


def test_a_sample_and_a_random_projection_find_the_same_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((3000, 3)) @ random.standard_normal((3, 12)) + 0.01 * random.standard_normal((3000, 12))
    exact = pdist(principal_columns(X, 4)[:100])
    monkeypatch.setattr("grbb_ext.table._components._MOST_COLUMNS", 5)
    np.testing.assert_allclose(pdist(principal_columns(X, 4)[:100]), exact, rtol=1e-3)
    monkeypatch.setattr("grbb_ext.table._components.MOST_ROWS", 1000)
    np.testing.assert_allclose(pdist(principal_columns(X, 4)[:100]), exact, rtol=0.1)


def test_noise_columns_lose_their_say() -> None:
    # Two columns of two clusters among 60 of noise: neighbours on all columns are of one cluster less often.
    random = np.random.default_rng(2)
    truth = np.arange(300) % 2
    X = np.hstack([truth[:, None] * 1.5 + random.standard_normal((300, 4)), random.standard_normal((300, 60))])

    def same(n_components: int | None) -> float:
        plain = prepared(X, RefinedGraph(n_components=n_components)).W
        assert plain is not None
        rows, columns = plain.nonzero()
        return float(np.mean(truth[rows] == truth[columns]))

    assert same(10) > same(None) + 0.05


def test_more_columns_of_the_same_rows() -> None:
    X = np.random.default_rng(5).standard_normal((80, 4))
    widened = NormalScores(X)
    np.testing.assert_allclose(pdist(principal_columns(X, 3, widened)), pdist(principal_columns(widened(X), 3)))
    np.testing.assert_array_equal(principal_columns(X, 8, widened), widened(X))


def test_normal_scores_stand_beside_the_columns() -> None:
    X = np.random.default_rng(6).lognormal(size=(80, 4))
    for spec, shape in ((RefinedGraph(), 8), (RefinedGraph(normal_scores=False), 4)):
        assert prepared(X, spec).points.shape == (80, shape)
    assert prepared(X, RefinedGraph(scale=None)).points.shape == (80, 4)
    basis = prepared(X, RefinedGraph(n_components=3))
    assert basis.components is basis.points
    assert prepared(X, RefinedGraph(n_components=6)).components is None


def test_other_metrics_keep_the_columns() -> None:
    X = np.random.default_rng(3).standard_normal((80, 40))
    for metric, shape in (("euclidean", 30), ("cosine", 40)):
        assert prepared(X, RefinedGraph(metric=metric)).points.shape == (80, shape)


def test_an_objective_takes_the_number() -> None:
    X = np.random.default_rng(4).standard_normal((80, 40))
    y = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
    few, all_ = (
        grbb_objective(X, y, graph=RefinedGraph(n_components=n), teacher="graph", verbose=False) for n in (5, None)
    )
    assert not np.array_equal(few.targets_, all_.targets_)
