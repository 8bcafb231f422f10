"""The quadratic form of columns at labelled nodes, for every alpha.

    Q(alpha) = R' (G_LL - G_LU G_UU^-1 G_UL) R,    G = I - sum_t alpha_t S_t

For one edge type, one block Lanczos run on S_UU from B = S_UL R serves all of them:
Q = R'R - alpha R' S_LL R - alpha^2 B' (I - alpha S_UU)^-1 B. For several, or where that run grows too long, each alpha
costs a solve.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from residua.field.likelihood import Likelihood
from residua.linalg.lanczos import BlockLanczos, BlockQuadrature

FIRST_STEPS = 12
MAX_SIZE = 900  # of the projected matrix


class QuadraticForm:
    """Q as a function of alpha.

    Parameters
    ----------
    likelihood : Likelihood
        Of the labelled nodes.
    columns : callable
        Returns R (|L|, k): asked for when it is needed, not kept.

    Attributes
    ----------
    quadrature : BlockQuadrature or None
        What serves every alpha; None where each costs a solve.
    """

    def __init__(self, likelihood: Likelihood, columns: Callable[[], np.ndarray]):
        self.likelihood, self.columns, self.rows = likelihood, columns, likelihood.rows
        self.quadrature: BlockQuadrature | None = None
        self.krylov: BlockLanczos | None = None
        self.drop_warm_start()
        if len(likelihood.terms) == 1:
            R = columns()
            SR = likelihood.terms[0] @ likelihood.embed(R)
            self.constant, self.linear = self.rows.gram(R, R), self.rows.gram(R, SR[likelihood.L])
            if likelihood.n_unlabelled:
                self.krylov = BlockLanczos(likelihood.terms_UU[0], SR[likelihood.U])
                self.quadrature = self.krylov.more_steps(FIRST_STEPS)
            else:
                self.quadrature = BlockQuadrature(np.zeros(0), np.zeros((0, R.shape[1])))

    @property
    def method(self) -> str:
        """How its numbers come about, for people."""
        if self.quadrature is None:
            return "a linear solve for each alpha"
        return f"one Lanczos run of {self.steps} steps for all alphas"

    @property
    def steps(self) -> int:
        """Lanczos steps taken; -1 where each alpha costs a solve."""
        return -1 if self.quadrature is None else self.krylov.steps if self.krylov else 0

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        """Return Q(alpha), shape (k, k)."""
        if self.quadrature is None:
            full = self._conditional_mean(alpha)
            return self.rows.gram(full, self.likelihood.precisions(alpha)[0] @ full)
        a = float(alpha[0])
        return self.constant - a * self.linear - a * a * self.quadrature.apply(lambda x: 1 / (1 - a * x))

    def slopes(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``dQ/dalpha_t``, shape (p, k, k)."""
        if self.quadrature is not None:
            a = float(alpha[0])
            inner = self.quadrature.apply(lambda x: (2 - a * x) / (1 - a * x) ** 2)
            return (-self.linear - a * inner)[None]
        full = self._conditional_mean(alpha)
        return np.array([-self.rows.gram(full, S @ full) for S in self.likelihood.terms])

    def refine(self, alphas: np.ndarray, tol: float = 1e-11) -> bool:
        """Take more steps if Q has not settled at each of ``alphas``; False once it has."""
        if self.quadrature is None or self.krylov is None or self.krylov.exhausted:
            return False
        before = np.array([self(np.array([a])) for a in alphas])
        self.quadrature = self.krylov.more_steps(max(8, self.krylov.steps // 2))
        change = np.abs(np.array([self(np.array([a])) for a in alphas]) - before)
        root = np.sqrt(np.diagonal(before, axis1=1, axis2=2))
        if self.rows.agree(bool((change <= tol * root[:, :, None] * root[:, None, :]).all())):
            return False
        if len(self.quadrature.values) > MAX_SIZE:
            self.quadrature = self.krylov = None
        return True

    def with_steps(self, steps: int) -> QuadraticForm:
        """Take as many steps as another one of the same columns took; itself."""
        if steps < 0:
            self.quadrature = self.krylov = None
        elif self.krylov is not None and steps > self.krylov.steps:
            self.quadrature = self.krylov.more_steps(steps - self.krylov.steps)
        return self

    def drop_warm_start(self) -> None:
        """Forget the last solve, so that what comes next does not depend on what was asked before."""
        self._solved: tuple[np.ndarray, np.ndarray] | None = None

    def _conditional_mean(self, alpha: np.ndarray) -> np.ndarray:
        """R with its conditional mean at U; the last one is kept, as start for the next and for the slopes."""
        if self._solved is None or not np.array_equal(self._solved[0], alpha):
            start = None if self._solved is None else self._solved[1]
            self._solved = np.array(alpha), self.likelihood.conditional_mean(self.columns(), alpha, start)
        return self._solved[1]
