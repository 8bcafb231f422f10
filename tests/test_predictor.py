"""Scores: what X, y and known mean to them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance

import dense
import residua
from graphs import small_world
from residua import Average, GraphRegressor, Network, metrics


@pytest.fixture(scope="module")
def problem():
    """A small world, features of which the third says nothing, true labels, and those that are known."""
    case = small_world(n=150, degree=6, share=0.6, seed=4)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((case.n, 3))
    truth = 1 + X @ [2.0, 0.5, 0.0] + dense.draw(case.S, [0.9], 4.0, rng)[0]
    return case, X, truth, np.where(case.labelled, truth, np.nan)


BASES = {
    "linear": "linear",
    "forest": RandomForestRegressor(20, random_state=0),
    "network": Network("hops", widths=(8,), epochs=15),
}


@pytest.fixture(scope="module", params=BASES)
def model(request, problem):
    case, X, _, y = problem
    return GraphRegressor(BASES[request.param], folds=4).fit(X, y, graph=case.graph)


def test_the_features_of_the_fit_and_none_score_alike(model, problem):
    case, X, truth, _ = problem
    expected = metrics.r2(truth[case.U], model.predict()[case.U])
    for given in (None, X, X.tolist()):
        assert model.score(given, truth) == expected
        assert model.score(given, truth, graph=case.graph) == expected
        assert Average([model, model]).score(given, truth) == pytest.approx(expected)


def test_other_features_are_predicted_with(model, problem):
    case, X, truth, y = problem
    other = X[:, [1, 0, 2]]
    base = model.base_.predict(case.graph, other)
    moved = base - model.base_.predict(case.graph, X)
    residual = model.outcome_.residual - moved[case.L]
    shift, _ = dense.conditional(case.S, list(model.alpha_.values()), model.beta_, case.labelled, residual)
    expected = metrics.r2(truth[case.U], base[case.U] + shift)
    assert model.score(other, truth) == pytest.approx(expected, rel=1e-6)
    assert Average([model, model]).score(other, truth) == pytest.approx(expected, rel=1e-6)
    assert model.score(other, truth) < model.score(X, truth) - 0.3
    assert_array_equal(model.y_, y)


def test_labels_that_came_later_count_beside_other_features(problem):
    case, X, truth, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    other, later = X[:, [1, 0, 2]], np.where(np.arange(case.n) % 3 == 0, truth, np.nan)
    base = model.base_.predict(case.graph, other)
    known = case.labelled | ~np.isnan(later)
    shift, _ = dense.conditional(case.S, [model.alpha_["edge"]], model.beta_, known, (truth - base)[known])
    expected = metrics.r2(truth[~known], (base[~known] + shift))
    assert model.score(other, truth, known=later) == pytest.approx(expected, rel=1e-6)


def test_a_feature_that_is_not_used_has_no_importance_and_one_that_is_has_some(problem):
    case, X, truth, y = problem
    forest = RandomForestRegressor(20, random_state=0)
    wide = np.column_stack([X[:, :2], np.zeros(case.n)])
    for base in ("linear", forest):
        model = GraphRegressor(base, folds=4).fit(wide, y, graph=case.graph)
        found = permutation_importance(model, wide, truth, n_repeats=3, random_state=0).importances_mean
        assert found[0] > 0.3
        assert found[0] > found[1] > 0
        assert found[2] == 0
    model = GraphRegressor(forest, folds=4).fit(wide, y, graph=case.graph)
    unused = wide + np.array([0.0, 0.0, 1.0]) * np.random.default_rng(0).standard_normal((case.n, 1))
    assert_allclose(model.score(unused, truth), model.score(wide, truth), rtol=1e-12)


def test_features_that_cannot_be_are_refused(problem):
    case, X, truth, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    average = Average([model, model])
    for scored in (model, average):
        with pytest.raises(ValueError, match="X is not numeric"):
            scored.score("hello", truth)
        with pytest.raises(ValueError, match="X has 2 columns but the model was fitted on 3"):
            scored.score(X[:, :2], truth)
        with pytest.raises(ValueError, match=r"X has shape \(80, 3\) but graph has 150 nodes"):
            scored.score(X[:80], truth)
    blind = GraphRegressor("mean").fit(None, y, graph=case.graph)
    with pytest.raises(ValueError, match="X has 3 columns but the model was fitted on 0"):
        blind.score(X, truth)
    assert blind.score(None, truth) == metrics.r2(truth[case.U], blind.predict()[case.U])


def test_models_of_different_features_are_scored_with_their_own(problem):
    case, X, truth, y = problem
    models = [GraphRegressor("linear").fit(X[:, :d], y, graph=case.graph) for d in (2, 3)]
    average = Average(models)
    expected = metrics.r2(truth[case.U], average.predict()[case.U])
    assert average.score(None, truth) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"fitted on different features \(2, 3 columns\).* pass X=None"):
        average.score(X, truth)


def test_labels_of_the_fit_never_count(problem):
    case, X, truth, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    wrong = np.where(case.labelled, 1e6, truth)
    for given in (X, X + 1):
        assert model.score(given, wrong) == model.score(given, truth)
        with pytest.raises(ValueError, match="labels that the model has not seen"):
            model.score(given, y)


def test_a_copy_of_the_training_graph_does_not_hide_its_labels(problem, tmp_path):
    """Whoever loads a model has built the graph anew: another object, and the same graph."""
    case, X, truth, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    model.save(tmp_path / "model.residua")
    loaded = residua.load(tmp_path / "model.residua")
    assert loaded.graph_ is not case.graph
    for scored in (loaded, Average([loaded, loaded])):
        with pytest.raises(
            ValueError, match=r"y has 90 of its labels, which the model has learned from; leave graph out"
        ):
            scored.score(X, truth, graph=case.graph)
        with pytest.raises(ValueError, match="graph is that of the fit"):
            scored.predict(X, graph=case.graph)
        assert scored.score(X, truth, known=y, graph=case.graph) == pytest.approx(loaded.score(X, truth), abs=1e-6)
        assert np.isfinite(scored.score(X, truth + 1, graph=case.graph))  # other labels: of another year, say
        assert np.isfinite(scored.predict(X + 1, graph=case.graph)).all()
