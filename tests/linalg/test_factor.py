"""A sparse factor gives the dense log-determinant, solution and inverse, the last on its own pattern."""

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import splu

import dense
from graphs import CASES, case, grid, small_world
from residua.linalg import Shifted, Sparse, weighted_sum
from residua.linalg import factor as cholesky
from residua.linalg.factor import HAS_CHOLMOD, Factor, Family, factor_seconds, identity_minus
from residua.linalg.ldl import LDL

BACKENDS = [False, True] if HAS_CHOLMOD else [False]
each_backend = pytest.mark.parametrize("cholmod", BACKENDS, ids=lambda c: "cholmod" if c else "superlu")


def check(factor: Factor, A: np.ndarray):
    """Everything that a factor tells, against dense algebra."""
    inverse = np.linalg.inv(A)
    assert_allclose(factor.logdet, np.linalg.slogdet(A)[1], rtol=1e-11, atol=1e-12)
    B = np.random.default_rng(0).standard_normal((len(A), 2))
    assert_allclose(factor.solve(B), inverse @ B, rtol=1e-8, atol=1e-9)
    assert_allclose(factor.solve(B[:, 0]), inverse @ B[:, 0], rtol=1e-8, atol=1e-9)
    selected = factor.inverse
    assert_allclose(selected.diagonal(), np.diag(inverse), rtol=1e-9)
    i, j = selected.nonzero()
    assert_allclose(selected.toarray()[i, j], inverse[i, j], rtol=1e-8, atol=1e-10)
    stored = selected.toarray() != 0
    needed = (np.abs(A) > 1e-14) & (np.abs(inverse) > 1e-13)
    assert (stored | ~needed).all(), "an entry of A's own pattern is missing from the inverse"


@each_backend
@pytest.mark.parametrize("alpha", [-0.99, -0.4, 0.0, 0.6, 0.99])
def test_factor_of_a_precision_is_exact(any_case, alpha, cholmod):
    signs = np.array([1.0, -1.0])[: len(any_case.terms)]
    A = identity_minus(Shifted(weighted_sum(any_case.terms, signs), alpha))
    check(Factor(A, cholmod), dense.precision(any_case.S, alpha * signs))


@each_backend
@pytest.mark.parametrize("c", [small_world(n=150, degree=4), grid(12, 9)], ids=["small world", "grid"])
@pytest.mark.parametrize("alpha", [-0.9, 0.999])
def test_factor_with_fill_in_is_exact(c, alpha, cholmod):
    check(Factor(identity_minus(Shifted(c.terms[0], alpha)), cholmod), dense.precision(c.S, alpha))


CANCELLING = np.array(
    [
        [1.0, 0.5, 0.5, 0.0, 0.25],
        [0.5, 1.0, 0.25, 0.25, 0.125],
        [0.5, 0.25, 1.0, 0.5, 0.125],
        [0.0, 0.25, 0.5, 1.0, 0.0],
        [0.25, 0.125, 0.125, 0.0, 1.0],
    ]
)  # eliminating node 0 makes entries (1, 2), (1, 4) and (2, 4) vanish exactly


