"""Coefficients with a prior: what a fit says is that of an explicit Gaussian in which they are integrated out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import dense
from graphs import grid, small_world
from residua import Eigen, GraphRegressor
from residua.field import Conditional, Likelihood
from residua.field.coefficients import Design
from residua.field.profile import Profile

GRAPHS = {
    "small world": small_world(n=110, degree=6, share=0.7),
    "grid": grid(10, 11, share=0.7),
    "two types": small_world(n=110, degree=6, share=0.7, types=2),
}
INF = np.inf


def problem(name, seed=0):
    """Two features with a curve and a line, noise that neighbours share, and labels."""
    c = GRAPHS[name]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((c.n, 2))
    alpha = [0.8, -0.3][: len(c.types)]
    truth = 3 + np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.5 * dense.draw(c.S, alpha, 2.0, rng)[0]
    return c, X, truth, np.where(c.labelled, truth, np.nan)


def learned(name, correlation="learned"):
    c, X, truth, y = problem(name)
    model = GraphRegressor("splines", correlation=correlation, logdet=Eigen()).fit(X, y, graph=c.graph)
    Z, variance = model.base_.design(X), model.base_.prior_variance
    assert np.isinf(variance[:3]).all()
    assert (variance[3:] < INF).all()
    assert variance[3] > 0  # the curve is seen
    return c, truth, y, model, Z, variance


def explicit(c, model, Z, variance):
    return dense.with_prior(c.S, list(model.alpha_.values()), model.beta_, Z, variance), Z[:, np.isinf(variance)]


@pytest.mark.parametrize("correlation", ["learned", None])
@pytest.mark.parametrize("name", GRAPHS)
def test_means_deviations_and_leave_one_out_are_those_of_the_explicit_gaussian(name, correlation):
    c, _, y, model, Z, variance = learned(name, correlation)
    C, free = explicit(c, model, Z, variance)
    expected, spread = dense.predicted(C, c.labelled, y[c.labelled], free)
    mean, std = model.predict(return_std=True)
    assert_allclose(mean[c.U], expected, rtol=1e-7)
    assert_allclose(std[c.U] ** 2, np.diag(spread), rtol=1e-7)
    left_out, deviation = model.predict(return_std=True, known="predict")
    for i in c.L[::9]:
        others = c.labelled.copy()
        others[i] = False
        mean, spread = dense.predicted(C, others, y[others], free)
        at = np.flatnonzero(np.flatnonzero(~others) == i)[0]
        assert_allclose(left_out[i], mean[at], rtol=1e-6)
        assert_allclose(deviation[i] ** 2, spread[at, at], rtol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_labels_that_came_later_move_coefficients_with_a_prior_too(name):
    c, truth, _, model, Z, variance = learned(name)
    C, free = explicit(c, model, Z, variance)
    later, known = np.full(c.n, np.nan), c.labelled.copy()
    later[c.U[::2]], known[c.U[::2]] = truth[c.U[::2]], True
    mean, std = model.predict(y=later, return_std=True)
    expected, spread = dense.predicted(C, known, truth[known], free)
    assert_allclose(mean[~known], expected, rtol=1e-7)
    assert_allclose(std[~known] ** 2, np.diag(spread), rtol=1e-7)


@pytest.mark.parametrize("name", ["small world", "grid"])
def test_alpha_and_prior_variances_are_where_the_restricted_likelihood_is_highest(name):
    c, _, y, model, Z, variance = learned(name)
    labels = y[c.labelled]
    fit = model.correlation_

    def height(x):
        taus = np.where(np.isinf(variance), INF, np.exp(x[1]))
        taus[9:] = np.exp(x[2])
        return dense.restricted_with_prior(c.S, [np.tanh(x[0])], c.labelled, labels, Z, taus)

    lowest = -20.0  # as good as no bend
    start = np.r_[np.arctanh(fit.alpha["edge"]), np.log(np.maximum(variance[[3, 9]], np.exp(lowest)))]
    assert_allclose(-2 * fit.restricted_log_likelihood, height(start), rtol=1e-7)
    bounds = [(-3, 3), (lowest, 8), (lowest, 8)]
    for begin in (start, [0.5, -2.0, -2.0], [1.5, 1.0, 1.0]):
        assert minimize(height, begin, bounds=bounds, tol=1e-10).fun >= height(start) - 1e-5
    q = labels @ _projection(c, fit, Z, variance) @ labels
    assert_allclose(fit.beta, (len(labels) - 3) / q, rtol=1e-7)


def _projection(c, fit, Z, variance):
    """P for beta = 1: y'Py is what free coefficients leave."""
    inverse = np.linalg.inv(dense.block(dense.with_prior(c.S, list(fit.alpha.values()), 1.0, Z, variance), c.labelled))
    F = Z[c.labelled][:, np.isinf(variance)]
    return inverse - inverse @ F @ np.linalg.solve(F.T @ inverse @ F, F.T @ inverse)


