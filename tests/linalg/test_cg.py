"""Conjugate gradients solve what a dense solver solves, and tell truly how far they came."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dense
from graphs import CASES, case, grid, small_world
from residua.linalg import CG, NotConverged, Shifted, Solver, weighted_sum

ALPHAS = [-0.95, -0.3, 0.0, 0.5, 0.99]
EACH_PATH = pytest.mark.parametrize("k", [None, 1, 2, 9])  # one compiled column, and blocks


def system(c, alpha, dtype=np.float64):
    """``I - alpha S`` of one type, ``I - alpha (S_1 - S_2)`` of two; as operator and dense."""
    signs = np.array([1.0, -1.0])[: len(c.terms)]
    A = Shifted(weighted_sum([S.astype(dtype) for S in c.terms], signs), alpha)
    return A, dense.precision(c.S, alpha * signs)


def relative_residual(G, X, B):
    B, X = B.reshape(len(B), -1).astype(float), X.reshape(len(B), -1).astype(float)
    return np.linalg.norm(B - G @ X, axis=0) / np.linalg.norm(B, axis=0)


@EACH_PATH
@pytest.mark.parametrize("alpha", ALPHAS)
def test_solution_is_the_dense_solution(any_case, alpha, k, rng):
    A, G = system(any_case, alpha)
    B = rng.standard_normal(any_case.n if k is None else (any_case.n, k))
    found = CG(tol=1e-13).solve(A, B)
    assert found.X.shape == B.shape
    assert found.converged.shape == found.iterations.shape == found.residual.shape == (k or 1,)
    assert found.converged.all()
    assert_allclose(found.X, np.linalg.solve(G, B), rtol=0, atol=1e-9)


@EACH_PATH
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_reported_residual_is_the_true_one(k, share, rng):
    c = small_world(n=400, share=share)
    A, G = system(c, 0.99)
    B = rng.standard_normal(c.n if k is None else (c.n, k))
    found = CG(tol=1e-8).solve(A, B, None if share else rng.standard_normal(B.shape))
    assert (found.residual <= 1e-8).all()
    assert_allclose(found.residual, relative_residual(G, found.X, B), rtol=1e-3)


@EACH_PATH
@pytest.mark.parametrize("alpha", [-0.9, 0.5, 0.95])
def test_float32_solves_to_its_own_precision(k, alpha, rng):
    c = small_world(n=300)
    A, G = system(c, alpha, np.float32)
    B = rng.standard_normal(c.n if k is None else (c.n, k))
    found = CG().solve(A, B)
    assert found.X.dtype == np.float32
    assert found.converged.all()
    assert (relative_residual(G, found.X, B) < 5e-6).all()


def test_each_column_stops_by_itself(rng):
    c = small_world(n=300)
    A, G = system(c, 0.99)
    constant = np.sqrt(c.graph.degree)  # an eigenvector: one step
    B = np.column_stack([constant, rng.standard_normal(c.n), np.zeros(c.n), rng.standard_normal(c.n), G[:, 0]])
    found = CG(tol=1e-9).solve(A, B)
    alone = [CG(tol=1e-9).solve(A, b) for b in B.T]
    assert_array_equal(found.iterations[[0, 2]], [1, 0])
    assert_array_equal(found.iterations, [one.iterations[0] for one in alone])
    assert_allclose(found.X, np.column_stack([one.X for one in alone]), atol=1e-10)


def test_column_is_not_touched_after_it_has_arrived(rng):
    """An easy column must come out the same, whatever harder columns keep the block busy."""
    c = small_world(n=300)
    A, _ = system(c, 0.999)
    easy, hard = np.sqrt(c.graph.degree) + 1e-3 * rng.standard_normal(c.n), rng.standard_normal(c.n)
    for hard_columns in (1, 2, 5):
        block = np.column_stack([easy, *[hard + rng.standard_normal(c.n) for _ in range(hard_columns)]])
        found = CG(tol=1e-4).solve(A, block)
        pair = CG(tol=1e-4).solve(A, np.column_stack([easy, easy]))
        assert found.iterations[0] == pair.iterations[0] < found.iterations[1:].min()
        assert_allclose(found.X[:, 0], pair.X[:, 0], rtol=1e-12)


@EACH_PATH
def test_columns_of_any_size_converge_alike(k, rng):
    c = small_world(n=200)
    A, _ = system(c, 0.9)
    B = rng.standard_normal(c.n if k is None else (c.n, k))
    plain, large, small = (CG().solve(A, scale * B) for scale in (1.0, 1e50, 1e-50))
    assert_array_equal(plain.iterations, large.iterations)
    assert_array_equal(plain.iterations, small.iterations)
    assert_allclose(large.X * 1e-50, plain.X, rtol=1e-8, atol=1e-12)
    assert_allclose(small.X * 1e50, plain.X, rtol=1e-8, atol=1e-12)


@EACH_PATH
def test_start_at_the_solution_takes_no_step(any_case, k, rng):
    A, G = system(any_case, 0.9)
    B = rng.standard_normal(any_case.n if k is None else (any_case.n, k))
    start = np.linalg.solve(G, B)
    found = CG().solve(A, B, start)
    assert_array_equal(found.iterations, 0)
    assert_array_equal(found.X, start)


@EACH_PATH
def test_good_start_saves_steps_and_is_left_alone(k, rng):
    c = small_world(n=300)
    A, G = system(c, 0.99)
    B = rng.standard_normal(c.n if k is None else (c.n, k))
    start = np.linalg.solve(G, B) + 1e-6 * rng.standard_normal(B.shape)
    kept = start.copy()
    cold, warm = CG().solve(A, B), CG().solve(A, B, start)
    assert_array_equal(start, kept)
    assert (warm.iterations < cold.iterations).all()
    assert_allclose(warm.X, np.linalg.solve(G, B), atol=1e-7)


@EACH_PATH
def test_zero_right_hand_side_gives_zero_whatever_the_start(any_case, k, rng):
    A, _ = system(any_case, 0.9)
    B = np.zeros(any_case.n if k is None else (any_case.n, k))
    found = CG().solve(A, B, rng.standard_normal(B.shape))
    assert_array_equal(found.X, B)
    assert_array_equal(found.iterations, 0)
    assert_array_equal(found.residual, 0)
    assert found.converged.all()


@EACH_PATH
def test_early_stop_warns_with_its_numbers_and_still_returns(k, rng):
    c = small_world(n=300)
    A, G = system(c, 0.999)
    B = rng.standard_normal(c.n if k is None else (c.n, k))
    with pytest.warns(NotConverged, match=rf"5 steps .* in {k or 1} of {k or 1} columns"):
        found = CG(tol=1e-12, max_iter=5).solve(A, B)
    assert_array_equal(found.iterations, 5)
    assert not found.converged.any()
    assert_allclose(found.residual, relative_residual(G, found.X, B), rtol=1e-8)
    assert (found.residual < 1).all()


def test_warning_counts_only_the_columns_that_failed(rng):
    c = small_world(n=300)
    A, _ = system(c, 0.999)
    B = np.column_stack([np.sqrt(c.graph.degree), rng.standard_normal(c.n), np.zeros(c.n)])
    with pytest.warns(NotConverged, match="in 1 of 3 columns"):
        found = CG(max_iter=4).solve(A, B)
    assert_array_equal(found.converged, [True, False, True])


@pytest.mark.parametrize("k", [None, 3])
def test_solver_answers_for_an_empty_matrix(k):
    S = CASES["path"].terms[0].submatrix(np.arange(0))
    found = Solver().solve(Shifted(S, 0.5), np.zeros(0 if k is None else (0, k)))
    assert found.X.shape == ((0,) if k is None else (0, k))
    assert found.converged.all()


HARD = {
    "long path": case(1000, [(i, i + 1) for i in range(999)], [0]),
    "grid": grid(30, 30, share=0.01),
}


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("name", HARD)
def test_factor_takes_over_where_conjugate_gradients_are_slow(name, k, rng):
    c = HARD[name]
    A = Shifted(c.terms[0], 1.0).submatrix(c.U)  # label propagation from few labels
    B = rng.standard_normal(len(c.U) if k is None else (len(c.U), k))
    solver = Solver(patience=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solver.solve(A, B)
    assert found.converged.all()
    assert (found.residual <= solver.cg.tol).all()
    expected = np.linalg.solve(np.eye(len(c.U)) - A.S.dense(), B)
    assert_allclose(found.X, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_solver_without_time_for_a_factor_goes_on_with_conjugate_gradients(rng):
    c = grid(20, 20, share=0.05)
    A = Shifted(c.terms[0], 1.0).submatrix(c.U)
    b = rng.standard_normal(len(c.U))
    found = Solver(patience=5, seconds=0.0).solve(A, b)
    assert found.converged.all()
    assert_allclose(found.X, np.linalg.solve(np.eye(len(c.U)) - A.S.dense(), b), rtol=1e-6)


def test_solver_counts_all_the_steps_it_took(rng):
    c = small_world(n=300)
    A, _ = system(c, 0.99)
    b = rng.standard_normal(c.n)
    straight = CG().solve(A, b)
    halted = Solver(patience=5, seconds=0.0).solve(A, b)
    assert halted.iterations[0] >= straight.iterations[0]


def test_solver_that_cannot_arrive_says_so(rng):
    c = small_world(n=300)
    A, _ = system(c, 0.999)
    with pytest.warns(NotConverged):
        found = Solver(cg=CG(max_iter=6), patience=3, seconds=0.0).solve(A, rng.standard_normal(c.n))
    assert not found.converged.any()
