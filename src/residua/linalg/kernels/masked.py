"""Several vectors, each known at other rows than the next, with their conditional means where they are not known.

    (I - M)_UU x_U = M_UK x_K,    K rows at which a column is known, U the others

One pass over M serves all columns, whatever their K and U. M is symmetric, in CSR form with its values written out.
"""

from __future__ import annotations

import numpy as np

from residua.linalg.kernels.compiled import compiled


@compiled
def _multiply(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, X: np.ndarray, out: np.ndarray) -> None:
    """Fill out (n, k) with ``X - M X``."""
    k = X.shape[1]
    for i in range(len(indptr) - 1):
        for c in range(k):
            out[i, c] = X[i, c]
        for at in range(indptr[i], indptr[i + 1]):
            value, j = values[at], indices[at]
            for c in range(k):
                out[i, c] -= value * X[j, c]


@compiled
def conditional_means(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    known: np.ndarray,
    X: np.ndarray,
    tol: float,
    steps: int,
) -> tuple[np.ndarray, int]:
    """Replace X (n, k) where it is not ``known`` (n, k) by its conditional mean, from what is there as a start.

    Returns ``X - M X`` (n, k), and the steps of conjugate gradients; as many as ``steps`` where they have not arrived.
    """
    n, k = X.shape
    R, P, AP = np.zeros((n, k)), np.zeros((n, k)), np.empty((n, k))
    goal, rr, old = np.zeros(k), np.zeros(k), np.zeros(k)
    pap, a = np.zeros(k), np.zeros(k)
    # The right-hand side, whose size the tolerance is relative to, comes of what is known.
    for i in range(n):
        for c in range(k):
            P[i, c] = X[i, c] if known[i, c] else 0.0
    _multiply(indptr, indices, values, P, AP)
    for i in range(n):
        for c in range(k):
            if not known[i, c]:
                goal[c] += AP[i, c] ** 2
    _multiply(indptr, indices, values, X, AP)
    for i in range(n):
        for c in range(k):
            R[i, c] = 0.0 if known[i, c] else -AP[i, c]
            P[i, c] = R[i, c]
            rr[c] += R[i, c] ** 2
    taken = 0
    while taken < steps and (rr > tol**2 * goal).any():
        _multiply(indptr, indices, values, P, AP)
        pap[:] = 0.0
        for i in range(n):
            for c in range(k):
                pap[c] += P[i, c] * AP[i, c]
        for c in range(k):
            a[c] = rr[c] / pap[c] if pap[c] > 0 and rr[c] > tol**2 * goal[c] else 0.0
            old[c] = rr[c]
        rr[:] = 0.0
        for i in range(n):
            for c in range(k):
                if not known[i, c]:
                    X[i, c] += a[c] * P[i, c]
                    R[i, c] -= a[c] * AP[i, c]
                    rr[c] += R[i, c] ** 2
        for i in range(n):
            for c in range(k):
                if not known[i, c]:
                    P[i, c] = R[i, c] + (rr[c] / old[c] if old[c] > 0 else 0.0) * P[i, c]
        taken += 1
    _multiply(indptr, indices, values, X, AP)
    return AP, taken


@compiled
def group_grams(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, group: np.ndarray, groups: int
) -> np.ndarray:
    """Return ``C' (I - M) C`` (k, groups, groups), C the indicators of the groups (n, k) of each column's rows."""
    k = group.shape[1]
    out = np.zeros((k, groups, groups))
    for i in range(len(indptr) - 1):
        for c in range(k):
            out[c, group[i, c], group[i, c]] += 1.0
        for at in range(indptr[i], indptr[i + 1]):
            value, j = values[at], indices[at]
            for c in range(k):
                out[c, group[i, c], group[j, c]] -= value
    return out
