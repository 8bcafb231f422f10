"""How large the errors of neighbours were: what is known of a node's noise beside its own label.

    T_i1 = sum_j M_ij u_ij,   T_i2 = sum_j (M^2)_ij u_j,   j != i,    u_ij = min(z_ij^2, 16)
    z_ij = (z_j + rho_ij z_i) / (1 - rho_ij^2)^1/2,   rho_ij = (alpha S)_ij / (P_ii P_jj)^1/2

z_j leave-one-out errors over their standard deviations, z_ij that of label j with label i left out too (z_j where i has
no label), P precision of the labels, M averages over neighbours. z_j alone would not do: label i has part in it, and an
odd label makes the errors of its neighbours large, by which its own would seem to be foretold. P_ij is taken from the
edge of i and j alone, as it is where all nodes around them have labels; two steps away it is taken to be 0.

Beside these sums there are those over a region, T_i3 = sum_j (((I + M) / 2)^4)_ij u_j: of a label, over labels of other
folds than its own, so that none has part in its own region either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from residua.graph import Graph

HOPS = 2
REGION, FOLDS = 4, 8  # steps of a lazy walk; into how many folds labels fall
LARGEST = (
    16.0  # square of a standardised error that one label may have at most: outliers say little of their neighbours
)
ROWS = 1 << 17  # rows of edges at a time
CLOSEST = 0.99  # |rho| at most


class Neighbourhood(NamedTuple):
    """Sums over the labels around each node, by the number of steps to them."""

    squares: np.ndarray  # (HOPS + 1, n) T
    weights: np.ndarray  # (HOPS + 1, n) the same sums of ones


def neighbourhood(graph: Graph, z: np.ndarray, precision: np.ndarray, shared: sp.csr_array) -> Neighbourhood:
    """Return the sums over the labels around each node.

    Parameters
    ----------
    graph : Graph
        n nodes.
    z : (n,) array
        Standardised leave-one-out errors, NaN where there is none.
    precision : (n,) array
        Precision P_ii of the labels, where z is known.
    shared : (n, n) sparse array
        alpha S.
    """
    A = sp.csr_array(graph.adjacency(), dtype=float)
    known, own = ~np.isnan(z), A.diagonal()
    degree = np.asarray(A.sum(axis=1)).ravel() - own
    inverse = np.where(degree > 0, 1 / np.where(degree > 0, degree, 1.0), 0.0)
    standard = np.nan_to_num(z)
    root = np.where(known, np.sqrt(np.where(known, precision, 1.0)), np.inf)  # no rho where there is no label
    square, has = np.minimum(standard**2, LARGEST) * known, known.astype(float)

    def average(values: np.ndarray) -> np.ndarray:
        return (inverse * ((A @ values).T - own * values.T)).T

    returning = inverse * (A.power(2) @ inverse - own**2 * inverse)  # (M^2)_ii
    near = inverse * _pairs(A, shared, standard, root, known)
    once = average(has)
    squares = [near, np.maximum(average(average(square)) - returning * square, 0.0)]
    weights = [once, np.maximum(average(once) - returning * has, 0.0)]
    wide = _region(average, square, has)
    return Neighbourhood(np.array([*squares, wide[0]]), np.array([*weights, wide[1]]))


def _region(average: Callable[[np.ndarray], np.ndarray], square: np.ndarray, has: np.ndarray) -> np.ndarray:
    """Sums (2, n) of squares and of ones over the region of each node, of a label without those of its fold."""
    n = len(has)
    fold = np.where(has > 0, np.random.default_rng(0).integers(FOLDS, size=n), FOLDS)
    out = np.zeros((2, n))
    for k in range(FOLDS + 1):  # the last one leaves no label out
        values = np.column_stack([square, has]) * (fold != k)[:, None]
        for _ in range(REGION):
            values = 0.5 * (values + average(values))
        out[:, fold == k] = values[fold == k].T
    return out


def _pairs(A: sp.csr_array, shared: sp.csr_array, z: np.ndarray, root: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Sums over edges (n,) of their weights times u_ij."""
    total = np.zeros(len(z))
    for first in range(0, len(z), ROWS):
        rows = slice(first, first + ROWS)
        both = (A[rows] + 1j * shared[rows]).tocoo()  # weights and correlations of the same edges, aligned
        i, j = both.row + first, both.col
        at = known[j] & (i != j)
        i, j, weight, alpha = i[at], j[at], both.data.real[at], both.data.imag[at]
        rho = np.clip(alpha / (root[i] * root[j]), -CLOSEST, CLOSEST)
        u = np.minimum((z[j] + rho * z[i]) ** 2 / (1 - rho**2), LARGEST)
        total += np.bincount(i, weight * u, len(z))
    return total
