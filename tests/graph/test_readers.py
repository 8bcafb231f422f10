"""Every kind of input gives the graph that a dense adjacency matrix describes, or one clear error."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import BUILDERS, CASES, ONE_TYPE, assert_is, dense

from residua.graph import Graph


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("name", CASES)
def test_every_constructor_gives_the_dense_matrix(build, name):
    assert_is(build(CASES[name]), CASES[name])


def pyg_edges(torch, case, type):
    i, j = np.nonzero(case.dense(type))
    return torch.tensor(np.stack([i, j])), torch.tensor(case.dense(type)[i, j])


@pytest.mark.parametrize("name", ONE_TYPE)
def test_pyg_data_gives_the_dense_matrix(name):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    case = CASES[name]
    edge_index, edge_weight = pyg_edges(torch, case, "edge")
    graph = Graph.from_pyg(pyg.Data(edge_index=edge_index, edge_weight=edge_weight, num_nodes=len(case.nodes)))
    assert_is(graph, case, nodes=list(range(len(case.nodes))))


def test_pyg_relations_become_edge_types():
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    case, data = CASES["two types"], pyg.HeteroData()
    data["county"].num_nodes = len(case.nodes)
    for name in case.types:
        store = data["county", name, "county"]
        store.edge_index, store.edge_weight = pyg_edges(torch, case, name)
    assert_is(Graph.from_pyg(data), case, nodes=[0, 1, 2, 3])


def test_pyg_edge_listed_in_one_direction_is_undirected():
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    graph = Graph.from_pyg(pyg.Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=4))
    np.testing.assert_array_equal(dense(graph), np.diag([1, 1, 0], 1) + np.diag([1, 1, 0], -1))
    assert graph.operators["edge"].weights is None


@pytest.mark.parametrize("name", ONE_TYPE)
def test_libpysal_weights_give_the_dense_matrix(name):
    weights = pytest.importorskip("libpysal.weights")
    case = CASES[name]
    assert_is(Graph.from_libpysal(classic_weights(weights, case)), case)


def classic_weights(weights, case):
    neighbours = {u: [] for u in case.nodes}
    values = {u: [] for u in case.nodes}
    for u, v, w, _ in case.edges:
        for a, b in {(u, v), (v, u)}:
            neighbours[a].append(b)
            values[a].append(w)
    return weights.W(neighbours, values, id_order=case.nodes, silence_warnings=True)


@pytest.mark.parametrize("name", ["path", "star", "isolate", "two components", "weighted"])
def test_libpysal_graph_gives_the_dense_matrix(name):
    pysal = pytest.importorskip("libpysal.graph")
    case = CASES[name]
    graph = pysal.Graph.from_sparse(sp.coo_array(case.dense("edge")), ids=case.nodes)
    assert_is(Graph.from_libpysal(graph), case)


def test_a_matrix_may_be_dense_or_of_integers_or_with_repeated_entries():
    A = np.array([[0, 2], [2, 0]])
    repeated = sp.coo_array(([3.0, -1.0, 2.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    for given_as in (A, A.tolist(), sp.csc_matrix(A), repeated):
        np.testing.assert_array_equal(dense(Graph.from_scipy(given_as)), A)


def test_building_leaves_its_input_as_it_was():
    A = sp.csr_array((np.ones(4), [2, 1, 0, 0], [0, 2, 3, 4]), shape=(3, 3))
    nodes = np.array([5, 6, 7])
    graph = Graph.from_scipy(A, nodes=nodes)
    nodes[0] = 99
    assert A.indices.tolist() == [2, 1, 0, 0]
    assert graph.nodes.tolist() == [5, 6, 7]


DIRECTED = np.array([[3.0, 4.0, 0.0], [2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
SYMMETRIZED = {
    "max": [[3, 4, 0], [4, 0, 1], [0, 1, 0]],
    "mean": [[3, 3, 0], [3, 0, 0.5], [0, 0.5, 0]],
    "sum": [[6, 6, 0], [6, 0, 1], [0, 1, 0]],
}


@pytest.mark.parametrize("how", SYMMETRIZED)
def test_symmetrize_combines_a_matrix_with_its_transpose(how):
    networkx = pytest.importorskip("networkx")
    G = networkx.from_numpy_array(DIRECTED, create_using=networkx.DiGraph)
    np.testing.assert_array_equal(dense(Graph.from_scipy(DIRECTED, symmetrize=how)), SYMMETRIZED[how])
    np.testing.assert_array_equal(dense(Graph.from_networkx(G, symmetrize=how)), SYMMETRIZED[how])


def test_a_matrix_that_is_not_symmetric_is_refused():
    message = (
        r"A is not symmetric: 2 pairs disagree, such as \(0, 1\) with 4.0 and \(1, 0\) with 2.0; "
        "pass symmetrize='max', 'mean' or 'sum'"
    )
    with pytest.raises(ValueError, match=message):
        Graph.from_scipy(DIRECTED)
    with pytest.raises(ValueError, match=r"A of type 'rail' is not symmetric: 2 pairs .* \('a', 'b'\) with 4.0"):
        Graph.from_scipy({"road": np.eye(3), "rail": DIRECTED}, nodes=list("abc"))
    with pytest.raises(ValueError, match=r"\(0, 2\) with 1.0 and \(2, 0\) with 0.0"):
        Graph.from_scipy([[0, 0, 1], [0, 0, 0], [0, 0, 0]])


def test_a_matrix_symmetric_up_to_rounding_becomes_exactly_symmetric():
    A = dense(Graph.from_scipy([[0, 0.1 + 0.2], [0.3, 0]]))
    assert A[0, 1] == A[1, 0] == pytest.approx(0.3)


def test_an_unknown_way_to_symmetrize_is_refused():
    with pytest.raises(ValueError, match="symmetrize is 'min'; use 'max', 'mean' or 'sum', or None"):
        Graph.from_scipy(DIRECTED, symmetrize="min")


@pytest.mark.parametrize(
    ("A", "nodes", "message"),
    [
        (np.ones((2, 3)), None, r"A has shape \(2, 3\); an adjacency matrix is square"),
        (np.ones(3), None, r"A has shape \(3,\)"),
        (np.array([[0, 1j], [1j, 0]]), None, "A has dtype complex128; weights must be real numbers"),
        ({}, None, "A is an empty dict; give one matrix per edge type"),
        ({"x": np.eye(2), "y": np.eye(3)}, None, r"A has matrices of shapes \[\(2, 2\), \(3, 3\)\]"),
        ({1: np.eye(2), "1": np.eye(2)}, None, r"type has values that read the same, \['1', '1'\]"),
        (np.eye(2), ["a", "b", "c"], "nodes has 3 ids but A has 2 rows; give one id per row"),
        (
            sp.coo_array(([1.0], ([0], [0])), shape=(2**31, 2**31)),
            None,
            "graph has 2147483648 nodes; .* at most 2147483647",
        ),
    ],
)
def test_a_matrix_of_a_wrong_form_is_refused(A, nodes, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_scipy(A, nodes=nodes)


def test_a_table_of_weights_names_the_nodes_by_its_index_and_its_columns():
    A = pd.DataFrame([[0, 1, 2], [1, 0, 3], [2, 3, 0]], list("abc"), list("abc"))
    mixed = A.loc[list("cab"), list("bca")]
    for given, nodes in ((A, None), (mixed, list("abc")), (mixed.loc[list("abc")], None)):
        graph = Graph.from_scipy(given, nodes)
        assert graph.nodes.tolist() == list("abc")
        np.testing.assert_array_equal(graph.adjacency().toarray(), A)
    assert Graph.from_scipy(mixed).nodes.tolist() == list("cab")
    types = Graph.from_scipy({"road": A, "rail": mixed})
    np.testing.assert_array_equal(types.adjacency("rail").toarray(), A)
    bare = pd.DataFrame(A.to_numpy())
    np.testing.assert_array_equal(Graph.from_scipy(bare, list("xyz")).adjacency().toarray(), A)
    with pytest.raises(ValueError, match=r"A\.T has 1 id that the graph has not, 'd', and no row for 1 node .*'c'"):
        Graph.from_scipy(A.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match=r"A.* is indexed by .*none of them an id"):
        Graph.from_scipy(A, nodes=list("xyz"))


def test_columns_of_edges_that_are_indexed_differently_are_refused():
    edges = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3], "km": [1.0, 2.0, 3.0]}, index=list("xyz"))
    good = Graph.from_edges(edges["source"], edges["target"], edges["km"])
    for weight in (edges["km"].reset_index(drop=True), edges["km"].tolist()):
        again = Graph.from_edges(edges["source"], edges["target"], weight)
        np.testing.assert_array_equal(again.adjacency().toarray(), good.adjacency().toarray())
    with pytest.raises(ValueError, match=r"weight is not indexed like source; order both alike"):
        Graph.from_edges(edges["source"], edges["target"], edges["km"].iloc[::-1])


def test_pandas_names_the_columns_there_are():
    edges = pd.DataFrame({"from": [0], "to": [1]})
    with pytest.raises(ValueError, match=r"source='source' is not a column of edges; its columns are \['from', 'to'\]"):
        Graph.from_pandas(edges)
    with pytest.raises(ValueError, match="weight='km' is not a column"):
        Graph.from_pandas(edges, "from", "to", weight="km")
    assert Graph.from_pandas(edges, "from", "to").n_edges == 1


def test_networkx_weights_are_read_as_networkx_reads_them():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_edge("a", "b", weight=3.0, km=7.0)
    G.add_edge("b", "c")
    assert Graph.from_networkx(G).degree.tolist() == networkx.to_numpy_array(G).sum(axis=0).tolist() == [3, 4, 1]
    assert Graph.from_networkx(G, weight=None).degree.tolist() == [1, 2, 1]
    assert Graph.from_networkx(G, weight="km").degree.tolist() == [7, 8, 1]
    with pytest.raises(ValueError, match=r"weight='miles' is on no edge of G; .* are \['km', 'weight'\]"):
        Graph.from_networkx(G, weight="miles")
    G.add_edge("c", "d", weight=-1.0)
    with pytest.raises(ValueError, match=r"weight is -1.0 at edge \('c', 'd'\)"):
        Graph.from_networkx(G)


def test_networkx_parallel_edges_add_up():
    networkx = pytest.importorskip("networkx")
    G = networkx.MultiGraph([(0, 1), (1, 0), (1, 1), (1, 1), (1, 2)])
    np.testing.assert_array_equal(dense(Graph.from_networkx(G)), networkx.to_numpy_array(G))


def test_networkx_edges_need_a_type_where_types_are_asked_for():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_edge("a", "b", kind="road")
    G.add_edge("b", "c")
    with pytest.raises(ValueError, match=r"type is missing \(\w+\) at row 1"):
        Graph.from_networkx(G, type="kind")


def test_a_directed_networkx_graph_must_be_symmetric_or_be_made_so():
    networkx = pytest.importorskip("networkx")
    path = networkx.path_graph(3, create_using=networkx.DiGraph)
    with pytest.raises(
        ValueError, match=r"G is not symmetric: 2 pairs .* \(0, 1\) with 1.0 .* or give G.to_undirected"
    ):
        Graph.from_networkx(path)
    both_ways = networkx.path_graph(3).to_directed()
    np.testing.assert_array_equal(dense(Graph.from_networkx(both_ways)), networkx.to_numpy_array(both_ways))


def test_pyg_input_of_a_wrong_form_is_refused():
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    pair = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match=r"edge_index has values in 0 \.\. 5 but data has 3 nodes; set data.num_nodes"):
        Graph.from_pyg(pyg.Data(edge_index=torch.tensor([[0], [5]]), num_nodes=3))
    with pytest.raises(ValueError, match=r"edge_index has shape \(3, 2\); it must be \(2, edges\)"):
        Graph.from_pyg(pyg.Data(edge_index=torch.zeros(3, 2, dtype=int), num_nodes=3))
    with (
        pytest.raises(ValueError, match="data has no num_nodes"),
        pytest.warns(UserWarning, match="num_nodes"),
    ):
        Graph.from_pyg(pyg.Data())
    with pytest.raises(ValueError, match="data has no edge_index"):
        Graph.from_pyg(pyg.Data(x=torch.ones(3, 1)))
    with pytest.raises(ValueError, match=r"weight of edge .* or pass symmetrize='max', 'mean' or 'sum'"):
        Graph.from_pyg(pyg.Data(edge_index=pair, edge_weight=torch.tensor([1.0, 3.0]), num_nodes=2))
    hetero = pyg.HeteroData(person={"num_nodes": 2}, place={"num_nodes": 3})
    with pytest.raises(ValueError, match=r"data has node types \['person', 'place'\]"):
        Graph.from_pyg(hetero)


def test_pyg_weights_may_be_symmetrized():
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    weight = torch.tensor([1.0, 3.0], requires_grad=True)
    data = pyg.Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=weight, num_nodes=2)
    assert dense(Graph.from_pyg(data, symmetrize="mean"))[0, 1] == 2


def test_row_standardised_libpysal_weights_are_refused():
    weights, pysal = pytest.importorskip("libpysal.weights"), pytest.importorskip("libpysal.graph")
    w = classic_weights(weights, CASES["path"])
    expected = Graph.from_libpysal(w).adjacency().toarray()
    w.transform = "r"
    with pytest.raises(ValueError, match=r"w is not symmetric: 2 pairs .* symmetrize.* w.transform = \"o\""):
        Graph.from_libpysal(w)
    w.transform = "o"
    np.testing.assert_array_equal(dense(Graph.from_libpysal(w)), expected)
    graph = pysal.Graph.from_sparse(sp.coo_array(expected)).transform("R")
    with pytest.raises(ValueError, match=r"w is not symmetric: .* or give w as it was before w.transform"):
        Graph.from_libpysal(graph)
    assert Graph.from_libpysal(graph, symmetrize="mean").adjacency()[0, 1] == 0.75
