"""Reductions over the rows of a matrix, wherever they live.

    total = sum over processes p of partial_p

Solvers and model are written for the rows that their process holds. On one machine those are all rows, and each
reduction is the identity. Where rows are dealt out, every process runs the same code on its own, and a subclass sums
over them: no process has to know of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

TINY = 1e-150  # whose square is still a number: a column smaller than this is none


class Rows:
    """The rows of one process that holds them all."""

    rank = 0  # of this process among those that share the rows

    def sum(self, partial: Any, then: Callable[[Any], Any] | None = None) -> Any:
        """Sum ``partial`` over processes; with ``then``, a function of the sum, computed once and shared."""
        return partial if then is None else then(partial)

    def max(self, partial: Any) -> Any:
        """Return the elementwise maximum of ``partial`` over processes."""
        return partial

    def gather(self, part: Any, then: Callable[[Sequence[Any]], Any] | None = None) -> Any:
        """Return the parts of all processes in order; with ``then``, a function of them, computed once and shared."""
        return [part] if then is None else then([part])

    def agree(self, value: Any) -> Any:
        """Return the first process's value: for decisions that rounding could turn either way."""
        return value

    def count(self, mask: np.ndarray) -> int:
        """Count the rows at which ``mask`` is True."""
        return int(self.sum(int(np.count_nonzero(mask))))

    def inner(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return the inner products (k,) of the columns of X and Y (n, k)."""
        return self.sum(np.einsum("ij,ij->j", X, Y, dtype=float))

    def gram(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return ``X'Y`` of X (n, k) and Y (n, m) or (n,)."""
        return self.sum(X.T @ Y)

    def norms(self, X: np.ndarray) -> np.ndarray:
        """Return the Euclidean norms of the columns of X (n, k)."""
        return np.sqrt(self.inner(X, X))

    def qr(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Q (n, r) with orthonormal columns and R (r, k), ``W = Q R``."""
        Q, R = np.linalg.qr(W)
        pieces, R = self.gather(R, _joined_qr)
        return Q if len(pieces) == 1 else Q @ pieces[self.rank], R

    def column_basis(self, Z: np.ndarray, tol: float = 1e-10) -> tuple[np.ndarray, np.ndarray]:
        """Return what the columns of Z (n, d) span.

        Returns
        -------
        W : ndarray of shape (n, k)
            Orthonormal columns. k is the rank of Z with columns of unit norm: singular values below ``tol`` times the
            largest count as zero.
        T : ndarray of shape (d, k)
            ``Z T = W``.
        """
        norms = self.norms(Z)
        units = np.where(norms > TINY, norms, 1.0)
        Q, R = self.qr(Z / units)
        left, size, right = self.agree(tuple(np.linalg.svd(R, full_matrices=False)))
        keep = size > tol * size.max(initial=0)
        return Q @ left[:, keep], right[keep].T / size[keep] / units[:, None]

    def kth_smallest(self, values: np.ndarray, k: int) -> float:
        """Return the k-th smallest of all values, k counted from 1."""
        return float(np.partition(values, k - 1)[k - 1])


def _joined_qr(parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Factor the R of all processes together: what each multiplies its Q by, and the R of all."""
    if len(parts) == 1:
        return [np.empty(0)], parts[0]
    Q, R = np.linalg.qr(np.concatenate(parts))
    return np.split(Q, np.cumsum([len(part) for part in parts])[:-1]), R


LOCAL = Rows()
