"""The Laplacian field against dense algebra on ``beta_0 (I + a (D - A))``, and the choice between fields.

``dense`` takes ``S = A - D`` and ``alpha = a``: its precision is then this one, and knows of no evened graph.
"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

import dense
import residua
from graphs import CASES, case, grid, small_world
from residua.field import Conditional, Correlator, Likelihood
from residua.field.kinds import carried_over, highest_degree, in_words, smoothing
from residua.linalg import Cholesky, Eigen, Lanczos

STRENGTHS = [0.0, 0.3, 4.0, 500.0]
HUBS = case(60, [(i % 3, i) for i in range(3, 60)] + [(0, 1), (1, 2)], list(range(0, 60, 2)))
SMALL_WORLD = small_world(n=80, degree=6, share=0.5)
CLOSE = {"rtol": 1e-7, "atol": 1e-8}


def negative(c):
    """(1, n, n) A - D."""
    return -c.laplacian[None]


def of_one_graph(c, a, beta_0=1.0):
    """alpha and beta of the field beta_0 (I + a (D - A)) on a case."""
    degree = highest_degree(c.graph)
    return a * degree / (1 + a * degree), beta_0 * (1 + a * degree)


def on_evened(c, a, beta_0=1.0, **options):
    alpha, beta = of_one_graph(c, a, beta_0)
    return Conditional(c.graph.evened, c.labelled, alpha, beta, **options)


@pytest.mark.parametrize("a", STRENGTHS)
@pytest.mark.parametrize("strategy", [Eigen(), Cholesky()], ids=lambda s: type(s).__name__)
def test_likelihood_is_dense(one_type, strategy, a, rng):
    c, r = one_type, rng.standard_normal(len(one_type.L))
    alpha, beta = of_one_graph(c, a, 1.7)
    found = Likelihood(c.graph.evened, c.labelled, strategy).omega(r, np.array([alpha]), beta)
    assert_allclose(found.value, dense.omega(negative(c), [a], 1.7, c.labelled, r), **CLOSE)
    assert_allclose(found.residual, dense.omega_gradient(negative(c), [a], 1.7, c.labelled, r)[2], **CLOSE)


@pytest.mark.parametrize("a", STRENGTHS)
@pytest.mark.parametrize("exact", [True, False])
def test_means_variances_and_leave_one_out_are_dense(one_type, a, exact, rng):
    check(one_type, a, exact, rng)


@pytest.mark.parametrize("c", [HUBS, SMALL_WORLD], ids=["hubs", "small world"])
@pytest.mark.parametrize("a", STRENGTHS)
@pytest.mark.parametrize("with_mean", [False, True])
def test_they_are_dense_with_hubs_and_with_coefficients(c, a, with_mean, rng):
    check(c, a, True, rng, np.c_[np.ones(c.n), rng.standard_normal(c.n)] if with_mean else None)


def check(c, a, exact, rng, design=None):
    values, L, beta_0 = rng.standard_normal(len(c.L)), c.labelled, 2.5
    y, base = np.full(c.n, np.nan), np.zeros(c.n)
    y[L] = values
    if design is None:
        mean, C = dense.conditional(negative(c), [a], beta_0, L, values)
    else:
        mean, C = dense.kriging(negative(c), [a], beta_0, L, values, design)
        base = design @ dense.least_squares(negative(c), [a], L, values, design)[1]
    found = on_evened(c, a, beta_0, design=design, exact=exact, draws=64 if exact else 4000)
    rough = CLOSE if exact else {"rtol": 0.12}
    assert_allclose((base + found.conditional_mean(y - base))[c.U], mean, rtol=1e-6, atol=1e-7)
    assert_allclose(found.variance().value[c.U], np.diag(C), **rough)
    error, spread = dense.leave_one_out(negative(c), [a], beta_0, L, values, design)
    left_out = found.leave_one_out(y - base)
    assert_allclose(left_out.variance, spread, **rough)
    assert_allclose(left_out.error, error, rtol=rough["rtol"], atol=1e-6)


@pytest.mark.parametrize("name", ["star", "isolate", "weighted", "self-loops"])
def test_samples_have_the_dense_covariance(name, rng):
    c, count = CASES[name], 20_000
    C = dense.conditional(negative(c), [0.8], 2.0, c.labelled, np.zeros(len(c.L)))[1]
    drawn = on_evened(c, 0.8, 2.0).sample(count, rng)[:, c.U]
    stderr = np.sqrt((np.outer(C.diagonal(), C.diagonal()) + C**2) / count)
    assert (np.abs(drawn.T @ drawn / count - C) < 5 * stderr).all()


@pytest.mark.parametrize("c", [HUBS, SMALL_WORLD, grid(12, 12)], ids=["hubs", "small world", "grid"])
@pytest.mark.parametrize("a", [0.05, 1.0])
def test_an_estimated_log_determinant_is_within_its_standard_error(c, a):
    alpha, _ = of_one_graph(c, a)
    expected = Eigen().prepare(list(c.graph.evened.operators.values()), c.U).value(np.array([alpha])).value
    scores = []
    for seed in range(6):
        ratio = Lanczos(16, 48, random_state=seed).prepare(list(c.graph.evened.operators.values()), c.U)
        found = ratio.value(np.array([alpha]))
        scores.append((found.value - expected) / max(float(found.stderr), 1e-9))
    assert np.mean(np.abs(scores) < 3) > 0.8
    assert abs(np.mean(scores)) < 3 / np.sqrt(6) + 0.5


@pytest.mark.parametrize("c", [HUBS, SMALL_WORLD], ids=["hubs", "small world"])
def test_a_fit_finds_the_smoothing_of_highest_likelihood(c, rng):
    r = dense.draw(negative(c), [0.4], 1.0, rng)[0][c.labelled]
    fit = Correlator(c.graph, c.labelled, field="laplacian")(r)
    best = minimize_scalar(lambda x: dense.profile(negative(c), [np.exp(x)], c.labelled, r), bounds=(-8, 6))
    assert fit.smoothing == pytest.approx(np.exp(best.x), rel=1e-3)
    assert -2 * fit.log_likelihood == pytest.approx(best.fun, abs=1e-6)
    low, high = fit.smoothing_interval()
    assert low < fit.smoothing < high


def test_intervals_cover_and_the_test_of_no_correlation_keeps_its_level():
    c, rng = grid(12, 12, share=0.6), np.random.default_rng(7)
    correlate = Correlator(c.graph, c.labelled, field="laplacian")
    independent = rng.standard_normal((60, len(c.L)))
    assert np.mean([correlate(r).p_value < 0.05 for r in independent]) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    draws = dense.draw(negative(c), [0.7], 1.0, rng, 60)[:, c.labelled]
    ends = np.array([correlate(r).smoothing_interval() for r in draws])
    assert np.mean((ends[:, 0] <= 0.7) & (ends[:, 1] >= 0.7)) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 60)


def problem(c, rng, a=2.0):
    X = rng.standard_normal((c.n, 2))
    truth = X @ [1.0, -0.5] + dense.draw(negative(c), [a], 4.0, rng)[0]
    return X, truth, np.where(c.labelled, truth, np.nan)


def test_a_model_predicts_as_dense_kriging(rng):
    c = HUBS
    X, _, y = problem(c, rng)
    model = residua.GraphRegressor("linear", field="laplacian").fit(X, y, graph=c.graph)
    a, (alpha,) = model.correlation_.smoothing, model.alpha_.values()
    Z = np.c_[np.ones(c.n), X]
    mean, C = dense.kriging(negative(c), [a], model.beta_ * (1 - alpha), c.labelled, y[c.labelled], Z)
    found, std = model.predict(return_std=True)
    assert_allclose(found[c.U], mean, rtol=1e-6)
    assert_allclose(std[c.U], np.sqrt(np.diag(C)), rtol=1e-6)
    assert model.field_.smoothing == a
    degree = np.median(c.laplacian.diagonal())
    found = model.summary().facts["std_given_neighbours"]
    assert found == pytest.approx((model.beta_ * (1 - alpha) * (1 + a * degree)) ** -0.5)


def test_on_another_graph_the_smoothing_is_the_same(rng):
    X, _, y = problem(SMALL_WORLD, rng)
    model = residua.GraphRegressor("linear", field="laplacian").fit(X, y, graph=SMALL_WORLD.graph)
    c, a, (alpha,) = HUBS, model.correlation_.smoothing, model.alpha_.values()
    assert highest_degree(c.graph) != highest_degree(SMALL_WORLD.graph)
    X = rng.standard_normal((c.n, 2))
    labels = np.where(c.labelled, rng.standard_normal(c.n), np.nan)
    found, std = model.predict(X, labels, graph=c.graph, return_std=True)
    base = model.base_.predict(c.graph, X)
    r = (labels - base)[c.labelled]
    mean, C = dense.conditional(negative(c), [a], model.beta_ * (1 - alpha), c.labelled, r)
    assert_allclose(found[c.U], base[c.U] + mean, rtol=1e-6)
    assert_allclose(std[c.U], np.sqrt(np.diag(C)), rtol=1e-6)


@pytest.mark.parametrize("alpha", [-0.2, 0.0, 0.6, 1.0])
def test_what_is_carried_over_is_the_same_precision(alpha):
    there, beta = carried_over(alpha, 3.0, 5.0, 9.0)
    assert beta * (1 - there) == pytest.approx(3.0 * (1 - alpha), abs=1e-12)
    assert beta * there / 9.0 == pytest.approx(3.0 * alpha / 5.0)
    assert alpha < 1 or there == 1


def test_a_negative_correlation_is_not_carried_over_to_where_it_is_no_precision():
    with pytest.raises(ValueError, match="would not be positive definite"):
        carried_over(-0.9, 1.0, 4.0, 40.0)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.95])
def test_it_is_the_field_of_leroux(rho):
    c, tau = CASES["weighted"], 2.0
    alpha, beta = of_one_graph(c, rho / (1 - rho), tau * (1 - rho))
    (S,) = c.graph.evened.operators.values()
    leroux = tau * (rho * c.laplacian + (1 - rho) * np.eye(c.n))
    assert_allclose(beta * (np.eye(c.n) - alpha * S.dense()), leroux, atol=1e-12)


def test_smoothing_is_that_of_its_alpha():
    assert smoothing(2.0 * 6 / (1 + 2.0 * 6), 6) == pytest.approx(2.0)
    assert smoothing(1.0, 6) == np.inf


@pytest.mark.parametrize("name", ["path", "star", "two components", "weighted"])
def test_propagation_is_harmonic(name, rng):
    """Each unknown value is the weighted mean of its neighbours', whatever their degrees."""
    c = CASES[name]
    y = np.where(c.labelled, rng.standard_normal(c.n), np.nan)
    model = residua.GraphRegressor("zero", "propagate", field="laplacian").fit(None, y, graph=c.graph)
    assert_allclose((c.laplacian @ model.predict())[c.U], 0, atol=1e-8)


