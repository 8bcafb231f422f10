"""Any hashable is an id; their order is what was asked for, or that of integers, or that of appearance."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import dense

from residua.graph import Graph


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


BIG = 2**53  # from here on not every whole number is a float


def edges_of(graph):
    i, j = np.triu(dense(graph)).nonzero()
    return {frozenset((graph.nodes[a], graph.nodes[b])) for a, b in zip(i, j, strict=True)}


def as_sets(*edges):
    return {frozenset(edge) for edge in edges}


@pytest.mark.parametrize(
    ("source", "target", "nodes"),
    [
        (pd.Series([5.0, 6.0]), pd.Series([6.0, 7.0]), [BIG, BIG + 1, 5, 6, 7]),
        ([BIG, 5], [BIG + 1, 0.5], None),
        (np.array([BIG, 5], object), np.array([BIG + 1, 0.5], object), None),
        (np.array([np.int64(BIG), 0.5], object), np.array([np.int64(BIG + 1), 3], object), None),
        (np.array([BIG, 5], np.uint64), np.array([BIG + 1, -5]), None),
        (np.array([2**63, 5], np.uint64), np.array([5, -5]), [2**63 + 1, 2**63, 5, -5]),
        (pd.array([BIG, 5], "Int64"), [BIG + 1, 7], [BIG + 1, 0.5, 7, 5, BIG]),
        (pd.array([BIG + 1, 5], "int64[pyarrow]"), pd.array([4.0, 6.0], "Float64"), [BIG, BIG + 1, 4, 5, 6]),
        ([Decimal(BIG), Decimal(5)], [BIG + 1, 7], [BIG + 1, BIG, 5, 7]),
    ],
)
def test_ids_of_different_kinds_match_exactly(source, target, nodes):
    ends = [list(end) for end in (source, target)]
    graph = Graph.from_edges(source, target, nodes=nodes)
    assert len(set(graph.nodes.tolist())) == len({*ends[0], *ends[1], *(nodes or ())})
    assert edges_of(graph) == as_sets(*zip(*ends, strict=True))


def test_an_iterator_is_read_once():
    assert edges_of(Graph.from_edges(iter([BIG, 5]), iter([BIG + 1, 0.5]))) == as_sets((BIG, BIG + 1), (5, 0.5))


def test_positions_of_ids_are_exact():
    graph = Graph.from_edges([BIG, 5], [BIG + 1, BIG], nodes=[BIG, BIG + 1, 5])
    assert graph.index(np.array([BIG + 1, 5], object)).tolist() == [1, 2]
    assert graph.index([5.0]).tolist() == [2]
    assert graph.index(np.array([BIG + 1], np.uint64)).tolist() == [1]
    with pytest.raises(ValueError, match=r"ids has 5.5 at position 0, not a node"):
        graph.index([5.5])


@pytest.mark.parametrize("dtype", ["float64", "Float64", "float32", object])
def test_a_float_that_stands_for_several_integers_is_no_id(dtype):
    large = 2**24 if dtype == "float32" else BIG
    ids = pd.Series([1.0, float(large)], dtype=dtype)
    with pytest.raises(ValueError, match=rf"source has {large}\.0 at row 1, a float that stands for more than one"):
        Graph.from_edges(ids, [1, 2])
    with pytest.raises(ValueError, match=rf"ids has {large}\.0 at row 1.* read ids as integers"):
        Graph.from_edges([1], [large]).index(ids)


@pytest.mark.parametrize(
    ("source", "target", "nodes", "message"),
    [
        (
            [True, False],
            [1, 2],
            None,
            "source has True at row 0 but target has 1 at row 0, which Python takes for equal",
        ),
        ([True], [2], [1, 2], "source has True at row 0 but nodes has 1 at row 0"),
        ([0.0, "x"], [False, "y"], None, "target has False at row 0 but source has 0.0 at row 0"),
        ([1, 2], ["2", "3"], None, "target has '2' at row 0 but source has the number 2; give ids of one kind"),
        (np.array(["7", "2"], object), [1, 2], None, "source has '2' at row 1 but target has the number 2"),
        (
            [1, 2],
            ["2", "3"],
            [1, 2, 3],
            "target names node '2' at row 0, not in nodes; there is 2: give ids of one kind",
        ),
        ([Decimal("0.1")], [0.5], [0.1, 0.5], r"source names node Decimal\('0.1'\) at row 0, not in nodes"),
    ],
)
def test_ids_of_kinds_that_cannot_be_told_apart_are_refused(source, target, nodes, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_edges(source, target, nodes=nodes)


def test_a_truth_is_no_number():
    with pytest.raises(ValueError, match="ids has True at row 0 but nodes has 1 at row 1"):
        Graph.from_edges([0], [1]).index([True])


def test_a_masked_id_is_missing():
    hidden = np.ma.array([0, 1, 2], mask=[0, 0, 1])
    with pytest.raises(ValueError, match=r"source is missing .* at row 2"):
        Graph.from_edges(hidden, [1, 2, 0])
    with pytest.raises(ValueError, match=r"nodes is missing .* at row 2"):
        Graph.from_edges([0], [1], nodes=hidden)
