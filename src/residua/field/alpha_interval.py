"""How sure a profile likelihood is of its best alpha and beta: standard errors, profile-likelihood intervals.

Var(a) ~ 2 (d2 Omega / da2)^-1,    interval: Omega(alpha_t, others at their best) - Omega* <= drop

``drop`` is the chi-square quantile times Bartlett's factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.optimize import OptimizeResult, brentq, minimize

from residua.field.precision import A_MAX
from residua.field.profile import Profile


class OmegaOfA(Protocol):
    """-2 log-likelihood as a function of a (p,), all else at its best."""

    p: int

    def omega(self, a: np.ndarray) -> float: ...
    def gradient(self, a: np.ndarray) -> np.ndarray: ...
    def drop_warm_start(self) -> None: ...


def _inverse_hessian(profile: Profile, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse along directions in which Omega curves upward, and (p,) bool: alphas that have part in others."""
    return inverse_of(profile.hessian(a), profile.n)


def inverse_of(hessian: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of the Hessian (k, k) of Omega for n labels."""
    values, vectors = np.linalg.eigh(hessian)
    flat = values < 1e-9 * n
    inverse = (vectors / np.where(flat, np.inf, values)) @ vectors.T
    return inverse, np.any(np.abs(vectors[:, flat]) > 1e-6, axis=1)


def alpha_errors(profile: Profile, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard errors (p,) of alpha and their Monte-Carlo errors."""
    alpha = np.tanh(a)
    inverse, unsure = _inverse_hessian(profile, a)
    stderr = np.sqrt(2 * np.diag(inverse)) * (1 - alpha**2)
    mc = np.zeros(profile.p)
    if not profile.ratio.exact:
        noise = np.asarray(profile.ratio.gradient(alpha).stderr) * (1 - alpha**2)
        mc = np.sqrt((inverse**2) @ noise**2) * (1 - alpha**2)
    return np.where(unsure, np.inf, stderr), mc


def log_beta_stderr(profile: Profile, a: np.ndarray, step: float = 1e-3) -> float:
    """Return the standard error of log beta.

    From the joint information of (a, log beta), whose Schur complement in a is the profile's Hessian.
    """
    moves, q = step * np.eye(profile.p), profile.least_squares(np.tanh(a)).q
    cross = [profile.least_squares(np.tanh(a + d)).q - profile.least_squares(np.tanh(a - d)).q for d in moves]
    m = profile.counted
    slope = m * np.array(cross) / (2 * step * q)
    spread, _ = _inverse_hessian(profile, a)
    return float(np.sqrt(2 / m + 2 * slope @ spread @ slope / m**2))


def stderr_near_limit(profile: Profile, a: np.ndarray, t: int) -> float:
    """Return the standard error of alpha_t near 1, where curvature says little: how far inside Omega rises by one."""
    top = profile.omega(a) + 1.0
    inside = _crossing(_OthersBest(profile, a, t, top), a[t], -int(np.sign(a[t])), tol=0.02)
    return abs(float(np.tanh(a[t])) - inside)


def profile_interval(profile: OmegaOfA, a: np.ndarray, t: int, drop: float) -> tuple[float, float]:
    """Return where -2 profile log-likelihood of alpha_t has risen by ``drop`` from its value at a."""
    profile.drop_warm_start()  # the same answer twice, and from a loaded model
    limit = profile.omega(a) + drop
    above = [_OthersBest(profile, a, t, limit) for _ in range(2)]
    return _crossing(above[0], a[t], -1), _crossing(above[1], a[t], 1)


def _crossing(excess: Callable[[float], float], start: float, sign: int, tol: float = 1e-4) -> float:
    """The alpha at which ``excess`` turns positive on one side of ``start``; -1 or 1 if it never does."""
    inner, step = start, 0.25
    seen = {start: excess(start)}  # where others are sought from the last one's end, asking again may say otherwise
    while sign * inner < A_MAX:
        outer = float(np.clip(inner + sign * step, -A_MAX, A_MAX))
        seen[outer] = excess(outer)
        if seen[outer] > 0:
            return float(np.tanh(brentq(lambda x: seen[x] if x in seen else excess(x), inner, outer, xtol=tol)))
        inner, step = outer, 2 * step
    return float(sign)


class _OthersBest:
    """Omega above a limit, with a_t = x and the others at their best, each search for them from the last one's end.

    To a thousandth: the drop at an interval's end is four.
    """

    def __init__(self, profile: OmegaOfA, a: np.ndarray, t: int, limit: float):
        self.profile, self.a, self.t, self.limit = profile, a.copy(), t, limit

    def __call__(self, x: float) -> float:
        self.a[self.t] = x
        if self.profile.p == 1:
            return self.profile.omega(self.a) - self.limit
        bounds = [(-A_MAX, A_MAX)] * self.profile.p
        bounds[self.t] = (x, x)
        found = descend(self.profile, self.a, bounds, 1e-3)
        self.a = found.x
        return float(found.fun) - self.limit


def descend(profile: OmegaOfA, start: np.ndarray, bounds: list, tolerance: float | None = None) -> OptimizeResult:
    """Minimise Omega inside ``bounds`` from ``start``, to ``tolerance`` of Omega where that is given."""
    options = {} if tolerance is None else {"ftol": tolerance / max(abs(profile.omega(start)), 1.0)}
    return minimize(profile.omega, start, jac=profile.gradient, method="L-BFGS-B", bounds=bounds, options=options)