def test_a_beta_without_correlation_counts_what_the_prior_takes():
    c, _, y, model, Z, variance = learned("grid", None)
    C = dense.block(dense.with_prior(c.S, [0.0], 1.0, Z, variance), c.labelled)
    inverse, F, labels = np.linalg.inv(C), Z[c.labelled][:, :3], y[c.labelled]
    left = labels - F @ np.linalg.solve(F.T @ inverse @ F, F.T @ inverse @ labels)
    assert_allclose(model.beta_, (len(labels) - 3) / (left @ inverse @ left), rtol=1e-8)


def test_the_plain_likelihood_and_the_coefficients_are_dense():
    c, _, y, model, Z, variance = learned("grid")
    fit, labels, F = model.correlation_, y[c.labelled], Z[c.labelled]
    # Bends have no part in what the free columns span at the labels: a plain likelihood would depend on it.
    free = Z[:, :3]
    straight = np.column_stack([free, Z[:, 3:] - free @ np.linalg.lstsq(free[c.labelled], Z[c.labelled, 3:])[0]])
    C = dense.block(dense.with_prior(c.S, list(fit.alpha.values()), 1.0, straight, variance), c.labelled)
    q = labels @ _projection(c, fit, Z, variance) @ labels
    n = len(labels)
    expected = -(n * np.log(2 * np.pi * q / n) + n + np.linalg.slogdet(C)[1]) / 2
    assert_allclose(fit.log_likelihood, expected, rtol=1e-8)
    Gbar = dense.schur(c.S, list(fit.alpha.values()), c.labelled)
    with np.errstate(divide="ignore"):
        H = F.T @ Gbar @ F + np.diag(np.minimum(1 / variance, 1e14))
    assert_allclose(fit.coefficients, np.linalg.solve(H, F.T @ Gbar @ labels), rtol=1e-6, atol=1e-8)
    assert_allclose(fit.coefficient_covariance, np.linalg.inv(H) / fit.beta, rtol=1e-5, atol=1e-9)
    assert_allclose(model.field_.prediction.conditional.coefficients.covariance, fit.coefficient_covariance, atol=1e-9)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_slope_of_the_likelihood_is_its_slope(name):
    c, X, _, y = problem(name)
    model = GraphRegressor("splines").fit(X, y, graph=c.graph)
    Z = model.base_.design(X)[c.labelled]
    profile = Profile(Likelihood(c.graph, c.labelled, Eigen()), y[c.labelled], Z, groups=model.base_.groups)
    for a in ([0.3, -0.2], [1.2, 0.4], [-0.5, 0.1]):
        at, step = np.array(a[: profile.p]), 1e-4
        profile.quadratic_form.refine(np.tanh(at))
        slopes = [(profile.omega(at + d) - profile.omega(at - d)) / (2 * step) for d in step * np.eye(profile.p)]
        assert_allclose(profile.gradient(at), slopes, rtol=1e-4, atol=1e-4)


def test_a_prior_of_infinite_variance_is_none_and_one_of_zero_takes_the_column_away(rng):
    c, _, _, y = problem("grid")
    Z = np.column_stack([np.ones(c.n), rng.standard_normal((c.n, 3))])

    def given(columns, variance=None):
        found = Conditional(c.graph, c.labelled, 0.9, 2.0, design=Design(columns, variance), exact=True)
        return found.variance().value, found.leave_one_out(y - found.mean_of(y)).variance, found.mean_of(y)

    for ours, theirs in zip(given(Z, np.full(4, INF)), given(Z), strict=True):
        assert_array_equal(ours, theirs)
    for ours, theirs in zip(given(Z, np.array([INF, INF, 0.0, 0.0])), given(Z[:, :2]), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)
    for ours, theirs in zip(given(Z, np.array([INF, INF, 1e9, 1e9])), given(Z), strict=True):
        assert_allclose(ours, theirs, rtol=1e-5)


def test_draws_have_the_covariance_of_the_explicit_gaussian():
    c, _, _, model, Z, variance = learned("grid")
    C, free = explicit(c, model, Z, variance)
    _, expected = dense.predicted(C, c.labelled, model.y_[c.labelled], free)
    draws = model.sample(4000, random_state=1)[:, c.U]
    found = np.cov(draws.T)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) * 2 / 4000)
    assert np.abs((found - expected) / size).max() < 5
