"""Every input gives the graph that a dense adjacency matrix describes, or one clear error."""

import pickle
from collections import defaultdict
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from residua.graph import Graph


@dataclass(frozen=True)
class Case:
    """A small graph, edge by edge: (source, target, weight, type)."""

    nodes: list
    edges: list

    @property
    def types(self):
        return list(dict.fromkeys(t for *_, t in self.edges))

    def columns(self):
        return {name: [edge[k] for edge in self.edges] for k, name in enumerate(["source", "target", "weight", "type"])}

    def dense(self, type):
        A = np.zeros((len(self.nodes), len(self.nodes)))
        for u, v, w, t in self.edges:
            i, j = self.nodes.index(u), self.nodes.index(v)
            A[i, j] = A[j, i] = w if t == type else A[i, j]
        return A


def one_type(nodes, *edges):
    return Case(list(nodes), [(u, v, 1.0, "edge") for u, v in edges])


CASES = {
    "path": one_type("abcd", "ab", "bc", "cd"),
    "star": one_type(range(5), (0, 1), (0, 2), (3, 0), (0, 4)),
    "isolate": one_type("xyz", "xz"),
    "two components": one_type(range(5), (4, 0), (1, 2), (2, 3)),
    "weighted": Case([7, 3, 5], [(7, 3, 0.25, "edge"), (3, 5, 4.0, "edge")]),
    "self-loops": Case(list("abc"), [("a", "a", 2.0, "edge"), ("a", "b", 1.0, "edge"), ("c", "c", 0.5, "edge")]),
    "tuples": one_type([(0, 0), (0, 1), (1, 1)], ((0, 0), (0, 1)), ((0, 1), (1, 1))),
    "two types": Case(
        list("abcd"),
        [("a", "b", 1.0, "road"), ("a", "b", 3.0, "rail"), ("b", "c", 2.0, "rail"), ("c", "c", 1.0, "road")],
    ),
}
ONE_TYPE = [name for name, case in CASES.items() if case.types == ["edge"]]


def type_argument(case, value):
    return None if case.types == ["edge"] else value


def by_edges(case):
    columns = case.columns()
    return Graph.from_edges(**{**columns, "type": type_argument(case, columns["type"])}, nodes=case.nodes)


def by_pandas(case):
    table = pd.DataFrame(case.columns(), index=range(100, 100 + len(case.edges)))
    return Graph.from_pandas(table, weight="weight", type=type_argument(case, "type"), nodes=case.nodes)


def by_scipy(case):
    matrices = {name: sp.csr_array(case.dense(name)) for name in case.types}
    return Graph.from_scipy(matrices if len(matrices) > 1 else matrices["edge"], nodes=case.nodes)


def by_networkx(case):
    networkx = pytest.importorskip("networkx")
    G = networkx.MultiGraph()
    G.add_nodes_from(case.nodes)
    for u, v, w, t in case.edges:
        G.add_edge(u, v, weight=w, kind=t)
    return Graph.from_networkx(G, type=type_argument(case, "kind"))


BUILDERS = [by_edges, by_pandas, by_scipy, by_networkx]


def dense(graph):
    return graph.adjacency().toarray()


def assert_is(graph, case, nodes=None):
    assert graph.nodes.tolist() == (case.nodes if nodes is None else nodes)
    assert graph.edge_types == tuple(case.types)
    assert graph.n_edges == len(case.edges)
    degree = sum(case.dense(name) for name in case.types).sum(axis=1)
    scale = np.array([d**-0.5 if d else 0.0 for d in degree])
    np.testing.assert_allclose(graph.degree, degree)
    for name in case.types:
        A = case.dense(name)
        np.testing.assert_array_equal(graph.adjacency(name).toarray(), A)
        np.testing.assert_allclose(graph.operators[name].to_scipy().toarray(), scale[:, None] * A * scale)


# Constructors


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


# Ids


