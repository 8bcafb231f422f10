"""A fit is the maximum of the dense restricted likelihood, and its errors are those of the dense Hessian."""

import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

import dense
import residua
from fits import fit_likelihood
from graphs import CASES, case, grid, small_world
from residua.field import Likelihood
from residua.field.alpha_interval import profile_interval, stderr_near_limit
from residua.field.precision import A_MAX
from residua.field.profile import Profile
from residua.linalg import Cholesky, Eigen, Lanczos

BORDER = 1 - 1e-5


def weighted_world():
    """A small world with weights over two decades, self-loops and an isolated node."""
    c = small_world(n=130, degree=6, seed=2)
    rng = np.random.default_rng(0)
    loops = np.arange(0, 120, 7)
    return replace(
        c,
        n=131,
        source=np.concatenate([c.source, loops]),
        target=np.concatenate([c.target, loops]),
        weight=np.concatenate([10 ** rng.uniform(-1, 1, len(c.source)), np.full(len(loops), 3.0)]),
        type=np.concatenate([c.type, c.type[: len(loops)]]),
        labelled=np.append(c.labelled, True),
    )


GRAPHS = {
    "small world": small_world(n=150, degree=6, share=0.6),
    "all labelled": small_world(n=100, degree=4, share=1.0),
    "grid": grid(12, 12),
    "weights, loops, isolate": weighted_world(),
}
DATA = [(name, alpha) for name in GRAPHS for alpha in (-0.7, 0.0, 0.6, 0.95)]


@cache
def simulated(name, alpha, beta=2.5, seed=0):
    """Residuals of known correlation at the labels, the same over all nodes with NaN, and their dense optimum."""
    c = GRAPHS[name]
    r = dense.draw(c.S, [alpha], beta, np.random.default_rng(seed))[0]
    y = np.where(c.labelled, r, np.nan)
    return c, r[c.labelled], y, *dense.best_alpha(c.S, c.labelled, r[c.labelled])


@pytest.mark.parametrize("strategy", [Eigen(), Cholesky(), "auto"], ids=str)
@pytest.mark.parametrize(("name", "alpha"), DATA)
def test_fit_is_the_dense_maximum(name, alpha, strategy):
    c, r, y, best, omega = simulated(name, alpha)
    fit = residua.fit_correlation(y, c.graph, logdet=strategy)
    q, _, _ = dense.least_squares(c.S, [best], c.labelled, r)
    assert_allclose(fit.alpha["edge"], best, atol=1e-4 * fit.alpha_stderr["edge"])
    assert_allclose(fit.beta, len(r) / q, rtol=1e-4)
    assert_allclose([fit.log_likelihood, fit.restricted_log_likelihood], -omega / 2, rtol=1e-8)
    gain = dense.profile(c.S, [0.0], c.labelled, r) - omega
    assert_allclose(fit.p_value, chi2.sf(gain / fit.bartlett_factor, 1), rtol=1e-6)
    assert (fit.bartlett_factor > 1) == (len(r) <= 64)
    assert fit.n_labelled == len(r)
    assert fit.alpha_mc_error == {"edge": 0.0}
    assert fit.log_likelihood_mc_error == 0
    assert "exact" in fit.methods["log-determinant"]


@pytest.mark.parametrize(("name", "alpha"), DATA)
def test_standard_errors_are_those_of_the_dense_hessian(name, alpha):
    c, r, y, *_ = simulated(name, alpha)
    fit = residua.fit_correlation(y, c.graph)
    H = dense.information(c.S, [fit.alpha["edge"]], fit.beta, c.labelled, r)
    expected = np.sqrt(np.diag(np.linalg.inv(H)))
    assert_allclose(fit.alpha_stderr["edge"], expected[0], rtol=0.01)
    assert_allclose(fit.beta_stderr, expected[1], rtol=0.01)


@pytest.mark.parametrize("coverage", [0.5, 0.95])
@pytest.mark.parametrize(("name", "alpha"), DATA)
def test_interval_ends_where_the_likelihood_has_dropped_by_the_quantile(name, alpha, coverage):
    c, r, y, best, omega = simulated(name, alpha)
    fit = residua.fit_correlation(y, c.graph)
    low, high = fit.interval(coverage)["edge"]
    bar = fit.bartlett_factor * chi2.ppf(coverage, 1)
    assert low < best < high
    for end in (low, high):
        if abs(end) < 1:
            drop = dense.profile(c.S, [end], c.labelled, r) - omega
            assert_allclose(drop, bar, rtol=5e-3)
        else:  # open: the likelihood stays above the bar up to the border
            at_border = dense.profile(c.S, [np.sign(end) * BORDER], c.labelled, r)
            assert at_border - omega < bar


