"""Operators are the dense matrices they stand for, in every product, part and sum."""

import itertools
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from graphs import CASES, small_world
from residua.linalg import Shifted, Sparse, weighted_sum
from residua.linalg.kernels import rows as kernels
from residua.linalg.kernels.compiled import compiled
from residua.linalg.kernels.registers import gathered_total
from residua.linalg.operator import on_lines

ROUNDING = {np.float64: 1e-14, np.float32: 1e-6}


def operators(case, dtype=np.float64):
    """(operator, dense matrix) pairs: each type, their sum with signs, and a shift of it."""
    terms = [S.astype(dtype) for S in case.terms]
    alpha = np.array([0.8, -0.6])[: len(terms)]
    mixed = np.tensordot(alpha, case.S, axes=1)
    pairs = list(zip(terms, case.S, strict=True))
    pairs.append((weighted_sum(terms, alpha), mixed))
    pairs.append((Shifted(weighted_sum(terms, alpha), 0.9), np.eye(case.n) - 0.9 * mixed))
    pairs.append((Shifted(terms[0], -0.7), np.eye(case.n) + 0.7 * case.S[0]))
    return pairs


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_operator_is_its_dense_matrix(any_case, dtype):
    for A, expected in operators(any_case, dtype):
        assert A.dtype == dtype
        assert A.dense().dtype == dtype
        assert_allclose(A.dense(), expected, atol=ROUNDING[dtype])
        assert_allclose(A.diagonal(), np.diag(expected), atol=ROUNDING[dtype])


@pytest.mark.parametrize("columns", [None, 1, 2, 5, 17])
def test_product_keeps_the_shape_of_its_argument(any_case, columns, rng):
    X = rng.standard_normal(any_case.n if columns is None else (any_case.n, columns))
    for A, expected in operators(any_case):
        assert (A @ X).shape == X.shape
        assert_allclose(A @ X, expected @ X, atol=1e-13)


