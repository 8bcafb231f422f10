"""One way to solve ``(I - alpha S) X = B``: conjugate gradients, and a factorisation where they are slow.

On graphs that conjugate gradients find hard (maps and grids with few labels, alpha near 1) a sparse factor is cheap,
so it takes over when CG has not arrived after a few hundred steps. Where hubs make the diagonal uneven, as in a
Laplacian, the system is scaled to an even one first (Jacobi).
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from residua.caller import warn
from residua.linalg.cg import CG, NotConverged, Solution
from residua.linalg.factor import Factor, factor_seconds, identity_minus
from residua.linalg.operator import Shifted


@dataclass(frozen=True)
class Solver:
    """Conjugate gradients first, a sparse factor where they are slow and it is affordable.

    Parameters
    ----------
    cg : CG
        Tolerance, and the last resort's number of steps.
    patience : int
        Steps of CG before a factorisation is considered.
    seconds : float
        Estimated time that a factorisation may take.
    """

    cg: CG = field(default_factory=CG)
    patience: int = 300
    seconds: float = 20.0

    def solve(self, A: Shifted, B: np.ndarray, start: np.ndarray | None = None) -> Solution:
        """Solve ``A X = B`` for B of shape (n,) or (n, k)."""
        balanced = A.balanced()
        if balanced is None:
            return self._solve(A, B, start)
        M, E = balanced[0], balanced[1] if B.ndim == 1 else balanced[1][:, None]
        found = self._solve(M, B * E, None if start is None else start / E)
        X = found.X * E
        norm, left = (A.rows.norms(part.reshape(len(B), -1)) for part in (B, B - A @ X))
        return replace(found, X=X, residual=np.divide(left, norm, out=np.zeros_like(norm), where=norm > 0))

    def _solve(self, A: Shifted, B: np.ndarray, start: np.ndarray | None) -> Solution:
        with warnings.catch_warnings(action="ignore", category=NotConverged):
            first = replace(self.cg, max_iter=min(self.patience, self.cg.max_iter)).solve(A, B, start)
        if first.converged.all():
            return first
        if factor_seconds(A.S, self.seconds) <= self.seconds:
            with suppress(np.linalg.LinAlgError):  # singular: CG may still arrive, and says so where it does not
                return self._factored(A, B, first)
        return self.cg.solve(A, B, first.X)

    def _factored(self, A: Shifted, B: np.ndarray, first: Solution) -> Solution:
        factor = Factor(identity_minus(A))
        X = factor.solve(np.asarray(B, float))
        X = X + factor.solve(B - A @ X)  # one step of refinement
        norm = np.maximum(np.linalg.norm(B.reshape(len(B), -1), axis=0), np.finfo(float).tiny)
        residual = np.linalg.norm((B - A @ X).reshape(len(B), -1), axis=0) / norm
        # Rounding bounds what refinement can reach on an ill-conditioned system.
        converged = residual <= max(self.cg.tol, 1e-8)
        if not converged.all():
            warn(
                f"a factor left relative residual {residual.max():.1e} in {(~converged).sum()} of {len(norm)} columns; "
                "the matrix is singular to working precision: drop edges of negligible weight.",
                NotConverged,
            )
        return Solution(X, first.iterations, residual, converged)