def stored_by_superlu(A: np.ndarray) -> tuple[int, int]:
    """Entries of L that SuperLU keeps, and those of L's pattern without cancellation."""
    options = {"SymmetricMode": True}
    lu = splu(sp.csc_array(A), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    order = np.argsort(lu.perm_c)
    pattern = A[np.ix_(order, order)] != 0
    for k in range(len(A)):
        below = np.flatnonzero(pattern[k + 1 :, k]) + k + 1
        pattern[np.ix_(below, below)] = True
    return np.count_nonzero(lu.L.toarray()), np.count_nonzero(np.tril(pattern))


def test_selected_inverse_survives_exact_cancellation_in_the_factor():
    dropped = 0
    for order in permutations(range(5)):
        A = CANCELLING[np.ix_(order, order)]
        assert np.linalg.eigvalsh(A)[0] > 0.1
        kept, full = stored_by_superlu(A)
        dropped += kept < full
        check(Factor(sp.csc_array(A), cholmod=False), A)
    assert dropped > 0, "no entry cancelled: this test has lost its point"


def test_stored_zeros_widen_the_pattern_of_the_inverse():
    """Room for further pairs is asked by storing zeros; the inverse must then hold those pairs."""
    c = CASES["path"]
    A = dense.precision(c.S, 0.8)
    i, j = np.nonzero(np.ones_like(A))
    full = sp.csc_array((A[i, j], (i, j)), shape=A.shape)
    full.data[full.data == 0] = 0.0
    found = Factor(full, cholmod=False).inverse
    assert_allclose(found.toarray(), np.linalg.inv(A), rtol=1e-10, atol=1e-12)


@each_backend
@pytest.mark.parametrize(
    "A",
    [np.diag([1.0, -1.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])],
    ids=["negative", "indefinite", "zero diagonal"],
)
def test_matrix_that_is_not_positive_definite_is_refused(A, cholmod):
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        Factor(sp.csc_array(A), cholmod)


@pytest.mark.parametrize("sign", [1, -1])
def test_singular_matrix_is_refused(sign):
    """I - S is singular on a graph; so is I + S on a bipartite one."""
    with pytest.raises((np.linalg.LinAlgError, RuntimeError)):
        Factor(identity_minus(Shifted(CASES["star"].terms[0], sign)), cholmod=False)


def tree(n, seed=0):
    rng = np.random.default_rng(seed)
    return case(n, [(i, int(rng.integers(0, i))) for i in range(1, n)], [0])


def test_estimated_time_knows_which_graphs_are_cheap():
    cheap = [CASES["path"], case(20_000, [(0, i) for i in range(1, 20_000)], [0]), tree(20_000)]
    assert max(factor_seconds(c.terms[0]) for c in cheap) < 0.5
    assert factor_seconds(grid(60, 60).terms[0]) < 1
    assert factor_seconds(small_world(n=50_000).terms[0]) > 60


def test_estimated_time_does_not_grow_with_pendant_trees_or_self_loops():
    """Nodes of degree 1 fill nothing in, wherever they hang; a self-loop is no neighbour."""
    wide = [(0, i) for i in range(1, 5000)]
    loops = [(i, i) for i in range(5000)]
    plain, looped = (factor_seconds(case(5000, edges, [0]).terms[0]) for edges in (wide, wide + loops))
    assert plain == looped == pytest.approx(8e-6 * 5000, rel=1)


FAMILIES = {"two types": CASES["two types"], "grid": grid(12, 9), "small world": small_world(n=150, degree=4)}


@pytest.mark.parametrize("work", [0.0, np.inf], ids=["superlu", "compiled"])
@pytest.mark.parametrize("name", FAMILIES)
def test_one_pattern_serves_every_alpha(name, work, monkeypatch):
    monkeypatch.setattr(cholesky, "COMPILED_WORK", work)
    c = FAMILIES[name]
    family = Family(c.terms, cholmod=False)
    for alpha in (0.9, -0.7, 0.0, 0.999):
        alphas = np.full(len(c.terms), alpha)  # type by type: their sum has norm 1
        factor = family.factor(alphas)
        assert isinstance(factor, LDL if work else Factor)
        A = dense.precision(c.S, alphas)
        assert_allclose(factor.logdet, np.linalg.slogdet(A)[1], rtol=1e-11, atol=1e-12)
        assert_allclose(family.traces(factor), [(np.linalg.inv(A) * S).sum() for S in c.S], rtol=1e-9, atol=1e-10)


def test_a_pivot_of_zero_is_refused():
    S = CASES["path"].terms[0]
    family = Family([Sparse(S.indptr, S.indices, None, np.ones(S.shape[0]))], cholmod=False)
    family.factor(np.array([0.1]))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        family.factor(np.array([1.0]))


@pytest.mark.parametrize("alpha", [1.5, -3.0, np.nan])
def test_a_pattern_refuses_what_is_not_positive_definite(alpha):
    family = Family(CASES["path"].terms, cholmod=False)
    family.factor(np.array([0.5]))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        family.factor(np.array([alpha]))
