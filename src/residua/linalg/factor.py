"""Sparse factorisation of a positive definite matrix, and what follows from it exactly.

    P A P' = L D L',   logdet A = sum log D,   Z = A^-1 on the pattern of L

CHOLMOD factors where scikit-sparse is installed, SuperLU (scipy) elsewhere; where one pattern is factored many times,
compiled code of our own (``ldl.py``) while L is small. Z gives the diagonal of the inverse and the trace of
``A^-1 S`` for any S with A's pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from residua.linalg.kernels.compiled import compiled
from residua.linalg.ldl import LDL, Pattern
from residua.linalg.operator import Matrix, Shifted, summed
from residua.linalg.workspace import cached_property

# Entries of L per column, squared and summed: up to here the compiled factor is faster than SuperLU's blocks.
COMPILED_WORK = 2e8
HAS_CHOLMOD = find_spec("sksparse") is not None


class Factor:
    """``A[order][:, order] = L D L'`` with unit lower triangular L.

    Parameters
    ----------
    A : csc_array of shape (n, n)
        Symmetric and positive definite.
    cholmod : bool, optional
        Use CHOLMOD; by default where scikit-sparse is installed.
    ordered : bool, default False
        The rows are in a good order already.

    Attributes
    ----------
    order : ndarray of shape (n,)
        Rows of A in the order of L.
    D : ndarray of shape (n,)
        The diagonal.
    solve : callable
        Solves ``A x = b``.
    """

    def __init__(self, A: sp.csc_array, cholmod: bool | None = None, ordered: bool = False):
        self.A = sp.csc_array(A)
        if HAS_CHOLMOD if cholmod is None else cholmod:
            self._factor_cholmod()
        else:
            self._factor_superlu("NATURAL" if ordered else "MMD_AT_PLUS_A")
        if not (self.D > 0).all():
            raise np.linalg.LinAlgError("matrix is not positive definite")

    def _factor_superlu(self, order: str) -> None:
        options = {"SymmetricMode": True}
        try:
            lu = splu(self.A, permc_spec=order, diag_pivot_thresh=0.0, panel_size=4, options=options)
        except RuntimeError:  # "Factor is exactly singular"
            raise np.linalg.LinAlgError("matrix is not positive definite") from None
        if not np.array_equal(lu.perm_r, lu.perm_c):
            raise np.linalg.LinAlgError("matrix is not positive definite")
        self.order = np.argsort(lu.perm_c)
        self.D = lu.U.diagonal()
        self.solve = lu.solve
        self._lower = lambda: lu.L

    def _factor_cholmod(self) -> None:
        from sksparse.cholmod import CholmodNotPositiveDefiniteError, cholesky

        try:
            factor = cholesky(self.A)
        except CholmodNotPositiveDefiniteError:
            raise np.linalg.LinAlgError("matrix is not positive definite") from None
        self.order = factor.P()
        self.D = np.asarray(factor.D())
        self.solve = factor.solve_A
        self._lower = lambda: factor.L_D()[0]

    @property
    def logdet(self) -> float:
        """Log-determinant of A."""
        return float(np.log(self.D).sum())

    @cached_property
    def inverse(self) -> sp.csr_array:
        """Entries of ``A^-1`` on the pattern of L + L', which holds A's own."""
        L = sp.csc_array(self._lower())
        L.sort_indices()
        pattern = Pattern(sp.csc_array(self.A[self.order][:, self.order]))
        return LDL(pattern, self.D, pattern.spread(L)).inverse_in(self.order)


class Family:
    """Factors of ``I - sum_t alpha_t S_t`` for many alphas: order and pattern are found once, with the first.

    Parameters
    ----------
    terms : sequence of Sparse
        The S_t.
    cholmod : bool, optional
        Use CHOLMOD; by default where scikit-sparse is installed.
    """

    def __init__(self, terms: Sequence[Matrix], cholmod: bool | None = None):
        self.cholmod, n = cholmod, terms[0].shape[0]
        self.entries = [S.to_scipy().tocoo() for S in terms] + [sp.eye_array(n, format="coo")]
        self._arrange(np.arange(n))
        self.pattern: Pattern | None = None
        self.ordered = False

    def _arrange(self, place: np.ndarray) -> None:
        """Put row i of the terms and the identity at ``place[i]``, each with a place for every entry of any."""
        self.place = place
        moved = [sp.coo_array((m.data, (place[m.row], place[m.col])), shape=m.shape) for m in self.entries]
        self.parts = [summed(only_one, moved).tocsc() for only_one in np.eye(len(moved))]

    def factor(self, alpha: np.ndarray) -> Factor | LDL:
        """Factor ``I - sum_t alpha_t S_t``."""
        if not self.ordered:
            self._find_order(alpha)
        A = self._matrix(alpha)
        return Factor(A, self.cholmod, ordered=True) if self.pattern is None else self.pattern.factor(A)

    def _find_order(self, alpha: np.ndarray) -> None:
        self._arrange(np.argsort(Factor(self._matrix(alpha), self.cholmod).order).astype(np.int32))
        self.ordered = True
        if not self.cholmod:
            pattern = Pattern(self._matrix(alpha))
            self.pattern = pattern if pattern.work <= COMPILED_WORK else None

    def _matrix(self, alpha: np.ndarray) -> sp.csc_array:
        *terms, identity = self.parts
        values = identity.data - sum(a * term.data for a, term in zip(alpha, terms, strict=True))
        return sp.csc_array((values, identity.indices, identity.indptr), identity.shape)

    def solve(self, alpha: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return ``(I - sum_t alpha_t S_t)^-1 B`` for B of shape (n, k)."""
        factor, moved = self.factor(alpha), np.empty_like(B)
        moved[self.place] = B
        return factor.solve(moved)[self.place]

    def traces(self, factor: Factor | LDL) -> np.ndarray:
        """Return ``tr((I - sum_t alpha_t S_t)^-1 S_t)`` for each t."""
        if isinstance(factor, LDL):
            return self._weights @ np.concatenate(factor.inverse_entries)
        return np.array([factor.inverse.multiply(term).sum() for term in self.parts[:-1]])

    @cached_property
    def _weights(self) -> sp.csr_array:
        """What a trace takes of each entry of the inverse: (p, n + entries of L), the diagonal first."""
        n, pattern = len(self.place), self.pattern
        assert pattern is not None
        known = np.repeat(np.arange(n), np.diff(pattern.colptr)) * n + pattern.rows
        terms = [sp.triu(term.T).tocoo() for term in self.parts[:-1]]
        row, column, value = (np.concatenate([getattr(m, name) for m in terms]) for name in ("row", "col", "data"))
        kind = np.repeat(np.arange(len(terms)), [m.nnz for m in terms])
        row, column, value, kind = (x[value != 0] for x in (row, column, value, kind))
        own = row == column
        place = np.where(own, row, n + np.searchsorted(known, row.astype(np.int64) * n + column))
        shape = len(terms), n + len(known)
        return sp.coo_array((np.where(own, 1, 2) * value, (kind, place)), shape).tocsr()


