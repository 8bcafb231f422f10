"""Traces of the first powers of S, exactly: what need not be left to chance.

    tr S = sum_i S_ii,   tr S^2 = sum_ij S_ij^2,   tr S^3 = sum_ij (S^2)_ij S_ij,   tr S^4 = sum_ij (S^2)_ij^2

S normalised adjacency. A sparse product by scipy would hold all of S^2 at once; here it is one row.
"""

import numpy as np
from numba import prange

from residua.linalg.kernels.compiled import compiled

PARTS = 8  # of the blocks, where a thread needs room for a whole row


@compiled(parallel=True)
def low_traces(indptr, indices, weights, scale, blocks):
    """Return ``tr S`` and ``tr S^2`` by block."""
    partial = np.zeros((len(blocks) - 1, 2))
    for block in prange(len(blocks) - 1):
        for i in range(blocks[block], blocks[block + 1]):
            for e in range(indptr[i], indptr[i + 1]):
                value = float(scale[i]) * scale[indices[e]]
                if weights is not None:
                    value *= weights[e]
                partial[block, 1] += value * value
                if indices[e] == i:
                    partial[block, 0] += value
    return partial


@compiled
def _power_traces_of(rows, indptr, indices, weights, scale, row, seen, mark, traces):
    """Add those of ``rows`` to ``traces``; the other arrays are room for one row of S^2."""
    for i in range(rows[0], rows[1]):
        count = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            w = scale[i] * scale[j] * scale[j]
            if weights is not None:
                w *= weights[e]
            for f in range(indptr[j], indptr[j + 1]):
                k = indices[f]
                value = w * scale[k]
                if weights is not None:
                    value *= weights[f]
                if mark[k] != i:
                    mark[k] = i
                    seen[count] = k
                    count += 1
                row[k] += value
        for e in range(indptr[i], indptr[i + 1]):
            value = scale[i] * scale[indices[e]]
            if weights is not None:
                value *= weights[e]
            traces[0] += row[indices[e]] * value
        for s in range(count):
            traces[1] += row[seen[s]] ** 2
            row[seen[s]] = 0.0


@compiled(parallel=True)
def power_traces(indptr, indices, weights, scale, blocks):
    """Return ``tr S^3`` and ``tr S^4`` by block: row i of S^2 is gathered, then met with row i of S and with itself."""
    n = len(indptr) - 1
    partial = np.zeros((len(blocks) - 1, 2))
    for part in prange(PARTS):
        row = np.zeros(n)
        seen = np.empty(n, np.int32)
        mark = np.full(n, -1, np.int32)
        for b in range(len(partial) * part // PARTS, len(partial) * (part + 1) // PARTS):
            _power_traces_of(blocks[b : b + 2], indptr, indices, weights, scale, row, seen, mark, partial[b])
    return partial
