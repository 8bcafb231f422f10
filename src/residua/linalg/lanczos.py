"""Lanczos quadrature: spectral sums of a symmetric operator seen from given vectors.

    z' f(A) z  ~  sum_j w_j f(x_j),   (x_j, w_j) eigenvalues of T and |z|^2 (first components)^2

T is tridiagonal, from k Lanczos steps on A from z; exact for polynomials f of degree below 2k. The nodes of A serve
every shift and scale of A. The block form gives the matrix B' f(A) B of several vectors at once; where T is large,
its resolvent (``resolvent.py``) needs no eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from residua.linalg.operator import Operator, on_lines
from residua.linalg.rows import LOCAL, Rows

Function = Callable[[np.ndarray], np.ndarray]  # of numbers, elementwise; or of a vector


@dataclass(frozen=True)
class Quadrature:
    """Nodes and weights, one row for each starting vector."""

    nodes: np.ndarray  # (vectors, steps)
    weights: np.ndarray  # (vectors, steps), rows sum to |z|^2

    def apply(self, f: Function) -> np.ndarray:
        """``z' f(A) z`` for each starting vector."""
        return (self.weights * f(self.nodes)).sum(axis=1)


def gauss_rule(diagonal: np.ndarray, off: np.ndarray, norms: np.ndarray) -> Quadrature:
    """Nodes and weights of the tridiagonals of several vectors; their leading parts give the rule of fewer steps."""
    k = diagonal.shape[0]
    T = np.zeros((diagonal.shape[1], k, k))
    at = np.arange(k)
    T[:, at, at] = diagonal.T
    T[:, at[1:], at[:-1]] = T[:, at[:-1], at[1:]] = off[: k - 1].T
    nodes, vectors = np.linalg.eigh(T)
    return Quadrature(nodes, vectors[:, 0, :] ** 2 * norms[:, None])