@pytest.mark.parametrize("scale", [1, 10**12])
def test_integer_ids_are_sorted(scale):
    source, target = np.array([5, -2]) * scale, np.array([3, 5]) * scale
    graph = Graph.from_edges(source, target)
    assert graph.nodes.dtype == np.int64
    assert graph.nodes.tolist() == [-2 * scale, 3 * scale, 5 * scale]
    np.testing.assert_array_equal(dense(graph), [[0, 0, 1], [0, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize(
    "ids",
    [
        [2, 0, 1],
        np.array([2, 0, 1], dtype=np.uint8),
        np.array([2, 0, 1], dtype=object),
        pd.Series([2, 0, 1], dtype="Int64", index=[9, 8, 7]),
        pd.Series([2, 0, 1]).astype("category"),
    ],
)
def test_integers_of_any_container_are_int64_nodes(ids):
    graph = Graph.from_edges(ids, ids[[1, 2, 0]] if isinstance(ids, np.ndarray) else [0, 1, 2])
    assert graph.nodes.dtype == np.int64
    assert graph.nodes.tolist() == [0, 1, 2]


def test_ids_that_fill_a_range_are_rows():
    graph = Graph.from_edges([3, 1], [2, 0])
    assert graph.nodes.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(np.argwhere(dense(graph)), [[0, 1], [1, 0], [2, 3], [3, 2]])


@pytest.mark.parametrize("dtype", [object, str, "string"])
def test_other_ids_keep_the_order_of_appearance_row_by_row(dtype):
    source, target = pd.Series(["d", "b", "d"], dtype=dtype), pd.Series(["c", "a", "a"], dtype=dtype)
    graph = Graph.from_edges(source, target)
    assert graph.nodes.tolist() == ["d", "c", "b", "a"]
    np.testing.assert_array_equal(dense(graph), [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0]])


@pytest.mark.parametrize(
    "ids",
    [
        [1, "1", ("a", 1)],
        [0.5, 2.5, 1.5],
        [2**63 + 1, 2**63, 5],
        [frozenset({1}), b"x", "x"],
        [True, "True", 2],
        np.array(["2024-01-02", "2024-01-01", "2024-01-03"], dtype="datetime64[ns]"),
    ],
)
def test_any_hashable_is_an_id(ids):
    graph = Graph.from_edges(ids, [ids[1], ids[2], ids[0]])
    assert list(graph.nodes) == list(pd.Series(ids))
    assert graph.index(ids).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(dense(graph), 1 - np.eye(3))


@pytest.mark.parametrize("nodes", [[4, 2, 9, 0], [10**12, 4, 2, 0], [4, 2, "x", 0], [4.0, 2.0, 0.5, 0.0]])
def test_nodes_fix_the_order_and_add_isolates(nodes):
    graph = Graph.from_edges([0, 4], [2, 2], nodes=nodes)
    at = {node: k for k, node in enumerate(nodes)}
    assert graph.nodes.tolist() == nodes
    expected = np.zeros((4, 4))
    for u, v in [(0, 2), (4, 2)]:
        expected[at[u], at[v]] = expected[at[v], at[u]] = 1
    np.testing.assert_array_equal(dense(graph), expected)


@pytest.mark.parametrize("nodes", [[30, 10, 20], ["c", "a", "b"], [(1, 2), "a", 3]])
def test_index_finds_positions(nodes):
    graph = Graph.from_edges(nodes[:2], nodes[1:], nodes=nodes)
    assert graph.index([nodes[2], nodes[0], nodes[2]]).tolist() == [2, 0, 2]
    with pytest.raises(ValueError, match=r"ids has 'nowhere' at position 1, not a node of this graph"):
        graph.index([nodes[0], "nowhere"])
    with pytest.raises(TypeError, match=r"ids is 'a'; it must be an array or a list"):
        graph.index("a")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 1, 2, 1], "nodes lists 1 again at position 3; name every node once"),
        (["a", "b", "a"], "nodes lists 'a' again at position 2"),
        ([(0, 1), (0, 1)], r"nodes lists \(0, 1\) again at position 1"),
        ([0, None], r"nodes is missing \(nan\) at row 1"),
        (["a", None], r"nodes is missing \(\w+\) at row 1"),
    ],
)
def test_nodes_that_are_repeated_or_missing_are_refused(nodes, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_edges([0], [1], nodes=nodes)
    with pytest.raises(ValueError, match=message):
        Graph.from_scipy(sp.eye_array(len(nodes)), nodes=nodes)


@pytest.mark.parametrize(
    ("source", "target", "nodes", "message"),
    [
        ([0, 7], [1, 1], [0, 1], "source names node 7 at row 1, not in nodes; add it to nodes"),
        ([0, 1], [1, -1], [0, 1], "target names node -1 at row 1"),
        ([0, 1], [1, 4], [0, 5, 1], "target names node 4 at row 1"),
        ([5, 7], [4, 2], [7, 5, 4], "target names node 2 at row 1"),
        ([5, 7], [4, 9], [7, 5, 4], "target names node 9 at row 1"),
        ([0, 1], [1, 10**15], [0, 10**12, 1], "target names node 1000000000000000 at row 1"),
        (["a"], ["z"], ["a", "b"], "target names node 'z' at row 0"),
        (["1"], ["2"], [1, 2], "source names node '1' at row 0"),
        ([0], [1], [], "source names node 0 at row 0"),
    ],
)
def test_an_edge_to_an_unknown_node_is_refused(source, target, nodes, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_edges(source, target, nodes=nodes)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_a_missing_id_is_refused(missing):
    with pytest.raises(ValueError, match=r"source is missing .* at row 1; drop the row or fill in the id"):
        Graph.from_edges(["a", missing], ["b", "c"])
    with pytest.raises(ValueError, match=r"target is missing .* at row 0"):
        Graph.from_edges(["b", "c"], [missing, "b"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source": "ab", "target": [1]}, TypeError, "source is 'ab'; it must be an array or a list of ids"),
        (
            {"source": np.eye(2), "target": [0, 1]},
            ValueError,
            r"source has shape \(2, 2\); it must have one dimension",
        ),
        (
            {"source": [0, 1, 2], "target": [1, 2]},
            ValueError,
            "target has 2 entries but source has 3; give one per row",
        ),
        (
            {"source": [[0], [1]], "target": [1, 2]},
            TypeError,
            "source or target has an id that cannot be hashed",
        ),
        (
            {"source": [0], "target": [1], "nodes": [[0], [1]]},
            TypeError,
            "nodes has an id that cannot be hashed",
        ),
    ],
)
def test_ids_of_a_wrong_form_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Graph.from_edges(**arguments)


# Edges and weights


def test_an_edge_listed_in_both_directions_is_one_edge():
    graph = Graph.from_edges([0, 1, 1], [1, 0, 2], weight=[2.0, 2.0, 3.0])
    np.testing.assert_array_equal(dense(graph), [[0, 2, 0], [2, 0, 3], [0, 3, 0]])
    assert graph.n_edges == 2


def test_rows_repeated_in_one_direction_add_up():
    graph = Graph.from_edges([0, 0, 2, 2], [1, 1, 2, 2], weight=[1.0, 0.5, 1.0, 2.0])
    np.testing.assert_array_equal(dense(graph), [[0, 1.5, 0], [1.5, 0, 0], [0, 0, 3]])
    assert Graph.from_edges(["a", "a"], ["b", "b"]).degree.tolist() == [2, 2]


def test_directions_that_disagree_are_refused():
    message = r"weight of edge \('a', 'b'\) is 1.0, but 2.5 where it is listed as \('b', 'a'\); .* make"
    with pytest.raises(ValueError, match=message):
        Graph.from_edges(["a", "b"], ["b", "a"], weight=[1.0, 2.5])
    with pytest.raises(ValueError, match=r"weight of edge \(0, 1\) of type 'road' is 2.0, but 1.0"):
        Graph.from_edges([0, 0, 1, 0], [1, 1, 0, 1], type=["road", "road", "road", "rail"])


@pytest.mark.parametrize(("other", "agrees"), [(1 + 1e-10, True), (1 + 1e-8, False)])
def test_weights_agree_up_to_rounding(other, agrees):
    if agrees:
        A = dense(Graph.from_edges([0, 1], [1, 0], weight=[1.0, other]))
        assert A[0, 1] == A[1, 0] == pytest.approx(1.0, rel=1e-9)
    else:
        with pytest.raises(ValueError, match="make the weights agree"):
            Graph.from_edges([0, 1], [1, 0], weight=[1.0, other])


def test_the_adjacency_is_symmetric_to_the_last_bit():
    rng = np.random.default_rng(0)
    source, target, weight = rng.integers(0, 12, 600), rng.integers(0, 12, 600), rng.random(600)
    order = rng.permutation(600)
    rows = np.r_[source, target[order]], np.r_[target, source[order]], np.r_[weight, weight[order]]
    one_by_one = np.zeros((12, 12))
    np.add.at(one_by_one, rows[:2], rows[2])
    assert (one_by_one != one_by_one.T).any()
    A = dense(Graph.from_edges(*rows))
    np.testing.assert_array_equal(A, A.T)
    off_diagonal = ~np.eye(12, dtype=bool)
    np.testing.assert_allclose(A[off_diagonal], one_by_one[off_diagonal])


def test_zero_weight_is_no_edge():
    graph = Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 2], weight=[1.0, 0.0, 4.0, 0.0])
    np.testing.assert_array_equal(dense(graph), [[0, 1, 0], [1, 0, 4], [0, 4, 0]])
    assert graph.operators["edge"].nnz == 4


