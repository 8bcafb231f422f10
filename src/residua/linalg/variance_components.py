"""Prior variances of coefficients by restricted likelihood (REML), from a small matrix of inner products.

    u_g ~ N(0, tau_g I) for each group g of coefficients,    noise of variance 1, all times an unknown factor
    f(tau) = m log q + logdet H,    H = I + D A D,    q = c - b' D H^-1 D b,    D = diag(tau)^1/2

(p q in place of m log q where the factor 1 / p is known). A = B' P B, b = B' P y, c = y' P y: B the columns of those
coefficients, P the precision of y with the coefficients that have no prior left out of account, m its degrees of
freedom. f is -2 restricted log-likelihood but for a constant.
With R = A - A D H^-1 D A and r = b - A D H^-1 D b its derivatives are sums over blocks of groups,

    df/dtau_g = tr R_gg - (m/q) |r_g|^2
    d2f/dtau_g dtau_h = -|R_gh|^2 + 2 (m/q) r_g' R_gh r_h - (m/q^2) |r_g|^2 |r_h|^2

and Newton's method in s = log(1 + tau / tau0) takes few steps: near 0, where a group is not needed, s is as good as
tau, and a variance of just 0 is reached; far out it is log tau.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

START, MOST = 2.0, 23.0  # of s: a moderate variance, and one so large that it is none
LONGEST = 3.0  # step
SETTLED = 1e-11  # of f: what a further step would gain
STEPS = 60
EXACT = 1e-15  # of y'Py: what rounding leaves of it where the columns fit y exactly


class Grams(NamedTuple):
    """Inner products of columns and of y, as in the module's formula."""

    A: np.ndarray  # (k, k)
    b: np.ndarray  # (k,)
    c: float


class _Misfit(NamedTuple):
    """What q counts for: m log q, or p q where the factor 1 / p of all variances is known."""

    m: int
    precision: float | None

    def of(self, q: float) -> tuple[float, float, float]:
        """Return the value, its slope in q, and minus its second derivative."""
        if self.precision is None:
            return self.m * np.log(q), self.m / q, self.m / q**2
        return self.precision * q, self.precision, 0.0


class _Point(NamedTuple):
    """f with its gradient and Hessian in s."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


def restricted_variances(grams: Grams, groups: np.ndarray, m: int, precision: float | None = None) -> np.ndarray:
    """Return tau of each column.

    Parameters
    ----------
    grams : Grams
        A (k, k), b (k,) and c.
    groups : ndarray of int, shape (k,)
        The group of each column: columns of a group share their variance.
    m : int
        Degrees of freedom of y.
    precision : float or None
        The inverse of the factor of all variances, where it is known.

    Returns
    -------
    ndarray of shape (k,)
        Prior variances in units of the noise's, 0 where a group is not needed.
    """
    names, place = np.unique(groups, return_inverse=True)
    member = (place[:, None] == np.arange(len(names))).astype(float)  # (k, groups)
    traces = grams.A.diagonal() @ member
    there = (traces > np.finfo(float).tiny) & (grams.c > np.finfo(float).tiny)
    if not there.any():
        return np.zeros(len(groups))
    misfit = _Misfit(m, None if precision is None else precision * grams.c)
    grams = Grams(grams.A, grams.b / np.sqrt(grams.c), 1.0)  # the unit of y is of no account
    unit = 1 / np.where(there, traces, 1.0)
    s = np.where(there, START, 0.0)
    here = _evaluated(grams, member, unit, s, misfit)
    for _ in range(STEPS):
        step = _newton_step(here, s)
        if -here.gradient @ step < 2 * SETTLED:
            break
        s, here = _descended(grams, member, unit, misfit, s, step, here)
    return (unit * np.expm1(s))[place]


def _evaluated(grams: Grams, member: np.ndarray, unit: np.ndarray, s: np.ndarray, misfit: _Misfit) -> _Point:
    A, b, c = grams
    tau, slope = unit * np.expm1(s), unit * np.exp(s)
    root = np.sqrt(tau @ member.T)
    L = np.linalg.cholesky(np.eye(len(b)) + root[:, None] * A * root)
    half = solve_triangular(L, root[:, None] * np.column_stack([A, b]), lower=True, check_finite=False)
    q = max(c - half[:, -1] @ half[:, -1], EXACT * c)
    R = A - half[:, :-1].T @ half[:, :-1]
    r = b - half[:, :-1].T @ half[:, -1]
    squares = (r * r) @ member
    value, first, second = misfit.of(q)
    gradient = (R.diagonal() @ member - first * squares) * slope
    blocks = member.T @ (2 * first * r[:, None] * R * r - R * R) @ member - second * np.outer(squares, squares)
    hessian = blocks * np.outer(slope, slope) + np.diag(gradient)
    return _Point(float(value + 2 * np.log(L.diagonal()).sum()), gradient, hessian)


def _newton_step(here: _Point, s: np.ndarray) -> np.ndarray:
    """A step inside the bounds of s that descends, also where f is not convex."""
    at_bound = ((s <= 0) & (here.gradient >= 0)) | ((s >= MOST) & (here.gradient <= 0))
    step = np.zeros_like(s)
    free = np.flatnonzero(~at_bound)
    values, vectors = np.linalg.eigh(here.hessian[np.ix_(free, free)])
    step[free] = -vectors @ ((vectors.T @ here.gradient[free]) / np.maximum(np.abs(values), 1e-8))
    step *= min(1.0, LONGEST / np.abs(step).max(initial=LONGEST))
    return np.clip(s + step, 0, MOST) - s


def _descended(
    grams: Grams, member: np.ndarray, unit: np.ndarray, misfit: _Misfit, s: np.ndarray, step: np.ndarray, here: _Point
) -> tuple[np.ndarray, _Point]:
    """The end of the longest of ``step``, half of it, and so on, at which f is no higher."""
    for _ in range(30):
        there = _evaluated(grams, member, unit, s + step, misfit)
        if there.value <= here.value:
            return s + step, there
        step = step / 2
    return s, here._replace(gradient=np.zeros_like(s))