@pytest.mark.parametrize("scale", [1e9, 1e-9])
@pytest.mark.parametrize("strategy", [Eigen(), Cholesky(), Lanczos(probes=16)], ids=lambda s: type(s).__name__)
def test_fit_does_not_depend_on_the_unit_of_the_residual(scale, strategy):
    c, _, y, *_ = simulated("grid", 0.6)
    plain, scaled = (residua.fit_correlation(s * y, c.graph, logdet=strategy) for s in (1.0, scale))
    assert_allclose(scaled.alpha["edge"], plain.alpha["edge"], rtol=1e-6)
    assert_allclose(scaled.alpha_stderr["edge"], plain.alpha_stderr["edge"], rtol=1e-5)
    assert_allclose(scaled.beta * scale**2, plain.beta, rtol=1e-6)
    assert_allclose(scaled.beta_stderr * scale**2, plain.beta_stderr, rtol=1e-5)
    assert_allclose(scaled.p_value, plain.p_value, rtol=1e-6)
    shifted = scaled.log_likelihood + scaled.n_labelled * np.log(scale)
    assert_allclose(shifted, plain.log_likelihood, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", ["small world", "grid", "weights, loops, isolate"])
def test_fit_does_not_depend_on_the_order_of_nodes(name):
    c, _, y, *_ = simulated(name, 0.6)
    order = np.random.default_rng(3).permutation(c.n)
    fit, other = residua.fit_correlation(y, c.graph), residua.fit_correlation(y[order], c.permuted(order).graph)
    assert_allclose(other.alpha["edge"], fit.alpha["edge"], atol=1e-5 * fit.alpha_stderr["edge"])
    assert_allclose(other.beta, fit.beta, rtol=1e-5)
    assert_allclose(other.log_likelihood, fit.log_likelihood, rtol=1e-10)
    assert_allclose(other.p_value, fit.p_value, rtol=1e-7)
    assert_allclose(other.interval()["edge"], fit.interval()["edge"], atol=1e-3 * fit.alpha_stderr["edge"])


def test_fit_does_not_depend_on_a_component_without_labels():
    c, _, y, *_ = simulated("grid", 0.6)
    more = replace(
        c,
        n=c.n + 3,
        source=np.append(c.source, [c.n, c.n + 1]),
        target=np.append(c.target, [c.n + 1, c.n + 2]),
        weight=np.ones(len(c.source) + 2),
        type=np.append(c.type, ["edge", "edge"]),
        labelled=np.append(c.labelled, [False] * 3),
    )
    fit = residua.fit_correlation(y, c.graph)
    other = residua.fit_correlation(np.append(y, [np.nan] * 3), more.graph)
    assert other.alpha["edge"] == pytest.approx(fit.alpha["edge"], abs=1e-9)
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-9)


# A linear mean fitted together with the correlation


def design(c, rng):
    """A constant, a column in other units, and one with a large offset."""
    x = rng.standard_normal((2, c.n))
    return np.column_stack([np.ones(c.n), 1e6 * x[0], 50 + x[1]])


@pytest.mark.parametrize(("name", "alpha"), [d for d in DATA if d[1]])
def test_coefficients_are_generalised_least_squares(name, alpha, rng):
    c = GRAPHS[name]
    Z = design(c, rng)
    truth = np.array([3.0, -2e-6, 0.5])
    y = (Z @ truth + dense.draw(c.S, [alpha], 2.0, rng)[0])[c.labelled]
    fit = fit_likelihood(Likelihood(c.graph, c.labelled, Eigen()), y, c.types, Z[c.labelled])
    best, omega = dense.best_alpha(c.S, c.labelled, y, Z)
    q, theta, spread = dense.least_squares(c.S, [best], c.labelled, y, Z)
    assert_allclose(fit.alpha["edge"], best, atol=1e-3 * fit.alpha_stderr["edge"])
    assert_allclose(fit.restricted_log_likelihood, -omega / 2, rtol=1e-8)
    assert_allclose(fit.log_likelihood, -dense.profile(c.S, [fit.alpha["edge"]], c.labelled, y, Z) / 2, rtol=1e-8)
    assert_allclose(fit.beta, (len(y) - Z.shape[1]) / q, rtol=1e-4)
    assert_allclose(fit.coefficients, theta, rtol=1e-4)
    assert_allclose(fit.coefficient_covariance, spread * q / (len(y) - Z.shape[1]), rtol=1e-3)
    unrelated = dense.restricted(c.S, [0.0], c.labelled, y, Z)
    assert_allclose(fit.p_value, chi2.sf(unrelated - omega, 1), rtol=1e-5)


