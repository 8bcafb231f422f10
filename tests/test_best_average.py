"""The best average of several bases: weights by errors at labels left out, and nothing from hidden labels."""

import numpy as np
import pytest

import residua
from residua import best_average
from residua.datasets import load_elect80


@pytest.fixture(scope="module")
def votes():
    data = load_elect80()
    return data, np.where(np.arange(len(data.y)) % 3 > 0, data.y, np.nan)


@pytest.fixture(scope="module")
def plain():
    """Candidates that take no second."""
    return {name: lambda name=name: residua.GraphRegressor(name) for name in ("mean", "linear", "splines")}


def test_it_is_as_good_as_every_single_base(votes, plain, monkeypatch):
    data, y = votes
    monkeypatch.setattr(best_average, "_candidates", lambda: plain)
    model = residua.best(data.X, y, graph=data.graph)
    singles = [make().fit(data.X, y, graph=data.graph).score(data.X, data.y) for make in plain.values()]
    assert model.score(data.X, data.y) > max(singles) - 0.003
    lower, upper = model.predict_interval()
    hidden = np.isnan(y)
    assert 0.86 < np.mean((lower <= data.y) & (data.y <= upper), where=hidden) < 0.94


def test_a_model_of_no_use_is_left_out(votes, plain, monkeypatch):
    data, y = votes
    monkeypatch.setattr(best_average, "_candidates", lambda: plain)
    names = [model.base_.name for model in residua.best(data.X, y, graph=data.graph).models]
    assert "splines" in names
    assert "mean" not in names


def test_a_spent_budget_begins_no_further_base(votes):
    data, y = votes
    model = residua.best(data.X, y, graph=data.graph, time_budget=1e-9)
    assert [one.base_.name for one in model.models] == ["linear"]


@pytest.mark.parametrize("budget", [0, -1, float("nan")])
def test_a_budget_of_no_seconds_is_refused(votes, budget):
    data, y = votes
    with pytest.raises(ValueError, match=r"time_budget=.* above 0"):
        residua.best(data.X, y, graph=data.graph, time_budget=budget)


def test_weights_follow_labels_left_out_and_not_those_learned_from(votes):
    """A tree that knows its labels by heart has no error there, and large ones where it has to predict."""
    from sklearn.tree import DecisionTreeRegressor

    data, y = votes
    bases = ("splines", DecisionTreeRegressor())
    models = [residua.GraphRegressor(base).fit(data.X, y, graph=data.graph) for base in bases]
    average = best_average.weighted(models)
    assert average.models[0] is models[0]
    assert average.weights[0] > 0.7


def messy(X):
    """Features with gaps and text, of which no network or line could make anything."""
    table = X.copy()
    table.iloc[::7, 0] = np.nan
    table["kind"] = np.where(X.iloc[:, 1] > X.iloc[:, 1].median(), "high", None)
    return table


def test_gaps_and_text_are_made_numbers_for_bases_that_need_them(votes, plain, monkeypatch, tmp_path):
    data, y = votes
    X = messy(data.X)
    trees = {"trees": lambda: residua.GraphRegressor("trees")}
    monkeypatch.setattr(best_average, "_candidates", lambda: plain | trees)
    model = residua.best(X, y, graph=data.graph)
    encoded = [encoding is not None for encoding in model.encodings]
    assert encoded == [one.base != "trees" for one in model.models]
    assert any(encoded)
    assert model.score(X, data.y) > 0.6
    model.save(tmp_path / "m.residua")
    again = residua.load(tmp_path / "m.residua")
    there = residua.Graph.from_scipy(data.graph.adjacency(), nodes=[f"new {k}" for k in range(len(y))])
    other = X.iloc[::-1].reset_index(drop=True)
    expected = model.predict(other, y[::-1], graph=there, known="predict")
    np.testing.assert_array_equal(again.predict(other, y[::-1], graph=there, known="predict"), expected)


def test_a_base_that_cannot_be_fitted_is_left_out_with_one_line(votes, plain, monkeypatch):
    data, y = votes
    wrong = {"wrong": lambda: residua.GraphRegressor("linear", folds=1)}
    monkeypatch.setattr(best_average, "_candidates", lambda: wrong | plain)
    with pytest.warns(UserWarning, match="wrong is left out: folds"):
        model = residua.best(data.X, y, graph=data.graph)
    assert len(model.models) >= 1


def test_several_targets_are_refused(votes):
    data, y = votes
    with pytest.raises(ValueError, match="several targets"):
        residua.best(data.X, np.column_stack([y, y]), graph=data.graph)
