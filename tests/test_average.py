"""Average: several fitted models as one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from graphs import small_world
from residua import Average, Graph, GraphRegressor, Network, metrics
from residua.field import Conditional


def problem(n=600, seed=0):
    """Labels of a linear mean and correlated residuals; a third of them unknown."""
    rng = np.random.default_rng(seed)
    graph = small_world(n, 6, seed=seed).graph
    X = rng.standard_normal((n, 2))
    nobody = np.zeros(n, bool)
    nobody[0] = True
    noise = Conditional(graph, nobody, {"edge": 0.9}, 1.0).sample(1, rng)[0]
    truth = X @ [1.0, -1.0] + np.abs(X[:, 0]) + noise
    return graph, X, truth, np.where(rng.random(n) < 0.33, np.nan, truth)


@pytest.fixture(scope="module")
def models():
    graph, X, _, y = problem()
    bases = ("linear", DecisionTreeRegressor(max_depth=5), DecisionTreeRegressor(max_depth=7, random_state=3))
    return [GraphRegressor(base).fit(X, y, graph=graph) for base in bases]


def test_the_mean_is_the_weighted_mean_and_known_labels_stay(models):
    _, _, _, y = problem()
    mean, std = Average(models, weights=[2, 1, 1]).predict(return_std=True)
    parts = np.stack([m.predict() for m in models])
    np.testing.assert_allclose(mean, parts.T @ [0.5, 0.25, 0.25])
    known = ~np.isnan(y)
    np.testing.assert_allclose(mean[known], y[known])
    assert (std[known] == 0).all()
    assert (std[~known] > 0).all()


def test_the_variance_is_that_of_a_sum_of_correlated_errors(models):
    average = Average(models)
    R = average.correlation_
    np.testing.assert_allclose(np.diag(R), 1)
    assert ((R > 0) & (R <= 1 + 1e-12)).all()
    stds = np.stack([m.predict(return_std=True)[1] for m in models])
    node = int(np.argmax(stds[0]))
    D = np.diag(stds[:, node])
    expected = np.full(3, 1 / 3) @ D @ R @ D @ np.full(3, 1 / 3)
    assert average.predict(return_std=True)[1][node] ** 2 == pytest.approx(expected)


def test_one_model_and_copies_of_one_model_change_nothing(models):
    mean, std = models[1].predict(return_std=True)
    for same in ([models[1]], [models[1]] * 3):
        again, spread = Average(same).predict(return_std=True)
        np.testing.assert_allclose(again, mean)
        np.testing.assert_allclose(spread, std)
    for end, other in zip(models[1].predict_interval(), Average([models[1]] * 2).predict_interval(), strict=True):
        np.testing.assert_allclose(end, other)


def test_the_jackknife_width_is_that_of_the_weighted_errors(models):
    """The errors of the average itself, of labels that each model predicts from all the others."""
    weights, y = np.array([0.7, 0.1, 0.2]), models[0].y_
    known = ~np.isnan(y)
    average = Average(models, weights)
    moments = [model.predict(known="predict", return_std=True) for model in models]
    errors, stds = y[known] - np.stack([m for m, _ in moments])[:, known], np.stack([s for _, s in moments])[:, known]
    D = weights[:, None] * stds
    scores = np.abs(weights @ errors) / np.sqrt(np.einsum("ki,kl,li->i", D, average.correlation_, D))
    for coverage in (0.5, 0.9):
        rank = int(np.ceil(coverage * (known.sum() + 1)))
        assert average.interval_width(coverage) == pytest.approx(np.sort(scores)[rank - 1], rel=1e-9)


def test_a_model_that_was_trained_on_every_label_is_told():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric.nn")
    graph, X, _, y = problem(120)

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x, edge_index):
            return self.layer(x)

    linear = GraphRegressor("linear").fit(X, y, graph=graph)
    seen = GraphRegressor(Network(Line(), epochs=3, validation=0)).fit(X, y, graph=graph)
    with pytest.warns(UserWarning, match="a model was trained on every label, so errors are shown too small"):
        Average([linear, seen]).predict_interval()
    Average([linear, linear]).predict_interval()


def test_intervals_of_the_average_cover():
    covered = []
    for seed in range(6):
        graph, X, truth, y = problem(seed=seed)
        fitted = [GraphRegressor(b).fit(X, y, graph=graph) for b in ("linear", DecisionTreeRegressor(max_depth=5))]
        average, unknown = Average(fitted), np.isnan(y)
        for method in ("jackknife", "gaussian"):
            low, high = average.predict_interval(coverage=0.9, method=method)
            covered.append(metrics.coverage(truth[unknown], low[unknown], high[unknown]))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.03)


def test_models_that_err_apart_are_told_apart_from_those_that_err_together(models):
    together, apart = Average([models[1], models[1]]), Average([models[0], models[1]])
    assert together.correlation_[0, 1] == pytest.approx(1)
    assert apart.correlation_[0, 1] < 0.95


def test_another_graph_is_predicted_and_scored(models):
    graph, X, truth, y = problem(seed=5)
    average = Average(models)
    mean = average.predict(X, y, graph=graph)
    np.testing.assert_allclose(mean, np.mean([m.predict(X, y, graph=graph) for m in models], axis=0))
    unknown = np.isnan(y)
    assert average.score(X, truth, known=y, graph=graph) == pytest.approx(metrics.r2(truth[unknown], mean[unknown]))
    own = problem()
    assert average.score(own[1], own[2]) > max(m.score(own[1], own[2]) for m in models[1:])


def test_models_that_do_not_belong_together_are_named(models):
    graph, X, _, y = problem(seed=5)
    other = GraphRegressor("linear").fit(X, y, graph=graph)
    with pytest.raises(ValueError, match=r"models\[1\] was fitted on another graph or other labels"):
        Average([models[0], other])
    with pytest.raises(ValueError, match="models is empty"):
        Average([])
    with pytest.raises(ValueError, match="weights=\\[1, -1, 0\\] must be 3 numbers"):
        Average(models, weights=[1, -1, 0])
    with pytest.raises(ValueError, match="not fitted"):
        Average([GraphRegressor()])


@pytest.mark.filterwarnings("ignore:the 7 labels do not tell alpha")
def test_few_common_labels_count_as_the_same_error():
    ring = Graph.from_edges(range(9), [*range(1, 9), 0])
    y = np.array([1.0, 2.0, np.nan, 0.5, 2.5, 1.0, np.nan, 3.0, 0.0])
    models = [GraphRegressor(base).fit(None, y, graph=ring) for base in ("mean", "zero")]
    with pytest.warns(UserWarning, match="left only 7 labels out in common"):
        np.testing.assert_array_equal(Average(models).correlation_, np.ones((2, 2)))
    other = Graph.from_edges([0, 2, 4, 6, 8, 1, 3, 5, 7], [2, 4, 6, 8, 1, 3, 5, 7, 0], nodes=range(9))
    with pytest.raises(ValueError, match=r"models\[1\] was fitted on another graph"):
        Average([models[0], GraphRegressor("mean").fit(None, y, graph=other)])
    renamed = Graph.from_edges(range(9), [*range(1, 9), 0], type=["road"] * 9)
    with pytest.raises(ValueError, match=r"models\[1\] was fitted on another graph"):
        Average([models[0], GraphRegressor("mean").fit(None, y, graph=renamed)])
    same = Graph.from_edges(range(9), [*range(1, 9), 0])
    assert len(Average([models[0], GraphRegressor("mean").fit(None, y, graph=same)]).models) == 2


def test_an_array_is_refused_where_the_models_have_their_columns_in_different_orders():
    graph, X, truth, y = problem(n=100)
    table = pd.DataFrame(X, columns=["a", "b"])
    models = [GraphRegressor("linear").fit(table[list(order)], y, graph=graph) for order in ("ab", "ba")]
    average, other = Average(models), problem(n=100, seed=5)[0]
    assert average.score(None, truth) == pytest.approx(models[0].score(X, truth), abs=1e-6)
    for ask in (lambda: average.score(X + 1, truth), lambda: average.predict(X, graph=other)):
        with pytest.raises(ValueError, match=r"different features \(\['a', 'b'\] and \['b', 'a'\]\), so X cannot be"):
            ask()
    bare = GraphRegressor("linear").fit(X, y, graph=graph)  # an array has no names to contradict
    assert np.isfinite(Average([models[0], bare]).score(X + 1, truth))
