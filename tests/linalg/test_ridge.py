"""Ridge: prior variances are where the restricted likelihood is highest, and the fit is that of dense algebra."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from residua.linalg.ridge import basis, fit_rows, unit_variances
from residua.linalg.rows import LOCAL
from residua.linalg.variance_components import Grams, restricted_variances


def problem(seed=0, n=60, sizes=(4, 5, 3), signal=(2.0, 0.0, 0.5), unit=1.0):
    """Two free columns and groups of columns whose coefficients have variances ``signal``."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(n), rng.standard_normal((n, 1 + sum(sizes)))])
    groups = np.r_[0, 0, np.repeat(np.arange(1, len(sizes) + 1), sizes)]
    root = np.sqrt(np.r_[0.0, 0.0, np.repeat(signal, sizes)])
    y = 3 + Z @ (root * rng.standard_normal(len(groups))) + rng.standard_normal(n)
    return Z * np.where(groups > 0, unit, 1.0), y, groups


def height(log_tau, Z, y, groups):
    """-2 restricted log-likelihood at the best scale, from the covariance."""
    tau = np.exp(np.asarray(log_tau))
    B = Z[:, groups > 0]
    K = null_space(Z[:, groups == 0].T)
    C = K.T @ (np.eye(len(y)) + (B * tau[groups[groups > 0] - 1]) @ B.T) @ K
    w = K.T @ y
    return -2 * multivariate_normal(cov=C * (w @ np.linalg.solve(C, w)) / len(w)).logpdf(w)


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e5])
@pytest.mark.parametrize("seed", range(6))
def test_no_other_prior_is_more_likely(seed, unit):
    Z, y, groups = problem(seed, unit=unit)
    found = fit_rows(LOCAL, Z, y, groups).prior_variance
    assert np.isinf(found[:2]).all()
    taus = np.array([found[groups == g][0] for g in (1, 2, 3)])
    assert_array_equal(found[2:], np.repeat(taus, [4, 5, 3]))
    at = np.log(np.maximum(taus * unit**2, 1e-12))
    shown = Z / np.where(groups > 0, unit, 1.0)
    best = height(at, shown, y, groups)
    for start in (at, np.zeros(3), np.array([2.0, -4.0, -1.0])):
        assert minimize(height, start, (shown, y, groups), bounds=[(-28, 9)] * 3).fun > best - 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_coefficients_and_leverage_are_those_of_the_normal_equations(seed):
    Z, y, groups = problem(seed)
    found = fit_rows(LOCAL, Z, y, groups)
    keep = found.prior_variance > 0
    Z, penalty = Z[:, keep], 1 / found.prior_variance[keep]
    hat = Z @ np.linalg.solve(Z.T @ Z + np.diag(penalty), Z.T)
    assert_allclose(Z @ found.coefficients[keep], hat @ y, rtol=1e-9)
    assert_array_equal(found.coefficients[~keep], 0)
    assert_allclose(found.leverage, np.diag(hat), rtol=1e-9)


def test_a_group_that_is_told_well_is_as_good_as_free():
    Z, y, groups = problem(sizes=(4, 4), signal=(1.0, 0.0))
    y = 1e4 * Z[:, 2:6] @ [1.0, -2.0, 0.5, 1.5] + y
    found = fit_rows(LOCAL, Z, y, groups)
    free = fit_rows(LOCAL, Z, y, np.where(groups == 1, 0, groups))
    assert found.prior_variance[2] > 1e6
    assert_allclose(found.coefficients[2:6], free.coefficients[2:6], rtol=1e-6)
    assert_allclose(found.prior_variance[6:], free.prior_variance[6:], rtol=1e-4, atol=1e-6)


def test_of_noise_most_groups_have_no_variance():
    Z, _, groups = problem(sizes=(4, 4), signal=(0.0, 0.0))
    rng = np.random.default_rng(3)
    found = [fit_rows(LOCAL, Z, rng.standard_normal(len(Z)), groups).prior_variance[[2, 6]] for _ in range(60)]
    # The slope at 0 is positive where |B'y|^2 is below its mean: P(chi2_4 < 4) = .59.
    assert 0.45 < np.mean(np.array(found) == 0) < 0.75


def test_columns_of_zeros_have_no_variance():
    Z, y, groups = problem()
    Z[:, groups == 2] = 0.0
    found = fit_rows(LOCAL, Z, y, groups)
    assert_array_equal(found.prior_variance[groups == 2], 0)
    assert_array_equal(found.coefficients[groups == 2], 0)
    other = fit_rows(LOCAL, Z[:, groups != 2], y, groups[groups != 2])
    assert_allclose(found.prior_variance[groups != 2], other.prior_variance, rtol=1e-6)


def test_without_groups_it_is_least_squares():
    Z, y, groups = problem()
    found = fit_rows(LOCAL, Z, y, np.zeros_like(groups))
    assert_allclose(found.coefficients, np.linalg.lstsq(Z, y)[0], rtol=1e-10)
    assert np.isinf(found.prior_variance).all()


def test_a_basis_is_made_of_the_columns():
    Z, _, groups = problem()
    variance = unit_variances(LOCAL, Z, groups)
    W, T, rank = basis(LOCAL, Z, variance)
    assert_allclose(Z @ T, W, atol=1e-12)
    assert rank == 2
    assert_allclose(W[:, :2].T @ W, np.eye(2, W.shape[1]), atol=1e-12)
    for group in (1, 2, 3):
        assert_allclose((Z[:, groups == group] ** 2).sum() * variance[groups == group], 1)


def test_a_point_that_is_no_minimum_is_left():
    """Start where f is concave: many directions, one of them with all the signal."""
    A = np.diag([1e4, 1.0, 1e-4])
    b = np.array([200.0, 0.0, 0.0])
    tau = restricted_variances(Grams(A, b, 60.0), np.array([1, 1, 1]), 50)[0]

    def f(t):
        return 50 * np.log(60 - (b**2 * t / (1 + t * np.diag(A))).sum()) + np.log1p(t * np.diag(A)).sum()

    grid = np.r_[0, np.geomspace(1e-9, 1e5, 4000)]
    assert f(tau) <= min(map(f, grid)) + 1e-6
