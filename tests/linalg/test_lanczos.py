"""Lanczos quadrature: exact at full depth, exact for polynomials below it, on any start."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dense
from graphs import CASES, small_world
from residua.linalg import Shifted, weighted_sum
from residua.linalg.lanczos import BlockLanczos, gauss_rule, tridiagonal

FUNCTIONS = {
    "log": lambda x: np.log1p(-0.9 * x),
    "inverse": lambda x: 1 / (1 - 0.9 * x),
    "inverse, near the pole": lambda x: 1 / (1 - 0.999 * x),
    "power": lambda x: x**3,
}


def matrix(c):
    """S of one type, 0.9 S_1 - 0.7 S_2 of two; as operator and dense."""
    weights = np.array([1.0]) if len(c.terms) == 1 else np.array([0.9, -0.7])
    return weighted_sum(c.terms, weights), np.tensordot(weights, c.S, axes=1)


def quadrature(A, Z, steps):
    return gauss_rule(*tridiagonal(A, Z, steps))


def apply_dense(f, A, B):
    values, vectors = np.linalg.eigh(A)
    C = vectors.T @ B
    return C.T @ (f(values).reshape(-1, *[1] * (C.ndim - 1)) * C)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_full_depth_quadrature_is_exact_for_any_vector(any_case, name, seed):
    S, A = matrix(any_case)
    Z = np.random.default_rng(seed).standard_normal((any_case.n, 3))
    found = quadrature(S, Z, steps=any_case.n).apply(FUNCTIONS[name])
    expected = [apply_dense(FUNCTIONS[name], A, z) for z in Z.T]
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_steps_beyond_the_size_change_nothing(any_case, rng):
    S, _ = matrix(any_case)
    Z = rng.standard_normal((any_case.n, 2))
    few, many = (quadrature(S, Z, steps).apply(np.exp) for steps in (any_case.n, 10 * any_case.n))
    assert_allclose(few, many, rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_polynomials_below_twice_the_steps_are_exact(steps, rng):
    c = small_world(n=200)
    Z = rng.standard_normal((c.n, 4))
    rule = quadrature(c.terms[0], Z, steps)
    for degree in range(2 * steps):
        expected = np.einsum("ik,ik->k", Z, np.linalg.matrix_power(c.S[0], degree) @ Z)
        assert_allclose(rule.apply(lambda x, d=degree: x**d), expected, rtol=1e-11, atol=1e-11)
    beyond = np.einsum("ik,ik->k", Z, np.linalg.matrix_power(c.S[0], 2 * steps) @ Z)
    assert (rule.apply(lambda x: x ** (2 * steps)) < beyond - 1e-9).all()  # Gauss falls short from there


def test_nodes_stay_in_the_spectrum_and_weights_sum_to_the_norm(any_case, rng):
    S, A = matrix(any_case)
    Z = rng.standard_normal((any_case.n, 4))
    Z[:, 2] = 0
    rule = quadrature(S, Z, 6)
    assert_allclose(rule.weights.sum(axis=1), (Z**2).sum(axis=0), rtol=1e-12)
    assert (rule.weights >= 0).all()
    border = np.linalg.eigvalsh(A)[[0, -1]]
    seen = rule.weights > 1e-12
    assert rule.nodes[seen].min() >= border[0] - 1e-12
    assert rule.nodes[seen].max() <= border[1] + 1e-12


def test_shift_moves_the_nodes_and_keeps_the_weights(any_case, rng):
    S, _ = matrix(any_case)
    Z = rng.standard_normal((any_case.n, 2))
    plain = quadrature(S, Z, 4).apply(lambda x: np.log(1 - 0.8 * x))
    shifted = quadrature(Shifted(S, 0.8), Z, 4).apply(np.log)
    assert_allclose(plain, shifted, rtol=1e-10)


@pytest.mark.parametrize("eigenvector", [0, 3, -1])
def test_start_at_an_eigenvector_sees_one_eigenvalue(any_case, eigenvector):
    S, A = matrix(any_case)
    values, vectors = np.linalg.eigh(A)
    z = 5 * vectors[:, [eigenvector]]
    for name, f in FUNCTIONS.items():
        found = quadrature(S, z, steps=any_case.n).apply(f)
        assert_allclose(found, 25 * f(values[eigenvector]), rtol=1e-9, atol=1e-10, err_msg=name)


def test_float32_agrees_to_its_own_precision(any_case, rng):
    S, A = matrix(any_case)
    Z = np.sign(rng.standard_normal((any_case.n, 3)))
    found = quadrature(S.astype(np.float32), Z, steps=any_case.n).apply(FUNCTIONS["log"])
    expected = [apply_dense(FUNCTIONS["log"], A, z) for z in Z.T]
    assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_start_vectors_are_left_alone(rng):
    c = CASES["path"]
    Z = rng.standard_normal((c.n, 2))
    kept = Z.copy()
    tridiagonal(c.terms[0], Z, 4)
    assert_array_equal(Z, kept)


# Block form: B' f(A) B


def columns(c, kind, rng):
    B = rng.standard_normal((c.n, 3))
    if kind == "one":
        return B[:, :1]
    if kind == "dependent":
        return np.column_stack([B, B[:, 0] - 2 * B[:, 1], B[:, 2]])
    if kind == "zero":
        return np.column_stack([B[:, 0], np.zeros(c.n), B[:, 1]])
    if kind == "all zero":
        return np.zeros((c.n, 2))
    if kind == "units":
        return B * [1e9, 1.0, 1e-9]
    if kind == "nearly dependent":
        return np.column_stack([B[:, 0], B[:, 0] + 1e-9 * B[:, 1]])
    if kind == "more than rows":
        return rng.standard_normal((c.n, c.n + 3))
    return B


KINDS = ["one", "three", "dependent", "zero", "all zero", "units", "nearly dependent", "more than rows"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_full_depth_block_quadrature_is_exact(any_case, kind, name, rng):
    S, A = matrix(any_case)
    B = columns(any_case, kind, rng)
    found = BlockLanczos(S, B).more_steps(any_case.n).quadrature().apply(FUNCTIONS[name])
    expected = apply_dense(FUNCTIONS[name], A, B)
    size = np.linalg.norm(B, axis=0)
    assert_allclose(found, expected, rtol=0, atol=1e-9 * np.outer(size, size).max() + 1e-300)
    unit = np.outer(*[np.where(size > 0, size, 1)] * 2)
    assert_allclose(found / unit, expected / unit, atol=1e-9)


@pytest.mark.parametrize("kind", ["three", "dependent", "units"])
def test_block_run_can_be_carried_on(kind, rng):
    c = small_world(n=120)
    B = columns(c, kind, rng)
    at_once, by_parts = BlockLanczos(c.terms[0], B), BlockLanczos(c.terms[0], B)
    by_parts.more_steps(2)
    by_parts.more_steps(3)
    assert_array_equal(
        at_once.more_steps(9).quadrature().apply(np.exp), by_parts.more_steps(4).quadrature().apply(np.exp)
    )
    assert at_once.steps == by_parts.steps == 9


def test_block_polynomials_below_twice_the_steps_are_exact(rng):
    c = small_world(n=120)
    B = rng.standard_normal((c.n, 3))
    for steps in (1, 2, 4):
        rule = BlockLanczos(c.terms[0], B).more_steps(steps).quadrature()
        for degree in range(2 * steps):
            expected = B.T @ np.linalg.matrix_power(c.S[0], degree) @ B
            assert_allclose(rule.apply(lambda x, d=degree: x**d), expected, atol=1e-10)


def test_block_of_one_column_is_the_plain_quadrature(rng):
    c = small_world(n=120)
    b = rng.standard_normal((c.n, 1))
    for f in FUNCTIONS.values():
        plain = quadrature(c.terms[0], b, 8).apply(f)
        assert_allclose(BlockLanczos(c.terms[0], b).more_steps(8).quadrature().apply(f).ravel(), plain, rtol=1e-9)


def test_exhausted_run_stays_exact_however_far_it_is_driven(any_case, rng):
    """Rounding may keep a run alive beyond the size of the matrix; it must do no harm."""
    S, A = matrix(any_case)
    B = columns(any_case, "dependent", rng)
    found = BlockLanczos(S, B).more_steps(200).quadrature().apply(FUNCTIONS["inverse, near the pole"])
    assert_allclose(found, apply_dense(FUNCTIONS["inverse, near the pole"], A, B), rtol=1e-9, atol=1e-9)


def test_run_that_starts_in_an_invariant_space_is_exhausted_at_its_end():
    c = CASES["two components"]
    constants = np.sqrt(c.graph.degree)[:, None] * (c.graph.components[:, None] == [0, 1])
    run = BlockLanczos(c.terms[0], constants)
    rule = run.more_steps(5).quadrature()
    assert run.exhausted
    assert run.steps == 1
    assert_allclose(rule.apply(np.exp), np.e * constants.T @ constants, atol=1e-12)


@pytest.mark.parametrize("alpha", [-0.99, 0.5, 0.99, 0.999])
def test_long_run_without_orthogonality_still_converges(alpha, rng):
    """Lanczos loses orthogonality once values converge; the quadrature must not lose its answer."""
    c = small_world(n=400, degree=4, rewire=0.05)
    B = rng.standard_normal((c.n, 2))
    found = BlockLanczos(c.terms[0], B).more_steps(250).quadrature().apply(lambda x: 1 / (1 - alpha * x))
    assert_allclose(found, B.T @ np.linalg.solve(dense.precision(c.S, alpha), B), rtol=1e-9, atol=1e-9)