def test_weights_that_are_all_one_are_not_stored():
    assert Graph.from_edges([0, 1], [1, 2], weight=[1, 1]).operators["edge"].weights is None
    assert Graph.from_edges([0, 0, 1], [1, 1, 2], weight=[0.5, 0.5, 1]).operators["edge"].weights is None
    assert Graph.from_edges([0, 1], [1, 2], weight=[1, 2]).operators["edge"].weights.tolist() == [1, 1, 2, 2]


def test_operators_are_sorted_and_compact():
    graph = Graph.from_edges([2, 0, 1], [0, 1, 3], type=["x", "y", "x"])
    for S in graph.operators.values():
        assert (S.indptr.dtype, S.indices.dtype, S.dtype) == (np.int64, np.int32, np.float64)
        assert all((np.diff(S.indices[a:b]) > 0).all() for a, b in zip(S.indptr[:-1], S.indptr[1:], strict=True))
    assert graph.operators["x"].scale is graph.operators["y"].scale


@pytest.mark.parametrize("value", [-0.5, np.nan, np.inf, -np.inf])
def test_a_negative_or_non_finite_weight_is_refused(value):
    with pytest.raises(ValueError, match=f"weight is {value} at row 2; weights must be finite and not negative"):
        Graph.from_edges([0, 1, 2], [1, 2, 3], weight=[1, 0, value])
    A = np.zeros((3, 3))
    A[1, 2] = A[2, 1] = value
    with pytest.raises(ValueError, match=rf"A is {value} at \(1, 2\); weights must be finite and not negative"):
        Graph.from_scipy(A)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1.0], ValueError, "weight has 1 entries but source has 2; give one per row"),
        (["heavy", "light"], ValueError, "weight is not numeric .*heavy"),
        (np.array([1j, 2j]), ValueError, "weight is not numeric .*complex128"),
        (np.ones((2, 1)), ValueError, r"weight has shape \(2, 1\); it must have one dimension"),
        (2.0, TypeError, "weight is 2.0; it must be an array or a list"),
        (pd.Series([1, None], dtype="Int64"), ValueError, "weight is nan at row 1"),
        ([1e308, 1e308], ValueError, "weight adds up to inf; scale the weights down"),
    ],
)
def test_weights_of_a_wrong_form_are_refused(weight, error, message):
    with pytest.raises(error, match=message):
        Graph.from_edges([0, 1], [1, 2], weight=weight)


