"""Every public function that takes a table with a row for each node: matched by id, in any order, or refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import residua
from by_id import ASKED, IDS, WRONG, N, World, arrays, ask, dropped, fitted
from residua import Graph, GraphRegressor, metrics
from soak.tables_by_id import run as soak
from soak.verdicts import Rounds

FEW = settings(phases=(Phase.generate,))  # what fails is small already


@pytest.mark.parametrize("what", ASKED)
@settings(FEW, max_examples=5)
@given(data=st.data())
def test_the_order_of_rows_changes_no_bit(what, data):
    names = ASKED[what][0]
    world = World(tuple(data.draw(st.permutations(IDS[data.draw(st.sampled_from(sorted(IDS)))]))))
    tables = [world.tables[name] for name in names]
    shuffled = [table.iloc[data.draw(st.permutations(range(N)))].rename_axis("id") for table in tables]
    expected = ask(what, world, tables)
    assert_array_equal(ask(what, world, shuffled), expected)
    assert_array_equal(ask(what, world, [table.to_numpy() for table in tables]), expected)


@pytest.mark.parametrize("what", ASKED)
@settings(FEW, max_examples=12)
@given(data=st.data())
def test_one_wrong_id_is_refused_wherever_it_is(what, data):
    names = ASKED[what][0]
    world = World(tuple(data.draw(st.permutations(IDS[data.draw(st.sampled_from(sorted(IDS)))]))))
    tables = [world.tables[name] for name in names]
    if data.draw(st.booleans()):
        tables = [table.iloc[data.draw(st.permutations(range(N)))].rename_axis("id") for table in tables]
    break_one = data.draw(st.sampled_from(WRONG))
    which = data.draw(st.integers(0, len(names) - 1))
    assume(not (break_one is dropped and names[which] == "later"))  # which may be the labels of a few ids
    tables[which], example = break_one(tables[which], data.draw(st.integers(0, N - 1)))
    with pytest.raises(ValueError, match=r"(has|is indexed by) .*[;.] ?(pass|keep|correct|add|set|they|If)") as error:
        ask(what, world, tables)
    assert "\n" not in str(error.value)
    assert example in str(error.value)


TOGETHER = [what for what, (names, _) in ASKED.items() if len(names) > 1]


@pytest.mark.parametrize("what", TOGETHER)
def test_tables_that_contradict_each_other_are_refused(what):
    world = World(tuple(IDS["text"]))
    for which in range(len(ASKED[what][0])):
        tables = [world.tables[name].iloc[::-1] for name in ASKED[what][0]]
        tables[which] = tables[which].to_numpy()
        with pytest.raises(ValueError, match=r"is indexed by ids in another order than graph.nodes, and .* has no ids"):
            ask(what, world, tables)


@pytest.mark.parametrize("what", ASKED)
def test_a_default_index_beside_numbers_in_order_of_appearance_is_refused(what):
    world = World((3, 0, *range(4, N), 2, 1))
    tables = [world.tables[name].reset_index(drop=True) for name in ASKED[what][0]]
    with pytest.raises(ValueError, match=r"has the default index 0, 1, 2, .* numbers in another order \(3, 0, 4, \.\."):
        ask(what, world, tables)


def test_a_default_index_is_positions_where_ids_are_text():
    world = World(tuple(IDS["text"][::-1]))
    X, y = (world.tables[name].reset_index(drop=True) for name in ("X", "y"))
    assert_array_equal(fitted(world.graph, X, y).predict(), fitted(world.graph, *arrays(world)).predict())


def test_one_foreign_id_in_a_shuffled_table_no_longer_goes_unnoticed():
    data = residua.datasets.load_elect80()
    shuffled = data.X.sample(frac=1, random_state=0)
    y = pd.Series(data.y, index=data.X.index)
    wrong = shuffled.rename(index={"06037": "6037"})
    with pytest.raises(ValueError, match=r"X has 1 id that the graph has not, '6037', and no row for 1 node .*'06037'"):
        GraphRegressor("linear").fit(wrong, y, graph=data.graph)


def test_labels_of_a_few_nodes_are_refused_with_a_remedy():
    world = World(tuple(IDS["text"]))
    y = world.tables["y"].dropna()
    with pytest.raises(ValueError, match=r"y has no row for 3 nodes .*; pass y.reindex\(graph.nodes\), unknown there"):
        fitted(world.graph, world.tables["X"], y)
    graph = world.graph
    model = fitted(graph, world.tables["X"], y.reindex(graph.nodes))
    assert_array_equal(model.predict(), fitted(graph, *arrays(world)).predict())


def test_an_error_names_the_node_of_a_table_by_id_and_the_row_of_an_array():
    world = World(tuple(IDS["text"]))
    X, y = world.tables["X"].copy(), world.tables["truth"].copy()
    X.loc["node 4", "b"] = np.nan
    with pytest.raises(ValueError, match="X has nan in row 'node 4', column b"):
        fitted(world.graph, X.iloc[::-1], y)
    with pytest.raises(ValueError, match="X has nan in row 4, column 1"):
        fitted(world.graph, X.to_numpy(), y)
    y.loc["node 2"] = np.inf
    with pytest.raises(ValueError, match=r"y\['node 2'\] is inf"):
        fitted(world.graph, world.tables["X"], y.iloc[::-1])


def test_columns_of_a_metric_have_one_order():
    world = World(tuple(IDS["text"]))
    y, mean = world.tables["truth"], world.tables["truth"] + 1
    assert metrics.rmse(y, mean) == pytest.approx(1)
    for metric, others in ((metrics.r2, [mean]), (metrics.gaussian_nll, [mean, mean**2 + 1])):
        with pytest.raises(ValueError, match="is not indexed like y"):
            metric(y, *(other.iloc[::-1] for other in others))
    draws = pd.DataFrame([y, mean])  # a column a node
    assert metrics.sample_crps(y, draws) == metrics.sample_crps(y, draws.to_numpy())
    with pytest.raises(ValueError, match=r"draws\.T is not indexed like y"):
        metrics.sample_crps(y.iloc[::-1], draws)


def test_a_mask_for_a_torch_loop_is_matched_by_id():
    torch = pytest.importorskip("torch")
    from residua.nn import CorrelatedResidual

    world = World(tuple(IDS["text"]))
    mask = world.tables["mask"]
    for given_mask in (mask.iloc[::-1], mask.to_numpy(), torch.tensor(mask.tolist()), mask.tolist()):
        assert_array_equal(CorrelatedResidual(world.graph, given_mask).labelled, mask)
    with pytest.raises(ValueError, match="train_mask has no row for 1 node"):
        CorrelatedResidual(world.graph, mask.iloc[1:])


def test_a_report_shows_each_node_with_its_own_words():
    from residua.views.contents import Contents
    from residua.views.page.html import Page

    world = World(tuple(IDS["text"]))
    model = fitted(world.graph, *arrays(world))
    words = pd.DataFrame({"name": [f"name of {v}" for v in world.ids]}, index=list(world.ids)).join(
        world.tables["places"]
    )
    for order in (slice(None), slice(None, None, -1)):
        page = Page(Contents(model), nodes=words.iloc[order])
        assert_array_equal(page.texts["name"], words["name"])
        assert_array_equal(page.drawing.xy, Page(Contents(model), nodes=words).drawing.xy)


def test_the_soak_of_tables_breaks_no_promise():
    found = soak(Rounds(24), 0)
    assert found["matched"] == 24
    assert found["refused"] == found["inputs"] - 24 > 5 * 24


class TestDefaultIndexBesideTextIds:
    """A table that nobody indexed, and a graph whose nodes nobody listed: the rows could follow anything."""

    edges = (["c", "a", "b"], ["a", "b", "d"])  # nodes in the order c, a, b, d

    def test_it_is_refused_with_remedies_that_work(self):
        graph = Graph.from_edges(*self.edges)
        table = pd.DataFrame({"id": list("abcd"), "x": [0.0, 1.0, 2.0, 4.0], "y": [1.0, 3.0, 5.0, 9.5]})
        for X, y in ((table[["x"]], table["y"].to_numpy()), (table[["x"]].to_numpy(), table["y"])):
            with pytest.raises(ValueError, match=r"(X|y) has the default index .* the edges name them \('c', 'a', 'b'"):
                GraphRegressor("linear").fit(X, y, graph=graph)
        with pytest.raises(ValueError, match="X has the default index"):
            graph.with_features(table[["x"]])
        by_id = table.set_index("id")
        expected = GraphRegressor("linear").fit(by_id[["x"]], by_id["y"], graph=graph).alpha_
        listed = Graph.from_edges(*self.edges, nodes=table["id"])
        assert_allclose(list(fit(table, listed).alpha_.values()), list(expected.values()), atol=1e-3)
        follows = table.iloc[[2, 0, 1, 3]].reset_index(drop=True)
        moved = GraphRegressor("linear").fit(
            follows[["x"]].set_axis(graph.nodes), follows["y"].set_axis(graph.nodes), graph=graph
        )
        assert moved.alpha_ == expected

    def test_arrays_and_ids_that_are_numbers_stay_positions(self):
        graph = Graph.from_edges(*self.edges)
        X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 3.0, 5.0, 9.5])
        assert GraphRegressor("linear").fit(X, y, graph=graph).y_[0] == 1.0
        counted = Graph.from_edges([1, 2, 3], [2, 3, 4])
        assert GraphRegressor("linear").fit(pd.DataFrame(X), pd.Series(y), graph=counted).y_[0] == 1.0

    def test_a_loaded_and_a_grown_graph_remember(self, tmp_path):
        graph = Graph.from_edges(*self.edges)
        X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 3.0, 5.0, 9.5])
        GraphRegressor("linear").fit(X, y, graph=graph).save(tmp_path / "model.residua")
        loaded = residua.load(tmp_path / "model.residua")
        grown = graph.with_nodes(edges=[("d", "e")])
        for table, other in ((pd.DataFrame(X), None), (pd.DataFrame(np.vstack([X, X[:1]])), grown)):
            with pytest.raises(ValueError, match="X has the default index"):
                loaded.predict(table, graph=other)


def fit(table, graph):
    return GraphRegressor("linear").fit(table[["x"]], table["y"], graph=graph)
