"""The restricted likelihood as a function of alpha: beta profiled out, the mean's coefficients left out of account.

    Omega(alpha) = (|L| - k) log(q / (|L| - k)) + logdet(W' Gbar W) - h(alpha) + const,
    q = min over theta of (y - Z theta)' Gbar (y - Z theta),   Gbar = G_LL - G_LU G_UU^-1 G_UL

Where beta is given, as beside noise of known variance, the first term is beta q - (|L| - k) log beta instead.
y labels or residuals at L, Z design of a linear mean (may be empty), k its rank at L, W an orthonormal basis of what
its columns span there: the likelihood of those parts of y that no coefficient can move. Without coefficients it is the
plain likelihood. Coefficients in groups with a prior of their own are integrated out of it, u_g ~ N(0, tau_g / beta);
they add theta' theta / tau to q and 1 / tau to W' Gbar W, log tau to its log-determinant, and nothing to k, and their
tau are at their best at every alpha. Everything is a function of a = arctanh(alpha).
"""

from __future__ import annotations

import copy
from typing import NoReturn, TypeVar

import numpy as np

from residua.field.likelihood import Likelihood
from residua.field.quadratic_form import QuadraticForm
from residua.linalg import Estimate, Ratio
from residua.linalg.ridge import LeastSquares, basis, least_squares, unit_variances

KEPT = 500  # alphas whose least squares are kept, where those take a search for prior variances

