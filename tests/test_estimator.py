"""GraphRegressor against the dense referee, and the conventions it keeps."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.validation import check_is_fitted

import dense
import residua
from graphs import CASES, small_world
from residua import Graph, GraphRegressor, metrics


def problem(seed=0, alpha=0.9, beta=4.0, features=2, n=120, **kind):
    """A small world whose labels are a linear mean plus correlated residuals; y is NaN off the labelled nodes."""
    case = small_world(n=n, degree=6, share=0.6, seed=seed, **kind)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((case.n, features))
    alphas = np.full(len(case.types), alpha) if np.isscalar(alpha) else np.array(alpha)
    truth = 1 + X @ np.arange(1, features + 1) + dense.draw(case.S, alphas, beta, rng)[0]
    return case, X, truth, np.where(case.labelled, truth, np.nan)


def test_learned_linear_equals_universal_kriging_at_the_learned_alpha():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    Z = np.column_stack([np.ones(case.n), X])
    alpha, _ = dense.best_alpha(case.S, case.labelled, y[case.L], Z)
    assert_allclose(model.alpha_["edge"], alpha, atol=1e-6)
    mean, covariance = dense.kriging(case.S, [model.alpha_["edge"]], model.beta_, case.labelled, y[case.L], Z)
    predicted, std = model.predict(return_std=True)
    assert_allclose(predicted[case.U], mean, atol=1e-7)
    assert_allclose(std[case.U], np.sqrt(np.diag(covariance)), rtol=1e-7)


def test_known_labels_come_back_as_known_with_no_spread():
    case, X, _, y = problem()
    mean, std = GraphRegressor("linear").fit(X, y, graph=case.graph).predict(return_std=True)
    assert_allclose(mean[case.L], y[case.L], rtol=0)
    assert_allclose(std[case.L], 0)
    assert (std[case.U] > 0).all()


def test_known_predict_gives_leave_one_out_predictions():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    mean, std = model.predict(return_std=True, known="predict")
    Z = np.column_stack([np.ones(case.n), X])
    alpha = [model.alpha_["edge"]]
    errors, variances = dense.leave_one_out(case.S, alpha, model.beta_, case.labelled, y[case.L], Z)
    assert_allclose(mean[case.L], y[case.L] - errors, atol=1e-7)
    assert_allclose(std[case.L], np.sqrt(variances), rtol=1e-7)


def test_two_edge_types_keep_their_own_sign():
    case, X, _, y = problem(alpha=[0.9, -0.7], types=2, n=600)
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    first, second = case.types
    assert model.alpha_[first] > 0.5
    assert model.alpha_[second] < -0.5


def test_no_correlation_is_least_squares():
    case, X, _, y = problem()
    model = GraphRegressor("linear", correlation=None).fit(X, y, graph=case.graph)
    expected = LinearRegression().fit(X[case.L], y[case.L]).predict(X)
    assert_allclose(model.predict()[case.U], expected[case.U], atol=1e-10)
    rss = np.sum((y - expected)[case.L] ** 2)
    assert_allclose(1 / model.beta_, rss / (len(case.L) - 3), rtol=1e-9)


def test_propagate_adds_the_harmonic_extension_of_the_least_squares_residual():
    case, X, _, y = problem()
    model = GraphRegressor("linear", correlation="propagate").fit(X, y, graph=case.graph)
    base = LinearRegression().fit(X[case.L], y[case.L]).predict(X)
    assert_allclose(model.predict(), base + dense.harmonic(case.S, case.labelled, y - base), atol=1e-8)


def test_zero_base_with_propagation_is_label_propagation():
    case, _, _, y = problem()
    model = GraphRegressor("zero", correlation="propagate").fit(None, y, graph=case.graph)
    assert_allclose(model.predict(), residua.propagate(y, case.graph), atol=1e-9)


@pytest.mark.parametrize("name", ["two components", "component without label", "weighted"])
def test_propagation_spends_a_level_of_each_component_with_a_label(name):
    """Its precision is that of deviations from those levels, which n - c degrees of freedom tell of."""
    case = CASES[name]
    y = np.where(case.labelled, np.random.default_rng(0).standard_normal(case.n), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # components without a label
        model = GraphRegressor("zero", correlation="propagate").fit(None, y, graph=case.graph)
        filled = model.predict()
    reached = np.isin(case.graph.components, case.graph.components[case.labelled])
    q = filled[reached] @ (np.eye(case.n) - case.S[0])[np.ix_(reached, reached)] @ filled[reached]
    levels = len(np.unique(case.graph.components[case.labelled]))
    assert_allclose(model.beta_, (len(case.L) - levels) / q, rtol=1e-8)


def test_residuals_of_a_scikit_learn_base_are_out_of_fold():
    case, X, _, y = problem()
    forest = RandomForestRegressor(n_estimators=20)
    model = GraphRegressor(forest, random_state=1).fit(X, y, graph=case.graph)
    in_sample = y[case.L] - model.base_.predict(case.graph, X)[case.L]
    assert np.std(model.outcome_.residual) > 1.5 * np.std(in_sample)
    correction = model.predict()[case.U] - model.base_.predict(case.graph, X)[case.U]
    mean, _ = dense.conditional(case.S, [model.alpha_["edge"]], 1.0, case.labelled, model.outcome_.residual)
    assert_allclose(correction, mean, atol=1e-7)


@pytest.mark.parametrize("base", ["linear", RandomForestRegressor(n_estimators=10)], ids=["linear", "forest"])
def test_the_same_seed_gives_the_same_numbers(base):
    case, X, _, y = problem()
    first, second = (
        GraphRegressor(clone(base) if base != "linear" else base).fit(X, y, graph=case.graph) for _ in "ab"
    )
    assert_allclose(first.predict(return_std=True), second.predict(return_std=True), rtol=0)
    assert_allclose(first.sample(3), second.sample(3), rtol=0)
    assert not np.array_equal(first.sample(3), first.sample(3, random_state=7))


def test_samples_have_the_predicted_mean_and_spread():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    draws = model.sample(20_000)
    mean, std = model.predict(return_std=True)
    assert draws.shape == (20_000, case.n)
    assert_allclose(draws[:, case.L], np.broadcast_to(y[case.L], (20_000, len(case.L))), rtol=0)
    z = (draws.mean(axis=0) - mean)[case.U] / std[case.U] * np.sqrt(20_000)
    assert np.abs(z).max() < 4.5
    assert_allclose(draws.std(axis=0)[case.U], std[case.U], rtol=0.03)


def test_samples_of_nodes_that_no_label_reaches_have_the_predicted_spread():
    """Propagation says nothing of them: they vary as residuals do."""
    graph = Graph.from_edges([0, 1, 2, 4], [1, 2, 3, 5], nodes=range(7))
    y = np.array([30.0, 10.0, np.nan, 20.0, np.nan, np.nan, np.nan])
    model = GraphRegressor("mean", "propagate").fit(None, y, graph=graph)
    with pytest.warns(UserWarning, match="they get the base prediction"):
        mean, std = model.predict(return_std=True)
    assert (std[4:] > 2).all()
    draws = model.sample(20_000)
    z = (draws.mean(axis=0) - mean)[4:] / std[4:] * np.sqrt(20_000)
    assert np.abs(z).max() < 4.5
    assert_allclose(draws.std(axis=0)[4:], std[4:], rtol=0.03)
    assert np.abs(np.corrcoef(draws[:, 4:].T) - np.eye(3)).max() < 4.5 / np.sqrt(20_000)


def test_another_graph_is_conditioned_on_its_own_labels_without_refitting():
    case, X, _, y = problem(seed=1)
    other, X2, truth, _ = problem(seed=2)
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    alone = model.predict(X2, graph=other.graph)
    assert_allclose(alone, model.base_.predict(other.graph, X2), rtol=0)
    few = np.where(np.arange(other.n) < 40, truth, np.nan)
    known = ~np.isnan(few)
    helped, std = model.predict(X2, few, graph=other.graph, return_std=True)
    mean, covariance = dense.conditional(other.S, [model.alpha_["edge"]], model.beta_, known, (few - alone)[known])
    assert_allclose(helped[~known], alone[~known] + mean, atol=1e-7)
    assert_allclose(std[~known], np.sqrt(np.diag(covariance)), rtol=1e-7)
    assert model.score(X2, truth, known=few, graph=other.graph) == pytest.approx(
        metrics.r2(truth[~known], helped[~known])
    )


def test_score_counts_only_labels_the_model_has_not_seen():
    case, X, truth, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    assert model.score(X, truth) == pytest.approx(metrics.r2(truth[case.U], model.predict()[case.U]))
    with pytest.raises(ValueError, match="not seen"):
        model.score(X, y)


def test_gaussian_interval_is_mean_and_spread():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    mean, std = model.predict(return_std=True)
    lower, upper = model.predict_interval(coverage=0.95, method="gaussian")
    assert_allclose(lower, mean - 1.959964 * std, atol=1e-6)
    assert_allclose(upper, mean + 1.959964 * std, atol=1e-6)


def test_jackknife_interval_covers_the_left_out_labels_at_the_asked_rate():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    mean, std = model.predict(return_std=True, known="predict")
    lower, upper = model.predict_interval(coverage=0.8)
    width = ((upper - lower)[case.U] / 2 / model.predict(return_std=True)[1][case.U])[0]
    inside = np.abs(y - mean)[case.L] <= width * std[case.L] * (1 + 1e-9)
    assert inside.sum() == int(np.ceil((len(case.L) + 1) * 0.8))


def test_diagnose_tells_that_neighbours_help():
    case, X, _, y = problem(alpha=0.95)
    diagnosis = GraphRegressor("linear").fit(X, y, graph=case.graph).diagnose()
    assert diagnosis.r2_corrected > diagnosis.r2_base
    assert diagnosis.moran_base.statistic > 0.1
    assert abs(diagnosis.moran_corrected.statistic) < diagnosis.moran_base.statistic / 2
    low, high = diagnosis.alpha_interval["edge"]
    assert low < diagnosis.alpha["edge"] < high
    assert diagnosis.p_value < 0.01
    assert "neighbours help" in str(diagnosis)


def test_diagnose_finds_nothing_where_there_is_nothing():
    case, X, _, y = problem(alpha=0.0)
    diagnosis = GraphRegressor("linear").fit(X, y, graph=case.graph).diagnose()
    assert diagnosis.p_value > 0.05
    assert "No correlation" in diagnosis.verdict


def test_base_error_in_diagnose_is_that_of_least_squares_left_out():
    case, X, _, y = problem()
    diagnosis = GraphRegressor("linear").fit(X, y, graph=case.graph).diagnose()
    errors = []
    for i in case.L:
        others = case.L[i != case.L]
        errors.append(y[i] - LinearRegression().fit(X[others], y[others]).predict(X[i : i + 1])[0])
    labels = y[case.L]
    assert diagnosis.r2_base == pytest.approx(1 - np.sum(np.square(errors)) / np.sum((labels - labels.mean()) ** 2))


def test_every_setting_works_where_a_component_has_no_label():
    case = CASES["component without label"]
    rng = np.random.default_rng(0)
    y = np.where(case.labelled, rng.standard_normal(case.n), np.nan)
    for base in ("zero", "mean"):
        for correlation in (None, "learned"):
            model = GraphRegressor(base, correlation).fit(None, y, graph=case.graph)
            assert np.isfinite(model.predict(return_std=True)).all()
    model = GraphRegressor("mean", "propagate").fit(None, y, graph=case.graph)
    with pytest.warns(UserWarning, match="1 of 2 components have no label .4 nodes: 4, 5, 6, ...."):
        mean, std = model.predict(return_std=True)
    assert_allclose(mean[4:], np.nanmean(y))
    assert np.isfinite(std).all()


def test_every_node_labelled_leaves_nothing_to_predict_but_leave_one_out():
    case, X, truth, _ = problem()
    model = GraphRegressor("linear").fit(X, truth, graph=case.graph)
    assert_allclose(model.predict(), truth, rtol=0)
    assert metrics.r2(truth, model.predict(known="predict")) > 0.5


def test_scikit_learn_conventions_hold():
    model = GraphRegressor(Ridge(alpha=2.0), correlation=None, folds=3)
    assert model.get_params()["base__alpha"] == 2.0
    twin = clone(model).set_params(base__alpha=5.0, folds=4)
    assert (model.base.alpha, twin.base.alpha, twin.folds) == (2.0, 5.0, 4)
    with pytest.raises(NotFittedError, match="call fit"):
        model.predict()
    case, X, _, y = problem()
    fitted = model.fit(X, y, graph=case.graph)
    assert fitted is model
    assert model.n_features_in_ == 2
    assert not hasattr(model.base, "coef_"), "the parameter is left as it was"


def test_feature_names_are_kept_and_checked():
    case, X, _, y = problem()
    frame = pd.DataFrame(X, columns=["a", "b"], index=case.graph.nodes)
    model = GraphRegressor("linear").fit(frame, y, graph=case.graph)
    assert list(model.feature_names_in_) == ["a", "b"]
    other = problem(seed=5)[0].graph
    with pytest.raises(ValueError, match=r"X has columns \['b', 'a'\]"):
        model.predict(frame[["b", "a"]], graph=other)
    model.fit(X, y, graph=case.graph)
    assert not hasattr(model, "feature_names_in_")


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    before = model.predict()
    with pytest.raises(ValueError, match="constant y"):
        model.set_params(correlation=None).fit(X * 0, np.where(case.labelled, 1.0, np.nan), graph=case.graph)
    assert_allclose(model.set_params(correlation="learned").predict(), before, rtol=0)


def test_predictions_that_overflow_are_an_error_and_not_infinite(monkeypatch):
    graph = residua.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    model = residua.GraphRegressor("mean").fit(None, [1.0, 2.0, np.nan, 2.5, 0.5], graph=graph)
    monkeypatch.setattr("residua.field.Conditional.conditional_mean", lambda self, r: np.full(len(r), np.inf))
    with pytest.raises(ValueError, match=r"means at 1 of 5 nodes are not finite: .* bring y to a smaller scale"):
        model.predict()


# The fitted value


LEARNED = ["alpha_", "alpha_stderr_", "beta_", "base_", "correlation_", "graph_", "X_", "y_", "outcome_", "field_"]
LEARNED += ["n_features_in_", "feature_names_in_", "recipe_"]


def test_nothing_is_there_before_the_fit():
    model = GraphRegressor("linear")
    assert not [name for name in LEARNED if hasattr(model, name)]
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    for asked in (lambda: model.alpha_, model.predict, model.predict_interval, model.diagnose, model.sample):
        with pytest.raises(NotFittedError, match="call fit"):
            asked()


@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
def test_attributes_read_the_fitted_value(correlation):
    case, X, _, y = problem()
    model = GraphRegressor("linear", correlation).fit(pd.DataFrame(X, columns=["a", "b"]), y, graph=case.graph)
    check_is_fitted(model)
    field = model.field_
    assert isinstance(field, residua.FittedField)
    assert (model.alpha_, model.alpha_stderr_, model.beta_) == (field.alpha, field.alpha_stderr, field.beta)
    assert (model.correlation_ is None) is (correlation != "learned")
    if model.correlation_:
        assert model.beta_ == model.correlation_.beta
    assert model.n_features_in_ == X.shape[1] == len(model.feature_names_in_)
    assert_array_equal(model.predict(), field.prediction.mean)
    assert_array_equal(model.predict(y=y), field.condition_on(y).mean)


def test_a_recipe_goes_with_one_fit_only():
    case, X, _, y = problem()
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    model.recipe_ = "how"
    assert model.recipe_ == model.field_.recipe == "how"
    assert not hasattr(model.fit(X, y, graph=case.graph), "recipe_")


@pytest.mark.parametrize("level", [1.0, 0.1, 1 / 3, 1e6 + 0.1])
@pytest.mark.parametrize("correlation", [None, "propagate"])
def test_a_constant_label_is_refused_whatever_rounding_its_mean_leaves(level, correlation):
    case, X, _, y = problem()
    with pytest.raises(ValueError, match="constant y"):
        GraphRegressor("linear", correlation=correlation).fit(X, np.where(np.isnan(y), y, level), graph=case.graph)
