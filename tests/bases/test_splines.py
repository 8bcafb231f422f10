"""Splines: bends are natural cubic splines of unit roughness, knots are where the data are, and curves are found."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

import dense
from graphs import grid, small_world
from residua import GraphRegressor, metrics
from residua.bases.registry import MOST_BENDS
from residua.bases.splines import SplineBase, bends

CASE = grid(20, 20, share=0.7)
KNOTS = np.array([-1.5, -1.0, 0.2, 0.3, 1.0, 4.0])


def simulated(alpha=0.9, beta=4.0, seed=0, curve=np.sin, case=CASE):
    """A curve of the first feature, a line of the second, nothing of the third; noise that neighbours share."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (case.n, 3))
    return X, curve(X[:, 0]) + 0.3 * X[:, 1] + dense.draw(case.S, [alpha], beta, rng)[0]


def fitted(X, y, base="splines", case=CASE, **settings):
    return GraphRegressor(base, **settings).fit(X, np.where(case.labelled, y, np.nan), graph=case.graph)


# Bends


def test_roughness_of_bends_is_the_square_of_their_coefficients(rng):
    u = rng.standard_normal(len(KNOTS) - 2)

    def second(x, h=1e-3):
        return float((bends(np.array([x - h, x, x + h]), KNOTS) @ u) @ [1, -2, 1] / h**2)

    pieces = itertools.pairwise(KNOTS)
    roughness = sum(quad(lambda x: second(x) ** 2, low + 2e-3, high - 2e-3)[0] for low, high in pieces)
    assert_allclose(roughness, u @ u, rtol=0.02)


def test_bends_are_smooth_and_straight_beyond_the_last_knots():
    beyond = np.array([-9.0, -6.0, -3.0, -1.5]), np.array([4.0, 6.0, 8.0, 10.0])
    for x in beyond:
        curves = bends(x, KNOTS)
        steps = np.diff(curves, axis=0) / np.diff(x)[:, None]
        assert_allclose(steps, np.tile(steps[0], (3, 1)), rtol=1e-9, atol=1e-12)
    for knot in KNOTS:  # slope and bend go on across each knot, the outer ones too
        x = knot + 1e-4 * np.arange(-2, 3)
        slopes = np.diff(bends(x, KNOTS), axis=0) / 1e-4
        assert np.ptp(slopes, axis=0).max() < 2e-3 * np.abs(bends(KNOTS, KNOTS)).max() + 2e-3
    assert_allclose(bends(KNOTS[[0, -1]], KNOTS), 0, atol=1e-12)


def test_lines_and_bends_are_all_natural_splines(rng):
    """As many columns as knots, and any values at the knots can be met."""
    Z = np.column_stack([np.ones(len(KNOTS)), KNOTS, bends(KNOTS, KNOTS)])
    assert np.linalg.matrix_rank(Z) == len(KNOTS)


# Columns


def test_columns_and_what_they_are_made_of():
    X, y = simulated()
    X = np.column_stack([X, np.round(X[:, 0]) > 0, np.full(len(X), 5.0), np.clip(np.round(X[:, 1]), -1, 1)])
    base = fitted(X, y).base_
    assert [len(knots) for knots in base.knots] == [8, 8, 8, 0, 0, 3]  # binary and constant ones stay lines
    assert_array_equal(base.features, [-1, 0, 1, 2, 3, 4, 5, *[0] * 6, *[1] * 6, *[2] * 6, 5])
    assert_array_equal(base.groups, [0] * 7 + [1] * 6 + [2] * 6 + [3] * 6 + [6])
    assert base.design(X).shape == (len(X), len(base.features))
    known = X[CASE.labelled]
    own = base.knots[0] * base.spread[0] + base.centre[0]
    assert_allclose(own[[0, -1]], [known[:, 0].min(), known[:, 0].max()])
    share = [(known[:, 0] <= knot + 1e-9).mean() for knot in own]
    assert_allclose(np.diff(share), 1 / 7, atol=2 / len(known))


def test_features_that_are_the_same_at_most_nodes_stay_lines_and_ties_share_a_knot():
    X, y = simulated()
    X[:, 0] = np.where(np.arange(len(X)) % 10, 0.0, X[:, 0])
    X[:, 1] = np.where(np.arange(len(X)) % 2, 0.0, np.abs(X[:, 1]))
    base = fitted(X, y).base_
    assert len(base.knots[0]) <= 3
    assert 4 <= len(base.knots[1]) <= 6
    assert all((np.diff(knots) > 0).all() for knots in base.knots)


def test_with_many_features_each_has_fewer_bends_and_with_very_many_none():
    case = small_world(n=400, degree=6, share=0.9, seed=1)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 300)), rng.standard_normal(400)
    for count, most in ((40, 6), (41, 5), (100, 2), (240, 1)):
        base = fitted(X[:, :count], y, case=case).base_
        assert {len(knots) for knots in base.knots} == {most + 2}
        assert (base.groups > 0).sum() <= MOST_BENDS
    with pytest.warns(UserWarning, match="room for 240 bends, too few for 300 features: it stays linear"):
        wide = fitted(X, y, case=case)
    assert_allclose(wide.predict(), fitted(X, y, "linear", case=case).predict(), rtol=1e-9)


# What is learned


@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
def test_a_curve_is_found_that_a_line_misses(correlation):
    X, y = simulated()
    bent, straight = (fitted(X, y, base, correlation=correlation) for base in ("splines", "linear"))
    truth = np.where(CASE.labelled, np.nan, y)
    assert metrics.r2(truth, bent.predict()) > metrics.r2(truth, straight.predict()) + 0.1
    assert bent.base_.prior_variance[4] > 0
    if correlation == "learned":
        assert bent.correlation_.log_likelihood > straight.correlation_.log_likelihood + 20


