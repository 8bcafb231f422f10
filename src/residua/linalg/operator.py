"""Symmetric linear operators: all that the solvers know of a matrix.

    combine:  out = (A V) p + Z q   and the column inner products out'V

CG and Lanczos are written with ``combine``, ``add_scaled`` and ``advance`` and the reductions of ``rows`` only; the
model asks a ``Matrix`` besides for submatrices, draws and traces. So a matrix that lives on other processes or another
device is one new class and no new solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from residua.linalg.kernels import rows as kernels
from residua.linalg.kernels.traces import low_traces, power_traces
from residua.linalg.rows import LOCAL, Rows
from residua.linalg.workspace import Workspace, cached_property

# Below this many multiplications one thread is done before a second one has woken.
SMALL, SMALL_PRODUCT = 100_000, 400_000
UNEVEN = 8.0  # largest over smallest entry of a diagonal from which scaling pays for a pass over the entries
Given = np.ndarray | None  # an argument that may be left out
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


# Below this many entries one compiled call beats a Python loop over parallel kernels.
SMALL_SYSTEM = 300_000

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]  # indptr, indices, weights, scale
Noise = Callable[[int], np.ndarray]  # the next so many columns


class Operator(ABC):
    """A symmetric matrix of which only products with blocks of columns are asked.

    Attributes
    ----------
    shape : tuple of int
        Of the whole matrix.
    n_local : int
        Rows that this process holds: the length of its vectors.
    rows : Rows
        Reductions over all rows.
    """

    shape: tuple[int, int]
    n_local: int
    dtype: np.dtype
    rows: Rows = LOCAL

    @abstractmethod
    def combine(
        self, V: np.ndarray, p: np.ndarray, Z: Given = None, q: Given = None, out: Given = None, inner: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``(A V) p + Z q`` with p, q per column, and its inner products with V, none unless ``inner``.

        The inner products are those over all rows. ``out`` may be Z, never V.
        """

    def __matmul__(self, X: np.ndarray) -> np.ndarray:
        if len(X) != self.n_local:  # kernels would read beyond its end
            raise ValueError(f"X has {len(X)} rows, the operator {self.n_local}.")
        V = np.ascontiguousarray(X[:, None] if X.ndim == 1 else X, self.dtype)
        out, _ = self.combine(V, np.ones(V.shape[1]), inner=False)
        return out.reshape(X.shape)

    def add_scaled(self, W: np.ndarray, V: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Add ``V c`` to W in place; return the squared column norms of W."""
        small = W.size < SMALL
        squares = kernels.add_scaled(small, 1 if small else kernels.BLOCKS, W, V, np.asarray(c, W.dtype))
        return self.rows.sum(squares[0] if small else squares.sum(axis=0))

    def advance(self, X: np.ndarray, P: np.ndarray, R: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """Add ``P a`` to X, then make P ``R + P b``, both in place."""
        small = X.size < SMALL
        kernels.advance(small, 1 if small else kernels.BLOCKS, X, P, R, np.asarray(a, X.dtype), np.asarray(b, X.dtype))

    def solve_column(self, b: np.ndarray, x: np.ndarray, goal: float, steps: int) -> tuple[int, float] | None:
        """Solve ``A x = b`` for one column in one compiled call, from x and in place.

        Returns
        -------
        (int, float) or None
            Steps taken, and the squared norm of what is left; None where there is no such call.
        """
        return None

    def dense(self) -> np.ndarray:
        """Return the full matrix; for tests and very small problems."""
        return self @ np.eye(self.shape[0], dtype=self.dtype)


class Matrix(Operator):
    """The normalised adjacency S as the model uses it, wherever its rows live.

    Attributes
    ----------
    first : int
        The place of this process's first row among all rows.
    nnz : int
        Stored entries of this process.
    arrays : tuple of ndarray or None
        indptr, indices, weights and scale where all entries are in this process, so that factors and eigenvalues can
        be had; else None.
    """

    first: int = 0
    nnz: int
    arrays: Arrays | None = None

    @abstractmethod
    def submatrix(self, rows: np.ndarray) -> Matrix:
        """Return the principal submatrix on ``rows``: positions among those of this process."""

    @abstractmethod
    def scaled(self, c: np.ndarray) -> Matrix:
        """Return ``C S C`` with C = diag(c), c (n_local,) at the rows of this process."""

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Return the diagonal at the rows of this process."""

    @abstractmethod
    def noise(self, alpha: float, rng: np.random.Generator) -> Noise:
        """Return a source of columns with mean zero and covariance ``I - alpha S``."""

    @abstractmethod
    def inverse_scale(self) -> np.ndarray:
        """Return ``D^1/2`` at the rows of this process, 0 at those without an entry."""

    @abstractmethod
    def component_sums(self, values: np.ndarray) -> np.ndarray:
        """Replace each of values (n,) by the sum over its connected component."""

    @abstractmethod
    def power_moments(self, budget: float = np.inf) -> np.ndarray:
        """Return ``tr S^j`` for j = 0..2, and 3, 4 where S^2 costs less than ``budget`` products with a vector."""

    def product_at(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ``(S v)`` at the given rows, for v (n,)."""
        return (self @ v)[rows]

    def astype(self, dtype: type) -> Matrix:
        """Return the same matrix in another precision; itself where it has only one."""
        return self

    def to_scipy(self) -> sp.csr_array:
        """Return the matrix with its values written out."""
        raise ValueError("the rows live in several processes; no factor and no eigenvalues, use Lanczos().")


class Sparse(Matrix, Workspace):
    """The symmetric operator ``diag(scale) A diag(scale)``, A in CSR form, all rows in this process.

    Parameters
    ----------
    indptr, indices : array_like of int
        (n + 1,) and (nnz,), columns sorted in each row.
    weights : array_like or None
        (nnz,), None where every weight is 1.
    scale : array_like
        (n,); its dtype is the operator's. Longer for rows of a larger matrix whose other columns come after these.
    """

    arrays: Arrays

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, scale: np.ndarray):
        self.scale = np.ascontiguousarray(scale)
        self.dtype = self.scale.dtype
        self.indptr = np.ascontiguousarray(indptr, np.int64)
        self.indices = np.ascontiguousarray(indices, np.int32)
        self.weights = None if weights is None else np.ascontiguousarray(weights, self.dtype)
        self.n_local = len(self.indptr) - 1
        self.shape = (self.n_local, len(self.scale))
        self.nnz = len(self.indices)
        self.arrays = (self.indptr, self.indices, self.weights, self.scale)
        self._whole = np.array([0, self.n_local])  # all rows as one block
        self._rooms: list[np.ndarray] = []  # one for each thread that asks at once: new memory is slow to touch

    @cached_property
    def blocks(self) -> np.ndarray:
        return kernels.row_blocks(self.indptr)

    def dealt(self, k: int) -> tuple[bool, np.ndarray]:
        """Return whether work on k columns is for one thread, and the borders of the blocks of rows it is done in."""
        small = self.nnz * k < SMALL_PRODUCT
        return small, self._whole if small else self.blocks

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

    def combine(
        self, V: np.ndarray, p: np.ndarray, Z: Given = None, q: Given = None, out: Given = None, inner: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        out = np.empty((self.n_local, V.shape[1]), V.dtype) if out is None else out
        if not all(a is None or (a.flags.c_contiguous and a.dtype == self.dtype) for a in (V, Z, out)):
            # Kernels read and write rows of one type, end to end.
            Z = None if Z is None else np.ascontiguousarray(Z, self.dtype)
            out[...], found = self.combine(np.ascontiguousarray(V, self.dtype), p, Z, q, inner=inner)
            return out, found
        p = np.ascontiguousarray(p, self.dtype)
        q = None if Z is None else np.ascontiguousarray(q, self.dtype)
        k = V.shape[1]
        small, blocks = self.dealt(k)
        dots = np.zeros((len(blocks) - 1, k)) if inner else None
        matrix = (blocks, *self.arrays)
        if k > 1:
            kernels.combine_columns(small, *matrix, *self.coded, V, p, Z, q, out, dots)
        elif k:
            z, q0 = (None, None) if Z is None or q is None else (Z[:, 0], q[0])
            try:
                room = self._rooms.pop()
            except IndexError:
                room = np.empty_like(self.scale)
            kernels.combine_column(small, *matrix, V[:, 0], room, p[0], z, q0, out[:, 0], dots)
            self._rooms.append(room)
        return out, np.empty(0) if dots is None else dots.sum(axis=0)

    def __getstate__(self) -> dict:
        return super().__getstate__() | {"_rooms": []}

    def product_at(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        return kernels.product_at(rows, *self.arrays, v)

    def submatrix(self, rows: np.ndarray) -> Sparse:
        """The principal submatrix on ``rows``: positions, in any order."""
        rows = np.asarray(rows, np.int64)
        indptr, indices, weights = kernels.submatrix(*self.arrays, rows)
        part = Sparse(indptr, indices, None if self.weights is None else weights, self.scale[rows])
        if (np.diff(rows) > 0).all():
            return part
        A = part.adjacency
        A.sort_indices()
        return Sparse(A.indptr, A.indices, None if self.weights is None else A.data, part.scale)

    def scaled(self, c: np.ndarray) -> Sparse:
        return Sparse(*self.arrays[:3], self.scale * np.asarray(c, self.dtype))

    def diagonal(self) -> np.ndarray:
        return self.scale[: self.n_local] ** 2 * self.adjacency.diagonal()

    @property
    def adjacency(self) -> sp.csr_array:
        """A itself: S without the scale."""
        values = np.ones(self.nnz, np.int8) if self.weights is None else self.weights
        return sp.csr_array((values, self.indices, self.indptr), shape=self.shape)

    def noise(self, alpha: float, rng: np.random.Generator) -> Noise:
        n = self.n_local
        edges = int((self.indices > np.repeat(np.arange(n, dtype=np.int32), np.diff(self.indptr))).sum())
        matrix = (*self.arrays, alpha)

        def columns(count: int) -> np.ndarray:
            out = np.zeros((count, n), self.dtype)
            for draw in out:
                normals = rng.standard_normal(edges, self.dtype), rng.standard_normal(n, self.dtype)
                kernels.edge_noise(*matrix, *normals, draw)
            return np.ascontiguousarray(out.T)

        return columns

    @cached_property
    def _components(self) -> np.ndarray:
        return connected_components([self], self.n_local)

    def component_sums(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self._components, values)[self._components]

    def inverse_scale(self) -> np.ndarray:
        scale = self.scale[: self.n_local]
        used = (scale > 0) & (np.diff(self.indptr) > 0)
        return np.divide(1.0, scale, out=np.zeros(self.n_local, self.dtype), where=used)

    def power_moments(self, budget: float = np.inf) -> np.ndarray:
        arrays = (*self.arrays, self.blocks)
        low = low_traces(*arrays).sum(axis=0)
        degree = np.diff(self.indptr).astype(float)
        if degree @ degree > budget * max(self.nnz, 1):
            return np.array([self.n_local, *low])
        return np.array([self.n_local, *low, *power_traces(*arrays).sum(axis=0)])

    def to_scipy(self) -> sp.csr_array:
        values = np.repeat(self.scale[: self.n_local], np.diff(self.indptr)) * self.scale[self.indices]
        if self.weights is not None:
            values *= self.weights
        return sp.csr_array((values, self.indices, self.indptr), shape=self.shape)

    def astype(self, dtype: type) -> Sparse:
        return self if self.dtype == dtype else Sparse(*self.arrays[:3], self.scale.astype(dtype))


def connected_components(terms: Iterable[Sparse], n: int) -> np.ndarray:
    """(n,) component of each row over the entries of all terms, numbered in the order of rows.

    By a kernel of our own: scipy's takes seven times as long, 40 % of the time to build a graph of 5,000,000 edges.
    """
    parent = np.arange(n)
    for term in terms:
        kernels.join_components(term.indptr, term.indices, parent)
    return (np.cumsum(parent == np.arange(n)) - 1)[parent]


def weighted_sum(terms: Sequence[Matrix], coefficients: Sequence[float] | np.ndarray) -> Sparse:
    """Return ``sum_t c_t S_t`` of matrices that share one scale, as one with signed weights."""
    parts = [S for S in terms if isinstance(S, Sparse)]
    total = summed(coefficients, [S.adjacency.tocoo() for S in parts], parts[0].dtype).tocsr()
    return Sparse(total.indptr, total.indices, total.data, parts[0].scale)


def summed(coefficients: Iterable[float], parts: Sequence[sp.coo_array], dtype: Any = float) -> sp.coo_array:
    """Return ``sum_t c_t A_t`` through triples, not by adding matrices: entries that cancel keep their place."""
    values = [np.multiply(A.data, c, dtype=dtype) for c, A in zip(coefficients, parts, strict=True)]
    places = [np.concatenate([getattr(A, axis) for A in parts]) for axis in ("row", "col")]
    return sp.coo_array((np.concatenate(values), tuple(places)), shape=parts[0].shape)


class Shifted(Operator):
    """The matrix ``I - alpha S``: positive definite while ``|alpha|`` times the spectral radius of S stays below 1."""

    def __init__(self, S: Matrix, alpha: float):
        self.S, self.alpha = S, float(alpha)
        self.shape, self.n_local, self.dtype, self.rows = S.shape, S.n_local, S.dtype, S.rows

    def submatrix(self, rows: np.ndarray) -> Shifted:
        """The principal submatrix on ``rows``: positions, in any order."""
        return Shifted(self.S.submatrix(rows), self.alpha)

    def diagonal(self) -> np.ndarray:
        return 1 - self.alpha * self.S.diagonal()

    def combine(
        self, V: np.ndarray, p: np.ndarray, Z: Given = None, q: Given = None, out: Given = None, inner: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        p = np.asarray(p, self.dtype)
        if Z is None:
            return self.S.combine(V, -self.alpha * p, V, p, out, inner)
        out, _ = self.S.combine(V, -self.alpha * p, Z, q, out, inner=False)
        self.add_scaled(out, V, p)
        return out, self.rows.inner(out, V) if inner else np.empty(0)

    def balanced(self) -> tuple[Shifted, np.ndarray] | None:
        """Return ``B = E A E`` of diagonal 1 with the diagonal of E, by Jacobi's rule.

        None where the diagonal of A is even already, is not positive, or its entries are not in this process.
        """
        if self.S.arrays is None:
            return None
        indptr, indices, weights, scale = self.S.arrays
        if weights is None or self.alpha <= 0:
            return None
        diagonal = self.diagonal()
        if not len(diagonal) or not diagonal.max() > UNEVEN * diagonal.min() > 0:
            return None
        root = (1 / np.sqrt(diagonal)).astype(self.dtype)
        own = np.repeat(np.arange(len(root)), np.diff(indptr)) == indices
        apart = np.where(own, self.dtype.type(0), weights)
        scale = scale * root * self.dtype.type(np.sqrt(self.alpha))
        return Shifted(Sparse(indptr, indices, apart, scale), 1.0), root

    def noise(self, rng: np.random.Generator) -> Noise:
        """Return a source of columns with mean zero and this covariance."""
        return self.S.noise(self.alpha, rng)

    def solve_column(self, b: np.ndarray, x: np.ndarray, goal: float, steps: int) -> tuple[int, float] | None:
        if self.S.arrays is None or self.S.nnz >= SMALL_SYSTEM:
            return None
        return kernels.cg_column(*self.S.arrays, self.dtype.type(self.alpha), b, x, goal, steps)

    def astype(self, dtype: type) -> Shifted:
        """Return the same matrix in another precision."""
        return Shifted(self.S.astype(dtype), self.alpha)