def test_a_grown_graph_keeps_field_and_labels(rng):
    X, _, y = problem(HUBS, rng)
    model = residua.GraphRegressor("linear", field="laplacian").fit(X, y, graph=HUBS.graph)
    grown = HUBS.graph.with_nodes([200], edges=[(200, 1)])  # a neighbour for the node of the highest degree
    assert highest_degree(grown) == highest_degree(HUBS.graph) + 1
    X, A, labelled = np.r_[X, [[0.0, 0.0]]], grown.adjacency().toarray(), np.append(HUBS.labelled, False)
    S, Z, (alpha,) = A - np.diag(A.sum(axis=0)), np.c_[np.ones(len(X)), X], model.alpha_.values()
    beta_0 = model.beta_ * (1 - alpha)
    mean, C = dense.kriging(S[None], [model.correlation_.smoothing], beta_0, labelled, y[HUBS.labelled], Z)
    found, std = model.predict(X, graph=grown, return_std=True)
    assert_allclose(found[~labelled], mean, rtol=1e-6)
    assert_allclose(std[~labelled], np.sqrt(np.diag(C)), rtol=1e-6)


def test_pickles_and_copies_answer_alike(rng):
    X, _, y = problem(SMALL_WORLD, rng)
    model = residua.GraphRegressor("linear", field="auto").fit(X, y, graph=SMALL_WORLD.graph)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(), model.predict())
    assert again.field_.kind == model.field_.kind
    assert again.field_.log_scores == model.field_.log_scores


