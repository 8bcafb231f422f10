"""Labels of a few ids in, a table by id out."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import residua
from graphs import grid
from residua import Average, Graph, GraphRegressor, metrics


@pytest.fixture(scope="module")
def data():
    return residua.datasets.load_elect80()


@pytest.fixture(scope="module")
def model(data):
    y = np.where(np.arange(len(data.y)) % 3 > 0, data.y, np.nan)
    return GraphRegressor("linear").fit(data.X, y, graph=data.graph)


def test_labels_of_a_few_ids(model, data):
    """The user's own lines: a dict, and a Series of a few ids."""
    later = np.full(len(data.y), np.nan)
    later[data.graph.index(["01001", "56045"])] = [0.5, 0.7]
    expected = model.predict(y=later)
    assert expected[data.graph.index(["01001"])] == 0.5
    few = {"01001": 0.5, "56045": 0.7}
    for y in (few, pd.Series(few), pd.Series(few)[::-1], pd.Series(few).rename_axis("fips")):
        assert_array_equal(model.predict(y=y), expected)
        assert_array_equal(model.predict_interval(y=y), model.predict_interval(y=later))
        assert_array_equal(model.sample(2, y=y), model.sample(2, y=later))
        assert_array_equal(Average([model]).predict(y=y), expected)
        assert model.score(None, data.y, known=y) == model.score(None, data.y, known=later)
    assert_allclose(model.predict(y={}), model.predict(), rtol=1e-9)


def test_labels_of_a_few_ids_of_another_graph(model, data):
    at = np.arange(800)
    other = Graph.from_scipy(data.graph.adjacency()[at][:, at], nodes=[f"new {k}" for k in at])
    X = data.X.iloc[at].to_numpy()
    labels = np.where(at == 5, 0.9, np.nan)
    assert_array_equal(
        model.predict(X, {"new 5": 0.9}, graph=other, return_std=True),
        model.predict(X, labels, graph=other, return_std=True),
    )
    truth = data.y[at]
    known = {f"new {k}": truth[k] for k in range(0, 800, 4)}
    by_mask = np.where(at % 4 == 0, truth, np.nan)
    expected = model.score(X, truth, known=by_mask, graph=other)
    assert model.score(X, truth, known=known, graph=other) == expected
    carried, rest = other.with_features(data.X.iloc[at].set_axis(other.nodes)), at % 4 > 0
    score = model.score(other.nodes[rest], truth[rest], known=known, graph=carried)
    assert_allclose(score, expected, rtol=1e-12)


def test_ids_that_are_none_are_refused(model):
    with pytest.raises(ValueError, match="the index of y has '99999' at position 0, not a node of this graph"):
        model.predict(y={"99999": 1.0})
    with pytest.raises(ValueError, match="the index of known has 7 at position 0"):
        model.score(None, model.y_, known=pd.Series({7: 1.0}))
    with pytest.raises(ValueError, match="the index of y names node '01001' again at row 1"):
        model.predict(y=pd.Series([1.0, 2.0], index=["01001", "01001"]))
    with pytest.raises(ValueError, match="y is not numeric"):
        model.predict(y={"01001": "high"})
    with pytest.raises(ValueError, match="is inf"):
        model.predict(y={"01001": np.inf})


def test_numbers_that_may_be_rows_or_ids_are_refused():
    graph = Graph.from_edges([5, 4, 3, 2, 1], [4, 3, 2, 1, 0], nodes=[5, 4, 3, 2, 1, 0])
    model = GraphRegressor("mean").fit(None, np.array([1.0, 2.0, 2.5, np.nan, 4.0, 3.0]), graph=graph)
    rows = pd.Series([7.0], index=[3])
    with pytest.raises(ValueError, match=r'rows or ids\? Pass y.rename_axis\("id"\) if ids'):
        model.predict(y=rows)
    assert model.predict(y=rows.rename_axis("id"))[2] == 7.0
    assert model.predict(y={3: 7.0})[2] == 7.0


