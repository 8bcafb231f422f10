"""What known residuals say of unknown ones: dense conditioning, and taking away each label in turn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import sqrtm

import dense
import residua
from graphs import CASES, case, grid, small_world
from residua.field import Conditional
from residua.field.conditional import EXACT_SECONDS
from residua.linalg.factor import factor_seconds

ALPHAS = [-0.9, 0.0, 0.5, 0.99, 0.999]
LARGER = {
    "small world": small_world(n=200, share=0.4),
    "grid": grid(14, 14, share=0.3),
    "hubs": case(120, [(i % 3, i) for i in range(3, 120)] + [(0, 1), (1, 2)], list(range(0, 120, 2))),
    "two types": small_world(n=120, types=2),
}


def weights(c, alpha):
    """alpha on the first type, its opposite (damped) on the second; as a dict."""
    return dict(zip(c.types, alpha * np.array([1.0, -0.8]), strict=False))


def known(c, rng):
    """Residuals over all nodes, NaN where unknown."""
    return np.where(c.labelled, rng.standard_normal(c.n), np.nan)


def check(c, alpha, rng, design=None, beta=2.5, exact=True):
    """Mean, variance and leave-one-out against the referee."""
    a = weights(c, alpha)
    y = known(c, rng)
    values = y[c.labelled]
    if design is None:
        mean, C = dense.conditional(c.S, list(a.values()), beta, c.labelled, values)
        base = np.zeros(c.n)
    else:
        mean, C = dense.kriging(c.S, list(a.values()), beta, c.labelled, values, design)
        base = design @ dense.least_squares(c.S, list(a.values()), c.labelled, values, design)[1]
    conditional = Conditional(c.graph, c.labelled, a, beta, design=design, exact=exact)
    filled = base + conditional.conditional_mean(y - base)
    close = {"rtol": 1e-8, "atol": 1e-8, "err_msg": f"alpha={a}"}
    assert_allclose(filled[c.U], mean, **close)
    assert_allclose(filled[c.L], values, **close)
    variance = conditional.variance()
    assert_allclose(variance.value[c.U], np.diag(C), **close)
    assert_array_equal(variance.value[c.L], 0)
    assert_array_equal(variance.stderr, 0)
    left_out = conditional.leave_one_out(y - base)
    error, spread = dense.leave_one_out(c.S, list(a.values()), beta, c.labelled, values, design)
    assert_allclose(left_out.error, error, **close)
    assert_allclose(left_out.variance, spread, **close)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_mean_variance_and_leave_one_out_are_dense(any_case, alpha, rng):
    check(any_case, alpha, rng)


@pytest.mark.parametrize("alpha", [-0.9, 0.5, 0.99])
def test_a_fitted_mean_adds_its_own_uncertainty(any_case, alpha, rng):
    """Universal kriging; leave-one-out fits the coefficients anew without each label."""
    if len(any_case.L) < 4:
        any_case = any_case.with_labels([0, 1, 2, 3, 5])
    Z = np.column_stack([np.ones(any_case.n), rng.standard_normal(any_case.n)])
    check(any_case, alpha, rng, design=Z)


@pytest.mark.parametrize("alpha", [-0.9, 0.5, 0.99, 0.999])
@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs_are_dense(name, alpha, rng):
    c = LARGER[name]
    check(c, alpha, rng)
    check(c, alpha, rng, design=np.column_stack([np.ones(c.n), rng.standard_normal((c.n, 2))]))


@pytest.mark.parametrize("alpha", [0.5, 0.999])
@pytest.mark.parametrize("unit", [1e5, 1e-7])
def test_columns_of_the_mean_may_come_in_any_unit(unit, alpha, rng):
    """Euros or thousands of them: the spread of a prediction is the same."""
    c = LARGER["grid"]
    Z = np.column_stack([np.ones(c.n), rng.standard_normal(c.n)])
    y = known(c, rng)
    plain, scaled = (Conditional(c.graph, c.labelled, alpha, design=D, exact=True) for D in (Z, Z * [1, unit]))
    assert_allclose(scaled.variance().value, plain.variance().value, rtol=1e-8)
    assert_allclose(scaled.leave_one_out(y).variance, plain.leave_one_out(y).variance, rtol=1e-8)


def test_every_node_labelled(any_case, rng):
    c = any_case.with_labels(np.arange(any_case.n))
    conditional = Conditional(c.graph, c.labelled, weights(c, 0.7), 2.0)
    y = known(c, rng)
    assert_array_equal(conditional.conditional_mean(y), y)
    assert_array_equal(conditional.variance().value, np.zeros(c.n))
    assert_array_equal(conditional.sample(3, rng), np.zeros((3, c.n)))
    error, spread = dense.leave_one_out(c.S, list(weights(c, 0.7).values()), 2.0, c.labelled, y)
    left_out = conditional.leave_one_out(y)
    assert_allclose(left_out.error, error, rtol=1e-8)
    assert_allclose(left_out.variance, spread, rtol=1e-8)


@pytest.mark.parametrize("at", [0, 4, -1])
def test_one_label(any_case, at, rng):
    c = any_case.with_labels([np.arange(any_case.n)[at]])
    check(c, 0.8, rng)
    y = known(c, rng)
    left_out = Conditional(c.graph, c.labelled, weights(c, 0.8), 2.0).leave_one_out(y)
    assert_allclose(left_out.error, y[c.labelled], rtol=1e-10)  # nothing else speaks of it


def test_no_label_at_all(any_case):
    c = any_case.with_labels([])
    conditional = Conditional(c.graph, c.labelled, weights(c, 0.8), 2.0, exact=True)
    assert_array_equal(conditional.conditional_mean(np.full(c.n, np.nan)), np.zeros(c.n))
    expected = np.diag(dense.covariance(c.S, list(weights(c, 0.8).values()), 2.0))
    assert_allclose(conditional.variance().value, expected, rtol=1e-8)


@pytest.mark.parametrize("alpha", [-0.9, 0.9])
def test_sampled_variance_is_within_its_own_standard_error(any_case, alpha):
    c = any_case
    a = weights(c, alpha)
    expected = np.diag(dense.conditional(c.S, list(a.values()), 2.0, c.labelled, np.zeros(len(c.L)))[1])
    for seed in range(5):
        conditional = Conditional(c.graph, c.labelled, a, 2.0, exact=False, draws=2000, random_state=seed)
        variance = conditional.variance()
        assert (np.abs(variance.value[c.U] - expected) <= 4.5 * variance.stderr[c.U] + 1e-12).all()
        assert conditional.draws.count == 2000


@pytest.mark.parametrize("name", LARGER)
def test_sampled_leave_one_out_is_near_the_exact_one(name, rng):
    """64 draws give diag(Gbar) to a few hundredths; the error follows from it and one solve."""
    c = LARGER[name]
    y = known(c, rng)
    ways = (Conditional(c.graph, c.labelled, weights(c, 0.9), 2.0, exact=e, draws=64) for e in (True, False))
    exact, sampled = (way.leave_one_out(y) for way in ways)
    ratio = sampled.variance / exact.variance
    assert_allclose(sampled.error / exact.error, ratio, rtol=1e-6)
    assert np.sqrt(np.mean((ratio - 1) ** 2)) < 0.1


def test_sampled_leave_one_out_gets_better_with_more_draws(rng):
    c = LARGER["grid"]
    y = known(c, rng)
    exact = Conditional(c.graph, c.labelled, 0.9, exact=True).leave_one_out(y).variance
    more = (Conditional(c.graph, c.labelled, 0.9, exact=False, draws=k) for k in (64, 4096))
    off = [np.sqrt(np.mean((way.leave_one_out(y).variance / exact - 1) ** 2)) for way in more]
    assert off[1] < off[0] / 4


def test_exact_unless_a_factor_is_dear():
    map_, world = grid(40, 40), small_world(n=8000, share=0.1)
    for c in (map_, world):
        conditional = Conditional(c.graph, c.labelled, 0.9)
        cheap = factor_seconds(conditional.G_UU.S) <= EXACT_SECONDS
        assert conditional.exact == cheap == (c is map_)


@pytest.mark.parametrize("name", ["weighted", "self-loops", "two components"])
def test_answers_follow_the_nodes_when_they_change_places(name, rng):
    c = CASES[name]
    order = rng.permutation(c.n)
    other = c.permuted(order)
    y = known(c, rng)
    one, two = (Conditional(d.graph, d.labelled, 0.8, 2.0) for d in (c, other))
    assert_allclose(two.conditional_mean(y[order]), one.conditional_mean(y)[order], atol=1e-9)
    assert_allclose(two.variance().value, one.variance().value[order], rtol=1e-9)
    back = np.argsort(order[np.isin(order, c.L)])
    for part in ("error", "variance"):
        there = getattr(two.leave_one_out(y[order]), part)[back]
        assert_allclose(there, getattr(one.leave_one_out(y), part), rtol=1e-8)


def test_beta_scales_variances_and_nothing_else(rng):
    c = LARGER["grid"]
    y = known(c, rng)
    one, four = (Conditional(c.graph, c.labelled, 0.9, beta) for beta in (1.0, 4.0))
    assert_array_equal(one.conditional_mean(y), four.conditional_mean(y))
    assert_allclose(one.variance().value, 4 * four.variance().value)
    assert_array_equal(one.leave_one_out(y).error, four.leave_one_out(y).error)
    assert_allclose(one.leave_one_out(y).variance, 4 * four.leave_one_out(y).variance)


@pytest.mark.parametrize("alpha", [-0.9, 0.6, 0.99])
def test_decorrelated_residuals_are_the_root_of_the_precision_times_them(any_case, alpha, rng):
    c = any_case
    a = weights(c, alpha)
    y = known(c, rng)
    P = 2.5 * dense.schur(c.S, list(a.values()), c.labelled)
    found = Conditional(c.graph, c.labelled, a, 2.5).decorrelated(y)
    assert_allclose(found, np.real(sqrtm(P)) @ y[c.labelled], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("name", LARGER)
def test_decorrelated_residuals_have_the_right_length(name, alpha, rng):
    """|(beta Gbar)^1/2 r|^2 = beta r' Gbar r, the chi-square of the residuals."""
    c = LARGER[name]
    a = weights(c, alpha)
    y = known(c, rng)
    P = dense.schur(c.S, list(a.values()), c.labelled)
    found = Conditional(c.graph, c.labelled, a, 2.5).decorrelated(y)
    assert_allclose((found**2).sum(), 2.5 * y[c.labelled] @ P @ y[c.labelled], rtol=1e-6)


