"""How sure a profile likelihood is of its best alpha and beta: standard errors, profile-likelihood intervals.

Var(a) ~ 2 (d2 Omega / da2)^-1,    interval: Omega(alpha_t, others at their best) - Omega* <= chi2 quantile
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult, brentq, minimize
from scipy.special import chdtri

from residua.field.precision import A_MAX
from residua.field.profile import Profile


def _inverse_hessian(profile: Profile, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse along directions in which Omega curves upward, and (p,) bool: alphas that have part in others."""
    values, vectors = np.linalg.eigh(profile.hessian(a))
    flat = values < 1e-9 * profile.n
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
    slope = profile.n * np.array(cross) / (2 * step * q)
    spread, _ = _inverse_hessian(profile, a)
    return float(np.sqrt(2 / profile.n + 2 * slope @ spread @ slope / profile.n**2))


def stderr_near_limit(profile: Profile, a: np.ndarray, t: int) -> float:
    """Return the standard error of alpha_t near 1, where curvature says little: how far inside Omega rises by one."""
    top = profile.omega(a) + 1.0
    inside = _crossing(lambda x: _others_best(profile, a, t, x) - top, a[t], -int(np.sign(a[t])), tol=0.02)
    return abs(float(np.tanh(a[t])) - inside)


def profile_interval(profile: Profile, a: np.ndarray, t: int, coverage: float) -> tuple[float, float]:
    """Return where the profile likelihood of alpha_t falls by the chi-square quantile."""
    profile.quadratic_form.drop_warm_start()  # the same answer twice, and from a loaded model
    limit = profile.omega(a) + chdtri(1, 1 - coverage)
    ends = [_crossing(lambda x: _others_best(profile, a, t, x) - limit, a[t], sign) for sign in (-1, 1)]
    return ends[0], ends[1]


def _crossing(excess: Callable[[float], float], start: float, sign: int, tol: float = 1e-4) -> float:
    """The alpha at which ``excess`` turns positive on one side of ``start``; -1 or 1 if it never does."""
    inner, step = start, 0.25
    while sign * inner < A_MAX:
        outer = float(np.clip(inner + sign * step, -A_MAX, A_MAX))
        if excess(outer) > 0:
            return float(np.tanh(brentq(excess, inner, outer, xtol=tol)))
        if sign * outer == A_MAX:
            break
        inner, step = outer, 2 * step
    return float(sign)


def _others_best(profile: Profile, a: np.ndarray, t: int, x: float) -> float:
    """Omega with a_t = x and the others at their best, to a thousandth: the drop at an interval's end is four."""
    fixed = a.copy()
    fixed[t] = x
    if profile.p == 1:
        return profile.omega(fixed)
    bounds = [(-A_MAX, A_MAX)] * profile.p
    bounds[t] = (x, x)
    return float(descend(profile, fixed, bounds, 1e-3).fun)


def descend(
    profile: Profile, start: np.ndarray, bounds: list[tuple[float, float]], tolerance: float | None = None
) -> OptimizeResult:
    """Minimise Omega inside ``bounds`` from ``start``, to ``tolerance`` of Omega where that is given."""
    options = {} if tolerance is None else {"ftol": tolerance / max(abs(profile.omega(start)), 1.0)}
    return minimize(profile.omega, start, jac=profile.gradient, method="L-BFGS-B", bounds=bounds, options=options)