@pytest.mark.parametrize("build", ["edges", "scipy", "networkx"])
def test_self_loops_are_kept_or_dropped(build):
    def graph(self_loops):
        if build == "edges":
            return Graph.from_edges([0, 0], [0, 1], self_loops=self_loops)
        if build == "scipy":
            return Graph.from_scipy([[1, 1], [1, 0]], self_loops=self_loops)
        networkx = pytest.importorskip("networkx")
        return Graph.from_networkx(networkx.Graph([(0, 0), (0, 1)]), self_loops=self_loops)

    np.testing.assert_array_equal(dense(graph(True)), [[1, 1], [1, 0]])
    np.testing.assert_array_equal(dense(graph(False)), [[0, 1], [1, 0]])
    assert (graph(True).n_edges, graph(False).n_edges) == (2, 1)
    assert graph(True).degree.tolist() == [2, 1]


@pytest.mark.parametrize(
    "build",
    [
        lambda: Graph.from_edges([], []),
        lambda: Graph.from_edges(np.empty(0, int), np.empty(0, int)),
        lambda: Graph.from_edges(np.empty(0, int), np.empty(0, int), nodes=np.arange(3)),
        lambda: Graph.from_edges([], [], type=[], nodes=[0, 1]),
        lambda: Graph.from_edges([0], [1], weight=[0.0]),
        lambda: Graph.from_edges([0], [0], self_loops=False),
        lambda: Graph.from_edges([], [], nodes=[]),
        lambda: Graph.from_scipy(sp.csr_array((3, 3))),
        lambda: Graph.from_scipy(np.zeros((0, 0))),
        lambda: Graph.from_networkx(pytest.importorskip("networkx").empty_graph(3), type="kind"),
    ],
)
def test_a_graph_without_edges_is_refused(build):
    with pytest.raises(ValueError, match=r"graph has no edges \(\d nodes\); give at least one edge"):
        build()


