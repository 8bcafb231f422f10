"""Errors of neighbours are those of the model without the label whose neighbours they are."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import dense
from graphs import grid, small_world
from residua import Graph
from residua.field import neighbour_errors
from residua.field.conditional import Conditional
from residua.field.neighbour_errors import neighbourhood


def averages(graph):
    """M, dense."""
    A = graph.adjacency().toarray().astype(float)
    np.fill_diagonal(A, 0)
    degree = A.sum(axis=1, keepdims=True)
    return A / np.where(degree > 0, degree, 1)


def around(case, alpha, r, beta=1.0):
    """What is asked of a case with residuals r (n,) at its labels, and the standardised errors."""
    given = Conditional(case.graph, case.labelled, alpha, beta, exact=True)
    found = given.leave_one_out(np.where(case.labelled, r, np.nan))
    z, precision = np.full((2, case.n), np.nan)
    z[case.L], precision[case.L] = found.error / np.sqrt(found.variance), 1 / (beta * found.variance)
    shared = sum(a * sp.csr_array(S) for a, S in zip(given.alpha, case.S, strict=True))
    return neighbourhood(case.graph, z, precision, sp.csr_array(shared)), z


def without(C, r, j, left_out):
    """The standardised error of label j given all labels but itself and ``left_out``."""
    rest = np.setdiff1d(np.arange(len(r)), [j, left_out])
    weights = np.linalg.solve(C[np.ix_(rest, rest)], C[rest, j])
    return (r[j] - weights @ r[rest]) / np.sqrt(C[j, j] - weights @ C[rest, j])


@pytest.mark.parametrize("types", [1, 2])
def test_where_all_have_labels_a_neighbours_error_is_that_of_the_model_without_both(types):
    case = small_world(24, 4, share=1.0, types=types, seed=1)
    alpha = np.array([0.8, -0.5])[:types]
    r = np.random.default_rng(0).standard_normal(24) * 2
    found, _ = around(case, alpha if types > 1 else 0.8, r, beta=1.7)
    C, M = dense.covariance(case.S, alpha, 1.7), averages(case.graph)
    expected = [
        sum(M[i, j] * min(without(C, r, j, i) ** 2, neighbour_errors.LARGEST) for j in np.flatnonzero(M[i]))
        for i in range(24)
    ]
    assert_allclose(found.squares[0], expected, rtol=1e-10)


@pytest.mark.parametrize("rows", [neighbour_errors.ROWS, 7])
def test_sums_are_those_of_dense_averages_without_the_own_label(rows, monkeypatch):
    monkeypatch.setattr(neighbour_errors, "ROWS", rows)  # many pieces are as good as one
    case = grid(5, 6, share=0.6, seed=3)
    r = np.random.default_rng(1).standard_normal(case.n) * 3
    found, z = around(case, 0.0, r)  # no correlation: labels have no part in each other's errors
    M, has = averages(case.graph), case.labelled.astype(float)
    u = np.where(case.labelled, np.minimum(np.nan_to_num(z) ** 2, neighbour_errors.LARGEST), 0.0)
    for hop, K in enumerate((M, M @ M)):
        K = K - np.diag(np.diag(K))
        assert_allclose(found.squares[hop], K @ u, atol=1e-12)
        assert_allclose(found.weights[hop], K @ has, atol=1e-12)


def test_a_label_has_no_part_in_what_is_known_around_it():
    case = small_world(40, 4, share=1.0, seed=5)
    r = np.random.default_rng(2).standard_normal(40)
    before, _ = around(case, 0.9, r)
    odd = r.copy()
    odd[7] += 5
    after, _ = around(case, 0.9, odd)
    assert_allclose(after.squares[0, 7], before.squares[0, 7], rtol=1e-9)
    beside = case.graph.adjacency()[[7]].indices[0]
    assert after.squares[0, beside] > before.squares[0, beside]


def test_the_region_of_a_node_is_a_lazy_walk_over_labels_and_a_label_has_no_part_in_its_own():
    case = grid(6, 6, share=0.7, seed=1)
    r = np.random.default_rng(3).standard_normal(case.n)
    found, z = around(case, 0.0, r)
    K = np.linalg.matrix_power((np.eye(case.n) + averages(case.graph)) / 2, neighbour_errors.REGION)
    U, has = ~case.labelled, case.labelled.astype(float)
    u = np.where(case.labelled, np.minimum(np.nan_to_num(z) ** 2, neighbour_errors.LARGEST), 0.0)
    assert_allclose(found.squares[2][U], (K @ u)[U], rtol=1e-12)
    assert_allclose(found.weights[2][U], (K @ has)[U], rtol=1e-12)
    i = case.L[3]
    assert 0 < found.weights[2][i] <= (K @ has)[i] - K[i, i] + 1e-12
    changed = r.copy()
    changed[i] += 4
    assert_allclose(around(case, 0.0, changed)[0].squares[2][i], found.squares[2][i], rtol=1e-12)


def test_self_loops_and_nodes_without_edges_add_nothing():
    graph = Graph.from_edges([0, 0, 1], [0, 1, 2], nodes=range(4))
    z = np.array([1.0, 2.0, np.nan, 3.0])
    found = neighbourhood(graph, z, np.ones(4), sp.csr_array((4, 4)))
    assert_allclose(found.squares[0], [4, 0.5, 4, 0])
    assert_allclose(found.weights[0], [1, 0.5, 1, 0])
    assert_allclose(found.squares[1], [0, 0, 0.5, 0])