@pytest.mark.parametrize(("base", "truth"), [("linear", "normalised"), ("linear", "laplacian"), ("trees", "laplacian")])
def test_auto_takes_the_field_that_labels_left_out_prefer(base, truth, rng):
    c = case(400, [(i % 7, i) for i in range(7, 400)] + [(i, i + 1) for i in range(399)], list(range(0, 400, 2)))
    S, strength = (c.S, 0.97) if truth == "normalised" else (negative(c), 3.0)
    X = rng.standard_normal((c.n, 2))
    y = np.where(c.labelled, X[:, 0] + dense.draw(S, [strength], 1.0, rng)[0], np.nan)
    model = residua.GraphRegressor(base, field="auto").fit(X, y, graph=c.graph)
    assert model.field_.kind == truth
    for kind in ("normalised", "laplacian"):
        one = residua.GraphRegressor(base, field=kind).fit(X, y, graph=c.graph)
        assert one.field_.prediction.log_score == model.field_.log_scores[kind]
        if kind == truth:
            assert_array_equal(one.predict(), model.predict())
    assert f"field: {truth}" in str(model.diagnose())
    assert "chosen by leave-one-out log score" in model._repr_html_()
    assert model.summary().methods["field"].startswith(truth)


def test_the_log_score_is_that_of_dense_leave_one_out(rng):
    c = SMALL_WORLD
    X, _, y = problem(c, rng)
    field = residua.GraphRegressor("linear", field="laplacian").fit(X, y, graph=c.graph).field_
    a, (alpha,) = field.smoothing, field.alpha.values()
    Z = np.c_[np.ones(c.n), X]
    error, v = dense.leave_one_out(negative(c), [a], field.beta * (1 - alpha), c.labelled, y[c.labelled], Z)
    assert field.prediction.log_score == pytest.approx(-np.mean(error**2 / v + np.log(2 * np.pi * v)) / 2)


