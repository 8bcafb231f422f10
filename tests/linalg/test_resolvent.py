"""The resolvent by a recursion over Lanczos steps is that of dense algebra, near the poles and in many columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import grid, small_world
from residua.linalg import resolvent
from residua.linalg.lanczos import BlockLanczos
from residua.linalg.resolvent import resolvents, squared_resolvent

ALPHAS = np.array([-0.999999, -0.5, 0.0, 0.3, 0.99, 0.9999, 0.999999])


def columns(n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    B = rng.standard_normal((n, 4))
    if kind == "dependent":
        B[:, 3] = B[:, 0] - 2 * B[:, 1]
    if kind == "zero":
        B[:, 2] = 0
    if kind == "units":
        B *= [1e6, 1.0, 1e-6, 1e-9]
    return B


@pytest.mark.parametrize("kind", ["plain", "dependent", "zero", "units"])
@pytest.mark.parametrize("case", [grid(9, 12), small_world(n=150)], ids=["grid", "small world"])
def test_recursion_equals_dense_algebra_up_to_the_poles(case, kind, rng):
    B = columns(case.n, kind, rng)
    krylov = BlockLanczos(case.terms[0], B).more_steps(case.n)
    found = resolvents(krylov, ALPHAS).values
    unit = np.sqrt(np.maximum((B * B).sum(axis=0), 1e-300))
    for a, once in zip(ALPHAS, found, strict=True):
        X = np.linalg.solve(np.eye(case.n) - a * case.S[0], B / unit)
        near = 1e-9 / (1 - abs(a)) ** 0.5  # the poles are at 1 and, of a bipartite graph, at -1
        assert_allclose(once / np.outer(unit, unit), (B / unit).T @ X, rtol=near, atol=near)
        first, second = squared_resolvent(krylov, float(a))
        assert_allclose(first, once, rtol=1e-12, atol=1e-12 * np.abs(once).max())
        assert_allclose(second / np.outer(unit, unit), X.T @ X, rtol=near, atol=near)


def test_terms_are_what_each_step_adds(rng):
    case = small_world(n=150)
    B = rng.standard_normal((case.n, 3))
    alphas = np.array([0.4, 0.95])
    whole = resolvents(BlockLanczos(case.terms[0], B).more_steps(9), alphas)
    part = resolvents(BlockLanczos(case.terms[0], B).more_steps(6), alphas)
    added = np.diagonal(whole.values - part.values, axis1=1, axis2=2)
    assert (whole.terms >= 0).all()
    assert_allclose(whole.terms[6:].sum(axis=0), added, rtol=1e-6, atol=1e-13)


def test_many_columns_are_taken_in_turns(rng, monkeypatch):
    case = small_world(n=60)
    krylov = BlockLanczos(case.terms[0], rng.standard_normal((case.n, 5))).more_steps(7)
    at_once = resolvents(krylov, ALPHAS)
    monkeypatch.setattr(resolvent, "NUMBERS", 50)
    in_turns = resolvents(krylov, ALPHAS)
    assert_allclose(in_turns.values, at_once.values, rtol=1e-13, atol=1e-13)
    assert_allclose(in_turns.terms, at_once.terms, rtol=1e-12, atol=1e-13)


def test_nothing_comes_of_no_rows():
    case = grid(3, 3)
    krylov = BlockLanczos(case.terms[0].submatrix(np.arange(0)), np.zeros((0, 2))).more_steps(5)
    assert krylov.exhausted
    assert_allclose(resolvents(krylov, ALPHAS).values, np.zeros((len(ALPHAS), 2, 2)))
    assert_allclose(squared_resolvent(krylov, 0.5), np.zeros((2, 2, 2)))