@pytest.mark.parametrize("name", ["small world", "grid by direction"])
@pytest.mark.parametrize("alpha", [(0.0, 0.0), (0.8, 0.3), (0.5, -0.6), (-0.95, 0.99)])
def test_restricted_likelihood_and_its_slope_are_dense_for_several_alphas(name, alpha, rng):
    c = TWO[name]
    Z = np.column_stack([design(c, rng), np.zeros(c.n), rng.standard_normal((c.n, 4))])
    y = dense.draw(c.S, (0.5, 0.2), 2.0, rng)[0][c.labelled]
    profile = Profile(Likelihood(c.graph, c.labelled, Eigen()), y, Z[c.labelled])
    assert (profile.rank, profile.freedom) == (7, len(y) - 7)

    def height(a):
        return dense.restricted(c.S, np.tanh(a), c.labelled, y, Z)

    a, step = np.arctanh(alpha), 1e-5
    assert_allclose(profile.restricted_log_likelihood(a), -height(a) / 2, rtol=1e-8)
    slope = [(height(a + d) - height(a - d)) / (2 * step) for d in step * np.eye(2)]
    assert_allclose(profile.gradient(a), slope, rtol=1e-5, atol=1e-4)


def test_plain_likelihood_is_that_of_known_coefficients(rng):
    """As in model files of version 0.1, whose intervals rest on it."""
    c = GRAPHS["grid"]
    Z, y = design(c, rng), dense.draw(c.S, [0.6], 2.0, rng)[0][c.labelled]
    profile = Profile(Likelihood(c.graph, c.labelled, Eigen()), y, Z[c.labelled], restricted=False)
    for alpha in (-0.9, 0.0, 0.5, 0.99):
        height = dense.profile(c.S, [alpha], c.labelled, y, Z)
        a = np.arctanh([alpha])
        assert_allclose([profile.log_likelihood(a), profile.restricted_log_likelihood(a)], -height / 2, rtol=1e-8)
        up, down = (profile.omega(a + d) for d in (1e-5, -1e-5))
        assert_allclose(profile.gradient(a), (up - down) / 2e-5, rtol=1e-4, atol=1e-4)


def test_estimated_restricted_likelihood_is_dense_within_its_standard_error(rng):
    c = LARGE["small world"]
    X = rng.standard_normal((c.n, 6))
    Z = np.column_stack([np.ones(c.n), X])
    y = np.where(c.labelled, Z.sum(axis=1) + large("small world", 0.5)[1], np.nan)
    exact, fit = (
        residua.GraphRegressor("linear", logdet=how).fit(X, y, graph=c.graph).correlation_
        for how in (Cholesky(), Lanczos(random_state=3))
    )
    assert abs(fit.alpha["edge"] - exact.alpha["edge"]) < 4 * fit.alpha_mc_error["edge"]
    best = dense.restricted(c.S, [exact.alpha["edge"]], c.labelled, y[c.labelled], Z)
    assert_allclose(exact.restricted_log_likelihood, -best / 2, rtol=1e-8)


@pytest.mark.parametrize("offset", [1e3, 1e6, -1e8])
def test_constant_added_to_the_labels_moves_the_constant_alone(offset, rng):
    """Years, kelvins, populations: the spread counts, not the distance from zero."""
    c = GRAPHS["small world"]
    Z = np.column_stack([np.ones(c.n), rng.standard_normal(c.n)])[c.labelled]
    y = Z @ [0.0, 2.0] + dense.draw(c.S, [0.8], 1.0, rng)[0][c.labelled]
    likelihood = Likelihood(c.graph, c.labelled, Eigen())
    fit, moved = (fit_likelihood(likelihood, y + shift, c.types, Z) for shift in (0.0, offset))
    assert_allclose(moved.alpha["edge"], fit.alpha["edge"], atol=1e-2 * fit.alpha_stderr["edge"])
    assert_allclose(moved.alpha_stderr["edge"], fit.alpha_stderr["edge"], rtol=0.01)
    assert_allclose(moved.log_likelihood, fit.log_likelihood, atol=1e-3)
    assert_allclose(moved.coefficients, fit.coefficients + np.array([offset, 0]), rtol=1e-9, atol=1e-3)


