"""Correlation learned from residuals: maximum likelihood, and how sure it is.

    beta = (|L| - d) / q,   alpha = argmin Omega(alpha)

d coefficients of a linear mean fitted together with it use up degrees of freedom, as in least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import chdtrc, ndtri

from residua.field.alpha_interval import alpha_errors, log_beta_stderr, stderr_near_limit
from residua.field.precision import ALPHA_MAX
from residua.field.profile import Profile
from residua.field.search import search


class ProfileSource(Protocol):
    """Where a fit can ask its likelihood again."""

    def interval(self, a: np.ndarray, t: int, coverage: float) -> tuple[float, float]:
        """Return the profile-likelihood interval of alpha_t around the best a."""
        ...

    def log_likelihood(self, a: np.ndarray) -> float:
        """Return the log-likelihood at alpha = tanh(a), a of shape (p,), beta and coefficients at their best."""
        ...


@dataclass(frozen=True)
class CorrelationFit:
    """What residuals say of the correlation along edges, and how each number was computed.

    Attributes
    ----------
    alpha, alpha_stderr : dict of str to float
        Strength and sign by edge type, and its standard error.
    beta, beta_stderr : float
        Overall precision, corrected for the coefficients of a linear mean, and its standard error.
    log_likelihood : float
        At the optimum.
    p_value : float
        Of no correlation, by the likelihood-ratio test.
    n_labelled : int
        Labels that it rests on.
    alpha_mc_error : dict of str to float
        Error of alpha from random probes; 0 where the log-determinant is exact.
    methods : dict of str to str
        How each number was computed.
    coefficients, coefficient_covariance : ndarray
        Of a linear mean fitted with the correlation, (d,) and (d, d).
    source : ProfileSource or None
        Where the likelihood can be asked again; intervals rest on the standard errors without it.
    """

    alpha: dict[str, float]
    alpha_stderr: dict[str, float]
    beta: float
    beta_stderr: float
    log_likelihood: float
    p_value: float
    n_labelled: int
    alpha_mc_error: dict[str, float]
    methods: dict[str, str]
    coefficients: np.ndarray = field(default_factory=lambda: np.empty(0))
    coefficient_covariance: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    source: ProfileSource | None = field(default=None, repr=False, compare=False)

    def interval(self, coverage: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return the profile-likelihood interval of each alpha; an end at -1 or 1 is open."""
        if self.source is None:
            return {t: _wald(self.alpha[t], self.alpha_stderr[t], coverage) for t in self.alpha}
        a = np.arctanh(np.clip(list(self.alpha.values()), -ALPHA_MAX, ALPHA_MAX))
        return {name: self.source.interval(a, t, coverage) for t, name in enumerate(self.alpha)}

    def summary(self) -> str:
        """Return the fit as a few lines of text."""
        lines = [f"Correlation of residuals at {self.n_labelled:,} labelled nodes", ""]
        for t, value in self.alpha.items():
            mc = f", Monte-Carlo error {self.alpha_mc_error[t]:.1g}" if self.alpha_mc_error[t] else ""
            digits = 4 if abs(value) < 0.999 else 6
            lines.append(f"  alpha[{t}] = {value:+.{digits}f}  (standard error {self.alpha_stderr[t]:.2g}{mc})")
        lines += [
            f"  beta = {self.beta:.4g}  (standard error {self.beta_stderr:.2g})",
            f"  log-likelihood = {self.log_likelihood:.2f}",
            f"  p = {self.p_value:.3g} for no correlation (likelihood-ratio test)",
            "",
            *(f"  {what}: {how}" for what, how in self.methods.items()),
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def maximise_likelihood(
    profile: Profile, edge_types: tuple[str, ...], start: np.ndarray | None = None
) -> tuple[CorrelationFit, Profile]:
    """Fit alpha, beta and the coefficients, near a = ``start`` where that is given; also the profile as it was left."""
    a, profile = search(profile, start)
    alpha = np.tanh(a)
    q, theta, inverse = profile.least_squares(alpha)
    stderr, mc = alpha_errors(profile, a)
    for t in np.flatnonzero(np.abs(alpha) > 0.9999):
        stderr[t] = stderr_near_limit(profile, a, int(t))
    beta = max(profile.n - len(theta), 1) / q
    gain = profile.omega(np.zeros(profile.p)) - profile.omega(a)
    units = profile.size / profile.units

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(edge_types, map(float, values), strict=True))

    fit = CorrelationFit(
        alpha=named(alpha),
        alpha_stderr=named(stderr),
        beta=beta / profile.size**2,
        beta_stderr=log_beta_stderr(profile, a) * beta / profile.size**2,
        log_likelihood=profile.log_likelihood(a),
        p_value=float(chdtrc(profile.p, max(gain, 0.0))),
        n_labelled=profile.n,
        alpha_mc_error=named(mc),
        methods={"log-determinant": profile.ratio.method, "quadratic form": profile.quadratic_form.method},
        coefficients=(profile.offset + theta * profile.size) / profile.units,
        coefficient_covariance=inverse / beta * np.outer(units, units),
    )
    return fit, profile


def _wald(alpha: float, stderr: float, coverage: float) -> tuple[float, float]:
    width = ndtri((1 + coverage) / 2) * stderr / (1 - alpha**2)
    low, high = np.tanh(np.arctanh(alpha) + np.array([-width, width]))
    return float(low), float(high)
