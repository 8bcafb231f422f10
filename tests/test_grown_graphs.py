"""New nodes next week: a model keeps the labels that it knows on its own graph, grown."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor

import dense
import residua
from graphs import small_world
from residua import Average, Graph, GraphRegressor, Network, metrics


class Week:
    """A small world of which the last twenty nodes come a week later, by ids in text, and labels of every node."""

    old = 100

    def __init__(self):
        self.case = case = small_world(n=120, degree=6, seed=2)
        rng = np.random.default_rng(2)
        self.ids = np.array([f"n{k}" for k in range(120)], object)
        self.X = pd.DataFrame(rng.standard_normal((120, 2)), index=self.ids, columns=["a", "b"])
        self.y = 1 + self.X.to_numpy() @ [1.0, 2.0] + dense.draw(case.S, [0.9], 4.0, rng)[0]
        self.late = np.maximum(case.source, case.target) >= self.old
        first = ~self.late
        self.graph = Graph.from_edges(*(self.ids[e[first]] for e in (case.source, case.target)), nodes=self.ids[:100])
        pairs = [self.ids[e[self.late]] for e in (case.source, case.target)]
        self.edges = pd.DataFrame(dict(zip(("source", "target"), pairs, strict=True)))
        self.labels = np.where(np.arange(100) % 3 > 0, self.y[:100], np.nan)

    @property
    def grown(self):
        return self.graph.with_nodes(self.ids[100:], self.edges)


@pytest.fixture(scope="module")
def week():
    return Week()


def test_predictions_on_the_grown_graph_are_universal_kriging_given_the_labels_of_the_fit(week):
    """The user's own line is ``model.predict(X, graph=graph.with_nodes(edges=edges))``."""
    model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    grown = week.graph.with_nodes(edges=week.edges)
    mean, std = model.predict(week.X, graph=grown, return_std=True)
    Z = np.column_stack([np.ones(120), week.X.loc[grown.nodes]])
    order = [int(node[1:]) for node in grown.nodes]
    S = week.case.S[:, order][:, :, order]
    y = np.concatenate([week.labels, np.full(20, np.nan)])[order]
    known = ~np.isnan(y)
    expected, covariance = dense.kriging(S, [model.alpha_["edge"]], model.beta_, known, y[known], Z)
    assert_allclose(mean[~known], expected, atol=1e-7)
    assert_allclose(std[~known], np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert_array_equal(mean[known], y[known])


def test_labels_that_came_with_the_new_nodes_add_to_those_of_the_fit(week):
    model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    later = {"n110": 3.0, "n1": 9.0}  # n1 had a label
    mean = model.predict(week.X.iloc[::-1], later, graph=week.grown)  # both by id
    y = np.concatenate([week.labels, np.full(20, np.nan)])
    y[[110, 1]] = [3.0, 9.0]
    Z, known = np.column_stack([np.ones(120), week.X]), ~np.isnan(y)
    expected, _ = dense.kriging(week.case.S, [model.alpha_["edge"]], model.beta_, known, y[known], Z)
    assert_allclose(mean[~known], expected, atol=1e-7)
    assert_array_equal(mean[known], y[known])


@pytest.mark.parametrize("correlation", ["learned", "propagate"])
def test_residuals_of_a_regressor_stay_out_of_fold(week, correlation):
    forest = RandomForestRegressor(20, random_state=0)
    model = GraphRegressor(forest, correlation, folds=4).fit(week.X[:100], week.labels, graph=week.graph)
    base = model.base_.predict(week.grown, week.X)
    known = np.concatenate([~np.isnan(week.labels), np.zeros(20, bool)])
    residual = np.full(120, np.nan)
    residual[known] = model.outcome_.residual
    alpha = list(model.alpha_.values())
    shift = (
        dense.harmonic(week.case.S, known, residual)[~known]
        if correlation == "propagate"
        else dense.conditional(week.case.S, alpha, 1.0, known, residual[known])[0]
    )
    assert_allclose(model.predict(week.X, graph=week.grown)[~known], base[~known] + shift, atol=1e-6)


def test_a_network_an_average_and_a_graph_with_features_keep_labels_too(week):
    network = GraphRegressor(Network("hops", widths=(4,), epochs=5)).fit(week.X[:100], week.labels, graph=week.graph)
    linear = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    known = np.flatnonzero(~np.isnan(week.labels))
    for model in (network, linear, Average([linear, linear])):
        mean, std = model.predict(week.X, graph=week.grown, return_std=True)
        assert_array_equal(mean[known], week.labels[known])
        assert (std[known] == 0).all()
        assert (std[100:] > 0).all()
    carried = week.graph.with_features(week.X[:100])
    model = GraphRegressor("linear").fit(carried.nodes, week.labels, graph=carried)
    grown = carried.with_nodes(week.X[100:], week.edges)
    assert_array_equal(model.predict(graph=grown), linear.predict(week.X, graph=week.grown))
    assert_array_equal(model.predict(["n105"], graph=grown), linear.predict(week.X, graph=week.grown)[[105]])
    frame = model.predict_frame(graph=grown)
    assert frame["known"].sum() == len(known)


def test_scores_on_the_grown_graph_leave_labels_of_the_fit_out(week):
    model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    known = np.concatenate([~np.isnan(week.labels), np.zeros(20, bool)])
    mean = model.predict(week.X, graph=week.grown)
    assert model.score(week.X, week.y, graph=week.grown) == metrics.r2(week.y[~known], mean[~known])
    grown = week.grown.with_features(week.X)
    assert model.score(week.ids[~known], week.y[~known], graph=grown) == metrics.r2(week.y[~known], mean[~known])
    left_out = model.predict(week.X, graph=week.grown, known="predict")[known]
    assert model.score(week.ids[known], week.y[known], graph=grown) == metrics.r2(week.y[known], left_out)


def test_a_graph_rebuilt_whole_or_a_model_from_a_file_is_the_same(week, tmp_path):
    model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    expected = model.predict(week.X, graph=week.grown)
    order = np.random.default_rng(0).permutation(120)
    ends = (week.ids[e] for e in (week.case.source, week.case.target))
    rebuilt = Graph.from_edges(*ends, nodes=week.ids[order])
    assert_allclose(model.predict(week.X, graph=rebuilt), expected[order], atol=1e-9)
    model.save(tmp_path / "model.residua")
    assert_allclose(residua.load(tmp_path / "model.residua").predict(week.X, graph=week.grown), expected, atol=1e-9)


def test_a_copy_of_the_training_graph_knows_its_labels_by_id(week):
    model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    first = ~week.late
    ends = (week.ids[e[first]] for e in (week.case.source, week.case.target))
    copy = Graph.from_edges(*ends, nodes=week.ids[:100])
    assert_allclose(model.predict(week.X[:100], graph=copy), model.predict(), atol=1e-9)
    carried = copy.with_features(week.X[:100])
    assert_allclose(model.predict(["n7"], graph=carried), model.predict(["n7"]), atol=1e-9)
    assert_allclose(model.score(week.X[:100], week.y[:100], graph=copy), model.score(None, week.y[:100]), atol=1e-9)


@pytest.mark.parametrize("base", ["trees", "mlp", "linear"])
def test_leave_one_out_on_a_graph_that_was_read_again_is_that_of_the_fit(week, base):
    """In another order of nodes: networks and boosters still know which labels each of them has not seen."""
    if base == "mlp":
        pytest.importorskip("torch")
        base = Network("mlp", widths=(4,), epochs=30)
    more = {"ensemble": 4} if isinstance(base, Network) else {}
    model = GraphRegressor(base, **more).fit(week.X[:100], week.labels, graph=week.graph)
    mixed = np.random.default_rng(0).permutation(100)
    first = ~week.late
    again = Graph.from_edges(
        *(week.ids[e[first]] for e in (week.case.source, week.case.target)), nodes=week.ids[:100][mixed]
    )
    mean, std = model.predict(week.X.loc[again.nodes], graph=again, known="predict", return_std=True)
    expected, deviation = model.predict(known="predict", return_std=True)
    assert_allclose(mean, expected[mixed], rtol=1e-6)
    assert_allclose(std, deviation[mixed], rtol=1e-6)


def test_another_graph_with_some_of_the_ids_is_another_and_says_so(week):
    model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
    kept = np.arange(len(week.case.source)) != 0  # an edge that is there no more
    other = Graph.from_edges(*(week.ids[e[kept]] for e in (week.case.source, week.case.target)), nodes=week.ids)
    known = int((~np.isnan(week.labels)).sum())
    with pytest.warns(UserWarning, match=rf"graph has {known} of the {known} labelled nodes.*pass y= .*y={{}} if none"):
        blank = model.predict(week.X, graph=other)
    assert_allclose(blank, model.base_.predict(other, week.X.to_numpy()))
    labels = dict(zip(week.ids, week.labels, strict=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(model.predict(week.X, {}, graph=other), blank)
        assert model.predict(week.X, labels, graph=other)[1] == week.labels[1]


def test_ids_that_are_merely_numbers_are_no_evidence():
    k = np.arange(29)
    path, longer = (Graph.from_edges(k[:n], k[:n] + 1) for n in (19, 29))
    y = np.random.default_rng(0).standard_normal(20).cumsum()
    model = GraphRegressor("mean").fit(None, y, graph=path)
    assert np.ptp(model.predict(graph=longer)) == 0  # another path, of which nothing is known
    grown = path.with_nodes(edges=np.column_stack([k[19:], k[19:] + 1]))
    assert_array_equal(model.predict(graph=grown)[:20], y)
    assert_array_equal(grown.adjacency().toarray(), longer.adjacency().toarray())


class TestRowsOfNewNodesAlone:
    """``model.predict(X_new, graph=grown)``: X has a row for each new node, by id, and the fit knows the others."""

    @pytest.mark.parametrize("base", ["linear", "splines", "trees", RandomForestRegressor(10, random_state=0)])
    @pytest.mark.parametrize("named", [True, False])
    def test_they_say_the_same_as_all_rows(self, week, base, named):
        first, whole = (X if named else X.to_numpy() for X in (week.X[:100], week.X))
        model = GraphRegressor(base).fit(first, week.labels, graph=week.graph)
        expected = model.predict(whole, graph=week.grown, return_std=True)
        new = week.X[100:].iloc[::-1]
        assert_allclose(model.predict(new, graph=week.grown, return_std=True), expected, atol=1e-12)
        assert_allclose(model.predict_frame(new, graph=week.grown)["prediction"], expected[0], atol=1e-12)
        and_old = week.X[90:]  # some that the fit has too
        assert_allclose(model.predict(and_old, graph=week.grown), expected[0], atol=1e-12)
        average = Average([model, model])
        assert_allclose(average.predict(new, graph=week.grown), expected[0], atol=1e-12)

    def test_they_are_scored(self, week):
        model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
        for one in (model, Average([model, model])):
            expected = one.score(week.X, week.y, graph=week.grown)
            assert_allclose(one.score(week.X[100:], week.y, graph=week.grown), expected, rtol=1e-12)

    def test_a_row_of_an_old_node_replaces_that_of_the_fit(self, week):
        model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
        changed = week.X.copy()
        changed.loc["n0"] = [5.0, 5.0]
        some = pd.concat([week.X[100:], changed.loc[["n0"]]])
        assert_array_equal(model.predict(some, graph=week.grown), model.predict(changed, graph=week.grown))

    def test_new_edges_alone_need_no_features_at_all(self, week):
        model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
        joined = week.graph.with_nodes(edges=[("n0", "n50")])
        assert_array_equal(model.predict(graph=joined), model.predict(week.X[:100], graph=joined))

    def test_categories_text_and_missing_values_stay_as_they_are(self, week):
        X = pd.DataFrame({"kind": pd.Categorical(np.where(week.X["a"] > 0, "up", "down")), "b": week.X["b"]})
        X = X.set_axis(week.ids)
        X.iloc[3, 0], X.iloc[105, 1] = np.nan, np.nan
        model = GraphRegressor("trees").fit(X[:100], week.labels, graph=week.graph)
        expected = model.predict(X, graph=week.grown)
        assert_array_equal(model.predict(X[100:], graph=week.grown), expected)
        assert_array_equal(model.predict(X[100:].astype({"kind": object}), graph=week.grown), expected)

    def test_what_is_not_enough_is_refused_with_the_remedy(self, week):
        model = GraphRegressor("linear").fit(week.X[:100], week.labels, graph=week.graph)
        with pytest.raises(ValueError, match="X has no row for 'n119', a new node; give rows by id of all 20 new"):
            model.predict(week.X[100:119], graph=week.grown)
        with pytest.raises(ValueError, match=r"X has 20 rows, as many as .* new nodes.*pd.DataFrame\(X, index=ids\)"):
            model.predict(week.X[100:].to_numpy(), graph=week.grown)
        frame = pd.DataFrame(week.X[100:].to_numpy(), index=week.ids[100:], columns=["a", "b"])
        assert len(model.predict(frame, graph=week.grown)) == 120
        with pytest.raises(ValueError, match=r"X has columns \['b', 'a'\] but the model was fitted on"):
            model.predict(week.X.loc[week.ids[100:], ["b", "a"]], graph=week.grown)
        with pytest.raises(ValueError, match=r"X has 1 id that the graph has not, 'else', and no row"):
            model.predict(week.X[99:].rename(index={"n99": "else"}), graph=week.grown)
        edges = (week.ids[e] for e in (week.case.source[1:], week.case.target[1:]))
        other = Graph.from_edges(*edges, nodes=week.ids)  # it lacks an edge, and so is another graph
        with pytest.raises(ValueError, match="X has no row for"):
            model.predict(week.X[100:], {}, graph=other)
