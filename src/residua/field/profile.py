"""The likelihood as a function of alpha: beta, and the mean's coefficients, profiled out.

    Omega(alpha) = |L| log(q / |L|) - h(alpha) + const,
    q = min over theta of (y - Z theta)' Gbar (y - Z theta),   Gbar = G_LL - G_LU G_UU^-1 G_UL

y labels or residuals at L, Z design of a linear mean (may be empty). Everything is a function of a = arctanh(alpha).
"""

from __future__ import annotations

import copy
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from residua.field.likelihood import Likelihood
from residua.field.quadratic_form import QuadraticForm
from residua.linalg import Estimate, Ratio

T = TypeVar("T")
TINY = 1e-150  # whose square is still a number: a column smaller than this is none


class LeastSquares(NamedTuple):
    """Generalised least squares at one alpha, in unit scale."""

    q: float
    theta: np.ndarray  # (d,) coefficients
    inverse: np.ndarray  # (d, d) (Z' Gbar Z)^+


class Profile:
    """Omega as a function of a = arctanh(alpha).

    Parameters
    ----------
    likelihood : Likelihood
        Of the labelled nodes.
    y : ndarray of shape (|L|,)
        Labels or residuals.
    design : ndarray of shape (|L|, d) or None
        Z, the columns of a linear mean.
    ratio : Ratio or None
        The log-determinants; by default those of ``likelihood``.
    """

    def __init__(
        self, likelihood: Likelihood, y: np.ndarray, design: np.ndarray | None = None, ratio: Ratio | None = None
    ):
        Z = np.empty((len(y), 0)) if design is None else design
        self.likelihood, rows = likelihood, likelihood.rows
        self.n, self.p = likelihood.n_labelled, len(likelihood.terms)
        # Columns of unit size, and y without its least-squares fit: labels may be counted in millions or in
        # millionths, or lie far from zero.
        norms = rows.norms(Z)
        self.units = np.where(norms > TINY, norms, 1.0)
        self.offset = rows.least_squares(Z / self.units, y)[0]
        rest = y - (Z / self.units) @ self.offset
        self.size = float(np.sqrt(rows.sum(rest @ rest) / self.n))
        if self.size <= 1e-13 * rows.max(np.abs(y).max(initial=0)):
            self._refuse()
        size, units = self.size, self.units
        self.quadratic_form = QuadraticForm(likelihood, lambda: np.column_stack([rest / size, Z / units]))
        self.ratio = likelihood.ratio if ratio is None else ratio
        self.logdets: dict[tuple[bytes, bool], Estimate] = {}

    def with_ratio(self, ratio: Ratio) -> Profile:
        """Return the same profile with sharper log-determinants."""
        other = copy.copy(self)
        other.ratio, other.logdets = ratio, {}
        return other

    def least_squares(self, alpha: np.ndarray) -> LeastSquares:
        """Return q and the coefficients at alpha."""
        Q = self.quadratic_form(alpha)
        inverse = np.linalg.pinv(Q[1:, 1:], rcond=1e-12, hermitian=True)
        theta = inverse @ Q[1:, 0]
        q = float(Q[0, 0] - Q[0, 1:] @ theta)
        if q <= 1e-13 * Q[0, 0]:
            self._refuse()
        return LeastSquares(q, theta, inverse)

    def _refuse(self) -> NoReturn:
        columns = len(self.units)
        if not columns:
            raise ValueError("residual is zero at every labelled node; there is nothing left to correlate.")
        raise ValueError(
            f"the mean fits all {self.n} labels exactly with {columns} column(s), which leaves no residual to learn "
            "from: y is constant, or has as many features as labels; use fewer, or a base such as Ridge."
        )

    def logdet(self, alpha: np.ndarray) -> Estimate:
        """Return h(alpha), each computed once."""
        key = alpha.tobytes(), self.quadratic_form.quadrature is None  # from when on all processes have to agree
        if key not in self.logdets:
            self.logdets[key] = self._agreed(self.ratio.value(alpha))
        return self.logdets[key]

    def omega(self, a: np.ndarray | float) -> float:
        """Return -2 log-likelihood in unit scale, beta and theta at their best."""
        return self.misfit(a) - float(self.logdet(np.tanh(np.atleast_1d(a))).value)

    def log_likelihood(self, a: np.ndarray) -> float:
        """Return the log-likelihood in the units of y."""
        return -self.omega(a) / 2 - self.n * float(np.log(self.size))

    def misfit(self, a: np.ndarray | float) -> float:
        """Return Omega but for the log-determinant."""
        q = self.least_squares(np.tanh(np.atleast_1d(a))).q
        return self._agreed(self.n * (np.log(q / self.n) + 1 + np.log(2 * np.pi)))

    def _agreed(self, value: T) -> T:
        """The same bits in all processes, where a search that asks for another alpha costs them a solve together."""
        return value if self.quadratic_form.quadrature is not None else self.likelihood.rows.agree(value)

    def gradient(self, a: np.ndarray) -> np.ndarray:
        """Return dOmega/da, shape (p,)."""
        alpha = np.tanh(a)
        q, theta, _ = self.least_squares(alpha)
        direction = np.concatenate([[1.0], -theta])
        slopes = np.array([direction @ dQ @ direction for dQ in self.quadratic_form.slopes(alpha)])
        return (self.n * slopes / q - self.ratio.gradient(alpha).value) * (1 - alpha**2)

    def hessian(self, a: np.ndarray, step: float = 0.02) -> np.ndarray:
        """Return the second derivatives of Omega in a, by central differences."""
        if self.p == 1:
            up, here, down = (self.omega(a + d) for d in (step, 0.0, -step))
            return np.array([[(up - 2 * here + down) / step**2]])
        rows = [(self.gradient(a + d) - self.gradient(a - d)) / (2 * step) for d in step * np.eye(self.p)]
        return (np.array(rows) + np.array(rows).T) / 2
