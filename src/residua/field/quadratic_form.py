"""The quadratic form of columns at labelled nodes, for every alpha.

    Q(alpha) = R' (G_LL - G_LU G_UU^-1 G_UL) R,    G = I - sum_t alpha_t S_t

For one edge type, one block Lanczos run on S_UU from B = S_UL R serves all of them:
Q = R'R - alpha R' S_LL R - alpha^2 B' (I - alpha S_UU)^-1 B. For several, or where that run would grow too long, each
alpha costs a solve: by a sparse factor where that is the cheaper way. With noise S_UU and B are scaled, as
``residua.field.noise`` has it, and M R stands for R.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from residua.field.likelihood import Likelihood
from residua.linalg.factor import Family, refactor_seconds
from residua.linalg.lanczos import BlockLanczos, BlockQuadrature
from residua.linalg.operator import Matrix
from residua.linalg.resolvent import resolvents, squared_resolvent

FIRST_STEPS = 12
MAX_SIZE = 1_000_000  # of the projected matrix
EIGEN_SIZE = 250  # up to which its eigenvalues are worth having: a further alpha then costs next to nothing
EVALUATIONS = 50  # alphas that a fit asks for where each has its price
KEPT = 1_000_000  # numbers in the forms of a grid that are kept


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
    krylov : BlockLanczos or None
        What serves every alpha; None where each costs a solve.
    version : int
        Counts changes: what was computed with another one may differ in its last digits.
    """

    def __init__(self, likelihood: Likelihood, columns: Callable[[], np.ndarray]):
        self.likelihood, self.columns, self.rows = likelihood, columns, likelihood.rows
        self.krylov: BlockLanczos | None = None
        self.family: Family | None = None
        self.version = 0
        self._kept: dict[bytes, np.ndarray] = {}
        self._quadrature: tuple[int, BlockQuadrature] | None = None
        self.drop_warm_start()
        if len(likelihood.terms) == 1:
            R, channel = columns(), likelihood.channel
            MR = channel.seen(R)
            SR = likelihood.terms[0] @ likelihood.embed(MR)
            self.constant, self.linear = self.rows.gram(R, MR), self.rows.gram(MR, SR[likelihood.L])
            start = channel.scaled(SR[likelihood.U], likelihood.U)
            self.krylov = BlockLanczos(likelihood.terms_UU[0], start).more_steps(FIRST_STEPS)

    @property
    def by_solves(self) -> bool:
        """Whether each alpha costs a solve."""
        return self.krylov is None

    @property
    def cheap(self) -> bool:
        """Whether a further alpha costs next to nothing."""
        return self.krylov is not None and self.krylov.size <= EIGEN_SIZE and self.krylov.R.shape[1] <= EIGEN_SIZE

    @property
    def method(self) -> str:
        """How its numbers come about, for people."""
        if self.krylov is None:
            return "a linear solve for each alpha"
        return f"one Lanczos run of {self.steps} steps for all alphas"

    @property
    def steps(self) -> int:
        """Lanczos steps taken; -1 where each alpha costs a solve."""
        return -1 if self.krylov is None else self.krylov.steps

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        """Return Q(alpha), shape (k, k)."""
        if self.krylov is None:
            full = self._conditional_mean(alpha)
            Q = self.rows.gram(full, self.likelihood.precisions(alpha)[0] @ full)
            noisy = self.likelihood.channel.noisy
            return Q + self.likelihood.channel.misfit(self.columns(), full, self.rows) if noisy else Q
        if (kept := self._kept.get(alpha.tobytes())) is not None:
            return kept
        a = float(alpha[0])
        if self.cheap:
            return self._at(a, self._eigenvalues(self.krylov).apply(lambda x: 1 / (1 - a * x)))
        return self._at(a, resolvents(self.krylov, alpha).values[0])

    def slopes(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``dQ/dalpha_t``, shape (p, k, k)."""
        if self.krylov is not None:
            a = float(alpha[0])
            if self.cheap:
                inner = self._eigenvalues(self.krylov).apply(lambda x: (2 - a * x) / (1 - a * x) ** 2)
            else:
                inner = np.add(*squared_resolvent(self.krylov, a))
            return (-self.linear - a * inner)[None]
        full = self._conditional_mean(alpha)
        return np.array([-self.rows.gram(full, S @ full) for S in self.likelihood.terms])

    def _at(self, a: float | np.ndarray, inner: np.ndarray) -> np.ndarray:
        return self.constant - a * self.linear - a * a * inner

    def _eigenvalues(self, krylov: BlockLanczos) -> BlockQuadrature:
        if self._quadrature is None or self._quadrature[0] != krylov.steps:
            self._quadrature = krylov.steps, krylov.quadrature()
        return self._quadrature[1]

    def refine(self, alphas: np.ndarray, tol: float = 1e-11) -> bool:
        """Take steps until Q has settled at each of ``alphas``; False where it had already.

        What the last quarter of the steps has added bounds what is missing; where the steps to come would cost more
        than solves, there will be solves.
        """
        start, open_alphas = self.steps, np.asarray(alphas, float)
        while self.krylov is not None and not self.krylov.exhausted:
            excess, gains = self._missing(self.krylov, open_alphas, tol)
            excess = self.rows.agree(excess)
            if not (excess > 1).any():
                break
            more = self._steps_to_come(self.krylov.steps, excess, gains)
            open_alphas = open_alphas[excess > 1]
            if self.rows.agree(self._better_by_solves(self.krylov, more)):
                self._switch_to_solves()
                break
            self.krylov.more_steps(min(more, self.krylov.steps))
            self._kept, self.version = {}, self.version + 1
        return self.steps != start

    def _missing(self, krylov: BlockLanczos, alphas: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """How far each alpha is from ``tol`` (1 is there), and by how much a quarter of the steps brought it nearer."""
        values, terms = resolvents(krylov, alphas)
        a = alphas[:, None, None]
        Q = self._at(a, values)
        if Q.size <= KEPT and not self.cheap:
            self._kept |= {np.array([x]).tobytes(): q for x, q in zip(alphas, Q, strict=True)}
        quarter = max(2, len(terms) // 4)
        rounding = 1e-15 * np.diagonal(self.constant) + np.finfo(float).tiny
        goal = np.maximum(tol * np.diagonal(Q, axis1=1, axis2=2), rounding)
        last, before = (
            (alphas[:, None] ** 2 * part.sum(axis=0) / goal).max(axis=1, initial=0)
            for part in (terms[-quarter:], terms[-2 * quarter : -quarter])
        )
        return last, last / np.maximum(before, np.maximum(last, np.finfo(float).tiny))

    @staticmethod
    def _steps_to_come(steps: int, excess: np.ndarray, gains: np.ndarray) -> int:
        """Further steps that the slowest alpha will take, at the pace of the last ones."""
        pace = -np.log(np.clip(gains, 1e-12, 0.95))
        quarters = np.log(np.maximum(excess, 1.0)) / pace
        return max(4, int(np.ceil(quarters.max() * max(2, steps // 4))))

    def _better_by_solves(self, krylov: BlockLanczos, more: int) -> bool:
        """Whether solves at the alphas of a fit are estimated to cost less than so many further steps."""
        S, k = self.likelihood.terms_UU[0], krylov.R.shape[1]
        steps, width = krylov.steps + more, max(krylov.V.shape[1], 1)
        if krylov.size + more * width > MAX_SIZE:
            return True
        step = 1e-4 + 1e-9 * S.nnz * width + 4e-10 * S.n_local * width**2
        lanczos = more * step + EVALUATIONS * steps * (2e-5 + 2e-10 * width**2 * (width + k))
        return EVALUATIONS * min(_cg_seconds(S, k, steps), refactor_seconds(S, k)) < lanczos

    def _switch_to_solves(self) -> None:
        krylov, self.krylov, self._kept = self.krylov, None, {}
        self.version += 1
        S = self.likelihood.terms_UU[0]
        k = krylov.R.shape[1] if krylov is not None else self.columns().shape[1]
        if self.rows.agree(refactor_seconds(S, k) < _cg_seconds(S, k, 200)):
            self.family = Family([S])

    def with_steps(self, steps: int) -> None:
        """Take as many steps as another one of the same columns took; itself."""
        if steps < 0 and self.krylov is not None:
            self._switch_to_solves()
        elif self.krylov is not None and steps > self.krylov.steps:
            self.krylov.more_steps(steps - self.krylov.steps)

    def drop_warm_start(self) -> None:
        """Forget the last solve, so that what comes next does not depend on what was asked before."""
        self.version += 1
        self._solved: tuple[np.ndarray, np.ndarray] | None = None

    def _conditional_mean(self, alpha: np.ndarray) -> np.ndarray:
        """R with its conditional mean at U; the last one is kept, as start for the next and for the slopes."""
        if self._solved is None or not np.array_equal(self._solved[0], alpha):
            self._solved = np.array(alpha), self._solve(alpha)
        return self._solved[1]

    def _solve(self, alpha: np.ndarray) -> np.ndarray:
        start = None if self._solved is None else self._solved[1]
        return self.likelihood.conditional_mean(self.columns(), alpha, start, self.family)


def _cg_seconds(S: Matrix, k: int, steps: int) -> float:
    """Estimate a solve by conjugate gradients, of which the slowest alpha takes so many steps."""
    return 2e-3 + steps / 2 * (3e-5 + k * (1.2e-9 * S.nnz + 5e-9 * S.n_local))
