"""The largest entry of each row, column by column, and what a gradient of it gives back.

    out_ik = max over j in row i of x_jk        x_jk gets g_ik / (entries of row i that reach out_ik), if it does

A sparse product with the maximum in place of the sum. Rows are dealt in blocks of equal work; the gradient is gathered
along the rows of the transpose, so no two threads write to one place.
"""

import numpy as np
from numba import prange

from residua.numerics.compiled import compiled


@compiled(parallel=True)
def row_maxima(blocks, indptr, indices, weights, x, out, reached):
    """Fill ``out`` (n, d) and in ``reached`` how many entries are as large; a row without any has 0 and 0."""
    for b in prange(len(blocks) - 1):
        for i in range(blocks[b], blocks[b + 1]):
            for k in range(x.shape[1]):
                out[i, k] = -np.inf if indptr[i] < indptr[i + 1] else 0
                reached[i, k] = 0
            for e in range(indptr[i], indptr[i + 1]):
                for k in range(x.shape[1]):
                    value = x[indices[e], k]
                    out[i, k] = value if value > out[i, k] else out[i, k]
            for e in range(indptr[i], indptr[i + 1]):
                weight = 1 if weights is None else weights[e]
                for k in range(x.shape[1]):
                    reached[i, k] += weight if x[indices[e], k] == out[i, k] else 0


@compiled(parallel=True)
def spread_to_maxima(blocks, indptr, indices, weights, x, out, shares, found):
    """Gather in ``found`` (n, d) the shares (n, d) of rows whose maximum ``out`` is x; CSR of the transpose."""
    for b in prange(len(blocks) - 1):
        for j in range(blocks[b], blocks[b + 1]):
            for k in range(x.shape[1]):
                found[j, k] = 0
            for e in range(indptr[j], indptr[j + 1]):
                weight = 1 if weights is None else weights[e]
                for k in range(x.shape[1]):
                    found[j, k] += weight * shares[indices[e], k] if x[j, k] == out[indices[e], k] else 0