def test_of_lines_it_is_as_good_as_the_linear_base():
    gains, empty = [], []
    for seed in range(10):
        X, y = simulated(seed=seed, curve=lambda x: 0.5 * x)
        bent, straight = (fitted(X, y, base) for base in ("splines", "linear"))
        truth = np.where(CASE.labelled, np.nan, y)
        gains.append(metrics.r2(truth, bent.predict()) - metrics.r2(truth, straight.predict()))
        empty.append(bent.base_.prior_variance[[4, 10, 16]] == 0)
        if np.all(empty[-1]):
            assert_allclose(bent.predict(), straight.predict(), atol=1e-4)  # arctanh(alpha) is found to 1e-4
    assert np.mean(gains) > -0.005
    assert np.mean(empty) > 0.3


def test_intervals_cover_and_bands_of_the_curve_hold_the_truth():
    covered, inside = [], []
    for seed in range(12):
        X, y = simulated(seed=seed)
        model = fitted(X, y)
        low, high = model.predict_interval(coverage=0.9, method="gaussian")
        unknown = ~CASE.labelled
        covered.append(((low <= y) & (y <= high))[unknown].mean())
        base = model.base_
        x = np.linspace(-2.5, 2.5, 21)
        grid = np.tile(base.centre, (len(x), 1))
        grid[:, 0] = x
        Z = base.design(grid)
        Z, truth = Z - Z.mean(axis=0), np.sin(x) - np.sin(x).mean()
        std = np.sqrt(np.einsum("ij,jk,ik->i", Z, model.correlation_.coefficient_covariance, Z))
        inside.append(np.abs(Z @ base.coefficients - truth) <= 1.96 * std)
    assert 0.88 < np.mean(covered) < 0.92
    assert np.mean(inside) > 0.88  # of 95 %, along the curve


def test_the_test_of_no_correlation_keeps_its_level():
    case = grid(12, 12, share=0.7)
    p = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (case.n, 2))
        y = np.cos(2 * X[:, 0]) + rng.standard_normal(case.n)
        p.append(fitted(X, y, case=case).correlation_.p_value)
    rate = np.mean(np.array(p) < 0.1)
    assert 0.02 < rate < 0.2  # of 10 %: three standard errors


def test_out_of_fold_errors_are_those_of_fits_without_each_label():
    """At the prior variances of the fit, which no single label moves much: those are learned, like alpha."""
    X, y = simulated()
    model = fitted(X, y, correlation=None)
    base, L = model.base_, CASE.labelled
    Z, tau = base.design(X[L]), base.prior_variance
    keep = tau > 0
    Z, penalty = Z[:, keep], 1 / tau[keep]
    for k in range(0, L.sum(), 31):
        rest = np.arange(L.sum()) != k
        theta = np.linalg.solve(Z[rest].T @ Z[rest] + np.diag(penalty), Z[rest].T @ y[L][rest])
        assert_allclose(model.outcome_.base_out_of_fold_error[k], y[L][k] - Z[k] @ theta, rtol=1e-7)


def test_units_and_shifts_of_features_and_labels_change_nothing():
    X, y = simulated()
    one = fitted(X, y)
    other = fitted(X * [1e6, 1e-5, 3.0] + [1e3, 0.0, -7.0], 1e4 * y + 1e6)
    assert_allclose(other.alpha_["edge"], one.alpha_["edge"], rtol=1e-7)
    assert_allclose(other.base_.prior_variance[4:], one.base_.prior_variance[4:], rtol=1e-5, atol=1e-9)
    for ours, theirs in zip(other.predict(return_std=True), one.predict(return_std=True), strict=True):
        assert_allclose(ours - 1e6 * (ours > 1e5), 1e4 * theirs, rtol=1e-5, atol=1e-3)


def test_few_labels_and_gaps_are_refused_as_by_the_linear_base():
    X, y = simulated()
    few = CASE.with_labels(np.arange(4))
    for base in ("linear", "splines"):
        with pytest.raises(ValueError, match="leaves no residual to learn from"):
            fitted(X, y, base, few)
        gap = X.copy()
        gap[3, 1] = np.nan
        with pytest.raises(ValueError, match="X"):
            fitted(gap, y, base)


@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
@pytest.mark.parametrize("exact", ["constant", "line", "curve"])
def test_labels_without_a_residual_are_refused_and_huge_or_tiny_ones_are_not(exact, correlation):
    X, y = simulated()
    y = {"constant": 0 * y + 7.0, "line": 2 + 3 * X[:, 1], "curve": 1e-9 * y + bends(X[:, 0], KNOTS)[:, 1]}[exact]
    if exact != "curve":
        with pytest.raises(ValueError, match="no residual"):
            fitted(X, y, correlation=correlation)
        return
    for unit in (1.0, 1e-100, 1e100):
        assert np.isfinite(fitted(X, unit * y, correlation=correlation).predict(return_std=True)).all()


def test_a_dozen_labels_are_enough():
    X, y = simulated()
    case = CASE.with_labels(np.arange(0, 390, 33))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(X, y, case=case)
    assert np.isfinite(model.predict(return_std=True)).all()
    assert model.correlation_.bartlett_factor > 1


def test_beyond_the_data_a_curve_goes_on_as_a_line():
    X, y = simulated()
    base = fitted(X, y).base_
    assert isinstance(base, SplineBase)
    far = np.tile(base.centre, (4, 1))
    far[:, 0] = [5.0, 50.0, 95.0, 140.0]
    predicted = base.predict(CASE.graph, far)
    assert_allclose(np.diff(predicted, 2), 0, atol=1e-8 * np.abs(predicted).max())
