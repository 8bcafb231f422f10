"""A vector known at L, with its conditional mean at U, in one compiled call.

    x_L = r,   (G x)_U = 0,   G = I - alpha S

Training asks for this at each step; on a graph of a few thousand nodes the calls between kernels would take longer
than the kernels.
"""

from __future__ import annotations

import numpy as np

from residua.linalg.kernels.compiled import compiled
from residua.linalg.kernels.rows import FAST, INNER, cg_column_from, row_total
from residua.linalg.operator import Shifted


def conditional_mean(
    G: Shifted, G_UU: Shifted, L: np.ndarray, U: np.ndarray, r: np.ndarray, x: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, float, bool]:
    """Fill x with r at L and its conditional mean at U.

    Parameters
    ----------
    G, G_UU : Shifted
        The precision, and its submatrix on U.
    L, U : ndarray of int
        Rows at which x is given, and the others.
    r : ndarray of shape (|L|,)
        Values at L.
    x : ndarray of shape (n,)
        Its values at U are where the solver starts; overwritten.
    tol : float
        Of the solver, relative to r.
    max_iter : int
        Steps of the solver.

    Returns
    -------
    slope : ndarray of shape (|L|,)
        ``(G x)_L``.
    q : float
        ``x'G x``.
    converged : bool
        Whether ``|(G x)_U| <= tol |r|`` was reached.
    """
    all_rows, inside = G.S.arrays, G_UU.S.arrays
    slope, goal = np.empty(len(L)), (tol * tol) * float(r @ r)
    q, left = _conditional_mean(all_rows, inside, G.alpha, L, U, r, x, slope, goal, max_iter)
    return slope, q, left <= goal


@compiled(**INNER)
def _product_rows(rows, indptr, indices, weights, scale, alpha, x, xs, out):
    """Write ``out = (G x)`` at some rows, given xs = scale x."""
    for k in range(len(rows)):
        i = np.uint64(rows[k])
        total = row_total(xs, indices, weights, indptr[i], indptr[i + 1])
        out[k] = x[i] - alpha * scale[i] * total


@compiled(fastmath=FAST)
def _conditional_mean(all_rows, inside, alpha, L, U, r, x, slope, goal, max_iter):
    """Find what is left at U, run conjugate gradients on U, then find the pull on L."""
    scale = all_rows[3]
    xs, start, rest = np.empty_like(x), np.empty(len(U)), np.empty(len(U))
    for k in range(len(L)):
        x[np.uint64(L[k])] = r[k]
    for i in range(len(x)):
        xs[i] = scale[i] * x[i]
    _product_rows(U, *all_rows, alpha, x, xs, rest)
    for k in range(len(U)):
        start[k], rest[k] = x[np.uint64(U[k])], -rest[k]
    _, left = cg_column_from(*inside, alpha, rest, start, goal, max_iter)
    for k in range(len(U)):
        at = np.uint64(U[k])
        x[at], xs[at] = start[k], scale[at] * start[k]
    _product_rows(L, *all_rows, alpha, x, xs, slope)
    q = 0.0  # x'G x, right to second order in what is left at U; summed here, since BLAS sums as it has threads
    for k in range(len(L)):
        q += r[k] * slope[k]
    for k in range(len(U)):
        q -= start[k] * rest[k]
    return q, left