def test_auto_is_the_normalised_field_where_edges_are_of_several_types(two_types, rng):
    y = np.where(two_types.labelled, rng.standard_normal(two_types.n), np.nan)
    model = residua.GraphRegressor("zero", field="auto").fit(None, y, graph=two_types.graph)
    assert (model.field_.kind, dict(model.field_.log_scores)) == ("normalised", {})


def test_what_cannot_be_is_refused(two_types):
    y = np.where(two_types.labelled, np.arange(two_types.n) ** 2.0, np.nan)
    with pytest.raises(ValueError, match="takes one edge type"):
        residua.GraphRegressor("zero", field="laplacian").fit(None, y, graph=two_types.graph)
    with pytest.raises(ValueError, match="field='laplace' is unknown"):
        residua.GraphRegressor("zero", field="laplace").fit(None, y, graph=two_types.graph)
    with pytest.raises(ValueError, match="chosen by leave-one-out, in GraphRegressor"):
        residua.fit_correlation(y, two_types.graph, field="auto")
    with pytest.raises(ValueError, match="checkpoint is one file"):
        residua.GraphRegressor("zero", field="auto", checkpoint="a").fit(None, y, graph=two_types.graph)
    fit = residua.fit_correlation(np.arange(9.0) ** 2, CASES["two components"].graph)
    with pytest.raises(ValueError, match="the normalised field has no smoothing"):
        fit.smoothing_interval()


def test_the_fit_says_its_smoothing():
    c = CASES["weighted"]
    fit = residua.fit_correlation(np.sin(np.arange(12.0)), c.graph, field="laplacian")
    assert f"smoothing a = {fit.smoothing:.4g}" in str(fit)
    assert fit.highest_degree == pytest.approx(c.laplacian.diagonal().max())


def test_words_of_the_usual_field_are_none_where_there_was_no_choice():
    assert in_words("normalised", {}, None, None) == ""
    assert in_words("laplacian", {}, 2.0, (1.0, 3.0)) == "laplacian, smoothing a = 2, 95 % interval [1, 3]"
    assert "normalised -1.0000" in in_words("normalised", {"normalised": -1.0, "laplacian": -1.5}, None, None)
