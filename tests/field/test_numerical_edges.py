"""At the edges of what numbers can hold, answers are finite, right by dense algebra, or say where they are unsure."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import dense
import nasty
import residua
from graphs import CASES, small_world
from residua import Graph, GraphRegressor
from residua.field import Conditional, Likelihood
from residua.field.profile import Profile
from residua.field.search import search
from residua.linalg import CG, Cholesky, Eigen, Lanczos, NotConverged, Shifted, Solver, weighted_sum
from residua.linalg.factor import Factor, identity_minus
from soak.verdicts import Rounds

BORDER = 1 - 1e-6


# Problems drawn at random, each held to dense algebra


@pytest.mark.parametrize("block", range(12))
def test_a_nasty_problem_is_answered_as_dense_algebra_does_or_refused_with_a_reason(block):
    outcomes = [nasty.judge(nasty.draw_problem(np.random.default_rng([block, k]))) for k in range(10)]
    assert outcomes.count("answered") >= 3


def test_exploring_counts_what_it_tried():
    counts = nasty.explore(Rounds(8), random_state=3)
    assert set(counts) <= {"answered", "refused", "warned"}
    assert sum(counts.values()) == 8
    assert counts["answered"] >= 1


# alpha within a millionth of 1 and -1


@pytest.mark.parametrize("alpha", [BORDER, -BORDER])
@pytest.mark.parametrize("strategy", [Eigen(), Cholesky()], ids=str)
def test_the_likelihood_at_the_border_is_the_dense_one(any_case, alpha, strategy, rng):
    r = rng.standard_normal(any_case.labelled.sum())
    at = np.full(len(any_case.types), alpha)
    omega = Likelihood(any_case.graph, any_case.labelled, strategy).omega(r, at, 2.0)
    slope, by_beta, by_residual = dense.omega_gradient(any_case.S, at, 2.0, any_case.labelled, r)
    assert_allclose(omega.value, dense.omega(any_case.S, at, 2.0, any_case.labelled, r), rtol=1e-8)
    assert_allclose(omega.alpha, slope, rtol=1e-7, atol=1e-8 * np.abs(slope).max() + 1e-6)
    assert_allclose(omega.beta, by_beta, rtol=1e-7)
    assert_allclose(omega.residual, by_residual, rtol=1e-7, atol=1e-8 * np.abs(by_residual).max())


@pytest.mark.parametrize("alpha", [BORDER, -BORDER])
def test_the_conditional_at_the_border_is_the_dense_one(any_case, alpha, rng):
    c, r = any_case, rng.standard_normal(any_case.labelled.sum())
    at = np.full(len(c.types), alpha)
    full = np.full(c.n, np.nan)
    full[c.labelled] = r
    conditional = Conditional(c.graph, c.labelled, alpha, 2.0)
    mean, spread = dense.conditional(c.S, at, 2.0, c.labelled, r)
    assert_allclose(conditional.conditional_mean(full)[c.U], mean, rtol=1e-7, atol=1e-8)
    assert_allclose(conditional.variance().value[c.U], np.diag(spread), rtol=1e-7)
    error, variance = dense.leave_one_out(c.S, at, 2.0, c.labelled, r)
    left_out = conditional.leave_one_out(full)
    assert_allclose(left_out.error, error, rtol=1e-6, atol=1e-8)
    assert_allclose(left_out.variance, variance, rtol=1e-6)


# A star, and many components of two: what is known in closed form


def star(leaves):
    return Graph.from_edges(np.zeros(leaves, int), np.arange(1, leaves + 1), nodes=np.arange(leaves + 1))


def check_star(leaves):
    """I - alpha S has eigenvalues 1 +- alpha and ones; with u of n leaves and the hub unknown, 1 +- alpha sqrt(u/n)."""
    graph, rng = star(leaves), np.random.default_rng(0)
    labelled = rng.random(leaves + 1) < 0.5
    labelled[0] = False
    unknown = (~labelled).sum() - 1
    likelihood = Likelihood(graph, labelled)
    for alpha in (-BORDER, -0.5, 0.9, BORDER):
        h = likelihood.ratio.value(np.array([alpha]))
        expected = np.log1p(-(alpha**2)) - np.log1p(-(alpha**2) * unknown / leaves)
        assert abs(float(h.value) - expected) <= 1e-6 + 4 * float(h.stderr)
    r = Conditional(graph, np.zeros(leaves + 1, bool), 0.9, 2.0).sample(1, rng)[0]
    # What the hub shares among its leaves is the same for all of them, as the constant is.
    with pytest.warns(UserWarning, match=r"labels do not tell alpha beside 1 coefficient\(s\) of the mean"):
        model = GraphRegressor("mean").fit(None, np.where(labelled, r, np.nan), graph=graph)
    _, std = nasty.check_finite(model)
    assert model.beta_ == pytest.approx(2.0, rel=5 * (2 / leaves) ** 0.5 + 0.1)
    assert_allclose(std[1:][~labelled[1:]], model.beta_**-0.5, rtol=0.05)  # a hub of many says little of one


@pytest.mark.parametrize("leaves", [1000, 50_000])
def test_a_star_has_the_log_determinant_of_its_closed_form(leaves):
    check_star(leaves)


@pytest.mark.slow
def test_a_star_of_a_million_leaves():
    check_star(1_000_000)


def pairs(count):
    return Graph.from_edges(np.arange(0, 2 * count, 2), np.arange(1, 2 * count, 2), nodes=np.arange(2 * count))


def check_pairs(count, alpha):
    """All labelled, the likelihood is highest at alpha = 2 sum y_1 y_2 / sum y^2."""
    graph, rng = pairs(count), np.random.default_rng(1)
    y = Conditional(graph, np.zeros(2 * count, bool), alpha, 2.0).sample(1, rng)[0]
    fit = residua.fit_correlation(y, graph)
    expected = 2 * (y[::2] * y[1::2]).sum() / (y**2).sum()
    assert_allclose(fit.alpha["edge"], expected, atol=0.1 * fit.alpha_stderr["edge"])
    assert_allclose(fit.beta, 2 * count / ((y**2).sum() - 2 * expected * (y[::2] * y[1::2]).sum()), rtol=1e-3)
    model = GraphRegressor("mean").fit(None, np.where(np.arange(2 * count) % 4 == 1, np.nan, y), graph=graph)
    mean, std = nasty.check_finite(model)
    first = np.arange(0, 2 * count, 4)
    learned, level = model.alpha_["edge"], model.base_.predict(graph, model.X_)[0]
    assert_allclose(mean[first + 1], level + learned * (y[first] - level), rtol=1e-6, atol=1e-6)
    assert_allclose(np.median(std[first + 1]), model.beta_**-0.5, rtol=0.01)


@pytest.mark.parametrize("alpha", [0.9, -0.9, 0.0])
@pytest.mark.parametrize("count", [300, 30_000])
def test_components_of_two_have_the_correlation_of_their_closed_form(count, alpha):
    check_pairs(count, alpha)


@pytest.mark.slow
def test_a_million_components_of_two():
    check_pairs(1_000_000, 0.9)


# One label in each component says nothing of alpha


def rings(count, size):
    at = np.arange(count * size)
    return Graph.from_edges(at, np.where(at % size == size - 1, at - size + 1, at + 1), nodes=at)


@pytest.mark.parametrize("count", [50, 20_000])
def test_one_label_in_each_pair_leaves_alpha_open(count):
    y = np.full(2 * count, np.nan)
    y[::2] = np.random.default_rng(0).standard_normal(count)
    with pytest.warns(UserWarning, match="labels do not tell alpha: every value from -1 to 1"):
        fit = residua.fit_correlation(y, pairs(count))
    assert fit.alpha == {"edge": 0.0}
    assert fit.alpha_stderr == {"edge": np.inf}
    assert fit.interval() == {"edge": (-1.0, 1.0)}
    assert fit.p_value == pytest.approx(1.0, abs=1e-6)


def test_what_probes_cannot_tell_is_not_told():
    """One label in each ring: the exact likelihood is flat, its estimate is not."""
    y = np.full(15 * 1500, np.nan)
    y[::15] = np.random.default_rng(0).standard_normal(1500)
    with pytest.warns(
        NotConverged, match=r"probes x 24 steps .* leave an error of .* of which alpha gains .* set to 0"
    ):
        fit = residua.fit_correlation(y, rings(1500, 15), logdet=Lanczos(probes=8))
    assert fit.alpha == {"edge": 0.0}
    assert fit.p_value == 1.0


@pytest.mark.parametrize(("mc", "told"), [(0.08, True), (0.02, False)])
def test_an_error_of_probes_near_the_standard_error_is_told(mc, told, monkeypatch):
    c = small_world(300, 6)
    y = dense.draw(c.S, [0.8], 1.0, np.random.default_rng(0))[0][c.labelled]
    profile = Profile(Likelihood(c.graph, c.labelled, Lanczos(probes=16)), y)
    monkeypatch.setattr("residua.field.search.alpha_errors", lambda profile, a: (np.array([0.1]), np.array([mc])))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        search(profile)
    text = [str(w.message) for w in found if issubclass(w.category, NotConverged)]
    assert bool(text) == told
    assert all("leave an error of 0.08 in alpha, whose standard error is 0.1; use more probes" in t for t in text)


# Labels, weights and features of any size


def linear_problem(n=60):
    c, rng = small_world(n, 4), np.random.default_rng(4)
    X = rng.standard_normal((n, 3))
    y = X @ [1.0, -2.0, 0.0] + dense.draw(c.S, [0.8], 1.0, rng)[0]
    return c, X, np.where(c.labelled, y, np.nan)


@pytest.mark.parametrize("base", ["mean", "linear"])
@pytest.mark.parametrize(("scale", "shift"), [(1e9, 0.0), (1e-9, 0.0), (1.0, 1e6), (1e-3, -1e6), (2.0**300, 0.0)])
def test_predictions_follow_the_unit_and_the_zero_of_the_labels(base, scale, shift):
    c, X, y = linear_problem()
    plain = GraphRegressor(base).fit(X, y, graph=c.graph)
    other = GraphRegressor(base).fit(X, scale * y + shift, graph=c.graph)
    lost = 1e-15 * (1 + abs(shift) / scale)  # digits of the labels themselves
    assert_allclose(other.alpha_["edge"], plain.alpha_["edge"], atol=1e-5 + 1e4 * lost)
    mean, std = plain.predict(return_std=True)
    moved, spread = other.predict(return_std=True)
    assert_allclose((moved - shift) / scale, mean, atol=1e-5 + 1e4 * lost)
    assert_allclose(spread / scale, std, rtol=1e-4 + 1e4 * lost)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_only_ratios_of_weights_matter(scale):
    c = CASES["weighted"]
    y = np.where(c.labelled, np.sin(np.arange(c.n)), np.nan)
    plain = residua.fit_correlation(y, c.graph)
    other = residua.fit_correlation(y, Graph.from_edges(c.source, c.target, scale * c.weight, nodes=np.arange(c.n)))
    assert_allclose(other.alpha["edge"], plain.alpha["edge"], rtol=1e-6)
    assert_allclose(other.log_likelihood, plain.log_likelihood, rtol=1e-9)


def test_a_thousand_columns_for_fifty_labels():
    c, rng = small_world(120, 4), np.random.default_rng(0)
    c = c.with_labels(rng.permutation(120)[:50])
    X = rng.standard_normal((120, 1000))
    y = np.where(c.labelled, X[:, 0] + rng.standard_normal(120), np.nan)
    with pytest.raises(ValueError, match=r"fits all 50 labels exactly with 1001 column\(s\).*a base such as Ridge"):
        GraphRegressor("linear").fit(X, y, graph=c.graph)
    nasty.check_finite(GraphRegressor(Ridge(100.0)).fit(X, y, graph=c.graph))


def test_columns_that_say_the_same_predict_the_same():
    c, X, y = linear_problem()
    plain = GraphRegressor("linear").fit(X, y, graph=c.graph)
    more = np.column_stack([X, X @ [1.0, 1.0, 1.0], 3 * X[:, 0], np.full(c.n, 5.0), np.zeros(c.n)])
    doubled = GraphRegressor("linear").fit(more, y, graph=c.graph)
    assert_allclose(doubled.alpha_["edge"], plain.alpha_["edge"], atol=1e-5)
    assert_allclose(doubled.predict(), plain.predict(), atol=1e-5)


def test_features_in_single_precision_are_read_as_they_are():
    c, X, y = linear_problem()
    X = X.astype(np.float32)
    single = GraphRegressor("linear").fit(X, y.astype(np.float32), graph=c.graph)
    double = GraphRegressor("linear").fit(X.astype(float), y.astype(np.float32).astype(float), graph=c.graph)
    assert_array_equal(single.predict(), double.predict())


def test_single_precision_probes_agree_with_double():
    c = small_world(900, 6)
    y = np.where(c.labelled, dense.draw(c.S, [0.9], 1.0, np.random.default_rng(0))[0], np.nan)
    single, double = (
        residua.fit_correlation(y, c.graph, logdet=Lanczos(32, dtype=d)) for d in (np.float32, np.float64)
    )
    assert_allclose(single.alpha["edge"], double.alpha["edge"], atol=0.02 * double.alpha_stderr["edge"])


# More labels are never worse


@pytest.mark.parametrize("alpha", [0.95, -0.95, BORDER])
@pytest.mark.parametrize("name", ["ring", "small world", "star"])
def test_more_labels_are_never_worse_under_the_true_model(name, alpha):
    graph = {
        "ring": lambda: rings(1, 200),
        "small world": lambda: small_world(200, 6).graph,
        "star": lambda: star(199),
    }[name]()
    rng, n = np.random.default_rng(2), graph.n_nodes
    draws = Conditional(graph, np.zeros(n, bool), alpha, 1.0, exact=True).sample(200, rng)
    order = rng.permutation(n)
    test, heights, before = order[-20:], [], np.inf
    for count in (1, 5, 20, 60, 180):
        labelled = np.isin(np.arange(n), order[:count])
        conditional = Conditional(graph, labelled, alpha, 1.0, exact=True)
        variance = conditional.variance().value[test]
        assert (variance <= before * (1 + 1e-9)).all()
        error = (draws - conditional.conditional_mean(draws.T).T)[:, test]
        heights.append(-0.5 * (np.log(2 * np.pi * variance) + error**2 / variance).mean(axis=1))
        before = variance
    gains = np.diff(heights, axis=0)  # (steps, draws): of the mean log-density of a held-out node
    assert (gains.mean(axis=1) >= -3 * gains.std(axis=1) / np.sqrt(gains.shape[1])).all()
    assert heights[-1].mean() > heights[0].mean()


# What does not converge says so, with its numbers


def test_a_solve_that_stops_early_says_how_far_it_came():
    A = Shifted(rings(1, 500).operators["edge"], BORDER)
    solver = Solver(CG(max_iter=40), seconds=0.0)
    with pytest.warns(NotConverged, match=r"CG stopped after 40 steps with relative residual \d.* in 1 of 1 columns"):
        solution = solver.solve(A, np.sin(np.arange(500.0)))
    assert not solution.converged.any()
    assert solution.residual[0] > 1e-10


@pytest.mark.parametrize("columns", [1, 3])
def test_a_solve_is_called_converged_where_its_true_residual_is_small(columns):
    A = Shifted(rings(1, 400).operators["edge"], 0.99)
    B = np.random.default_rng(0).standard_normal((400, columns))
    flags = set()
    for steps in range(5, 200, 15):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            solution = CG(tol=1e-6, max_iter=steps).solve(A, B)
        residual = np.linalg.norm(B - A @ solution.X, axis=0) / np.linalg.norm(B, axis=0)
        assert_allclose(solution.residual, residual, rtol=1e-3)
        assert_array_equal(solution.converged, residual <= 1e-6)
        flags |= set(solution.converged.tolist())
    assert flags == {True, False}


def test_a_factor_has_the_log_determinant_of_its_matrix(any_case):
    M = weighted_sum(any_case.terms, np.full(len(any_case.terms), BORDER))
    expected = np.linalg.slogdet(dense.precision(any_case.S, np.full(len(any_case.terms), BORDER)))[1]
    assert Factor(identity_minus(Shifted(M, 1.0))).logdet == pytest.approx(expected, rel=1e-8)


def test_a_matrix_that_is_singular_to_working_precision_is_solved_or_told():
    """Two nodes bound by 1e9 hang on a label by 1e-9: the factor has no positive pivot left."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], [1e-9, 1e9, 1e-9])
    labelled = np.array([True, False, False, True])
    conditional = Conditional(graph, labelled, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        assert np.isfinite(conditional.conditional_mean(np.array([1.0, 0.0, 0.0, 3.0]))).all()
    with pytest.raises(
        ValueError, match=r"variances are not defined for alpha=\[1.0\].*drop edges of negligible weight"
    ):
        conditional.variance()


def test_a_factor_that_leaves_a_residual_says_so(monkeypatch):
    from residua.linalg import solve

    class Wrong(solve.Factor):
        def __init__(self, A):
            super().__init__(1.5 * A)

    monkeypatch.setattr(solve, "Factor", Wrong)
    A = Shifted(rings(1, 60).operators["edge"], 0.999)
    with pytest.warns(NotConverged, match=r"a factor left relative residual 1.1e-01 in 1 of 1 columns"):
        solution = Solver(patience=2).solve(A, np.sin(np.arange(60.0)))
    assert not solution.converged.any()


def test_a_flat_likelihood_is_told_from_one_that_is_not():
    y = np.random.default_rng(0).standard_normal(40)
    open_ = Profile(Likelihood(pairs(40), np.arange(80) % 2 == 0), y)
    assert_allclose([open_.omega(np.array([a])) for a in (-5.0, 0.0, 5.0)], open_.omega(np.zeros(1)), atol=1e-8)
    assert_array_equal(search(open_)[0], [0.0])
