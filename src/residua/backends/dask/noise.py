"""Gaussian noise with covariance ``I - alpha S`` without a message: each edge's normal is a function of its ends.

    b_i = sum_j sqrt|m_ij| s_i sgn_ij z_ij + sqrt(c_i) z_i,     z_ij = z(seed, draw, min(i, j), max(i, j))

Both blocks of an edge compute the same z_ij, by hashing (splitmix64) and the Box-Muller transform, so that draws do
not depend on how the graph is cut. The factorisation is that of ``residua.linalg.sampling``.
"""

from __future__ import annotations

import numpy as np

from residua.linalg import Sparse
from residua.linalg.kernels.compiled import compiled
from residua.linalg.kernels.rows import diagonal_rest
from residua.linalg.operator import Noise

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled
def _mix(x):
    """The finaliser of splitmix64: every bit of x moves every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@compiled
def _normal(key, low, high):
    """The standard normal of a pair; of a node with itself, the node's own."""
    h = _mix(key + GOLDEN * (np.uint64(low) + np.uint64(1)))
    h = _mix(h + GOLDEN * (np.uint64(high) + np.uint64(1)))
    first = (np.float64(h >> np.uint64(11)) + 0.5) / 9007199254740992.0
    second = (np.float64(_mix(h + GOLDEN) >> np.uint64(11)) + 0.5) / 9007199254740992.0
    return np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


@compiled
def _key(seed, draw):
    return _mix(_mix(np.uint64(seed) + GOLDEN) + GOLDEN * np.uint64(draw + 1))


@compiled
def _noise(rows, indptr, indices, weights, scale, ids, alpha, seed, first, out):
    for k in range(out.shape[1]):
        key = _key(seed, first + k)
        for i in range(rows):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                m = alpha if weights is None else alpha * weights[e]
                if j == i:
                    continue
                low, high = min(ids[i], ids[j]), max(ids[i], ids[j])
                sign = 1.0 if ids[i] == low else -np.sign(m)
                total += sign * np.sqrt(abs(m)) * scale[i] * _normal(key, low, high)
            own = np.sqrt(diagonal_rest(i, indptr, indices, weights, scale, alpha))
            out[i, k] = total + own * _normal(key, ids[i], ids[i])


def hashed_noise(S: Sparse, ids: np.ndarray, alpha: float, seed: int) -> Noise:
    """Return a source of columns with mean zero and covariance ``I - alpha S``, at the rows of S."""
    drawn, n = 0, len(S.indptr) - 1

    def columns(count: int) -> np.ndarray:
        nonlocal drawn
        out = np.zeros((n, count))
        _noise(n, S.indptr, S.indices, S.weights, S.scale, ids, float(alpha), seed, drawn, out)
        drawn += count
        return out

    return columns