# Edge types


def test_edge_types_are_strings_in_order_of_appearance():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], type=[2, 1, 2])
    assert graph.edge_types == ("2", "1")
    np.testing.assert_array_equal(np.argwhere(graph.adjacency("1").toarray()), [[1, 2], [2, 1]])
    np.testing.assert_array_equal(dense(graph), np.diag([1, 1, 1], 1) + np.diag([1, 1, 1], -1))
    with pytest.raises(ValueError, match=r"type is 'rail'; the edge types of this graph are \['2', '1'\]"):
        graph.adjacency("rail")


def test_a_single_type_keeps_its_name():
    assert Graph.from_edges([0], [1], type=["road"]).edge_types == ("road",)
    assert Graph.from_scipy({"road": [[0, 1], [1, 0]]}).edge_types == ("road",)
    assert Graph.from_edges([0], [1]).edge_types == ("edge",)


@pytest.mark.parametrize(
    ("type", "error", "message"),
    [
        (["road", None], ValueError, r"type is missing \(\w+\) at row 1"),
        (["road"], ValueError, "type has 1 entries but source has 2"),
        ("road", TypeError, "type is 'road'; it must be an array or a list"),
        (
            [1, "1"],
            ValueError,
            r"type has values that read the same, \['1', '1'\]; name edge types by strings",
        ),
    ],
)
def test_types_of_a_wrong_form_are_refused(type, error, message):
    with pytest.raises(error, match=message):
        Graph.from_edges([0, 1], [1, 2], type=type)


def test_an_edge_type_without_edges_is_refused():
    with pytest.raises(ValueError, match="type 'rail' has no edges; leave it out"):
        Graph.from_edges([0, 1], [1, 2], weight=[1, 0], type=["road", "rail"])
    with pytest.raises(ValueError, match="type 'rail' has no edges; leave it out"):
        Graph.from_scipy({"road": [[0, 1], [1, 0]], "rail": np.zeros((2, 2))})


# Symmetry of matrices and directed graphs

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


# Other libraries


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


# The graph itself


def test_components_are_those_of_all_types_together():
    graph = Graph.from_edges([5, 1, 2], [4, 2, 3], type=["x", "x", "y"], nodes=[5, 1, 2, 3, 4, 0])
    assert graph.components.tolist() == [0, 1, 1, 1, 0, 2]


def test_report_counts_what_is_there():
    graph = Graph.from_edges(
        ["a", "b", "c", "c", "d"],
        ["b", "c", "c", "d", "c"],
        type=["road", "rail", "rail", "road", "road"],
        nodes=list("abcdef"),
    )
    report = graph.describe(labelled=[np.nan, 1.0, np.nan, np.nan, np.nan, 0.0])
    assert report.edges == {"road": 2, "rail": 2}
    assert (report.n_nodes, report.self_loops, report.isolates, report.components) == (6, 1, 2, 3)
    assert (report.largest_component, report.unlabelled_components, report.unlabelled_nodes) == (4, 1, 1)
    text = str(report)
    for line in [
        "edges          4 (road 2, rail 2)",
        "isolates       2",
        "without label  1 (nodes in them: 1)",
    ]:
        assert line in text.splitlines()
    assert "A row is an undirected edge" in text
    assert "without label" not in str(graph.describe())


def test_report_takes_a_mask_or_labels_only():
    graph = Graph.from_edges([0, 2], [1, 3])
    assert graph.describe(np.array([True, False, False, False])).unlabelled_components == 1
    assert graph.describe(np.zeros(4, bool)).unlabelled_nodes == 4
    with pytest.raises(ValueError, match=r"labelled has shape \(3,\) but graph has 4 nodes"):
        graph.describe([True, False, True])
    with pytest.raises(ValueError, match="labelled has dtype int64; give a boolean mask, or y with NaN"):
        graph.describe([1, 0, 0, 1])


def test_repr_is_one_line_and_length_counts_nodes():
    graph = by_edges(CASES["two types"])
    assert repr(graph) == "Graph(4 nodes, 4 edges of types road, rail)"
    assert len(graph) == graph.n_nodes == 4


