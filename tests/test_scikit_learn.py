"""scikit-learn's own tools on a graph: scores are those of a loop over labels that are hidden, and its checks hold."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.utils.estimator_checks import check_estimator

import dense
from graphs import small_world
from residua import Average, Graph, GraphRegressor, Network, metrics

CV = KFold(3, shuffle=True, random_state=1)


class World:
    """A small world with text ids, a graph that carries features, and labels of every node."""

    def __init__(self, n=90):
        case = small_world(n=n, degree=6, share=0.6, seed=4)
        rng = np.random.default_rng(4)
        self.ids = np.array([f"node {k}" for k in range(n)], object)
        self.plain = Graph.from_edges(self.ids[case.source], self.ids[case.target], nodes=self.ids)
        self.X = pd.DataFrame(rng.standard_normal((n, 3)), index=self.ids, columns=["a", "b", "c"])
        self.y = 1 + self.X.to_numpy() @ [2.0, 0.5, 0.0] + dense.draw(case.S, [0.9], 4.0, rng)[0]
        self.graph = self.plain.with_features(self.X)
        self.S = case.S


@pytest.fixture(scope="module")
def world():
    return World()


def loop(world, model, cv=CV, train=slice(None)):
    """Scores of labels that are hidden, one split after the other, every node in the graph."""
    scores = []
    for fold, test in cv.split(world.y):
        hidden = np.full(len(world.y), np.nan)
        hidden[fold[train]] = world.y[fold[train]]
        mean = clone(model).fit(world.X, hidden, graph=world.plain).predict()
        scores.append(metrics.r2(world.y[test], mean[test]))
    return np.array(scores)


MODELS = {
    "linear": GraphRegressor("linear"),
    "mean": GraphRegressor("mean"),
    "propagated": GraphRegressor("linear", "propagate"),
    "forest": GraphRegressor(RandomForestRegressor(10, random_state=0), folds=3),
    "network": GraphRegressor(Network("hops", widths=(4,), epochs=5)),
}


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_cross_val_score_is_a_loop_over_hidden_labels(world, name, routing):
    model = MODELS[name]
    with sklearn.config_context(enable_metadata_routing=routing):
        scores = cross_val_score(model, world.graph.nodes, world.y, cv=CV, params={"graph": world.graph})
    assert_allclose(scores, loop(world, model), rtol=1e-10)


def test_cross_validate_scores_labels_of_the_fit_leave_one_out(world):
    model, graph = GraphRegressor("linear"), world.graph
    found = cross_validate(model, graph.nodes, world.y, cv=CV, params={"graph": graph}, return_train_score=True)
    assert_allclose(found["test_score"], loop(world, model), rtol=1e-10)
    for (train, _), score in zip(CV.split(world.y), found["train_score"], strict=True):
        fitted = clone(model).fit(graph.nodes[train], world.y[train], graph=graph)
        assert_allclose(score, metrics.r2(world.y[train], fitted.predict(known="predict")[train]), rtol=1e-12)


def test_searches_choose_what_a_loop_would(world):
    graph, grid = world.graph, {"base__alpha": [0.1, 1000.0], "correlation": [None, "learned"]}
    model = GraphRegressor(Ridge(), folds=3)
    expected = {
        (alpha, kind): loop(world, GraphRegressor(Ridge(alpha), kind, folds=3)).mean()
        for alpha in grid["base__alpha"]
        for kind in grid["correlation"]
    }
    best = max(expected, key=lambda setting: expected[setting])
    for search in (GridSearchCV(model, grid, cv=CV), RandomizedSearchCV(model, grid, n_iter=4, cv=CV)):
        search.fit(graph.nodes, world.y, graph=graph)
        tried = [(p["base__alpha"], p["correlation"]) for p in search.cv_results_["params"]]
        assert_allclose(search.cv_results_["mean_test_score"], [expected[one] for one in tried], rtol=1e-10)
        assert (search.best_params_["base__alpha"], search.best_params_["correlation"]) == best
        assert_array_equal(search.predict(["node 7", "node 3"]), world.y[[7, 3]])


def test_learning_curve_hides_the_labels_that_are_not_learned_from(world):
    model, graph = GraphRegressor("linear"), world.graph
    sizes, _, test = learning_curve(
        model, graph.nodes, world.y, cv=CV, train_sizes=[35, 50], params={"graph": graph}, shuffle=False
    )
    for size, scores in zip(sizes, test, strict=True):
        assert_allclose(scores, loop(world, model, train=slice(size)), rtol=1e-10)


def test_other_scores_and_predictions_of_folds(world):
    model, graph = GraphRegressor("linear"), world.graph
    settings = {"cv": CV, "params": {"graph": graph}}
    scores = cross_val_score(model, graph.nodes, world.y, scoring="neg_root_mean_squared_error", **settings)
    predicted = cross_val_predict(model, graph.nodes, world.y, **settings)
    for (_, test), score in zip(CV.split(world.y), scores, strict=True):
        assert_allclose(score, -metrics.rmse(world.y[test], predicted[test]), rtol=1e-10)
    by_group = {"cv": GroupKFold(3), "groups": np.arange(len(world.y)) % 5, "params": {"graph": graph}}
    assert len(cross_val_score(model, graph.nodes, world.y, **by_group)) == 3


def test_permutation_importance_of_a_model_that_was_fitted_by_nodes(world):
    known = np.arange(len(world.y)) % 3 > 0
    model = GraphRegressor("linear").fit(world.graph.nodes[known], world.y[known], graph=world.graph)
    found = permutation_importance(model, world.X, world.y, n_repeats=3, random_state=0)
    rng, expected = np.random.RandomState(0), []
    rng = np.random.RandomState(rng.randint(np.iinfo(np.int32).max + 1))  # as each column of scikit-learn begins
    order, column = np.arange(len(world.y)), world.X["a"].to_numpy()
    for _ in range(3):
        rng.shuffle(order)
        column = column[order]
        other = world.X.assign(a=column)
        expected.append(model.score(world.X, world.y) - model.score(other, world.y))
    assert_allclose(found.importances[0], expected)
    assert found.importances_mean[0] > 0.5


class TestFeaturesInPlaceOfThoseOfTheFit:
    """``model.predict(X)``, as scorers call it: a label is predicted from the others, so that it can be compared."""

    @pytest.mark.parametrize("name", MODELS)
    def test_those_of_the_fit_give_leave_one_out_predictions(self, world, name):
        y = np.where(np.arange(90) % 3 > 0, world.y, np.nan)
        model = clone(MODELS[name]).fit(world.X, y, graph=world.plain)
        assert_array_equal(model.predict(world.X), model.predict(known="predict"))
        assert_array_equal(model.predict(world.X.iloc[::-1]), model.predict(known="predict"))
        assert_array_equal(model.predict(world.X, known="label"), model.predict())
        assert_array_equal(model.predict(world.X, graph=world.plain), model.predict(world.X))
        assert_array_equal(Average([model]).predict(world.X), model.predict(world.X))
        assert_array_equal(model.predict_interval(world.X), model.predict_interval())

    def test_others_move_the_base_and_the_residuals_at_the_labels(self, world):
        known = np.arange(90) % 3 > 0
        model = GraphRegressor("linear").fit(world.X, np.where(known, world.y, np.nan), graph=world.plain)
        other = world.X.assign(a=np.random.default_rng(0).permutation(world.X["a"]))
        base = model.base_.predict(world.plain, other.to_numpy())
        alpha, residual = list(model.alpha_.values()), world.y - base
        S = world.S
        expected = base[~known] + dense.conditional(S, alpha, 1.0, known, residual[known])[0]
        found = model.predict(other)
        assert_allclose(found[~known], expected, atol=1e-7)
        for i in np.flatnonzero(known)[:5]:
            rest = known.copy()
            rest[i] = False
            shift = dense.conditional(S, alpha, 1.0, rest, residual[rest])[0][np.flatnonzero(~rest) == i]
            assert_allclose(found[i], base[i] + shift, atol=1e-7)
        assert_array_equal(model.predict(other, nodes=["node 5"]), found[[5]])
        both = model.predict(other, {"node 0": 7.0}, known="label")
        assert both[0] == 7.0

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("scoring", ["r2", "neg_root_mean_squared_error"])
    def test_permutation_importance_by_any_score(self, world, name, scoring):
        """With every label in the fit: a prediction that was the label would make all importances zero."""
        model = clone(MODELS[name]).fit(world.X, world.y, graph=world.plain)
        found = permutation_importance(model, world.X, world.y, scoring=scoring, n_repeats=3, random_state=0)
        score = metrics.r2 if scoring == "r2" else lambda y, mean: -metrics.rmse(y, mean)
        rng = np.random.RandomState(np.random.RandomState(0).randint(np.iinfo(np.int32).max + 1))
        order, column, expected = np.arange(90), world.X["a"].to_numpy(), []
        for _ in range(3):
            rng.shuffle(order)
            column = column[order]
            mean = model.predict(world.X.assign(a=column), known="predict")
            expected.append(score(world.y, model.predict(known="predict")) - score(world.y, mean))
        assert_allclose(found.importances[0], expected)
        if name not in ("mean", "network"):
            assert found.importances_mean[0] > 5 * abs(found.importances_mean[2])

    def test_a_network_moves_with_its_features_at_labels_that_it_did_not_learn_from(self, world):
        y = np.where(np.arange(90) % 3 > 0, world.y, np.nan)
        model = clone(MODELS["network"]).set_params(ensemble=2).fit(world.X, y, graph=world.plain)
        other = world.X.assign(a=0.0)
        moved = model.field_.with_features(other)
        each = moved.members - model.field_.prediction.members
        base = model.base_.predict_members(world.plain, world.X.to_numpy())
        labelled = ~np.isnan(y)
        assert_allclose(each, (base - model.base_.predict_members(world.plain, other.to_numpy()))[:, labelled])
        assert moved.error_scale == model.field_.error_scale


def test_nodes_that_are_not_named_are_unknown(world):
    known = np.arange(len(world.y)) % 3 > 0
    by_name = GraphRegressor("linear").fit(world.graph.nodes[known], world.y[known], graph=world.graph)
    by_table = GraphRegressor("linear").fit(world.X, np.where(known, world.y, np.nan), graph=world.plain)
    assert_array_equal(by_name.y_, by_table.y_)
    assert_array_equal(by_name.X_, by_table.X_)
    assert_array_equal(by_name.predict(), by_table.predict())
    assert_array_equal(by_name.feature_names_in_, ["a", "b", "c"])
    for model in (by_name, Average([by_name])):
        assert_array_equal(model.predict(["node 5", "node 0"]), by_table.predict()[[5, 0]])
        rest = world.graph.nodes[~known]
        assert_allclose(model.score(rest, world.y[~known]), by_table.score(world.X, world.y), rtol=1e-12)


def test_series_of_ids_and_labels_in_any_order(world):
    order = np.random.default_rng(0).permutation(len(world.y))[:60]
    nodes, labels = pd.Series(world.ids[order]), pd.Series(world.y[order])
    model = GraphRegressor("linear").fit(nodes, labels, graph=world.graph)
    assert_array_equal(model.y_[order], world.y[order])
    assert np.isnan(model.y_).sum() == 30
    by_id = GraphRegressor("linear").fit(nodes, labels.set_axis(nodes), graph=world.graph)
    assert_array_equal(by_id.y_, model.y_)
    with pytest.raises(ValueError, match=r"y is indexed by ids in another order than X names nodes; pass y.loc\[X\]"):
        model.fit(nodes, labels.set_axis(nodes[::-1]), graph=world.graph)


def test_what_could_mean_two_things_is_refused(world):
    model, graph = GraphRegressor("linear"), world.graph
    with pytest.raises(ValueError, match="X has features, and so has graph"):
        model.fit(world.X, world.y, graph=graph)
    with pytest.raises(ValueError, match=r"this base needs features.*graph.with_features\(X\)"):
        model.fit(graph.nodes, world.y, graph=world.plain)
    with pytest.raises(
        ValueError, match="X, of one dimension and so ids of nodes, has 'node 900' at position 1, not a node"
    ):
        model.fit(["node 1", "node 900"], [1.0, 2.0], graph=graph)
    with pytest.raises(ValueError, match=r"X, .* names node 'node 1' again at row 1"):
        model.fit(["node 1", "node 1"], [1.0, 2.0], graph=graph)
    with pytest.raises(ValueError, match=r"y has shape \(90,\) but X names 2 nodes"):
        model.fit(["node 1", "node 2"], world.y, graph=graph)
    with pytest.raises(ValueError, match=r"X has shape \(3, 3\) but graph has 90 nodes"):
        world.plain.with_features(world.X.to_numpy()[:3])
    model.fit(graph.nodes, world.y, graph=graph)
    with pytest.raises(ValueError, match="X and nodes both name nodes"):
        model.predict(["node 1"], nodes=["node 1"])
    numbers = Graph.from_edges([1, 2], [2, 3])
    with pytest.raises(ValueError, match="ids has '2' at position 0, not a node of this graph; there is 2: give ids"):
        numbers.index(["2"])


def test_features_that_are_cut_say_what_to_do(world):
    """The remedy of the message is the line of the first test of this file."""
    with pytest.raises(ValueError, match=r"(?s)X and y have 60 rows but graph has 90 nodes.*graph.with_features\(X\)"):
        cross_val_score(GraphRegressor("linear"), world.X, world.y, cv=CV, params={"graph": world.plain})
    with pytest.raises(ValueError, match=r"(?s)give them graph.nodes in place of X"):
        GridSearchCV(GraphRegressor(), {"base": ["linear"]}, cv=CV).fit(world.X, world.y, graph=world.plain)


def test_features_of_a_graph_are_a_copy_in_the_order_of_its_nodes(world):
    X = world.X.iloc[::-1].copy()
    graph = world.plain.with_features(X)
    X["a"] = 0.0
    assert graph.features.equals(world.X)
    assert world.plain.features is None
    assert graph.with_features(None).features is None
    with pytest.raises(ValueError, match="read-only"):
        world.plain.with_features(world.X.to_numpy()).features[0] = 0


class OnARing(GraphRegressor):
    """A model that scikit-learn's checks can call without a graph: rows of X are the nodes of a ring, in order."""

    def fit(self, X, y, **graph):
        return super().fit(X, y, graph=self.ring(X))

    def predict(self, X):
        return super().predict(X, {}, graph=self.ring(X))  # of another ring, of which no label is known

    def score(self, X, y):
        return metrics.r2(y, self.predict(X))

    @staticmethod
    def ring(X):
        k = np.arange(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)))
        return Graph.from_edges(k, np.roll(k, -1), nodes=k)


