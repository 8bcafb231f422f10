"""Symmetric linear operators: all that the solvers know of a matrix.

    combine:  out = (A V) p + Z q   and the column inner products out'V

CG and Lanczos are written with ``combine``, ``add_scaled`` and ``advance`` alone, so an operator that lives on other
processes or another device is one new class and no new solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from residua.linalg.kernels import rows as kernels

# Below this many multiplications one thread is done before a second one has woken.
SMALL, SMALL_PRODUCT = 100_000, 400_000
LINE = 64  # bytes that a cache fetches at once


def on_lines(block: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """A copy that begins with a cache line, so that 64 bytes of a row are one line and not parts of two."""
    dtype = np.dtype(dtype or block.dtype)
    size = block.size * dtype.itemsize
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    out = room[start : start + size].view(dtype).reshape(block.shape)
    out[...] = block
    return out


class Operator(ABC):
    """A symmetric matrix of which only products with blocks of columns are asked."""

    shape: tuple[int, int]
    dtype: np.dtype

    @abstractmethod
    def combine(
        self,
        V: np.ndarray,
        p: np.ndarray,
        Z: np.ndarray | None = None,
        q: np.ndarray | None = None,
        out: np.ndarray | None = None,
        inner: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """``(A V) p + Z q`` with p, q per column, and its inner products with V, none unless ``inner``.

        ``out`` may be Z, never V.
        """

    def __matmul__(self, X: np.ndarray) -> np.ndarray:
        V = np.ascontiguousarray(X[:, None] if X.ndim == 1 else X, self.dtype)
        out, _ = self.combine(V, np.ones(V.shape[1]), inner=False)
        return out.reshape(X.shape)

    def add_scaled(self, W: np.ndarray, V: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``W += V c`` in place; returns the squared column norms of W."""
        c = np.asarray(c, W.dtype)
        return kernels.add_scaled_small(W, V, c) if W.size < SMALL else kernels.add_scaled(W, V, c).sum(axis=0)

    def advance(self, X: np.ndarray, P: np.ndarray, R: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """``X += P a``, then ``P = R + P b``, both in place."""
        kernel = kernels.advance_small if X.size < SMALL else kernels.advance
        kernel(X, P, R, np.asarray(a, X.dtype), np.asarray(b, X.dtype))

    def dense(self) -> np.ndarray:
        """The full matrix; for tests and very small problems."""
        return self @ np.eye(self.shape[0], dtype=self.dtype)


class Sparse(Operator):
    """The symmetric operator ``diag(scale) A diag(scale)``, A in CSR form.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (nnz,) integer arrays, columns sorted in each row
    weights : (nnz,) array, or None where every weight is 1
    scale : (n,) array; its dtype is the operator's
    """

    def __init__(self, indptr, indices, weights, scale):
        self.scale = np.ascontiguousarray(scale)
        self.dtype = self.scale.dtype
        self.indptr = np.ascontiguousarray(indptr, np.int64)
        self.indices = np.ascontiguousarray(indices, np.int32)
        self.weights = None if weights is None else np.ascontiguousarray(weights, self.dtype)
        self.shape = (len(self.scale), len(self.scale))
        self._rooms: list[np.ndarray] = []  # one for each thread that asks at once: new memory is slow to touch

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @cached_property
    def blocks(self) -> np.ndarray:
        return kernels.row_blocks(self.indptr)

    @cached_property
    def coded(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The scale of each entry's column as a position in a short table; (None, None) where none is short.

        Neighbours lie anywhere in memory. Beside every entry, what it is multiplied by is read in passing; degrees
        repeat, so a byte or two will do.
        """
        if self.weights is not None:
            return None, None
        table, code = np.unique(self.scale, return_inverse=True)
        if len(table) > 2**16:
            return None, None
        return code.astype(np.uint8 if len(table) <= 2**8 else np.uint16)[self.indices], table

    def combine(self, V, p, Z=None, q=None, out=None, inner=True):
        out = np.empty_like(V) if out is None else out
        if not all(a is None or (a.flags.c_contiguous and a.dtype == self.dtype) for a in (V, Z, out)):
            # Kernels read and write rows of one type, end to end.
            V, Z = (None if a is None else np.ascontiguousarray(a, self.dtype) for a in (V, Z))
            out[...], dots = self.combine(V, p, Z, q, inner=inner)
            return out, dots
        p = np.ascontiguousarray(p, self.dtype)
        q = None if Z is None else np.ascontiguousarray(q, self.dtype)
        k = V.shape[1]
        small = self.nnz * k < SMALL_PRODUCT
        dots = np.zeros((1 if small else len(self.blocks) - 1, k)) if inner else None
        matrix = (self.indptr, self.indices, self.weights, self.scale)
        if k > 1:
            kernel = kernels.combine_columns_small if small else kernels.combine_columns
            self._call(kernel, small, (*matrix, *self.coded, V, p, Z, q, out), dots)
        else:
            kernel = kernels.combine_column_small if small else kernels.combine_column
            z, q0 = (None, None) if Z is None or q is None else (Z[:, 0], q[0])
            try:
                room = self._rooms.pop()
            except IndexError:
                room = np.empty_like(self.scale)
            self._call(kernel, small, (*matrix, V[:, 0], room, p[0], z, q0, out[:, 0]), dots)
            self._rooms.append(room)
        return out, np.empty(0) if dots is None else dots.sum(axis=0)

    def _call(self, kernel: Callable[..., None], small: bool, arguments: tuple, dots: np.ndarray | None) -> None:
        if small:
            kernel(*arguments, None if dots is None else dots[0])
        else:
            kernel(self.blocks, *arguments, dots)

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name not in ("coded", "_rooms")} | {
            "_rooms": []
        }

    def product_at(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        """``(S v)`` at the given rows, for v (n,)."""
        return kernels.product_at(rows, self.indptr, self.indices, self.weights, self.scale, v)

    def submatrix(self, rows: np.ndarray) -> Sparse:
        """The principal submatrix on ``rows``: positions, in any order."""
        position = np.full(self.shape[0], -1, np.int32)
        position[rows] = np.arange(len(rows), dtype=np.int32)
        indptr = np.zeros(len(rows) + 1, np.int64)
        nothing = np.empty(0, np.int32), np.empty(0, self.dtype)
        arrays = (self.indptr, self.indices, self.weights, np.asarray(rows, np.int64), position)
        kernels.submatrix_rows(*arrays, True, indptr, *nothing)
        indices = np.empty(indptr[-1], np.int32)
        weights = nothing[1] if self.weights is None else np.empty(indptr[-1], self.dtype)
        if (np.diff(rows) > 0).all():
            kernels.submatrix_rows(*arrays, False, indptr, indices, weights)
        elif not kernels.arranged_rows(*arrays, indptr, indices, weights):
            raise ValueError("the matrix is not symmetric, so the graph is damaged; build it anew.")
        return Sparse(indptr, indices, None if self.weights is None else weights, self.scale[rows])

    def diagonal(self) -> np.ndarray:
        return kernels.diagonal(self.indptr, self.indices, self.weights, self.scale)

    def to_scipy(self) -> sp.csr_array:
        """The matrix with its values written out."""
        values = np.repeat(self.scale, np.diff(self.indptr)) * self.scale[self.indices]
        if self.weights is not None:
            values *= self.weights
        return sp.csr_array((values, self.indices, self.indptr), shape=self.shape)

    def astype(self, dtype: type) -> Sparse:
        return (
            self if self.dtype == dtype else Sparse(self.indptr, self.indices, self.weights, self.scale.astype(dtype))
        )


def connected_components(terms: Iterable[Sparse], n: int) -> np.ndarray:
    """(n,) component of each row over the entries of all terms, numbered in the order of rows."""
    parent = np.arange(n)
    for term in terms:
        kernels.join_components(term.indptr, term.indices, parent)
    return kernels.number_components(parent)


def weighted_sum(terms: list[Sparse], coefficients: np.ndarray) -> Sparse:
    """``sum_t c_t S_t`` of operators that share one scale, as one operator with signed weights."""
    first = terms[0]
    n = first.shape[0]
    # Through triples, not by adding matrices: entries that cancel keep their place in the pattern.
    rows = np.concatenate([np.repeat(np.arange(n, dtype=np.int32), np.diff(term.indptr)) for term in terms])
    values = [
        np.full(term.nnz, c, first.dtype) if term.weights is None else term.weights * first.dtype.type(c)
        for term, c in zip(terms, coefficients, strict=True)
    ]
    places = rows, np.concatenate([term.indices for term in terms])
    total = sp.coo_array((np.concatenate(values), places), shape=first.shape).tocsr()
    return Sparse(total.indptr, total.indices, total.data, first.scale)


class Shifted(Operator):
    """``I - alpha S``: positive definite while ``|alpha|`` times the spectral radius of S stays below 1."""

    def __init__(self, S: Sparse, alpha: float):
        self.S, self.alpha = S, float(alpha)
        self.shape, self.dtype = S.shape, S.dtype

    def submatrix(self, rows: np.ndarray) -> Shifted:
        """The principal submatrix on ``rows``: positions, in any order."""
        return Shifted(self.S.submatrix(rows), self.alpha)

    def diagonal(self) -> np.ndarray:
        return 1 - self.alpha * self.S.diagonal()

    def combine(self, V, p, Z=None, q=None, out=None, inner=True):
        p = np.asarray(p, self.dtype)
        if Z is None:
            return self.S.combine(V, -self.alpha * p, V, p, out, inner)
        out, _ = self.S.combine(V, -self.alpha * p, Z, q, out, inner=False)
        self.add_scaled(out, V, p)
        return out, np.einsum("ij,ij->j", out, V) if inner else np.empty(0)