def test_redundant_columns_change_no_prediction(rng):
    c = GRAPHS["small world"]
    Z = design(c, rng)
    y = (Z @ [3.0, -2e-6, 0.5] + dense.draw(c.S, [0.8], 2.0, rng)[0])[c.labelled]
    twice = np.column_stack([Z, Z[:, 1] - Z[:, 0], np.zeros(c.n)])
    likelihood = Likelihood(c.graph, c.labelled, Eigen())
    fit, other = (fit_likelihood(likelihood, y, c.types, X[c.labelled]) for X in (Z, twice))
    assert_allclose(other.alpha["edge"], fit.alpha["edge"], atol=1e-3 * fit.alpha_stderr["edge"])
    assert_allclose(twice @ other.coefficients, Z @ fit.coefficients, rtol=1e-5)


def test_mean_that_fits_every_label_is_refused(rng):
    c = CASES["path"]
    with pytest.raises(ValueError, match="fits all 4 labels exactly with 4 column"):
        fit_likelihood(Likelihood(c.graph, c.labelled), rng.standard_normal(4), c.types, rng.standard_normal((4, 4)))


# Two edge types


def grid_by_direction(side, share):
    kinds = np.repeat(np.array(["across", "down"], dtype=object), side * (side - 1))
    return replace(grid(side, side, share=share), type=kinds)


TWO = {
    "small world": small_world(n=160, degree=8, types=2, share=0.9),
    "grid by direction": grid_by_direction(13, 0.9),
}


