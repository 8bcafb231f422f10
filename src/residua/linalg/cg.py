"""Conjugate gradients for many right-hand sides at once.

    A X = B,   each column until |b - A x| <= tol |b|

Columns that have arrived are set aside, so the block shrinks to those still under way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from residua.caller import warn
from residua.linalg.operator import Operator, on_lines

Ended = tuple[np.ndarray, np.ndarray]  # steps of each column, and the square of what they left


class NotConverged(UserWarning):
    """An iteration stopped before its goal; the message carries its numbers."""


@dataclass(frozen=True)
class Solution:
    """Columns of the solution, and the evidence for them."""

    X: np.ndarray
    iterations: np.ndarray  # (k,) steps taken by each column
    residual: np.ndarray  # (k,) |b - A x| / |b|
    converged: np.ndarray  # (k,) bool


@dataclass(frozen=True)
class CG:
    """Conjugate gradients for a symmetric positive definite operator.

    Parameters
    ----------
    tol : float
        Stop a column when its residual is below ``tol`` times the norm of its right-hand side.
    max_iter : int
        Give up after this many steps, with a warning.
    """

    tol: float = 1e-10
    max_iter: int = 10_000

    def solve(self, A: Operator, B: np.ndarray, start: np.ndarray | None = None) -> Solution:
        """Solve ``A X = B`` for B of shape (n,) or (n, k), from ``start`` or from zero."""
        block = np.ascontiguousarray(B[:, None] if B.ndim == 1 else B, A.dtype)
        X = np.zeros_like(block) if start is None else np.array(start, A.dtype).reshape(block.shape)
        norm = A.rows.norms(block)
        X[:, norm == 0] = 0
        tol = max(self.tol, 4 * np.finfo(A.dtype).eps)
        steps, rr = self._column(A, block, X, tol * norm) or self._block(A, block, X, tol * norm)
        with np.errstate(invalid="ignore"):
            residual = np.where(norm > 0, np.sqrt(rr) / np.where(norm > 0, norm, 1), 0.0)
        solution = Solution(X.reshape(B.shape), steps, residual, residual <= tol)
        if not solution.converged.all():
            warn(
                f"CG stopped after {steps.max()} steps with relative residual {residual.max():.1e} > {tol:.1e} "
                f"in {(~solution.converged).sum()} of {len(steps)} columns; raise max_iter or loosen tol.",
                NotConverged,
            )
        return solution

    def _column(self, A: Operator, b: np.ndarray, X: np.ndarray, goal: np.ndarray) -> Ended | None:
        """Solve one column in one compiled call; None where there are several, or no such call."""
        if b.shape[1] > 1:
            return None
        x = np.ascontiguousarray(X[:, 0])
        found = A.solve_column(np.ascontiguousarray(b[:, 0]), x, goal[0] ** 2, self.max_iter)
        if found is None:
            return None
        X[:, 0] = x
        return np.array([found[0]]), np.array([found[1]])

    def _block(self, A: Operator, B: np.ndarray, X: np.ndarray, goal: np.ndarray) -> Ended:
        k = B.shape[1]
        R, _ = A.combine(X, -np.ones(k), B, np.ones(k), inner=False)
        P = on_lines(R)
        steps, final = np.zeros(k, int), np.zeros(k)
        live = np.arange(k)  # columns of the caller that the working block still holds
        rr = A.rows.inner(R, R)
        goal, x, AP = goal**2, X, np.empty_like(P)

        def set_aside(done: np.ndarray) -> None:
            """Copy columns of the working block to the caller's."""
            if x is not X:
                X[:, live[done]] = x[:, done]
            final[live[done]] = rr[done]

        for _ in range(self.max_iter):
            moving = rr > goal[live]
            if not moving.any():
                break
            if 2 * moving.sum() <= len(live):
                set_aside(~moving)
                x, R, P, rr, live = x[:, moving], R[:, moving], P[:, moving], rr[moving], live[moving]
                x, R, P = np.ascontiguousarray(x), np.ascontiguousarray(R), on_lines(P)
                AP = np.empty_like(P)
                moving = np.ones(len(live), bool)
            _, pap = A.combine(P, np.ones(len(live)), out=AP)
            a = np.where(moving & (pap > 0), rr / np.where(pap > 0, pap, 1), 0)
            old, rr = rr, np.where(moving, A.add_scaled(R, AP, -a), rr)
            A.advance(x, P, R, a, np.where(moving, rr / np.where(old > 0, old, 1), 0))
            steps[live] += moving
        set_aside(np.ones(len(live), bool))
        return steps, final