def pair_sums(rows: sp.csr_array, Z: sp.csr_array) -> np.ndarray:
    """Return ``r_i' Z r_i`` for each row r_i; Z must hold every pair of entries of a row.

    A sparse product by scipy would also form every entry of ``r_i' Z`` that the sum does not need.
    """
    Z.sort_indices()
    return _pair_sums(rows.indptr, rows.indices, rows.data, Z.indptr, Z.indices, Z.data)


@compiled
def _pair_sums(indptr: Any, indices: Any, data: Any, z_indptr: Any, z_indices: Any, z_data: Any) -> Any:
    out = np.zeros(len(indptr) - 1)
    for i in range(len(out)):
        for e in range(indptr[i], indptr[i + 1]):
            u = indices[e]
            row = z_indices[z_indptr[u] : z_indptr[u + 1]]
            for f in range(indptr[i], indptr[i + 1]):
                at = z_indptr[u] + np.searchsorted(row, indices[f])
                out[i] += data[e] * z_data[at] * data[f]
    return out


def factor_seconds(S: Matrix, limit: float = np.inf) -> float:
    """Estimate the time to factor ``I - S`` from the widest breadth-first level, which bounds a separator.

    Nodes of degree 1 are stripped first: trees fill nothing in, however wide they are. The levels are not looked at
    where the number of rows by itself takes it past ``limit``. Infinite where the entries are not in this process.
    """
    rows = 8e-6 * S.shape[0]
    if S.arrays is None:
        return np.inf
    return rows if rows > limit else rows + 2e-11 * float(_widest_level(*S.arrays[:2])) ** 3


def refactor_seconds(S: Matrix, columns: int = 0) -> float:
    """Estimate the time to factor ``I - S`` once more in a known order, and to solve with so many columns.

    Infinite where the entries are not in this process, or are so many that a look at the levels would take too long.
    """
    n, arrays = S.shape[0], S.arrays
    if arrays is None or S.nnz > max(2_000_000, 4 * n):
        return np.inf
    width = float(_widest_level(*arrays[:2]))
    # Of a map the separators are small; of a graph without any, a part of the widest level is left as a dense block.
    work = min(12 * width**3, 0.1 * width**3 + 12 * n**1.5)
    entries = n * np.log2(2 + width)
    return 1e-3 + 4e-8 * entries + 3.5e-10 * work + columns * (6e-9 * n + 2e-9 * entries)


def identity_minus(A: Shifted, room: sp.sparray | None = None) -> sp.csc_array:
    """Return ``I - alpha S`` with its values written out, and a place for every entry of S and of ``room``.

    The selected inverse covers the pattern it is given, so entries that cancel or vanish have to keep theirs.
    """
    parts = [A.S.to_scipy().tocoo(), sp.eye_array(A.shape[0], format="coo")]
    if room is not None:
        parts.append(sp.coo_array(room))
    return summed([-A.alpha, 1.0, 0.0][: len(parts)], parts).tocsc()


@compiled
def _widest_level(indptr: Any, indices: Any) -> Any:
    """Return the rows of the widest level; scipy walks breadth-first too, but forgets the levels."""
    n = len(indptr) - 1
    degree = np.zeros(n, np.int64)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            degree[i] += indices[e] != i
    queue = np.empty(n, np.int64)
    head, tail = 0, 0
    gone = np.zeros(n, np.bool_)
    for i in range(n):
        if degree[i] <= 1:
            gone[i] = True
            queue[tail] = i
            tail += 1
    while head < tail:
        i = queue[head]
        head += 1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            degree[j] -= 1
            if not gone[j] and degree[j] <= 1:
                gone[j] = True
                queue[tail] = j
                tail += 1
    widest = 0
    level = np.full(n, -1, np.int64)
    for root in range(n):
        if gone[root] or level[root] >= 0:
            continue
        start = root
        width = 0
        for sweep in range(2):  # the second sweep starts at the far end of the first: longer, thinner levels
            stamp = np.int64(sweep) * n
            head, tail = 0, 1
            queue[0] = start
            level[start] = stamp
            width, here, depth = 0, 0, stamp
            while head < tail:
                i = queue[head]
                head += 1
                if level[i] != depth:
                    depth, here = level[i], 0
                here += 1
                width = max(width, here)
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    if not gone[j] and (level[j] < stamp):
                        level[j] = level[i] + 1
                        queue[tail] = j
                        tail += 1
            start = queue[tail - 1]
        widest = max(widest, width)
    return widest
