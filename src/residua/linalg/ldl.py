"""``A = L D L'`` for many matrices A of one pattern, rows in a good order; then ``Z = A^-1`` on the pattern of L.

The pattern is found once. A row of L is a sparse triangular solve with the rows above it; Z is Takahashi's recursion,
which needs no more memory than L.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from residua.linalg.kernels.compiled import compiled
from residua.linalg.workspace import cached_property


class Pattern:
    """Places of L strictly below the diagonal, by columns, rows increasing.

    Parameters
    ----------
    A : csc_array of shape (n, n)
        Symmetric, with a place for every entry that any matrix of the pattern may have.

    Attributes
    ----------
    colptr, rows : ndarray
        Where each column begins, and the rows of its entries.
    work : float
        Entries per column, squared and summed.
    """

    def __init__(self, A: sp.csc_array):
        # Integers of one width, whichever scipy chose: compiled once.
        self.colptr, self.rows = _symbolic(*(a.astype(np.int64, copy=False) for a in (A.indptr, A.indices)))
        self.work = float((np.diff(self.colptr).astype(float) ** 2).sum())

    def factor(self, A: sp.csc_array) -> LDL:
        """Factor a matrix of this pattern."""
        D, values = _factor(self.colptr, self.rows, A.indptr, A.indices, A.data)
        if not (D > 0).all():
            raise np.linalg.LinAlgError("matrix is not positive definite")
        return LDL(self, D, values)

    def spread(self, L: sp.csc_array) -> np.ndarray:
        """Return the values of L, indices sorted, on the full pattern: what cancelled to zero may not be stored."""
        return _spread(self.colptr, self.rows, L.indptr, L.indices, L.data)


@dataclass(frozen=True)
class LDL:
    """A factorisation ``A = L D L'``.

    Parameters
    ----------
    pattern : Pattern
        Places of L.
    D : ndarray of shape (n,)
        The diagonal.
    values : ndarray
        Entries of L, unit lower triangular, on the pattern.
    """

    pattern: Pattern
    D: np.ndarray
    values: np.ndarray

    @property
    def logdet(self) -> float:
        """Log-determinant of A."""
        return float(np.log(self.D).sum())

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return ``A^-1 B`` for B of shape (n, k)."""
        X = np.array(B, float, order="C")
        _substitute(self.pattern.colptr, self.pattern.rows, self.values, self.D, X)
        return X

    @cached_property
    def inverse_entries(self) -> tuple[np.ndarray, np.ndarray]:
        """The diagonal of ``A^-1``, and its entries on the pattern of L."""
        return _takahashi(self.pattern.colptr, self.pattern.rows, self.values, self.D)

    def inverse_in(self, order: np.ndarray) -> sp.csr_array:
        """Return entries of ``B^-1`` on the pattern of L + L', for the matrix B with ``A = B[order][:, order]``."""
        colptr, rows = self.pattern.colptr, self.pattern.rows
        diagonal, lower = self.inverse_entries
        below, beside = order[rows], np.repeat(order, np.diff(colptr))
        entries = np.concatenate([diagonal, lower, lower])
        i, j = np.concatenate([order, below, beside]), np.concatenate([order, beside, below])
        return sp.csr_array((entries, (i, j)), shape=(len(order), len(order)))


@compiled
def _symbolic(indptr, indices):
    """Find the pattern of L, with a place for entries that cancel."""
    n = len(indptr) - 1
    parent = np.full(n, -1, np.int64)
    mark = np.full(n, -1, np.int64)
    colptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        mark[i] = i
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            while j < i and mark[j] != i:  # climb the elimination tree from every entry of row i
                if parent[j] == -1:
                    parent[j] = i
                mark[j] = i
                colptr[j + 1] += 1
                j = parent[j]
    colptr = np.cumsum(colptr)
    rows = np.empty(colptr[-1], np.int64)
    free = colptr[:-1].copy()
    mark[:] = -1
    for i in range(n):
        mark[i] = i
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            while j < i and mark[j] != i:
                mark[j] = i
                rows[free[j]] = i
                free[j] += 1
                j = parent[j]
    return colptr, rows


@compiled(fastmath={"contract", "nsz"}, error_model="numpy")
def _factor(colptr, rows, indptr, indices, data):
    """Compute row k of L from the rows above: ``L D x = a`` on the nodes that it reaches in the elimination tree."""
    n = len(colptr) - 1
    D, values = np.empty(n), np.empty(len(rows))
    x = np.zeros(n)
    filled = colptr[:-1].copy()  # entries of a column that are there
    reached, branch = np.empty(n, np.int64), np.empty(n, np.int64)
    mark = np.full(n, -1, np.int64)
    for k in range(n):
        mark[k] = k
        own = 0.0
        first = n  # of the nodes reached, deepest first
        for e in range(indptr[k], indptr[k + 1]):
            j = indices[e]
            if j == k:
                own += data[e]
            if j >= k:
                continue
            x[j] += data[e]
            length = 0
            while mark[j] != k:
                mark[j] = k
                branch[length] = j
                length += 1
                j = rows[colptr[j]]  # the parent
            while length > 0:
                length -= 1
                first -= 1
                reached[first] = branch[length]
        for at in range(first, n):
            j = reached[at]
            value = x[j]
            x[j] = 0.0
            for e in range(np.uint64(colptr[j]), np.uint64(filled[j])):
                x[np.uint64(rows[e])] -= values[e] * value
            entry = value / D[j]
            own -= entry * value
            values[filled[j]] = entry
            filled[j] += 1
        D[k] = own
    return D, values


@compiled(fastmath={"contract", "nsz"}, error_model="numpy")
def _substitute(colptr, rows, values, D, X):
    """Solve ``L D L' X = B``, from B in place."""
    n, k = X.shape
    for j in range(n):
        for e in range(colptr[j], colptr[j + 1]):
            for c in range(k):
                X[rows[e], c] -= values[e] * X[j, c]
    for j in range(n - 1, -1, -1):
        for c in range(k):
            X[j, c] /= D[j]
        for e in range(colptr[j], colptr[j + 1]):
            for c in range(k):
                X[j, c] -= values[e] * X[rows[e], c]


@compiled
def _spread(colptr, rows, indptr, indices, data):
    values = np.zeros(len(rows))
    for j in range(len(colptr) - 1):
        at = colptr[j]
        for e in range(indptr[j], indptr[j + 1]):
            if indices[e] > j:
                while rows[at] < indices[e]:
                    at += 1
                values[at] = data[e]
    return values


@compiled
def _takahashi(colptr, rows, values, D):
    """Compute ``Z = (L D L')^-1`` on the pattern of L: column j from the columns to its right."""
    n = len(D)
    diagonal = np.zeros(n)
    lower = np.zeros(len(rows))
    factor = np.zeros(n)  # column j of L, spread out
    total = np.zeros(n)
    inside = np.full(n, -1, np.int64)
    for j in range(n - 1, -1, -1):
        first, last = colptr[j], colptr[j + 1]
        for e in range(first, last):
            factor[rows[e]] = values[e]
            inside[rows[e]] = j
            total[rows[e]] = 0.0
        for e in range(first, last):
            k = rows[e]
            total[k] += diagonal[k] * factor[k]
            for f in range(colptr[k], colptr[k + 1]):
                i = rows[f]
                if inside[i] == j:
                    total[i] += lower[f] * factor[k]
                    total[k] += lower[f] * factor[i]
        own = 1.0 / D[j]
        for e in range(first, last):
            lower[e] = -total[rows[e]]
            own += total[rows[e]] * values[e]
        diagonal[j] = own
    return diagonal, lower
