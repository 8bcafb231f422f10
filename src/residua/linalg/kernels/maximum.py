"""The largest entry of each row, column by column, and what a gradient of it gives back.

    out_ik = max over j in row i of x_jk        x_jk gets g_ik / (entries of row i that reach out_ik), if it does

A sparse product with the maximum in place of the sum. Rows are dealt in blocks of equal work; the gradient is gathered
along the rows of the transpose, so no two threads write to one place.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from residua.linalg.kernels.compiled import compiled, compiled_twice
from residua.linalg.operator import Sparse


def row_maxima(A: Sparse, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the maxima (n, d) of x (n, d) over the entries of each row of A, and how many reach them; 0 and 0 if none.

    scipy's sparse matrices have a maximum of their entries, none of what these point to.
    """
    out, reached = np.empty_like(x), np.empty_like(x)
    small, blocks = A.dealt(x.shape[1])
    _maxima(small, blocks, A.indptr, A.indices, A.weights, x, out, reached)
    return out, reached


def spread_to_maxima(transpose: Sparse, x: np.ndarray, out: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the sums (n, d), for each entry x, of the ``shares`` of all rows whose maximum ``out`` it is."""
    found = np.empty_like(x)
    small, blocks = transpose.dealt(x.shape[1])
    _spread(small, blocks, transpose.indptr, transpose.indices, transpose.weights, x, out, shares, found)
    return found


@compiled
def _maxima_of_rows(first, last, indptr, indices, weights, x, out, reached):
    for i in range(first, last):
        for k in range(x.shape[1]):
            out[i, k] = -np.inf if indptr[i] < indptr[i + 1] else 0
            reached[i, k] = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for k in range(x.shape[1]):
                out[i, k] = np.maximum(out[i, k], x[j, k])  # NaN, if there is one
        for e in range(indptr[i], indptr[i + 1]):
            j, weight = indices[e], 1 if weights is None else weights[e]
            for k in range(x.shape[1]):
                reached[i, k] += weight if x[j, k] == out[i, k] else 0


@compiled_twice()
def _maxima(blocks, indptr, indices, weights, x, out, reached):
    for b in prange(len(blocks) - 1):
        _maxima_of_rows(blocks[b], blocks[b + 1], indptr, indices, weights, x, out, reached)


@compiled
def _spread_of_rows(first, last, indptr, indices, weights, x, out, shares, found):
    for j in range(first, last):
        for k in range(x.shape[1]):
            found[j, k] = 0
        for e in range(indptr[j], indptr[j + 1]):
            i, weight = indices[e], 1 if weights is None else weights[e]
            for k in range(x.shape[1]):
                found[j, k] += weight * shares[i, k] if x[j, k] == out[i, k] else 0


@compiled_twice()
def _spread(blocks, indptr, indices, weights, x, out, shares, found):
    for b in prange(len(blocks) - 1):
        _spread_of_rows(blocks[b], blocks[b + 1], indptr, indices, weights, x, out, shares, found)