T = TypeVar("T")


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
    restricted : bool
        False for the plain likelihood, which takes the fitted coefficients for known ones.
    groups : ndarray of int, shape (d,), or None
        Groups of coefficients that share a prior variance, 0 for coefficients without a prior; None for all 0.
    beta : float or None
        The precision where it is given, in the units of y; None for its best at every alpha.

    Attributes
    ----------
    n, p, rank : int
        Number of labels and of edge types, and rank at the labels of the columns without a prior.
    freedom : int
        |L| - k, degrees of freedom of the residuals.
    counted : int
        How many numbers Omega is the likelihood of: ``freedom``, or |L| of the plain one.
    doubted : bool
        Whether a search has warned that probes leave alpha open.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        y: np.ndarray,
        design: np.ndarray | None = None,
        ratio: Ratio | None = None,
        restricted: bool = True,
        groups: np.ndarray | None = None,
        beta: float | None = None,
    ):
        Z = np.empty((len(y), 0)) if design is None else design
        groups = np.zeros(Z.shape[1], int) if groups is None else groups
        self.likelihood, rows = likelihood, likelihood.rows
        self.n, self.p = likelihood.n_labelled, len(likelihood.terms)
        # Columns of unit size, and y without its least-squares fit: labels may be counted in millions or in
        # millionths, or lie far from zero. Its level goes first, which rounds nothing.
        highest = rows.max(np.abs(y).max(initial=0))
        constant = bool(Z.shape[1]) and rows.max(np.abs(Z[:, 0] - 1).max(initial=0)) == 0
        self.level = float(rows.sum(y.sum()) / self.n) if constant else 0.0
        y = y - self.level
        # What the columns span counts, not how many there are: zeros, copies and constants add nothing.
        self.unit = unit_variances(rows, Z, groups)
        W, T, self.rank = basis(rows, Z, self.unit)
        self.columns, self.groups = Z.shape[1], np.r_[np.zeros(self.rank, int), groups[groups > 0]]
        self.freedom = self.n - self.rank
        self.restricted, self.counted = restricted, self.freedom if restricted else self.n
        self.offset, self.combine = np.where(self.groups == 0, rows.gram(W, y), 0.0), T
        rest = y - W @ self.offset
        self.size = float(np.sqrt(rows.sum(rest @ rest) / self.n))
        if self.freedom < 1 or self.size <= max(1e-13 * rows.max(np.abs(y).max(initial=0)), 4e-15 * highest):
            self._refuse()
        size = self.size
        self.unit_beta = None if beta is None else beta * size**2
        self.quadratic_form = QuadraticForm(likelihood, lambda: np.column_stack([rest / size, Z @ T]))
        self.ratio = likelihood.ratio if ratio is None else ratio
        self.logdets: dict[tuple[bytes, bool], Estimate] = {}
        self.fits: dict[tuple[bytes, int], LeastSquares] = {}
        self.hessians: dict[tuple[bytes, int], np.ndarray] = {}
        self.doubted = False

    def with_ratio(self, ratio: Ratio) -> Profile:
        """Return the same profile with sharper log-determinants."""
        other = copy.copy(self)
        other.ratio, other.logdets, other.hessians = ratio, {}, {}
        return other

    def least_squares(self, alpha: np.ndarray) -> LeastSquares:
        """Return q and the coefficients at alpha, in unit scale; prior variances at their best are found once."""
        key = alpha.tobytes(), self.quadratic_form.version
        if key in self.fits:
            return self.fits[key]
        Q = self.quadratic_form(alpha)
        found = least_squares(Q, self.groups, self.freedom, self.unit_beta)
        if found.q <= 1e-13 * Q[0, 0]:
            self._refuse()
        if self.groups.any():
            if len(self.fits) >= KEPT:
                self.fits.clear()
            self.fits[key] = found
        return found

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """Return the coefficients (d,) of the design, in the units of y, for those of W in unit scale."""
        found = self.combine @ (self.offset + theta * self.size)
        found[:1] += self.level
        return found

    def prior_variance(self, found: LeastSquares) -> np.ndarray:
        """Return the prior variances (d,) of coefficients of the design, in units of 1 / beta; infinite without one."""
        out = self.unit.copy()
        out[np.isfinite(out)] *= found.variance[self.rank :]
        return out

    def _refuse(self) -> NoReturn:
        if not self.columns:
            raise ValueError("residual is zero at every labelled node; there is nothing left to correlate.")
        raise ValueError(
            f"the mean fits all {self.n} labels exactly with {self.columns} column(s), which leaves no residual to "
            "learn from: y is constant, or has as many features as labels; use fewer, or a base such as Ridge."
        )

    def drop_warm_start(self) -> None:
        """Forget the last solve, so that what comes next does not depend on what was asked before."""
        self.quadratic_form.drop_warm_start()

    def logdet(self, alpha: np.ndarray) -> Estimate:
        """Return h(alpha), each computed once."""
        key = alpha.tobytes(), self.quadratic_form.by_solves  # from when on all processes have to agree
        if key not in self.logdets:
            h, gain = self.ratio.value(alpha), self.likelihood.channel.logdet(self.likelihood.rows)
            self.logdets[key] = self._agreed(Estimate(h.value + gain, h.stderr))
        return self.logdets[key]

    def omega(self, a: np.ndarray | float) -> float:
        """Return -2 restricted log-likelihood in unit scale, beta at its best."""
        return self.misfit(a) - float(self.logdet(np.tanh(np.atleast_1d(a))).value)

    def restricted_log_likelihood(self, a: np.ndarray) -> float:
        """Return the restricted log-likelihood in the units of y: of its part orthogonal to the design."""
        return -self.omega(a) / 2 - self.counted * float(np.log(self.size))

    def log_likelihood(self, a: np.ndarray) -> float:
        """Return the plain log-likelihood in the units of y, beta and theta at their best for this alpha.

        Coefficients that have a prior are integrated out, the prior's variances those of the restricted likelihood;
        their columns have no part in what those without a prior span at the labels.
        """
        alpha = np.tanh(np.atleast_1d(a))
        found = self.least_squares(alpha)
        misfit = self._agreed(self._gaussian(found.q, self.n) + found.prior_logdet)
        return (float(self.logdet(alpha).value) - misfit) / 2 - self.n * float(np.log(self.size))

    def misfit(self, a: np.ndarray | float) -> float:
        """Return Omega but for the log-determinant of the precision."""
        return self._agreed(self.misfit_of(self.least_squares(np.tanh(np.atleast_1d(a)))))

    def misfit_of(self, found: LeastSquares) -> float:
        """Return the same for a least-squares fit."""
        return self._gaussian(found.q, self.counted) + self.restricted * found.logdet

    def beta(self, found: LeastSquares) -> float:
        """Return beta in unit scale: the one that is given, or the best."""
        return self.freedom / found.q if self.unit_beta is None else self.unit_beta

    def _gaussian(self, q: float, m: int) -> float:
        """-2 log-density of m numbers whose quadratic form is q, but for its determinant."""
        if self.unit_beta is None:
            return float(m * (np.log(q / m) + 1 + np.log(2 * np.pi)))
        return float(self.unit_beta * q - m * np.log(self.unit_beta) + m * np.log(2 * np.pi))

    def _agreed(self, value: T) -> T:
        """The same bits in all processes, where a search that asks for another alpha costs them a solve together."""
        return self.likelihood.rows.agree(value) if self.quadratic_form.by_solves else value

    def gradient(self, a: np.ndarray) -> np.ndarray:
        """Return dOmega/da, shape (p,)."""
        alpha = np.tanh(a)
        found = self.least_squares(alpha)
        q, theta, inverse = found.q, found.theta, found.inverse
        direction = np.concatenate([[1.0], -theta])
        slopes = self.quadratic_form.slopes(alpha)
        q_slopes = np.array([direction @ dQ @ direction for dQ in slopes])
        traces = np.array([(inverse * dQ[1:, 1:]).sum() for dQ in slopes]) if self.restricted else 0.0
        pulls = self.counted * q_slopes / q if self.unit_beta is None else self.unit_beta * q_slopes
        return (pulls + traces - self.ratio.gradient(alpha).value) * (1 - alpha**2)

    def hessian(self, a: np.ndarray) -> np.ndarray:
        """Return the second derivatives of Omega in a, by central differences; each computed once."""
        key = a.tobytes(), self.quadratic_form.version
        if key not in self.hessians:
            self.hessians[key] = self._hessian(a)
        return self.hessians[key]

    def _hessian(self, a: np.ndarray, step: float = 0.02) -> np.ndarray:
        if self.p == 1:
            up, here, down = (self.omega(a + d) for d in (step, 0.0, -step))
            return np.array([[(up - 2 * here + down) / step**2]])
        rows = [(self.gradient(a + d) - self.gradient(a - d)) / (2 * step) for d in step * np.eye(self.p)]
        return (np.array(rows) + np.array(rows).T) / 2