def test_predictions_of_some_nodes_in_the_order_asked_for(model, data):
    nodes = ["56045", "01001", "01003"]
    at = data.graph.index(nodes)
    mean, std = model.predict(return_std=True)
    for asked in (nodes, np.array(nodes), pd.Series(nodes), pd.Index(nodes)):
        assert_array_equal(model.predict(nodes=asked), mean[at])
        assert_array_equal(model.predict(asked), mean[at])
        found = model.predict(nodes=asked, return_std=True)
        assert_array_equal(found, (mean[at], std[at]))
    lower, upper = model.predict_interval(nodes=nodes)
    assert_array_equal(lower, model.predict_interval()[0][at])
    assert_array_equal(upper, model.predict_interval()[1][at])
    with pytest.raises(ValueError, match="nodes has '99999' at position 1, not a node of this graph"):
        model.predict(nodes=["01001", "99999"])


COLUMNS = ["prediction", "std", "lower", "upper", "base", "correction", "known", "leave_one_out"]


def test_a_table_has_all_that_is_predicted(model, data):
    frame = model.predict_frame()
    known = ~np.isnan(model.y_)
    assert frame.columns.tolist() == COLUMNS
    assert frame.index.name == "id"
    assert frame.index.tolist() == data.graph.nodes.tolist()
    mean, std = model.predict(return_std=True)
    assert_array_equal(frame[["prediction", "std"]].to_numpy().T, (mean, std))
    assert_array_equal(frame[["lower", "upper"]].to_numpy().T, model.predict_interval())
    assert_allclose(frame["base"] + frame["correction"], frame["prediction"])
    assert_array_equal(frame["base"], model.base_.predict(data.graph, data.X.to_numpy()))
    assert_array_equal(frame["known"], known)
    assert frame["leave_one_out"].isna().tolist() == (~known).tolist()
    assert_array_equal(frame["leave_one_out"][known], model.predict(known="predict")[known])
    few = model.predict_frame(nodes=["56045", "01001"], coverage=0.5, method="gaussian")
    assert few.index.tolist() == ["56045", "01001"]
    at = data.graph.index(["56045", "01001"])
    assert_array_equal(few["upper"], model.predict_interval(coverage=0.5, method="gaussian")[1][at])
    later = model.predict_frame(y={"01001": 0.5})
    assert later.loc["01001", "known"]
    assert later.loc["01001", "prediction"] == 0.5
    assert later["known"].sum() == known.sum() + 1
    assert metrics.rmse(data.y, frame["prediction"].to_numpy()) < 0.1


def test_a_table_of_another_graph_and_of_an_average():
    case = grid(8, 8)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((64, 2)), rng.standard_normal(64)
    labels = np.where(case.labelled, y, np.nan)
    models = [GraphRegressor(base, folds=3).fit(X, labels, graph=case.graph) for base in ("linear", Ridge())]
    other = grid(5, 5)
    blank = models[0].predict_frame(rng.standard_normal((25, 2)), graph=other.graph)
    assert not blank["known"].any()
    assert blank["leave_one_out"].isna().all()
    average = Average(models)
    frame = average.predict_frame()
    mean, std = average.predict(return_std=True)
    assert_allclose(frame["prediction"], mean)
    assert_allclose(frame["std"], std)
    assert_allclose(frame[["lower", "upper"]].to_numpy().T, average.predict_interval())
    assert_allclose(frame["leave_one_out"][case.labelled], average.predict(known="predict")[case.labelled])
    assert_allclose(frame["base"], np.mean([m.base_.predict(case.graph, X) for m in models], axis=0))


def test_a_mask_is_no_list_of_ids():
    data = residua.datasets.load_elect80()
    model = residua.GraphRegressor("linear").fit(
        data.X, np.where(np.arange(len(data.y)) % 3, data.y, np.nan), graph=data.graph
    )
    mask = np.isnan(model.y_)
    with pytest.raises(ValueError, match=r"holds flags, not ids; give graph.nodes\[mask\]"):
        model.predict(nodes=mask)
    assert len(model.predict(nodes=data.graph.nodes[mask])) == mask.sum()