def test_decorrelated_zero_is_zero():
    c = CASES["path"]
    y = np.where(c.labelled, 0.0, np.nan)
    assert_array_equal(Conditional(c.graph, c.labelled, 0.5).decorrelated(y), np.zeros(len(c.L)))


@pytest.mark.parametrize("alpha", [1.5, -1.0, np.nan, {"edge": -1.2}])
def test_alpha_outside_its_range_is_refused(alpha):
    c = CASES["path"]
    with pytest.raises(ValueError, match=r"alpha=.* is outside \(-1, 1\)"):
        Conditional(c.graph, c.labelled, alpha)


def test_alpha_for_other_edge_types_is_refused(two_types):
    with pytest.raises(ValueError, match=r"alpha has types \['edge'\] but graph has"):
        Conditional(two_types.graph, two_types.labelled, {"edge": 0.5})
    surplus = dict.fromkeys([*two_types.graph.edge_types, "sea"], 0.2)
    with pytest.raises(ValueError, match=r"alpha has types \[.*'sea'\] but graph has"):
        Conditional(two_types.graph, two_types.labelled, surplus)


# The estimator stands on the same algebra


@pytest.mark.parametrize("base", ["zero", "mean", "linear"])
def test_regressor_predicts_the_dense_kriging_mean_and_spread(base, rng):
    c = small_world(n=150, degree=6, share=0.6)
    X = np.column_stack([100 + rng.standard_normal(c.n), 1e3 * rng.standard_normal(c.n)])
    y = X @ [0.3, 1e-3] + dense.draw(c.S, [0.8], 1.0, rng)[0]
    known_y = np.where(c.labelled, y, np.nan)
    model = residua.GraphRegressor(base=base).fit(X, known_y, graph=c.graph)
    columns = {"zero": np.empty((c.n, 0)), "mean": np.ones((c.n, 1)), "linear": np.column_stack([np.ones(c.n), X])}
    Z = columns[base]
    alpha = [model.alpha_["edge"]]
    q, _, _ = dense.least_squares(c.S, alpha, c.labelled, y[c.labelled], Z)
    beta = (len(c.L) - Z.shape[1]) / q  # as in least squares: coefficients use up degrees of freedom
    assert_allclose(model.beta_, beta, rtol=1e-5)
    mean, C = dense.kriging(c.S, alpha, beta, c.labelled, y[c.labelled], Z)
    found, std = model.predict(return_std=True)
    assert_allclose(found[c.U], mean, rtol=1e-6, atol=1e-6)
    assert_allclose(std[c.U], np.sqrt(np.diag(C)), rtol=1e-5)
    assert_array_equal(found[c.L], y[c.L])
    assert_array_equal(std[c.L], 0)
    error, spread = dense.leave_one_out(c.S, alpha, beta, c.labelled, y[c.labelled], Z)
    left_out, left_out_std = model.predict(known="predict", return_std=True)
    assert_allclose(left_out[c.L], y[c.L] - error, rtol=1e-6, atol=1e-6)
    assert_allclose(left_out_std[c.L], np.sqrt(spread), rtol=1e-5)