def test_a_graph_is_equal_to_itself_alone():
    one, other = by_edges(CASES["path"]), by_edges(CASES["path"])
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_a_graph_does_not_change():
    graph = by_edges(CASES["star"])
    with pytest.raises(FrozenInstanceError):
        graph.nodes = np.arange(5)
    for array in (graph.nodes, graph.degree, graph.components):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    graph.adjacency().data[:] = 9
    graph.adjacency().indices[:] = 0
    assert_is(graph, CASES["star"])


@pytest.mark.parametrize("name", CASES)
def test_pickle_and_arrays_bring_the_graph_back(name):
    case = CASES[name]
    graph = by_edges(case)
    graph.index(case.nodes[:1])
    assert_is(pickle.loads(pickle.dumps(graph)), case)
    assert_is(Graph.from_arrays(graph.arrays(), graph.nodes, graph.edge_types), case)
    assert ("weights.0" in graph.arrays()) == (graph.operators[case.types[0]].weights is not None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("indices.0", [1, 0, 2, 7]),
        ("indices.0", [1, -1, 2, 1]),
        ("indices.0", [1, 0, 2]),
        ("indptr.0", [0, 1, 3]),
        ("indptr.0", [0, 3, 1, 4]),
        ("weights.0", [1.0, 2.0]),
    ],
)
def test_damaged_arrays_are_refused(key, value):
    graph = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(ValueError, match="arrays of type 'edge' do not fit 3 nodes; they are damaged"):
        Graph.from_arrays(graph.arrays() | {key: np.array(value)}, graph.nodes, graph.edge_types)


# Against a slow reference


def reference(rows):
    """Adjacency as a dict, one row after the other; None where two directions disagree."""
    sums = defaultdict(float)
    for u, v, w in rows:
        if w:
            sums[u, v] += w
    if any(abs(w - sums.get((v, u), w)) > 1e-9 * w for (u, v), w in sums.items()):
        return None
    return dict(sums) | {(v, u): w for (u, v), w in sums.items()}


def reference_order(rows):
    order = list(dict.fromkeys(end for u, v, _ in rows for end in (u, v)))
    return sorted(order) if all(isinstance(node, int) for node in order) else order


KINDS = {
    "small integers": st.integers(-2, 5),
    "wide integers": st.sampled_from([0, 10**14, -(10**14), 3, 10**9]),
    "strings": st.sampled_from("abcde"),
    "mixed": st.sampled_from(["a", 1, (1, 2), 2.5, "1"]),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_from_edges_equals_a_loop_over_rows(kind, data):
    row = st.tuples(KINDS[kind], KINDS[kind], st.sampled_from([0.0, 0.1, 0.2, 1.0, 3.0]))
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    extra = data.draw(st.booleans())
    order = reference_order(rows)
    nodes = [*order[::-1], "extra"] if extra else None
    expected = reference(rows)
    source, target, weight = (list(column) for column in zip(*rows, strict=True))
    if not expected:
        with pytest.raises(ValueError, match="no edges" if expected == {} else "make the weights agree"):
            Graph.from_edges(source, target, weight, nodes=nodes)
        return
    graph = Graph.from_edges(source, target, weight, nodes=nodes)
    assert graph.nodes.tolist() == (nodes or order)
    i, j = graph.adjacency().nonzero()
    assert {(graph.nodes[a], graph.nodes[b]) for a, b in zip(i, j, strict=True)} == set(expected)
    for (u, v), w in expected.items():
        a, b = graph.index([u, v])
        assert graph.adjacency()[a, b] == pytest.approx(w, rel=1e-9)


@pytest.mark.parametrize("ids", ["integers", "strings"])
def test_many_rows_equal_scipy(ids):
    rng = np.random.default_rng(1)
    n, m = 50_000, 200_000
    low = np.r_[np.arange(n - 1), rng.integers(0, n - 1, m - n + 1)]
    high = np.r_[np.arange(1, n), rng.integers(0, n, m - n + 1)]
    i, j = np.minimum(low, high), np.maximum(low, high)
    weight = rng.integers(1, 5, m).astype(float)
    named = (lambda a: a) if ids == "integers" else (lambda a: np.char.add("node ", a.astype(str)))
    graph = Graph.from_edges(named(i), named(j), weight)
    U = sp.coo_array((weight, (i, j)), shape=(n, n)).tocsr()
    expected = (U + U.T - sp.diags_array(U.diagonal())).tocsr()
    where = graph.index(named(np.arange(n)))
    assert abs(graph.adjacency()[where][:, where] - expected).max() == 0
