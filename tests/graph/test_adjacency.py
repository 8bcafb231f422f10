"""Rows become one undirected edge each, of a type and a weight, or one clear error."""

from collections import defaultdict
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import dense
from hypothesis import given
from hypothesis import strategies as st

from residua.graph import Graph


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
        (np.array([1, 2], "m8[h]"), ValueError, "weight is not numeric .*timedelta64.*one real number per row"),
        (pd.to_timedelta([1, 2], unit="h"), ValueError, "weight is not numeric .*timedelta64"),
        ([timedelta(hours=1), timedelta(hours=2)], ValueError, "weight is not numeric .*timedelta"),
        (pd.Series(pd.to_datetime(["2020-01-01", None])), ValueError, "weight is not numeric .*datetime64"),
        (np.ones((2, 1)), ValueError, r"weight has shape \(2, 1\); it must have one dimension"),
        (2.0, TypeError, "weight is 2.0; it must be an array or a list"),
        (pd.Series([1, None], dtype="Int64"), ValueError, "weight is nan at row 1"),
        ([1e308, 1e308], ValueError, "weight adds up to inf; scale the weights down"),
        ([1.0, 1e-310], ValueError, "weight is 1e-310, smaller than floats hold well; scale the weights up"),
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
    "mixed": st.sampled_from(["a", 1, (1, 2), 2.5, "one"]),
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