def test_product_reads_columns_of_any_memory_layout(any_case, rng):
    X = np.asfortranarray(rng.standard_normal((any_case.n, 6)))
    for A, expected in operators(any_case):
        assert_allclose(A @ X, expected @ X, atol=1e-13)
        assert_allclose(A @ X[:, ::2], expected @ X[:, ::2], atol=1e-13)
        assert_allclose(A @ X[:, 3], expected @ X[:, 3], atol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("reuse", [False, True], ids=["fresh", "out is Z"])
def test_combine_adds_scaled_columns_and_returns_inner_products(any_case, k, reuse, rng):
    V, Z = rng.standard_normal((2, any_case.n, k))
    p, q = rng.standard_normal((2, k))
    for A, dense in operators(any_case):
        expected = (dense @ V) * p + Z * q
        z = Z.copy()
        out, dots = A.combine(V.copy(), p, z, q, out=z if reuse else None)
        assert (out is z) == reuse
        assert_allclose(out, expected, atol=1e-13)
        assert_allclose(dots, (expected * V).sum(axis=0), atol=1e-12)
        out, dots = A.combine(V.copy(), p)
        assert_allclose(out, (dense @ V) * p, atol=1e-13)
        assert_allclose(dots, ((dense @ V) * p * V).sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("n", [1, 7, 1000])
@pytest.mark.parametrize("k", [1, 3])
def test_updates_in_place(n, k, rng):
    A = Sparse(np.zeros(n + 1), [], None, np.zeros(n))
    W, V, P, R = rng.standard_normal((4, n, k))
    a, b = rng.standard_normal((2, k))
    got = W.copy()
    assert_allclose(A.add_scaled(got, V, a), ((W + V * a) ** 2).sum(axis=0), rtol=1e-13)
    assert_allclose(got, W + V * a, rtol=1e-13, atol=1e-15)
    X, direction = W.copy(), P.copy()
    A.advance(X, direction, R, a, b)
    assert_allclose(X, W + P * a, rtol=1e-13, atol=1e-15)
    assert_allclose(direction, R + P * b, rtol=1e-13, atol=1e-15)


def test_submatrix_is_the_dense_submatrix(any_case):
    everything = np.arange(any_case.n)
    for rows in (any_case.U, any_case.L, everything, everything[-1:]):
        for A, dense in operators(any_case):
            part = A.submatrix(rows)
            assert part.shape == (len(rows), len(rows))
            assert_allclose(part.dense(), dense[np.ix_(rows, rows)], atol=1e-14)
            assert_allclose(part.diagonal(), np.diag(dense)[rows], atol=1e-14)


@pytest.mark.parametrize("shape", [(0,), (0, 1), (0, 3)])
def test_matrix_without_rows_has_an_empty_product(shape):
    S = CASES["path"].terms[0].submatrix(np.arange(0))
    assert S.shape == (0, 0)
    for A in (S, Shifted(S, 0.5)):
        assert A.diagonal().shape == (0,)
        assert (A @ np.zeros(shape)).shape == shape


def test_submatrix_of_a_submatrix_is_that_of_both(any_case):
    S, first = any_case.terms[0], any_case.U
    second = np.arange(0, len(first), 2)
    assert_array_equal(S.submatrix(first).submatrix(second).dense(), S.submatrix(first[second]).dense())


@pytest.mark.parametrize("alpha", [(0.5, -0.5), (0.0, 0.7), (0.0, 0.0), (-0.9, 0.9), (1.0, 1.0)])
def test_weighted_sum_is_linear(two_types, alpha):
    total = weighted_sum(two_types.terms, np.array(alpha))
    assert_allclose(total.dense(), np.tensordot(alpha, two_types.S, axes=1), atol=1e-15)


def test_astype_changes_type_only_when_asked(any_case):
    S = any_case.terms[0]
    assert S.astype(np.float64) is S
    single = S.astype(np.float32)
    assert single.dtype == single.dense().dtype == np.float32
    assert_allclose(single.dense(), any_case.S[0], atol=1e-7)
    assert S.dtype == np.float64


def test_scipy_matrix_has_the_same_entries(any_case):
    for A, dense in operators(any_case)[: len(any_case.terms) + 1]:
        assert sp.issparse(A.to_scipy())
        assert_allclose(A.to_scipy().toarray(), dense, atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("k", [1, 4])
def test_bad_number_spreads_to_neighbours_and_no_further(bad, k):
    case = CASES["two components"]
    X = np.ones((case.n, k))
    X[0] = bad
    touched = ~np.isfinite(case.terms[0] @ X)
    expected = case.S[0][:, 0] != 0
    assert_array_equal(touched, np.repeat(expected[:, None], k, axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 3, 8, 16, 31, 32, 64, 127, 128, 195])
def test_any_number_of_columns_is_the_dense_product(any_case, k, dtype, rng):
    """16, 32 and 64 columns are one vector; 127 take one of each width in turn, 195 two of the widest first."""
    V, Z = rng.standard_normal((2, any_case.n, k)).astype(dtype)
    p, q = rng.standard_normal((2, k))
    for A, dense in operators(any_case, dtype):
        out, dots = A.combine(V, p, Z, q)
        expected = (dense @ V) * p + Z * q
        assert out.dtype == dtype
        assert_allclose(out, expected, atol=20 * ROUNDING[dtype])
        assert_allclose(dots, (expected * V).sum(axis=0), atol=200 * ROUNDING[dtype])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_copy_on_lines_begins_with_a_cache_line(dtype, rng):
    block = rng.standard_normal((7, 6))[:, ::2]
    copy = on_lines(block, dtype)
    assert copy.ctypes.data % 64 == 0
    assert copy.flags.c_contiguous
    assert copy.dtype == dtype
    assert_array_equal(copy, block.astype(dtype))


@pytest.mark.parametrize("k", [1, 5])
def test_product_of_columns_apart_in_memory_or_of_another_type(any_case, k, rng):
    wide = rng.standard_normal((2, any_case.n, 2 * k))
    V, Z = wide[0, :, ::2], wide[1, :, 1::2].astype(np.float32)
    p, q = rng.standard_normal((k, 2)).T
    S, dense = any_case.terms[0], any_case.S[0]
    room = np.full((any_case.n, 2 * k), 7.0)
    out, dots = S.combine(V, p, Z, q, out=room[:, ::2])
    expected = (dense @ V) * p + Z * q
    assert_allclose(room[:, ::2], expected, atol=1e-13)
    assert_array_equal(room[:, 1::2], 7.0)
    assert_allclose(dots, (expected * V).sum(axis=0), atol=1e-12)
    assert np.shares_memory(out, room)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_every_length_add_up(weighted, dtype, rng):
    """By masked gathers, and by the loop of a machine that has none."""
    lengths = np.arange(40)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, 50, indptr[-1]).astype(np.int32)
    weights = rng.uniform(0.5, 2, indptr[-1]).astype(dtype) if weighted else None
    x = rng.standard_normal(50).astype(dtype)
    terms = x[indices] if weights is None else weights * x[indices]
    for total in (masked_row, kernels._looped_total):
        for first, last in itertools.pairwise(indptr):
            got = total(x, indices, weights, first, last)
            assert_allclose(got, terms[first:last].sum(), atol=100 * ROUNDING[dtype])


@numba.njit
def masked_row(x, indices, weights, first, last):
    return gathered_total(x, indices, weights, first, last)


@pytest.mark.parametrize("k", [1, 8, 12, 64])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_product_matches_scipy(k, weighted, rng):
    case = small_world(n=20_000, seed=3)
    weights = rng.uniform(0.1, 3, len(case.source)) if weighted else np.ones(len(case.source))
    A = sp.coo_array((weights, (case.source, case.target)), shape=(case.n, case.n)).tocsr()
    A = sp.csr_array(A + A.T)
    A.sort_indices()
    scale = A.sum(axis=1) ** -0.5
    S = Sparse(A.indptr, A.indices, A.data if weighted else None, scale)
    X = rng.standard_normal((case.n, k))
    expected = scale[:, None] * (A @ (scale[:, None] * X))
    out, dots = S.combine(X, np.ones(k))
    assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
    assert_allclose(dots, (expected * X).sum(axis=0), rtol=1e-11)


@pytest.mark.parametrize("k", [1, 5, 64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scales", [1, 200, 3_000, 70_000], ids="{} scales".format)
def test_a_product_is_the_same_however_many_scales_there_are(scales, dtype, k, rng):
    """A byte, two bytes, or none beside each entry."""
    case = small_world(n=70_000, seed=5)
    scale = np.linspace(0.1, 0.4, scales)[np.arange(case.n) % scales]
    S = Sparse(case.terms[0].indptr, case.terms[0].indices, None, scale).astype(dtype)
    codes, table = S.coded
    assert (None if codes is None else codes.dtype.itemsize) == {1: 1, 200: 1, 3_000: 2, 70_000: None}[scales]
    assert table is None or len(table) == scales
    X = rng.standard_normal((case.n, k)).astype(dtype)
    expected = S.to_scipy().astype(float) @ X.astype(float)
    assert_allclose(S @ X, expected, atol=1e-12 if dtype == np.float64 else 1e-4)
    out, none = S.combine(X, np.full(k, 2.0), X, np.ones(k), inner=False)
    assert_allclose(out, 2 * expected + X, atol=1e-12 if dtype == np.float64 else 1e-4)
    assert none.size == 0


def test_rounding_does_not_grow_with_the_length_of_a_row():
    """A hub of many equal neighbours: each rounding of a running sum would go the same way."""
    leaves = 300_000
    rows = np.r_[np.zeros(leaves, int), np.arange(1, leaves + 1)]
    A = sp.csr_array((np.ones(2 * leaves), (rows, np.r_[rows[leaves:], rows[:leaves]])))
    S = Sparse(A.indptr, A.indices, None, np.r_[leaves**-0.5, np.ones(leaves)])
    X = np.full((leaves + 1, 3), (2 * leaves) ** -0.5)
    X[0] = 0.5**0.5
    assert_allclose((S @ X)[0], X[0], rtol=2e-13)


def test_threads_may_ask_one_operator_at_once(rng):
    S = small_world(n=20_000, seed=4).terms[0]
    X = rng.standard_normal((8, S.shape[0]))
    expected = [S @ x for x in X]
    with ThreadPoolExecutor(4) as pool:
        for found, one in zip(pool.map(lambda x: S @ x, X), expected, strict=True):
            assert_array_equal(found, one)
    assert pickle.loads(pickle.dumps(S))._rooms == []


THREADS = """
import numba, numpy as np
from graphs import small_world
from residua.linalg.operator import SMALL

rng, S = np.random.default_rng(20), small_world(n=120_000, seed=4).terms[0]
for k in (1, 8, 13, 16):
    V, Z = rng.standard_normal((2, S.shape[0], k))
    found = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        out, dots = S.combine(V, np.ones(k), Z.copy(), np.full(k, 0.3))
        W = Z.copy()
        found.append((out, dots, S.add_scaled(W, V, np.full(k, 0.7)), W))
        assert not S.dealt(k)[0] and W.size >= SMALL  # enough work for several threads
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
print(numba.config.NUMBA_NUM_THREADS, numba.get_num_threads())
"""


def test_result_does_not_depend_on_the_number_of_threads():
    """In a process that may have two, whatever the tests themselves are run with."""
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "2"], done.stderr[-2000:]


def test_without_a_folder_for_a_cache_functions_are_compiled_all_the_same():
    namespace = {}
    exec("def twice(x):\n    return 2 * x", namespace)  # of no file, so there is no place beside it
    assert compiled(namespace["twice"])(21) == 42
