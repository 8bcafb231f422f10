"""Draws have the covariance they should, and variances from them the error they claim."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dense
from graphs import CASES, small_world
from residua.field import Conditional
from residua.linalg import CG, Shifted, weighted_sum
from residua.linalg.sampling import inverse_diagonal

DRAWS = 20_000


def excess(X, C):
    """The worst entry of the sample covariance of columns X, in its own standard deviations (Isserlis)."""
    count = X.shape[1]
    spread = np.sqrt((np.outer(np.diag(C), np.diag(C)) + C**2) / count)
    spread = np.where(spread > 0, spread, 1e-12)
    return np.max(np.abs(X @ X.T / count - C) / spread)


def operator(c, alpha):
    """The precision at alpha on the first type, and its opposite (damped) on the second."""
    alpha = alpha * np.array([1.0, -0.8])[: len(c.terms)]
    return Shifted(weighted_sum(c.terms, alpha), 1.0), dense.precision(c.S, alpha)


@pytest.mark.parametrize("alpha", [-0.95, -0.4, 0.0, 0.7, 0.99])
def test_noise_has_the_precision_as_its_covariance(any_case, alpha):
    A, G = operator(any_case, alpha)
    X = A.noise(np.random.default_rng(1))(DRAWS)
    assert X.shape == (any_case.n, DRAWS)
    assert excess(X, G) < 5
    assert np.max(np.abs(X.mean(axis=1)) / np.sqrt(np.diag(G) / DRAWS)) < 5


@pytest.mark.parametrize("alpha", [(0.5, -0.5), (-0.9, 0.9), (0.9, 0.9)])
def test_noise_of_two_types_on_a_common_edge(two_types, alpha):
    A = Shifted(weighted_sum(two_types.terms, np.array(alpha)), 1.0)
    X = A.noise(np.random.default_rng(2))(DRAWS)
    assert excess(X, dense.precision(two_types.S, alpha)) < 5


def test_noise_at_the_limit_has_no_share_along_the_constant():
    """alpha = 1: the precision is singular along D^1/2 1, and a draw has nothing there."""
    for name in ("path", "weighted", "self-loops", "two components"):
        c = CASES[name]
        X = Shifted(c.terms[0], 1.0).noise(np.random.default_rng(3))(DRAWS)
        assert excess(X, dense.precision(c.S, 1.0)) < 5
        # What rounding leaves of the diagonal, about eps, enters by its square root.
        assert_allclose(np.sqrt(c.graph.degree) @ X, 0, atol=1e-7 * np.sqrt(c.graph.degree.sum()))


def test_noise_follows_its_generator_and_precision():
    A = Shifted(small_world(n=50).terms[0].astype(np.float32), 0.5)
    one, same, other = (A.noise(np.random.default_rng(s))(3) for s in (1, 1, 2))
    assert one.dtype == np.float32
    assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize("alpha", [-0.9, 0.6])
@pytest.mark.parametrize("beta", [0.25, 4.0])
def test_joint_draws_have_the_conditional_covariance(any_case, alpha, beta):
    weights = dict(zip(any_case.types, alpha * np.array([1.0, -0.8]), strict=False))
    draws = Conditional(any_case.graph, any_case.labelled, weights, beta).sample(DRAWS, np.random.default_rng(4))
    assert draws.shape == (DRAWS, any_case.n)
    assert_array_equal(draws[:, any_case.L], 0)
    r = np.zeros(len(any_case.L))
    _, C = dense.conditional(any_case.S, list(weights.values()), beta, any_case.labelled, r)
    assert excess(draws[:, any_case.U].T, C) < 5


def test_joint_draws_carry_the_uncertainty_of_the_coefficients(any_case):
    Z = np.column_stack([np.ones(any_case.n), np.linspace(-1, 2, any_case.n) ** 2])
    alpha = dict(zip(any_case.types, [0.6, -0.5], strict=False))
    conditional = Conditional(any_case.graph, any_case.labelled, alpha, 2.0, design=Z)
    draws = conditional.sample(DRAWS, np.random.default_rng(5))
    y = np.zeros(len(any_case.L))
    _, C = dense.kriging(any_case.S, list(alpha.values()), 2.0, any_case.labelled, y, Z)
    assert_array_equal(draws[:, any_case.L], 0)
    assert excess(draws[:, any_case.U].T, C) < 5


def estimates(c, alpha, draws, seeds):
    """(seeds, n) inverse diagonals and their standard errors, and the true diagonal."""
    A, G = operator(c, alpha)
    found = []
    for seed in seeds:
        noise = A.noise(np.random.default_rng(seed))(draws)
        found.append(inverse_diagonal(A, [CG().solve(A, noise).X]))
    return np.array([e.value for e in found]), np.array([e.stderr for e in found]), np.diag(np.linalg.inv(G))


@pytest.mark.parametrize("alpha", [-0.9, 0.0, 0.5, 0.9])
def test_variance_from_draws_is_within_its_own_standard_error(any_case, alpha):
    values, errors, true = estimates(any_case, alpha, 512, range(20))
    assert (np.abs(values - true) <= 4.5 * errors + 1e-12).all()


@pytest.mark.parametrize("alpha", [-0.9, 0.5, 0.95])
def test_variance_from_draws_reports_the_right_standard_error(alpha):
    c = small_world(n=60, degree=6)
    values, errors, true = estimates(c, alpha, 64, range(150))
    ratio = errors.mean(axis=0) / np.sqrt(((values - true) ** 2).mean(axis=0))
    assert ratio.min() > 1 / 1.5
    assert ratio.max() < 1.5
    assert np.abs((values.mean(axis=0) - true) / (errors.mean(axis=0) / np.sqrt(150))).max() < 4.5


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.99])
def test_variance_from_draws_beats_plain_sampling(alpha, rng):
    """64 draws, half labelled: at most 2.3 % off, where the plain mean of squares is off by sqrt(2 / 64) = 18 %."""
    c = small_world(n=300)
    A, G = operator(c, alpha)
    A_UU = A.submatrix(c.U)
    X = CG().solve(A_UU, A.noise(rng)(64)[c.U]).X
    true = np.diag(np.linalg.inv(dense.block(G, c.U)))
    error = np.sqrt(np.mean((inverse_diagonal(A_UU, [X]).value / true - 1) ** 2))
    plain = np.sqrt(np.mean(((X**2).mean(axis=1) / true - 1) ** 2))
    assert error < 0.023
    assert plain == pytest.approx(np.sqrt(2 / 64), rel=0.2)


def test_isolated_node_has_variance_one_without_doubt():
    c = CASES["isolate"]
    values, errors, _ = estimates(c, 0.9, 16, [0])
    alone = c.graph.degree == 0
    assert_array_equal(values[0, alone], 1.0)
    assert_array_equal(errors[0, alone], 0.0)
