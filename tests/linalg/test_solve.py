"""Systems whose diagonal is uneven are scaled to an even one first, and have the same solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import CASES, case, grid
from residua.linalg import CG, Shifted, Solver

HUBS = case(300, [(i % 3, i) for i in range(3, 300)] + [(i, i + 1) for i in range(3, 299)], [])


def precision(c, alpha, rows=None):
    (S,) = c.graph.evened.operators.values()
    A = Shifted(S, alpha)
    return A if rows is None else A.submatrix(rows)


@pytest.mark.parametrize("rows", [None, np.arange(1, 300, 2)], ids=["all rows", "a part"])
def test_a_balanced_matrix_is_scaled_to_a_diagonal_of_ones(rows):
    A = precision(HUBS, 0.999, rows)
    B, E = A.balanced()
    assert_allclose(B.dense(), E[:, None] * A.dense() * E, atol=1e-12)
    assert_allclose(B.dense().diagonal(), 1)


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("started", [False, True])
def test_a_system_with_hubs_is_solved_as_by_dense_algebra(columns, started, rng):
    A = precision(HUBS, 0.9995)
    b, start = rng.standard_normal((2, 300, *columns))
    found = Solver().solve(A, b, start if started else None)
    assert_allclose(found.X, np.linalg.solve(A.dense(), b), rtol=1e-6, atol=1e-7)
    true = np.linalg.norm((b - A @ found.X).reshape(300, -1), axis=0) / np.linalg.norm(b.reshape(300, -1), axis=0)
    assert_allclose(found.residual, true, rtol=1e-3, atol=1e-13)
    assert found.converged.all()


def test_it_takes_fewer_steps_where_degrees_are_of_every_size():
    rng = np.random.default_rng(0)
    edges = {(int(i * u**3), i) for i in range(1, 300) for u in rng.random(4)}
    A, b = precision(case(300, sorted(edges), []), 0.999), rng.standard_normal(300)
    assert Solver().solve(A, b).iterations.max() < 0.7 * CG().solve(A, b).iterations.max()


def test_what_is_even_or_of_negative_alpha_is_left_as_it_is():
    assert precision(grid(6, 6), 0.5).balanced() is None
    assert precision(HUBS, -0.5).balanced() is None
    (S,) = CASES["star"].graph.operators.values()
    assert Shifted(S, 0.9).balanced() is None
