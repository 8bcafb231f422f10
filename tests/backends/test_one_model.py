"""One model on any backend: a matrix and reductions of a toy are enough for all of it."""

import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

import residua
from backends.toy import on_threads
from graphs import small_world
from residua.bases.base import Task
from residua.bases.linear import LinearBase
from residua.bases.neighbours import neighbour_features
from residua.bases.registry import make_base
from residua.diagnosis import r2_of_errors
from residua.field import Conditional, Correlator
from residua.field.fitted import FittedField
from residua.field.propagation import fill
from residua.intervals import jackknife_quantile
from residua.linalg import CG, Lanczos, Shifted

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
STRATEGY = Lanczos(probes=6, steps=20, random_state=3)
SIZES = [1, 3]


@pytest.fixture(scope="module")
def case():
    return small_world(n=90, seed=4)


@pytest.fixture(scope="module")
def residual(case):
    values = np.linalg.solve(np.eye(case.n) - 0.9 * case.S[0], np.random.default_rng(1).standard_normal(case.n))
    return np.where(case.labelled, values, np.nan)


@pytest.mark.parametrize("size", SIZES)
def test_the_correlation_is_that_of_one_machine(case, residual, size):
    def task(graph):
        r = residual[graph.mine]
        return Correlator(graph, ~np.isnan(r), STRATEGY)(r[~np.isnan(r)]), graph.operators["edge"].products

    expected = residua.fit_correlation(residual, case.graph, logdet=STRATEGY)
    for found, products in on_threads(case.graph, size, task):
        assert found.alpha["edge"] == pytest.approx(expected.alpha["edge"], rel=1e-8)
        assert found.beta == pytest.approx(expected.beta, rel=1e-8)
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-8)
        assert found.p_value == pytest.approx(expected.p_value, rel=1e-6)
        assert products > STRATEGY.steps


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["linear", "splines"])
def test_a_linear_mean_fitted_with_it_is_that_of_one_machine(case, residual, size, name):
    X = np.random.default_rng(2).standard_normal((case.n, 2)) + 50
    y = residual + X @ [1.0, -2.0] + 3 * np.sin(2 * X[:, 0])

    def task(graph):
        labels = y[graph.mine]
        known = ~np.isnan(labels)
        base = make_base(name)
        outcome = base.fit(Task(graph, X[graph.mine], labels, known, 5, 0), Correlator(graph, known, STRATEGY))
        return base.coefficients, outcome.correlation.alpha["edge"], outcome.residual

    model = residua.GraphRegressor(name, logdet=STRATEGY).fit(X, y, graph=case.graph)
    assert name == "linear" or model.base_.prior_variance[3] > 0
    found = on_threads(case.graph, size, task)
    for coefficients, alpha, _ in found:
        np.testing.assert_allclose(coefficients, model.base_.coefficients, **CLOSE)
        assert alpha == pytest.approx(model.alpha_["edge"], rel=1e-8)
    np.testing.assert_allclose(np.concatenate([part[2] for part in found]), model.outcome_.residual, **CLOSE)


def test_accuracy_and_intervals_of_a_fitted_field_are_those_of_one_machine(case, residual):
    X = np.random.default_rng(2).standard_normal((case.n, 2))
    y = residual + X @ [1.0, -2.0]
    y[:30] = np.nan  # a process may hold no label at all

    def task(graph):
        labels, own = y[graph.mine], X[graph.mine]
        known = ~np.isnan(labels)
        base = LinearBase("linear")
        outcome = base.fit(Task(graph, own, labels, known, 5, 0), Correlator(graph, known, STRATEGY))
        fit = outcome.correlation
        field = FittedField(graph, own, labels, base, outcome, fit.alpha, fit.alpha_stderr, fit.beta, draws=200)
        left_out = field.prediction
        unknown = replace(field, outcome=replace(outcome, base_out_of_fold_error=np.full(known.sum(), np.nan)))
        return (
            r2_of_errors(labels[known], left_out.out_of_sample_error, graph.rows),
            r2_of_errors(labels[known] * 0 + 5, left_out.out_of_sample_error, graph.rows),
            jackknife_quantile(left_out.scores, 0.9, graph.rows),
            field.marginal_variance,
            unknown.marginal_variance,
        )

    one = on_threads(case.graph, 1, task)[0]
    for found in on_threads(case.graph, 3, task):
        np.testing.assert_allclose(found, one, **CLOSE)
    assert np.isnan(one[1])
    model = residua.GraphRegressor("linear", logdet=STRATEGY).fit(X, y, graph=case.graph)
    assert one[3] == pytest.approx(np.mean(model.outcome_.base_out_of_fold_error**2), rel=1e-8)
    assert one[4] == pytest.approx(np.mean(model.outcome_.residual**2), rel=1e-8)
    error = model.field_.prediction.leave_one_out.error
    labels = y[~np.isnan(y)]
    # The toy has no factor: its leave-one-out precision is that of draws, to a few percent.
    assert one[0] == pytest.approx(residua.metrics.r2(labels, labels - error), abs=0.05)


