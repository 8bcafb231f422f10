"""A graph knows its components, does not change, and comes back from a pickle or its arrays."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from graph_cases import CASES, assert_is, by_edges

from residua.graph import Graph


def test_components_are_those_of_all_types_together():
    graph = Graph.from_edges([5, 1, 2], [4, 2, 3], type=["x", "x", "y"], nodes=[5, 1, 2, 3, 4, 0])
    assert graph.components.tolist() == [0, 1, 1, 1, 0, 2]


def test_repr_is_one_line_and_a_graph_is_no_sequence_of_rows():
    graph = by_edges(CASES["two types"])
    assert repr(graph) == "Graph(4 nodes, 4 edges of types road, rail)"
    assert graph.n_nodes == 4
    assert not hasattr(graph, "__len__")  # scikit-learn would cut what is as long as X into folds
    assert np.array([graph, graph]).shape == (2,)


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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_graph_that_was_used_is_copied_without_what_it_has_cached(copied):
    graph = by_edges(CASES["two types"])
    fresh = len(pickle.dumps(graph))
    X = np.arange(2.0 * graph.n_nodes).reshape(-1, 2)
    products = {name: S @ X for name, S in graph.operators.items()}
    columns = {name: S @ X[:, 0] for name, S in graph.operators.items()}
    graph.describe(np.ones(graph.n_nodes, bool)), graph.near_order, graph.index(["a"])
    again = copied(graph)
    assert len(pickle.dumps(graph)) <= fresh + 1024
    assert_is(again, CASES["two types"])
    for name, S in again.operators.items():
        np.testing.assert_array_equal(S @ X, products[name])
        np.testing.assert_array_equal(S @ X[:, 0], columns[name])


def test_reached_nodes_are_those_whose_component_has_a_label():
    graph = Graph.from_edges([5, 1, 2], [4, 2, 3], type=["x", "x", "y"], nodes=[5, 1, 2, 3, 4, 0])
    labelled = np.array([False, True, False, True, False, False])
    assert graph.reached(labelled).tolist() == [False, True, True, True, False, False]
    assert graph.count_components(labelled) == 1
    assert graph.count_components(np.ones(6, bool)) == 3
    assert not graph.reached(np.zeros(6, bool)).any()
    assert graph.count_components(np.zeros(6, bool)) == 0