# Checks that a regressor on a graph does not pass, and why.
EXCEPTIONS = {
    "check_complex_data": "complex numbers are refused in our words: 'y is not numeric (it holds complex128)'",
    "check_dtype_object": "cells of X that are no numbers are refused with a remedy; the check wants a TypeError",
    "check_estimators_empty_data_messages": "without features, a linear mean is a constant",
    "check_estimators_nan_inf": "refused with row, column and value, 'nan' as numpy prints it and not 'NaN'",
    "check_fit2d_1sample": "the message counts labels: 'y has only 1 known values; at least 3 are needed'",
    "check_fit2d_predict1d": "an X of one dimension names nodes",
    "check_n_features_in_after_fitting": "refused in our words: 'X has 1 columns but the model was fitted on 4'",
    "check_regressors_no_decision_function": "its labels are a column of X: a linear mean leaves no residual",
    "check_requires_y_none": "refused in our words: 'y is not numeric'",
    "check_supervised_y_2d": "a y of one column is taken as it is, without a warning",
}


@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn_hold_but_for_those_that_are_listed():
    found = check_estimator(OnARing("linear"), on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in found if result["status"] == "failed"}
    assert failed.keys() == EXCEPTIONS.keys(), failed
    assert sum(result["status"] == "passed" for result in found) > 35


@pytest.mark.filterwarnings("ignore")
def test_checks_of_an_unfitted_model_hold_without_a_graph():
    passed = {
        r["check_name"]
        for r in check_estimator(GraphRegressor(), on_fail=None, on_skip=None)
        if r["status"] == "passed"
    }
    assert passed >= {
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_no_attributes_set_in_init",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimators_unfitted",
        "check_get_params_invariance",
        "check_set_params",
        "check_mixin_order",
        "check_parameters_default_constructible",
    }
