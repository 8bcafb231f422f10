"""Known labels around a node as features."""

import numpy as np

import residua
from residua.reproduction.neighbour_labels import neighbour_labels


def test_labels_around_a_node_are_features_without_its_own():
    edges = [(0, 1, 2.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0), (1, 1, 5.0), (2, 4, 3.0)]
    graph = residua.Graph.from_edges(*np.array(edges).T[:2].astype(int), weight=[w for *_, w in edges])
    y = np.array([4.0, 1.0, np.nan, -2.0, 7.0])
    found = neighbour_labels(graph, y)
    A = graph.adjacency().toarray() * (1 - np.eye(5))
    A2 = A @ A * (1 - np.eye(5))
    known = ~np.isnan(y)
    v = np.where(known, y - y[known].mean(), 0)
    for at, M in ((0, A), (2, A2)):
        weight = M @ known
        np.testing.assert_allclose(found[:, at], np.where(weight > 0, M @ v / np.maximum(weight, 1e-300), 0))
        np.testing.assert_allclose(found[:, at + 1], weight)
    moved = y.copy()
    moved[1] += 1.0
    centred = neighbour_labels(graph, moved) - found
    assert abs(centred[1, 0] + 0.25) < 1e-12  # the mean of all labels moves, nothing else