# alpha = 1


@pytest.mark.parametrize(
    "name", ["path", "star", "labelled hub", "two components", "weighted", "self-loops", "two types"]
)
def test_limit_variance_is_the_inverse_of_the_laplacian_block(name):
    c = CASES[name]
    conditional = Conditional(c.graph, c.labelled, 1.0, 2.0, exact=True)
    G_UU = dense.block(dense.precision(c.S, np.ones(len(c.types)), 2.0), c.U)
    assert_allclose(conditional.variance().value[c.U], np.diag(np.linalg.inv(G_UU)), rtol=1e-8)


@pytest.mark.parametrize("name", ["path", "star", "two components", "weighted", "self-loops", "two types"])
def test_limit_leave_one_out_is_propagation_without_each_label(name, rng):
    c = CASES[name]
    y = known(c, rng)
    left_out = Conditional(c.graph, c.labelled, 1.0).leave_one_out(y)
    for at, i in enumerate(c.L):
        fewer = c.with_labels(np.setdiff1d(c.L, i))
        filled = dense.harmonic(c.S, fewer.labelled, np.where(fewer.labelled, y, np.nan))
        assert_allclose(left_out.error[at], y[i] - filled[i], rtol=1e-7, atol=1e-9)


def test_limit_of_a_lone_label_has_no_finite_variance(rng):
    c = CASES["path"].with_labels([3])
    left_out = Conditional(c.graph, c.labelled, 1.0).leave_one_out(known(c, rng))
    assert_array_equal(left_out.variance, [np.inf])


def test_beta_scales_draws_by_its_root(rng):
    c = CASES["weighted"]
    one, nine = (Conditional(c.graph, c.labelled, 0.6, beta).sample(3, np.random.default_rng(0)) for beta in (1.0, 9.0))
    assert_allclose(nine, one / 3)
    assert np.abs(one[:, ~c.labelled]).min() > 0
