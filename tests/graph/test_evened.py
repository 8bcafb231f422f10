"""The graph evened by self-loops has ``I - (D - A) / c`` as its normalised adjacency."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from graphs import CASES
from residua.graph import Graph


def test_its_operator_is_the_identity_less_the_laplacian_over_the_highest_degree(one_type):
    D_A = one_type.laplacian
    (S,) = one_type.graph.evened.operators.values()
    assert_allclose(S.dense(), np.eye(one_type.n) - D_A / D_A.diagonal().max(), atol=1e-15)


def test_every_node_has_the_highest_degree(one_type):
    assert_allclose(one_type.graph.evened.degree, one_type.laplacian.diagonal().max(), rtol=1e-14)


def test_components_and_nodes_stay(one_type):
    evened = one_type.graph.evened
    assert_array_equal(evened.components, one_type.graph.components)
    assert_array_equal(evened.nodes, one_type.graph.nodes)


def test_a_graph_of_even_degrees_is_as_it_was():
    ring = Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0])
    assert_array_equal(ring.evened.adjacency().toarray(), ring.adjacency().toarray())
    assert ring.evened.operators["edge"].weights is None


def test_several_edge_types_are_refused_with_a_remedy_that_works(two_types):
    graph = two_types.graph
    with pytest.raises(ValueError, match="takes one edge type"):
        _ = graph.evened
    assert Graph.from_scipy(graph.adjacency(), graph.nodes).evened.n_nodes == graph.n_nodes


def test_a_graph_of_self_loops_only_is_refused():
    with pytest.raises(ValueError, match="self-loops only"):
        _ = Graph.from_edges([0, 1], [0, 1]).evened


def test_the_case_with_self_loops_has_some():
    assert (CASES["self-loops"].source == CASES["self-loops"].target).any()
