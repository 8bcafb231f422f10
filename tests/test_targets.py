"""Several targets at once: each column as if it were fitted by itself."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_score

import dense
import residua
from graphs import small_world
from residua import Average, Graph, GraphRegressor, Lanczos, Network
from residua.field import Correlator
from residua.io.model_file.container import read_zip, write_zip


@pytest.fixture(scope="module")
def problem():
    """A small world by text ids, and three targets: two known at the same nodes, one of them at others."""
    case = small_world(n=120, degree=6, share=0.6, seed=6)
    rng = np.random.default_rng(6)
    ids = np.array([f"n{k}" for k in range(120)], object)
    graph = Graph.from_edges(ids[case.source], ids[case.target], nodes=ids)
    X = pd.DataFrame(rng.standard_normal((120, 2)), index=ids, columns=["u", "v"])
    draws = [dense.draw(case.S, [alpha], 4.0, rng)[0] for alpha in (0.95, -0.8, 0.5)]
    truth = pd.DataFrame({name: draw + X["u"] for name, draw in zip("abc", draws, strict=True)})
    known = truth.copy()
    known[~case.labelled] = np.nan
    known["c"] = truth["c"].where(np.arange(120) % 3 > 0)
    return graph, X, truth, known


BASES = {
    "linear": GraphRegressor("linear"),
    "probes": GraphRegressor("linear", logdet=Lanczos(8, 12)),
    "propagated": GraphRegressor("linear", "propagate"),
    "plain": GraphRegressor("linear", None),
    "forest": GraphRegressor(RandomForestRegressor(10), folds=3),
    "network": GraphRegressor(Network("mlp", widths=(4,), epochs=4)),
}


@pytest.mark.parametrize("name", BASES)
def test_each_target_is_as_if_it_were_fitted_by_itself_to_the_last_bit(name, problem):
    graph, X, truth, y = problem
    model = clone(BASES[name]).fit(X, y, graph=graph)
    mean, std = model.predict(return_std=True)
    lower, upper = model.predict_interval()
    assert mean.shape == std.shape == lower.shape == (120, 3)
    scores = []
    for k, target in enumerate("abc"):
        one = clone(BASES[name]).fit(X, y[target], graph=graph)
        assert model.alpha_[target] == one.alpha_
        assert model.beta_[target] == one.beta_
        assert_array_equal((mean[:, k], std[:, k]), one.predict(return_std=True))
        assert_array_equal((lower[:, k], upper[:, k]), one.predict_interval())
        assert_array_equal(model.predict(known="predict")[:, k], one.predict(known="predict"))
        pd.testing.assert_frame_equal(model.predict_frame()[target], one.predict_frame(), check_exact=True)
        scores.append(one.score(X, truth[target]))
    assert model.score(X, truth) == pytest.approx(np.mean(scores))


def test_log_determinants_are_computed_once_for_targets_known_at_the_same_nodes(problem, monkeypatch):
    graph, X, _, y = problem
    made = []
    monkeypatch.setattr("residua.fitting.Correlator", lambda *args: made.append(args) or Correlator(*args))
    GraphRegressor("linear").fit(X, y, graph=graph)
    assert len(made) == 2  # a and b share one, c is known elsewhere


def test_arrays_and_tables_by_id(problem):
    graph, X, _, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=graph)
    bare = GraphRegressor("linear").fit(X.to_numpy(), y.to_numpy(), graph=graph)
    shuffled = GraphRegressor("linear").fit(X, y.iloc[::-1], graph=graph)
    assert_array_equal(bare.predict(), model.predict())
    assert_array_equal(shuffled.predict(), model.predict())
    assert list(bare.targets_) == [0, 1, 2]
    assert_array_equal(bare.y_, y)
    assert model.graph_ is graph
    assert model.n_features_in_ == 2
    nodes = graph.nodes[:70]
    carried = graph.with_features(X)
    named = GraphRegressor("linear").fit(nodes, y.iloc[:70], graph=carried)
    assert named.targets_["a"].y_[70:].tolist() == pytest.approx([np.nan] * 50, nan_ok=True)
    assert_array_equal(named.predict(nodes=["n3", "n100"]), named.predict()[[3, 100]])


def test_labels_that_came_later_for_some_targets(problem):
    graph, X, _, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=graph)
    alone = {name: one.predict(y={"n0": 9.0}) for name, one in model.targets_.items()}
    later = np.full((120, 3), np.nan)
    later[0, 1] = 9.0
    for given in ({"b": {"n0": 9.0}}, pd.DataFrame({"b": [9.0]}, index=["n0"])):
        mean = model.predict(y=given)
        assert_array_equal(mean[:, 1], alone["b"])
        assert_array_equal(mean[:, 0], model.targets_["a"].predict())
    assert_array_equal(model.predict(y=later)[:, 1], alone["b"])
    with pytest.raises(ValueError, match=r"y has 'd', which is none of the targets \['a', 'b', 'c'\]"):
        model.predict(y={"d": {"n0": 9.0}})
    with pytest.raises(ValueError, match=r"y has shape \(120, 2\) but the model has 3 targets"):
        model.predict(y=later[:, :2])


def test_draws_of_targets_are_independent(problem):
    graph, X, _, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=graph)
    draws = model.sample(400)
    assert draws.shape == (400, 120, 3)
    unknown = np.flatnonzero(y.isna().all(axis=1))
    z = (draws - model.predict())[:, unknown] / model.predict(return_std=True)[1][unknown]
    assert abs(np.mean(z[:, :, 0] * z[:, :, 1])) < 5 / np.sqrt(400)
    assert_allclose(z.std(axis=0), 1, atol=0.2)
    assert_array_equal(draws, model.sample(400))


def test_cross_validation_of_several_targets(problem):
    graph, X, truth, _ = problem
    carried, cv = graph.with_features(X), KFold(3)
    scores = cross_val_score(GraphRegressor("linear"), graph.nodes, truth, cv=cv, params={"graph": carried})
    each = [
        cross_val_score(GraphRegressor("linear"), graph.nodes, truth[name], cv=cv, params={"graph": carried})
        for name in "abc"
    ]
    assert_allclose(scores, np.mean(each, axis=0))


def test_what_only_one_target_has_says_where_to_ask(problem, tmp_path):
    graph, X, _, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=graph)
    for ask in (model.diagnose, model.summary, lambda: Average([model])):
        with pytest.raises(ValueError, match=r"fitted to the targets \['a', 'b', 'c'\]; .*model.targets_\['a'\]"):
            ask()
    assert f"b: {model.targets_['b'].summary()}" in str(model)
    assert "b: alpha[edge]" in model._repr_html_()
    model.fit(X, y["a"], graph=graph)
    assert model.targets_ is None
    assert model.predict().shape == (120,)
    with pytest.raises(ValueError, match="checkpoint is one file"):
        GraphRegressor("linear", checkpoint=tmp_path / "c").fit(X, y, graph=graph)
    with pytest.raises(ValueError, match=r"y\['b'\] has no known value"):
        model.fit(X, y.assign(b=np.nan), graph=graph)
    assert model.targets_ is None  # a fit that fails leaves the model as it was
    with pytest.raises(ValueError, match="give each target a name of its own"):
        model.fit(X, y.set_axis(["a", "a", "b"], axis=1), graph=graph)


@pytest.mark.parametrize("name", ["linear", "forest", "network"])
def test_a_model_of_several_targets_is_saved_whole(name, problem, tmp_path):
    """The user's own lines: ``model.save("model.residua")``, ``residua.load("model.residua")``."""
    graph, X, truth, y = problem
    model = clone(BASES[name]).fit(X, y, graph=graph)
    model.save(tmp_path / "model.residua")
    trusted = ["sklearn.tree._tree.Tree"]
    again = residua.load(tmp_path / "model.residua", kind=GraphRegressor, trusted=trusted)
    assert_array_equal(again.predict(return_std=True), model.predict(return_std=True))
    pd.testing.assert_frame_equal(again.predict_frame(), model.predict_frame())
    assert again.score(X, truth) == model.score(X, truth)
    assert list(again.targets_) == ["a", "b", "c"]
    assert again.alpha_ == model.alpha_
    assert all(one.graph_ is again.graph_ for one in again.targets_.values())
    again.targets_["b"].save(tmp_path / "one.residua")
    assert_array_equal(residua.load(tmp_path / "one.residua", trusted=trusted).predict(), model.predict()[:, 1])


def test_a_file_of_several_targets_that_do_not_belong_together_is_refused(problem, tmp_path):
    graph, X, _, y = problem
    model = GraphRegressor("linear").fit(X, y.to_numpy(), graph=graph)
    path = tmp_path / "model.residua"
    model.save(path)
    assert list(residua.load(path).targets_) == [0, 1, 2]
    members = read_zip(path)
    twice = members["targets.json"].replace(b"[0, 1, 2]", b"[0, 1, 1]")
    for change in ({"targets.json": twice}, {"7/model.json": b"{}"}):
        write_zip(path, members | change)
        with pytest.raises(residua.ModelFileError, match="damaged"):
            residua.load(path)
    moved = GraphRegressor("linear").fit(X + 1, y["a"], graph=graph)
    moved.save(tmp_path / "moved.residua")
    write_zip(path, members | {f"1/{name}": data for name, data in read_zip(tmp_path / "moved.residua").items()})
    with pytest.raises(residua.ModelFileError, match="its targets are of different graphs or features"):
        residua.load(path)