def test_conditional_mean_variance_and_leave_one_out_are_those_of_one_machine(case, residual):
    Z = np.column_stack([np.ones(case.n), np.arange(case.n)])

    def task(graph):
        r = residual[graph.mine]
        given = Conditional(graph, ~np.isnan(r), 0.8, 2.0, design=Z[graph.mine], draws=4000)
        left_out = given.leave_one_out(r)
        return given.conditional_mean(r), *given.variance(), left_out.error, left_out.variance

    one, three = (
        [np.concatenate(part) for part in zip(*on_threads(case.graph, size, task), strict=True)] for size in (1, 3)
    )
    for ours, theirs in zip(three, one, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)  # the same draws, however the rows are dealt
    mean, variance, stderr, error, spread = three
    given = Conditional(case.graph, case.labelled, 0.8, 2.0, design=Z, exact=True)
    expected = given.leave_one_out(residual)
    np.testing.assert_allclose(mean, given.conditional_mean(residual), **CLOSE)
    assert (np.abs(variance - given.variance().value) <= 4.5 * stderr + 1e-12).all()
    # What draws leave in the precision of a label moves error and variance alike.
    np.testing.assert_allclose(error / spread, expected.error / expected.variance, rtol=1e-6)
    np.testing.assert_allclose(spread, expected.variance, rtol=0.05)


@pytest.mark.parametrize("size", SIZES)
def test_propagation_and_neighbour_features_are_those_of_one_machine(case, residual, size):
    X = np.random.default_rng(2).standard_normal((case.n, 2))

    def task(graph):
        r = residual[graph.mine]
        return fill(r, ~np.isnan(r), graph, None)[0], neighbour_features(graph, X[graph.mine], 2, True)

    parts = zip(*on_threads(case.graph, size, task), strict=True)
    filled, features = (np.concatenate(part) for part in parts)
    np.testing.assert_allclose(filled, residua.propagate(residual, case.graph), **CLOSE)
    expected = residua.NeighbourFeatures(hops=2).fit_transform(X, graph=case.graph)
    np.testing.assert_allclose(features, expected, **CLOSE)


def test_a_solve_stops_when_every_column_has_arrived(case):
    B = np.random.default_rng(0).standard_normal((case.n, 3))
    B[:, 1] = 0

    def task(graph):
        return CG().solve(Shifted(graph.operators["edge"], 0.95), B[graph.mine])

    found = on_threads(case.graph, 4, task)
    expected = np.linalg.solve(np.eye(case.n) - 0.95 * case.S[0], B)
    np.testing.assert_allclose(np.concatenate([part.X for part in found]), expected, atol=1e-8)
    assert len({tuple(part.iterations) for part in found}) == 1


def test_a_search_that_costs_solves_asks_for_the_same_alphas_everywhere(case, residual, monkeypatch):
    """Each alpha is then a solve of all processes together: they have to agree on it, and do."""
    monkeypatch.setattr("residua.field.quadratic_form.FIRST_STEPS", 2)
    monkeypatch.setattr("residua.field.quadratic_form.MAX_SIZE", 5)

    def task(graph):
        r = residual[graph.mine]
        return Correlator(graph, ~np.isnan(r), STRATEGY)(r[~np.isnan(r)])

    expected = residua.fit_correlation(residual, case.graph, logdet=STRATEGY)
    assert expected.methods["quadratic form"] == "a linear solve for each alpha"
    for found in on_threads(case.graph, 3, task):
        assert found.methods == expected.methods
        assert found.alpha["edge"] == pytest.approx(expected.alpha["edge"], abs=1e-6)


@pytest.mark.parametrize("seed", [1, 4, 9])
@pytest.mark.parametrize("size", [5, 14, 900])
def test_processes_that_round_otherwise_stay_in_step(seed, size, monkeypatch):
    """Unlike processors give eigenvalues that differ in the last digits: no process may take another way for that."""
    eigh = np.linalg.eigh

    def rounded_otherwise(A):
        values, vectors = eigh(A)
        noise = np.random.default_rng(threading.get_ident() % 100_003).standard_normal(values.shape)
        return values * (1 + 1e-14 * noise), vectors

    monkeypatch.setattr(np.linalg, "eigh", rounded_otherwise)
    monkeypatch.setattr("residua.field.quadratic_form.FIRST_STEPS", 2)
    monkeypatch.setattr("residua.field.quadratic_form.MAX_SIZE", size)
    case, rng = small_world(n=120, seed=seed), np.random.default_rng(seed)
    values = np.linalg.solve(np.eye(case.n) - 0.8 * case.S[0], rng.standard_normal(case.n))
    known = rng.random(case.n) < (0.5 if seed % 3 else 0.15)

    def task(graph):
        labelled = known[graph.mine]
        return Correlator(graph, labelled, Lanczos(steps=4, random_state=seed))(values[graph.mine][labelled])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", residua.NotConverged)
        found = on_threads(case.graph, 3, task)
    assert len({fit.alpha["edge"] for fit in found}) == 1
