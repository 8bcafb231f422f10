"""Bartlett's factor: what the likelihood-ratio statistic of alpha is on average, where labels are few.

    c = E[Omega(0) - min Omega] / p,    (Omega(0) - min Omega) / c ~ chi-square with p degrees of freedom

m labels beyond the rank of the mean, p edge types. With many labels c is 1. With few it is no less than for the test of
p coefficients in a regression with m - p degrees of freedom, m (psi(m / 2) - psi((m - p) / 2)) / p; for one edge type
no less than the mean over simulated independent noise at the same labels: it may be a few edges that speak of alpha.
Labels seen through noise are simulated with its variances, their common factor at its best.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from residua.field.precision import A_MAX
from residua.field.profile import Profile
from residua.field.quadratic_form import QuadraticForm

FEW = 64  # labels; degrees of freedom
DRAWS = 1000
SPACING = 0.35
GRID = np.r_[-A_MAX, SPACING * np.arange(-12, 13), A_MAX]  # of a


def bartlett_factor(profile: Profile, design: np.ndarray | None, random_state: int = 0) -> float:
    """Return c, at least 1.

    Parameters
    ----------
    profile : Profile
        Omega as a function of a = arctanh(alpha).
    design : ndarray of shape (|L|, d) or None
        Z, the columns of its linear mean. Those of coefficients with a prior are left out: independent noise does not
        ask for them.
    random_state : int
        Seed of the simulated noise.
    """
    m, p = profile.freedom, profile.p
    if m > FEW or m <= p:
        return 1.0
    factor = float(m * (digamma(m / 2) - digamma((m - p) / 2)) / p)
    if p == 1 and profile.n <= FEW:
        noise = np.random.default_rng(random_state).standard_normal((profile.n, DRAWS))
        if (gain := profile.likelihood.channel.gain) is not None:
            noise /= np.sqrt(np.concatenate(profile.likelihood.rows.gather(gain)))[:, None]
        factor = max(factor, float(np.mean(_statistics(profile, design, noise))))
    return profile.likelihood.rows.agree(factor)


def _statistics(profile: Profile, design: np.ndarray | None, noise: np.ndarray) -> np.ndarray:
    """Omega(0) - min Omega for each column of ``noise`` (|L|, draws), labels of no correlation."""
    likelihood, rows = profile.likelihood, profile.likelihood.rows
    own = len(likelihood.L)
    before = sum(rows.gather(own)[: rows.rank])
    unit = np.eye(profile.n)[before : before + own]  # columns whose quadratic form is Gbar itself
    W = np.empty((profile.n, 0)) if design is None else rows.gram(unit, rows.column_basis(design)[0])
    precision = QuadraticForm(likelihood, lambda: unit)
    omega = np.array([_omega(precision(np.array([alpha])), W, noise) for alpha in np.tanh(GRID)])
    best = np.argmin(omega, axis=0)
    inner = np.clip(best, 2, len(GRID) - 3)  # evenly spaced neighbours on both sides
    down, here, up = (np.take_along_axis(omega, inner[None] + k, axis=0)[0] for k in (-1, 0, 1))
    bend = down - 2 * here + up
    smooth = (best == inner) & (bend > 0)
    below = np.where(smooth, (down - up) ** 2 / (8 * np.where(smooth, bend, 1.0)), 0.0)  # the parabola's least value
    return omega[len(GRID) // 2] - omega.min(axis=0) + below


def _omega(precision: np.ndarray, W: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Omega but for a constant, for each column of noise."""
    inner = W.T @ precision @ W
    pulled = precision @ noise
    explained = W.T @ pulled
    q = np.einsum("ij,ij->j", noise, pulled) - np.einsum("ij,ij->j", explained, np.linalg.solve(inner, explained))
    return (len(W) - W.shape[1]) * np.log(q) + np.linalg.slogdet(inner)[1] - np.linalg.slogdet(precision)[1]