def dense_two(c, r, start):
    """The dense optimum near ``start``."""

    def height(a):
        return dense.profile(c.S, np.tanh(a), c.labelled, r)

    found = minimize(height, np.arctanh(start), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    return np.tanh(found.x), found.fun


@pytest.mark.parametrize("strategy", [Eigen(), Cholesky()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("alpha", [(0.8, 0.3), (0.5, -0.6), (-0.3, 0.1)])
@pytest.mark.parametrize("name", TWO)
def test_fit_of_two_types_is_the_dense_maximum(name, alpha, strategy):
    c = TWO[name]
    r = dense.draw(c.S, alpha, 2.0, np.random.default_rng(1))[0]
    fit = residua.fit_correlation(np.where(c.labelled, r, np.nan), c.graph, logdet=strategy)
    r = r[c.labelled]
    found = np.array([fit.alpha[t] for t in c.types])
    best, omega = dense_two(c, r, found)
    assert np.abs(best).max() < 0.99, "the maximum is at the border; choose other data"
    stderr = np.array([fit.alpha_stderr[t] for t in c.types])
    assert (np.abs(found - best) < 1e-2 * stderr).all()
    assert_allclose(fit.log_likelihood, -omega / 2, atol=1e-5)
    H = dense.information(c.S, found, fit.beta, c.labelled, r)
    expected = np.sqrt(np.diag(np.linalg.inv(H)))
    assert_allclose([*stderr, fit.beta_stderr], expected, rtol=0.01)
    gain = dense.profile(c.S, [0.0, 0.0], c.labelled, r) - omega
    assert_allclose(fit.p_value, chi2.sf(gain, 2), rtol=1e-3)


@pytest.mark.parametrize("coverage", [0.5, 0.95])
@pytest.mark.parametrize("alpha", [0.0, -0.6, 0.9])
def test_without_a_likelihood_to_ask_an_interval_is_symmetric_in_the_inverse_hyperbolic_tangent(alpha, coverage):
    """By the delta method the standard error of artanh(alpha) is that of alpha divided by 1 - alpha^2."""
    stderr = 0.02
    c = small_world(n=60, degree=6)
    y = np.where(c.labelled, np.sin(np.arange(c.n)), np.nan)
    fit = replace(
        residua.fit_correlation(y, c.graph), alpha={"edge": alpha}, alpha_stderr={"edge": stderr}, source=None
    )
    ends = np.arctanh(fit.interval(coverage)["edge"])
    slope = (np.arctanh(alpha + 1e-6) - np.arctanh(alpha - 1e-6)) / 2e-6
    quantile = np.sqrt(chi2.ppf(coverage, 1))
    assert_allclose(ends - np.arctanh(alpha), [-quantile * slope * stderr, quantile * slope * stderr], rtol=1e-6)


def test_interval_of_two_types_is_the_dense_profile():
    c = small_world(n=90, degree=8, types=2, share=0.9)
    r = dense.draw(c.S, (0.5, -0.6), 2.0, np.random.default_rng(1))[0]
    fit = residua.fit_correlation(np.where(c.labelled, r, np.nan), c.graph, logdet=Eigen())
    r = r[c.labelled]
    at = np.arctanh([fit.alpha[t] for t in c.types])
    bar = -2 * fit.log_likelihood + chi2.ppf(0.95, 1)
    for t, name in enumerate(c.types):

        def excess(x, t=t):
            def height(other):
                return dense.profile(c.S, np.tanh(np.insert(other, t, x)), c.labelled, r)

            return minimize(height, at[[1 - t]], method="Nelder-Mead", options={"xatol": 1e-5}).fun - bar

        for end, side in zip(fit.interval()[name], (-6, 6), strict=True):
            if excess(side) > 0:
                expected = np.tanh(brentq(excess, at[t], side, xtol=1e-4))
                assert_allclose(end, expected, atol=0.01 * fit.alpha_stderr[name])
            else:
                assert end == np.sign(side)


def grid_maximum(c, r):
    """The best log-likelihood on a grid over both alphas, all at once."""
    alphas = np.tanh(np.stack(np.meshgrid(*[np.linspace(-4.8, 4.8, 25)] * 2), axis=-1).reshape(-1, 2))
    C = np.linalg.inv(np.eye(c.n) - np.tensordot(alphas, c.S, axes=1))[:, c.L][:, :, c.L]
    q = np.einsum("i,kij,j->k", r, np.linalg.inv(C), r)
    n = len(r)
    heights = n * (np.log(q / n) + 1 + np.log(2 * np.pi)) + np.linalg.slogdet(C)[1]
    return -heights.min() / 2, alphas[np.argmin(heights)]


# The last ones have two hills of nearly equal height, found by looking through 900 data sets.
@pytest.mark.parametrize(
    ("seed", "heavy"),
    [*[(s, False) for s in range(10)], *[(s, True) for s in range(5)], (29, False), (128, True), (203, True)],
)
def test_fit_of_two_types_finds_the_global_maximum(seed, heavy):
    """Data of the model itself, or independent with heavy tails."""
    rng = np.random.default_rng(seed)
    c = small_world(n=30, degree=6, types=2, seed=seed)
    r = rng.standard_normal(c.n) ** 3 if heavy else dense.draw(c.S, np.tanh(rng.uniform(-3, 3, 2)), 1.0, rng)[0]
    fit = residua.fit_correlation(np.where(c.labelled, r, np.nan), c.graph)
    best, at = grid_maximum(c, r[c.labelled])
    assert fit.log_likelihood > best - 1e-6, f"found {fit.alpha}, better is {at}"


def test_fit_of_two_types_does_not_depend_on_their_order():
    c = TWO["small world"]
    r = dense.draw(c.S, (0.8, 0.3), 2.0, np.random.default_rng(1))[0]
    y = np.where(c.labelled, r, np.nan)
    turned = replace(c, **{k: getattr(c, k)[::-1] for k in ("source", "target", "weight", "type")})
    fit, other = residua.fit_correlation(y, c.graph), residua.fit_correlation(y, turned.graph)
    for t in c.types:
        assert other.alpha[t] == pytest.approx(fit.alpha[t], abs=1e-3 * fit.alpha_stderr[t])


@pytest.mark.parametrize("seed", range(6))
def test_standard_error_at_the_border_does_not_contradict_the_interval(seed):
    """A maximum at alpha = +-1 is not a sharp one: the error told must not be a thousandth of the interval."""
    rng = np.random.default_rng(seed)
    c = small_world(n=60, degree=6, types=2, share=0.6, seed=seed)
    r = dense.draw(c.S, (0.9, -0.9), 1.0, rng)[0]
    fit = residua.fit_correlation(np.where(c.labelled, r, np.nan), c.graph)
    for t, (low, high) in fit.interval().items():
        told = f"alpha[{t}] = {fit.alpha[t]:.6f} +- {fit.alpha_stderr[t]:.2g}, interval [{low:.3f}, {high:.3f}]"
        assert fit.alpha_stderr[t] > 0.1 * (high - low), told


def test_two_copies_of_one_type_fit_as_one():
    """Edges dealt at random to two types with equal alphas: the likelihood is that of one type."""
    one = small_world(n=80, degree=6, share=0.7)
    r = dense.draw(one.S, [0.6], 2.0, np.random.default_rng(5))[0]
    y = np.where(one.labelled, r, np.nan)
    single = residua.fit_correlation(y, one.graph, logdet=Eigen())
    kinds = np.where(np.random.default_rng(0).random(len(one.source)) < 0.5, "a", "b").astype(object)
    double = residua.fit_correlation(y, replace(one, type=kinds).graph, logdet=Eigen())
    assert double.log_likelihood >= single.log_likelihood - 1e-7


# Estimated log-determinants


LARGE = {"small world": small_world(n=1000, share=0.6), "map": grid(45, 45, share=0.5)}


@cache
def large(name, alpha):
    c = LARGE[name]
    L = np.linalg.cholesky(np.eye(c.n) - alpha * c.graph.operators["edge"].dense())
    r = np.linalg.solve(L.T, np.random.default_rng(7).standard_normal(c.n))
    y = np.where(c.labelled, r, np.nan)
    return c, y, residua.fit_correlation(y, c.graph, logdet=Cholesky())


@pytest.mark.parametrize(
    ("name", "alpha"),
    [("small world", 0.5), ("small world", 0.99), ("map", -0.9), ("map", 0.9), ("map", 0.99), ("map", 0.999)],
)
def test_estimated_fit_is_off_by_no_more_than_its_monte_carlo_error(name, alpha):
    c, y, exact = large(name, alpha)
    for seed in range(4):
        fit = residua.fit_correlation(y, c.graph, logdet=Lanczos(random_state=seed))
        error = abs(fit.alpha["edge"] - exact.alpha["edge"])
        assert 0 < fit.alpha_mc_error["edge"] < 0.1 * fit.alpha_stderr["edge"]
        assert error < 4 * fit.alpha_mc_error["edge"], f"{fit.alpha}, exactly {exact.alpha} +- {exact.alpha_stderr}"
        off = abs(fit.restricted_log_likelihood - exact.restricted_log_likelihood)
        assert 0 < off < 4 * fit.log_likelihood_mc_error
        # On the scale of arctanh(alpha): near 1 the error of alpha itself is proportional to 1 - alpha.
        spreads = [f.alpha_stderr["edge"] / (1 - f.alpha["edge"] ** 2) for f in (fit, exact)]
        assert_allclose(spreads[0], spreads[1], rtol=0.1)
        assert "estimated" in fit.methods["log-determinant"]
        assert "Monte-Carlo error" in fit.summary()


def test_estimated_fit_of_two_types_is_off_by_no_more_than_its_monte_carlo_error():
    c = TWO["small world"]
    y = np.where(c.labelled, dense.draw(c.S, (0.5, -0.6), 2.0, np.random.default_rng(1))[0], np.nan)
    exact = residua.fit_correlation(y, c.graph, logdet=Eigen())
    for seed in range(2):
        fit = residua.fit_correlation(y, c.graph, logdet=Lanczos(random_state=seed))
        for t in c.types:
            assert 0 < fit.alpha_mc_error[t] < 0.1 * fit.alpha_stderr[t]
            assert abs(fit.alpha[t] - exact.alpha[t]) < 4 * fit.alpha_mc_error[t]
            assert_allclose(fit.alpha_stderr[t], exact.alpha_stderr[t], rtol=0.1)


# Corners


@pytest.mark.parametrize("name", CASES)
def test_any_small_graph_gives_finite_numbers_or_says_it_knows_nothing(name, rng):
    c = CASES[name]
    for r in rng.standard_normal((10, c.n)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fit = residua.fit_correlation(np.where(c.labelled, r, np.nan), c.graph)
        assert [str(w.message) for w in found] == ([fit.note] if fit.note else [])
        for t in c.types:
            low, high = fit.interval()[t]
            assert -1 <= low <= fit.alpha[t] <= high <= 1
            assert fit.alpha_stderr[t] > 0  # infinite where the labels do not speak of alpha
            assert abs(fit.alpha[t]) < 1
        assert np.isfinite([fit.beta, fit.log_likelihood]).all()
        assert 0 <= fit.p_value <= 1


def test_labels_that_no_edge_joins_say_nothing_of_alpha(rng):
    """All edges hang on unlabelled leaves that lead nowhere: the likelihood is flat."""
    c = case(5, [(3, 4)], [0, 1, 2])
    with pytest.warns(UserWarning, match="the 3 labels do not tell alpha: .* kept at 0"):
        fit = residua.fit_correlation(np.where(c.labelled, rng.standard_normal(5), np.nan), c.graph)
    assert fit.alpha == {"edge": 0.0}
    assert fit.note in fit.summary()
    assert fit.alpha_stderr["edge"] == np.inf
    assert fit.p_value == 1.0
    assert fit.interval()["edge"] == (-1.0, 1.0)


def test_one_type_silent_and_one_speaking(rng):
    """Type b joins only nodes in a component without a label."""
    c = small_world(n=60, degree=4, share=1.0)
    two = replace(
        c,
        n=62,
        source=np.append(c.source, 60),
        target=np.append(c.target, 61),
        weight=np.ones(len(c.source) + 1),
        type=np.append(c.type, "b"),
        labelled=np.append(c.labelled, [False, False]),
    )
    r = dense.draw(c.S, [0.6], 1.0, rng)[0]
    single = residua.fit_correlation(r, c.graph)
    fit = residua.fit_correlation(np.append(r, [np.nan, np.nan]), two.graph)
    assert fit.alpha["edge"] == pytest.approx(single.alpha["edge"], abs=1e-3 * single.alpha_stderr["edge"])
    assert_allclose(fit.alpha_stderr["edge"], single.alpha_stderr["edge"], rtol=0.01)
    assert fit.alpha_stderr["b"] == np.inf


def test_zero_residual_is_refused():
    c = CASES["path"]
    with pytest.raises(ValueError, match="zero at every labelled node"):
        residua.fit_correlation(np.where(c.labelled, 0.0, np.nan), c.graph)


def test_nearly_constant_residual_reaches_the_border():
    """A residual along the constant of the graph has its maximum at alpha = 1; the fit stops short of it."""
    c = small_world(n=100, share=0.5)
    y = np.where(c.labelled, np.sqrt(c.graph.degree), np.nan)
    fit = residua.fit_correlation(y, c.graph)
    assert 0.9999 < fit.alpha["edge"] < 1
    assert fit.interval()["edge"][1] == 1.0
    assert fit.p_value < 1e-10


def test_fit_leaves_its_input_alone():
    c, _, y, *_ = simulated("grid", 0.6)
    kept = y.copy()
    residua.fit_correlation(y, c.graph)
    assert_array_equal(y, kept)


def test_summary_tells_every_number():
    c, _, y, *_ = simulated("grid", 0.6)
    fit = residua.fit_correlation(y, c.graph)
    text = fit.summary()
    assert text == str(fit)
    shown = float(re.search(r"alpha\[edge\] = ([+-][\d.]+)", text)[1])
    assert shown == pytest.approx(fit.alpha["edge"], abs=1e-4)
    for part in (f"beta = {fit.beta:.4g}", f"{fit.log_likelihood:.2f}", "exact: ", "likelihood-ratio"):
        assert part in text
    assert "Monte-Carlo" not in text


def test_an_interval_from_the_very_limit_ends_inside():
    """A smooth field on a ring: the likelihood falls a little inside of the limit, where a search may end exactly."""
    n = 400
    ring = residua.Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    labelled = np.arange(n) % 3 > 0
    profile = Profile(Likelihood(ring, labelled), np.sin(2 * np.pi * np.arange(n) / n)[labelled])
    drop = chi2.ppf(0.95, 1)
    lower, upper = profile_interval(profile, np.array([A_MAX]), 0, drop)
    assert 0.9 < lower < 1
    assert upper == 1
    assert stderr_near_limit(profile, np.array([A_MAX]), 0) < 0.1
    assert profile_interval(profile, np.array([-A_MAX]), 0, drop)[0] == -1
