"""Residuals of several models, each known at other labels, against dense algebra."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import small_world
from residua import Graph
from residua.field import Correlator
from residua.field.fold_fields import FoldFields


def two_types() -> Graph:
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 30, (2, 90))
    ends = ends[:, ends[0] != ends[1]]
    kinds = np.where(np.arange(ends.shape[1]) % 3, "road", "rail")
    return Graph.from_edges(*ends, type=kinds, nodes=np.arange(32))  # two isolates


def dense(graph: Graph, alpha: np.ndarray) -> np.ndarray:
    return np.eye(graph.n_nodes) - sum(a * S.dense() for a, S in zip(alpha, graph.operators.values(), strict=True))


@pytest.mark.parametrize(("graph", "alpha"), [(small_world(40).graph, [0.95]), (two_types(), [0.8, -0.5])])
def test_columns_are_completed_by_their_own_conditional_means(graph, alpha):
    rng = np.random.default_rng(0)
    known, R = rng.random((graph.n_nodes, 3)) < 0.5, rng.normal(size=(graph.n_nodes, 3))
    fields = FoldFields(graph, known, tol=1e-12)
    fields.set_alpha(np.array(alpha))
    given = np.where(known, R, 0.0)
    pulled, G = fields.complete(given), dense(graph, np.array(alpha))
    for k in range(3):
        K, U = np.flatnonzero(known[:, k]), np.flatnonzero(~known[:, k])
        expected = -np.linalg.solve(G[np.ix_(U, U)], G[np.ix_(U, K)] @ R[K, k])
        assert_allclose(given[U, k], expected, atol=1e-9)
        assert_allclose(given[K, k], R[K, k])
        schur = G[np.ix_(K, K)] - G[np.ix_(K, U)] @ np.linalg.solve(G[np.ix_(U, U)], G[np.ix_(U, K)])
        assert_allclose(pulled[K, k], schur @ R[K, k], atol=1e-9)


def test_grams_of_groups_are_those_of_their_indicators():
    graph, rng = two_types(), np.random.default_rng(1)
    group, alpha = rng.integers(0, 4, (graph.n_nodes, 2)), np.array([0.9, 0.3])
    fields = FoldFields(graph, np.ones((graph.n_nodes, 2), bool))
    fields.set_alpha(alpha)
    for k, found in enumerate(fields.grams(group, 4)):
        C = np.eye(4)[group[:, k]]
        assert_allclose(found, C.T @ dense(graph, alpha) @ C, atol=1e-12)


def test_a_rough_alpha_is_that_of_residuals_around_a_level_of_their_own():
    case = small_world(300)
    rng = np.random.default_rng(2)
    G = dense(case.graph, np.array([0.97]))
    r = np.linalg.solve(np.linalg.cholesky(G).T, rng.normal(size=300))
    labelled = rng.random(300) < 0.7
    correlator = Correlator(case.graph, labelled)
    found = correlator.rough_alpha(r[labelled] + 50.0)
    exact = correlator(r[labelled], np.ones((labelled.sum(), 1)))
    assert abs(np.arctanh(found[0]) - np.arctanh(exact.alpha["edge"])) < 0.1