def tridiagonal(A: Operator, Z: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonals (steps, k) and off-diagonals (steps - 1, k) of T for each column, and the squared norms of Z.

    The vectors are kept unnormalised; their norms enter as coefficients, which saves a pass over memory a step.
    """
    V = on_lines(Z, A.dtype)
    previous = on_lines(np.broadcast_to(0.0, V.shape), A.dtype)
    norms = A.rows.inner(V, V)
    b_old, b = np.ones_like(norms), np.sqrt(norms)
    diagonal, off = np.zeros((2, steps, V.shape[1]))
    floor = 32 * np.finfo(A.dtype).eps
    for step in range(steps):
        scale = np.divide(1.0, b, out=np.zeros_like(b), where=b > floor if step else b > 0)
        W, dots = A.combine(V, scale, previous, -b / b_old if step else np.zeros_like(b), out=previous)
        # An exhausted Krylov space goes on with weight zero, at a node inside the spectrum.
        diagonal[step] = np.where(scale > 0, dots * scale, diagonal[0])
        squares = A.add_scaled(W, V, -diagonal[step] * scale)
        b_old, b = np.where(b > 0, b, 1.0), np.sqrt(squares)
        b[b <= floor] = 0  # the Krylov space is exhausted: what follows has no weight
        off[step] = b
        V, previous = W, V
    return diagonal, off[:-1], norms


def function_times(product: Function, f: Function, b: np.ndarray, rows: Rows = LOCAL, steps: int = 40) -> np.ndarray:
    """Return ``f(A) b`` for the symmetric A behind ``product``, from a Krylov space kept orthogonal."""
    norm = rows.norms(b[:, None])[0]
    if not norm:
        return np.zeros(len(b))
    V = np.zeros((min(steps, rows.sum(len(b))) + 1, len(b)))
    T = np.zeros((len(V) - 1, len(V) - 1))
    V[0] = b / norm
    for k in range(len(T)):
        w = product(V[k])
        T[k, : k + 1] = T[: k + 1, k] = rows.sum(V[: k + 1] @ w)
        w -= V[: k + 1].T @ T[: k + 1, k]
        w -= V[: k + 1].T @ rows.sum(V[: k + 1] @ w)  # once more: rounding spoils the first pass
        size = rows.norms(w[:, None])[0]
        if size < 1e-10 or k + 1 == len(T):
            break
        V[k + 1] = w / size
    values, vectors = np.linalg.eigh(T[: k + 1, : k + 1])
    return norm * V[: k + 1].T @ (vectors @ (f(values) * vectors[0]))


@dataclass(frozen=True)
class BlockQuadrature:
    """``B' f(A) B ~ R' f(T)_11 R``, a matrix function of several vectors at once."""

    values: np.ndarray  # (m,) eigenvalues of T
    rows: np.ndarray  # (m, k): first block row of the eigenvectors, times R

    def apply(self, f: Function) -> np.ndarray:
        """The (k, k) matrix ``B' f(A) B``."""
        return (self.rows * f(self.values)[:, None]).T @ self.rows


class BlockLanczos:
    """Block Lanczos on A from the columns of B, to which more steps can be added.

    Directions that are exhausted or linearly dependent are dropped, so blocks may shrink, down to nothing.
    """

    def __init__(self, A: Operator, B: np.ndarray):
        self.A = A
        # Unit columns first: directions are judged independent by angle, not by the units of a column.
        size = A.rows.norms(B)
        self.V, C = _orthonormal(B / np.where(size > 0, size, 1), A.rows)
        self.R = C * size
        self.previous = np.zeros((len(B), 0))
        self.diagonal: list[np.ndarray] = []
        self.off: list[np.ndarray] = [np.zeros((self.V.shape[1], 0))]

    @property
    def steps(self) -> int:
        return len(self.diagonal)

    @property
    def exhausted(self) -> bool:
        """True when the quadrature is exact up to rounding."""
        return self.V.shape[1] == 0

    @property
    def size(self) -> int:
        """Rows of T."""
        return sum(len(D) for D in self.diagonal)

    def more_steps(self, steps: int) -> BlockLanczos:
        """Take further steps; itself."""
        for _ in range(steps):
            if self.exhausted:
                break
            W = self.A @ self.V - self.previous @ self.off[-1].T
            D = self.A.rows.gram(self.V, W)
            self.diagonal.append((D + D.T) / 2)
            Q, C = _orthonormal(W - self.V @ D, self.A.rows)
            self.off.append(C)
            self.previous, self.V = self.V, Q
        return self

    def quadrature(self) -> BlockQuadrature:
        """Return the quadrature so far, by all eigenvalues of T."""
        border = np.cumsum([0] + [len(D) for D in self.diagonal])
        T = np.zeros((border[-1], border[-1]))
        for s, D in enumerate(self.diagonal):
            here = slice(border[s], border[s + 1])
            T[here, here] = D
            if s:
                before = slice(border[s - 1], border[s])
                T[here, before] = self.off[s]
                T[before, here] = self.off[s].T
        values, vectors = np.linalg.eigh(T)
        return BlockQuadrature(values, vectors[: len(self.R)].T @ self.R)


def _orthonormal(W: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return Q with orthonormal columns and C, ``W = Q C``; directions below rounding (of norm 1) are dropped."""
    return _by_gram(W, rows) or _by_qr(W, rows)


def _by_gram(W: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray] | None:
    """Orthonormalise by eigenvectors of W'W, two products in place of QR; None where columns are nearly dependent."""
    Q, C = W, np.eye(W.shape[1])
    for _ in range(2):  # the second time takes away the rounding that W'W had squared
        values, vectors = rows.sum(Q.T @ Q, then=np.linalg.eigh)
        if not len(values) or not values[0] > 1e-7 * max(values[-1], 1e-12):
            return None
        Q, C = Q @ (vectors / np.sqrt(values)), (vectors * np.sqrt(values)).T @ C
    return Q, C


def _by_qr(W: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    Q, R = rows.qr(W)
    left, size, right = rows.agree(tuple(np.linalg.svd(R, full_matrices=False)))
    keep = size > 1e-13
    return np.ascontiguousarray(Q @ left[:, keep]), size[keep, None] * right[keep]
