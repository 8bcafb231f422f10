"""Graphs that grow, against a graph built whole."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from graphs import CASES
from residua import Graph
from residua.graph.growth import positions_within


def same(one, other):
    assert one.nodes.tolist() == other.nodes.tolist()
    assert one.edge_types == other.edge_types
    for name in one.edge_types:
        assert_array_equal(one.adjacency(name).toarray(), other.adjacency(name).toarray())
    assert_array_equal(one.degree, other.degree)


@pytest.mark.parametrize("name", CASES)
def test_old_and_new_edges_are_those_of_a_graph_built_whole(name):
    case = CASES[name]
    new = pd.DataFrame({"source": [case.n, case.n, case.n + 2], "target": [0, case.n + 1, 3]})
    new["weight"], new["type"] = [2.0, 1.0, 0.5], [case.types[-1], case.types[0], "footpath"]
    grown = case.graph.with_nodes(edges=new)
    ends = [np.concatenate([getattr(case, k), new[k]]) for k in ("source", "target", "weight", "type")]
    same(grown, Graph.from_edges(*ends, nodes=np.arange(case.n + 3)))
    assert grown.grown
    assert not case.graph.grown
    assert_array_equal(positions_within(case.graph, grown), np.arange(case.n))
    assert positions_within(grown, case.graph) is None


def test_new_nodes_come_after_the_old_ones_as_they_appear():
    path = Graph.from_edges(["b", "a"], ["a", "c"])
    assert path.with_nodes(edges=[("z", "a"), ("y", "z"), ("c", "b")]).nodes.tolist() == ["b", "a", "c", "z", "y"]
    assert path.with_nodes(["q", "z"], [("z", "a")]).nodes.tolist() == ["b", "a", "c", "q", "z"]
    assert path.with_nodes(["q"]).degree.tolist() == [1, 2, 1, 0]
    assert path.with_nodes(edges=np.array([["z", "a"]])).n_edges == 3
    numbers = Graph.from_edges([1, 2], [2, 3]).with_nodes(edges=[(7, 1), (5, 7)])
    assert numbers.nodes.dtype == np.int64
    assert numbers.nodes.tolist() == [1, 2, 3, 7, 5]
    tuples = Graph.from_edges([("a", 1)], [("b", 2)]).with_nodes(edges=[(("c", 3), ("a", 1))])
    assert tuples.nodes.tolist() == [("a", 1), ("b", 2), ("c", 3)]


def test_features_of_new_nodes_go_with_them():
    path = Graph.from_edges(["a", "b"], ["b", "c"])
    X = pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [4, 5, 6]}, index=["a", "b", "c"])
    new = pd.DataFrame({"v": [7], "u": [0.5]}, index=["d"])
    grown = path.with_features(X).with_nodes(new, [("d", "a")])
    assert grown.features.to_numpy().tolist() == [[1, 4], [2, 5], [3, 6], [0.5, 7]]
    bare = path.with_features(X.to_numpy()).with_nodes(new[["u", "v"]], [("d", "a")])
    assert_array_equal(bare.features, grown.features)
    numbers = Graph.from_edges([9, 4], [4, 7], nodes=[9, 4, 7]).with_features(X.set_axis([9, 4, 7]))
    assert numbers.with_nodes(new.set_axis([1]), [(1, 9)]).features.index.tolist() == [9, 4, 7, 1]
    assert path.with_features(X).with_nodes(edges=[("a", "c")]).features.equals(path.with_features(X).features)


def test_what_is_not_new_or_not_clear_is_refused():
    path = Graph.from_edges(["a", "b"], ["b", "c"])
    X = pd.DataFrame({"u": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    with pytest.raises(ValueError, match="nodes has 'b', which is in the graph already"):
        path.with_nodes(["d", "b"])
    with pytest.raises(ValueError, match=r"edges has \('a', 'b'\), which is in the graph already"):
        path.with_nodes(edges=[("d", "a"), ("b", "a")])
    with pytest.raises(ValueError, match="source names node 'e' at row 1, not in nodes; add it to nodes"):
        path.with_nodes(["d"], [("d", "a"), ("e", "a")])
    with pytest.raises(ValueError, match="nodes and edges name nothing that is new"):
        path.with_nodes()
    with pytest.raises(ValueError, match="edges has a row that is no pair"):
        path.with_nodes(edges=[("d", "a", 1.0)])
    with pytest.raises(ValueError, match="name them source, target and"):
        path.with_nodes(edges=pd.DataFrame({"from": ["d"], "to": ["a"]}))
    with pytest.raises(ValueError, match="the graph carries features; give nodes as a DataFrame"):
        path.with_features(X).with_nodes(["d"])
    with pytest.raises(ValueError, match=r"nodes has columns \['w'\] but the features of the graph are \['u'\]"):
        path.with_features(X).with_nodes(pd.DataFrame({"w": [1.0]}, index=["d"]))
    with pytest.raises(ValueError, match="nodes has 2 features but the graph has 1"):
        path.with_features(X.to_numpy()).with_nodes(pd.DataFrame(np.ones((1, 2)), index=["d"]))
    with pytest.raises(ValueError, match="nodes has features, but the graph carries none"):
        path.with_nodes(pd.DataFrame({"u": [1.0]}, index=["d"]))
    with pytest.raises(ValueError, match="'2' is new, but the graph has a node of another type"):
        Graph.from_edges([1, 2], [2, 3]).with_nodes(edges=[("2", "x")])
    two = CASES["two types"].graph
    with pytest.raises(ValueError, match=r"edges has no column type, and the graph has types \['road', 'rail'\]"):
        two.with_nodes(edges=[(9, 0)])


def test_a_graph_that_lacks_an_edge_or_has_it_with_another_weight_does_not_hold_the_other():
    nodes = ["a", "b", "c", "d"]
    part = Graph.from_edges(["a", "b"], ["b", "c"], weight=[1.0, 2.0])
    for weights, held in (([1.0, 2.0, 1.0], True), ([1.0, 2.5, 1.0], False), ([1.0, 0.0, 1.0], False)):
        whole = Graph.from_edges(["a", "b", "c"], ["b", "c", "d"], weight=weights, nodes=nodes[::-1])
        found = positions_within(part, whole)
        assert (found is not None) == held
        assert not held or found.tolist() == [3, 2, 1]
