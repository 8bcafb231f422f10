"""Correlation learned from residuals: maximum restricted likelihood, and how sure it is.

    beta = (|L| - k) / q,   alpha = argmin Omega(alpha)

Coefficients of a linear mean fitted together with it use up degrees of freedom, as in least squares: as many as the
rank k of its design at the labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import chdtrc, chdtri, ndtri

from residua.field.alpha_interval import alpha_errors, log_beta_stderr, stderr_near_limit
from residua.field.kinds import smoothing
from residua.field.precision import A_MAX, ALPHA_MAX
from residua.field.profile import Profile
from residua.field.search import search


class ProfileSource(Protocol):
    """Where a fit can ask its likelihood again."""

    def interval(self, a: np.ndarray, t: int, drop: float) -> tuple[float, float]:
        """Return where -2 profile log-likelihood of alpha_t has risen by ``drop`` from the best a."""

    def restricted_log_likelihood(self, a: np.ndarray) -> float:
        """Return the restricted log-likelihood at alpha = tanh(a), a of shape (p,), beta at its best."""


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
        Plain log-likelihood at this alpha, beta and coefficients at their best: for comparing models, whatever their
        features.
    restricted_log_likelihood : float
        What alpha maximises: the log-likelihood of those parts of the labels that no coefficient of the mean can move.
        Without coefficients the two are equal. Models with different features cannot be compared by it.
    p_value : float
        Of no correlation, by the restricted likelihood-ratio test.
    bartlett_factor : float
        By which the test's statistic is divided, and the drop at an interval's end multiplied: above 1 where labels
        are few.
    n_labelled : int
        Labels that it rests on.
    alpha_mc_error : dict of str to float
        Error of alpha from random probes; 0 where the log-determinant is exact.
    log_likelihood_mc_error : float
        The same of both log-likelihoods. A fit takes probes until alpha is told, not until these are: compare models
        whose likelihoods differ by less with ``logdet=Cholesky()``, or with more probes.
    methods : dict of str to str
        How each number was computed.
    note : str
        One line where the labels do not tell alpha, which is then 0; else empty.
    coefficients, coefficient_covariance : ndarray
        Of a linear mean fitted with the correlation, (d,) and (d, d).
    prior_variance : ndarray
        Of the coefficients, (d,), in units of 1 / beta: infinite for a coefficient without a prior. That of each group
        of coefficients is where the restricted likelihood is highest.
    source : ProfileSource or None
        Where the likelihood can be asked again; intervals rest on the standard errors without it.
    noise_variance, noise_stderr : float or None
        Learned variance of the noise of a label of weight 1, and its standard error; None where it is not learned.
    highest_degree : float or None
        c of a Laplacian field: ``alpha`` is the share of its neighbours' mean that a node of that degree takes. None
        for the normalised field.
    """

    alpha: dict[str, float]
    alpha_stderr: dict[str, float]
    beta: float
    beta_stderr: float
    log_likelihood: float
    restricted_log_likelihood: float
    p_value: float
    n_labelled: int
    alpha_mc_error: dict[str, float]
    methods: dict[str, str]
    log_likelihood_mc_error: float = 0.0
    bartlett_factor: float = 1.0
    note: str = ""
    coefficients: np.ndarray = field(default_factory=lambda: np.empty(0))
    coefficient_covariance: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    prior_variance: np.ndarray = field(default_factory=lambda: np.empty(0))
    source: ProfileSource | None = field(default=None, repr=False, compare=False)
    noise_variance: float | None = None
    noise_stderr: float | None = None
    highest_degree: float | None = None

    def interval(self, coverage: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return the profile-likelihood interval of each alpha; an end at -1 or 1 is open."""
        if self.source is None:
            return {t: _wald(self.alpha[t], self.alpha_stderr[t], coverage) for t in self.alpha}
        a = np.arctanh(np.clip(list(self.alpha.values()), -ALPHA_MAX, ALPHA_MAX))
        drop = self.bartlett_factor * float(chdtri(1, 1 - coverage))
        return {name: self.source.interval(a, t, drop) for t, name in enumerate(self.alpha)}

    @property
    def smoothing(self) -> float | None:
        """The a of the Laplacian field ``beta_0 (I + a (D - A))``; None for the normalised field."""
        if self.highest_degree is None:
            return None
        return smoothing(next(iter(self.alpha.values())), self.highest_degree)

    def smoothing_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Return the profile-likelihood interval of ``smoothing``; an infinite end is open."""
        if self.highest_degree is None:
            raise ValueError('the normalised field has no smoothing; fit with field="laplacian", or see interval().')
        low, high = (smoothing(end, self.highest_degree) for end in self.interval(coverage)[next(iter(self.alpha))])
        return low, high

    def summary(self) -> str:
        """Return the fit as a few lines of text."""
        lines = [f"Correlation of residuals at {self.n_labelled:,} labelled nodes", ""]
        if self.smoothing is not None:
            lines.append(
                f"  smoothing a = {self.smoothing:.4g} of the Laplacian; highest degree {self.highest_degree:.4g}"
            )
        for t, value in self.alpha.items():
            mc = f", Monte-Carlo error {self.alpha_mc_error[t]:.1g}" if self.alpha_mc_error[t] else ""
            digits = 4 if abs(value) < 0.999 else 6
            lines.append(f"  alpha[{t}] = {value:+.{digits}f}  (standard error {self.alpha_stderr[t]:.2g}{mc})")
        error = self.log_likelihood_mc_error
        noise = f"; Monte-Carlo error {error:.2g}" if error else ""
        lines += [
            f"  beta = {self.beta:.4g}  (standard error {self.beta_stderr:.2g})",
            *self._noise_lines(),
            f"  log-likelihood = {self.log_likelihood:.2f} (restricted: {self.restricted_log_likelihood:.2f}{noise})",
            f"  p = {self.p_value:.3g} for no correlation (likelihood-ratio test)",
            *([f"  {self.note}"] if self.note else []),
            "",
            *(f"  {what}: {how}" for what, how in self.methods.items()),
        ]
        return "\n".join(lines)

    def _noise_lines(self) -> list[str]:
        if self.noise_variance is None:
            return []
        return [f"  noise variance = {self.noise_variance:.4g}  (standard error {self.noise_stderr:.2g})"]

    def __str__(self) -> str:
        return self.summary()


def maximise_likelihood(
    profile: Profile, edge_types: tuple[str, ...], start: np.ndarray | None = None, bartlett: float = 1.0
) -> tuple[CorrelationFit, Profile]:
    """Fit alpha, beta and the coefficients, near a = ``start`` where that is given; also the profile as it was left."""
    a, profile = search(profile, start)
    gain = profile.omega(np.zeros(profile.p)) - profile.omega(a)
    note = untold(profile, a, bartlett)
    if note:
        a = np.zeros(profile.p)
    stderr, mc = alpha_errors(profile, a)
    stderr = at_limits(profile, a, stderr)
    sure = Sureness(stderr, mc, log_beta_stderr(profile, a), p_value(gain, profile.p, bartlett), bartlett, note)
    return fit_at(profile, a, edge_types, sure), profile


class Sureness(NamedTuple):
    """How sure a fit is."""

    alpha: np.ndarray  # (p,) standard errors
    mc: np.ndarray  # (p,) of alpha, by random probes
    log_beta: float
    p_value: float
    bartlett: float
    note: str


def p_value(gain: float, p: int, bartlett: float) -> float:
    """Return that of no correlation, which p alphas better by ``gain`` of Omega."""
    return float(chdtrc(p, max(gain, 0.0) / bartlett))


def at_limits(profile: Profile, a: np.ndarray, stderr: np.ndarray) -> np.ndarray:
    """Return standard errors (p,) of alpha, where it is near -1 or 1 those of how far inside Omega rises by one."""
    # A descent in several alphas may end short of a limit that it goes to.
    for t in np.flatnonzero(np.abs(np.tanh(a)) > (0.9999 if profile.p == 1 else 0.999)):
        stderr[t] = np.inf if crowded(profile) else stderr_near_limit(profile, a, int(t))
    return stderr


def fit_at(profile: Profile, a: np.ndarray, edge_types: tuple[str, ...], sure: Sureness) -> CorrelationFit:
    """Return the fit at a, with its errors."""
    alpha = np.tanh(a)
    found = profile.least_squares(alpha)
    beta = profile.beta(found)

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(edge_types, map(float, values), strict=True))

    return CorrelationFit(
        alpha=named(alpha),
        alpha_stderr=named(sure.alpha),
        beta=beta / profile.size**2,
        beta_stderr=sure.log_beta * beta / profile.size**2,
        log_likelihood=profile.log_likelihood(a),
        restricted_log_likelihood=profile.restricted_log_likelihood(a),
        log_likelihood_mc_error=float(profile.logdet(alpha).stderr) / 2,
        p_value=sure.p_value,
        n_labelled=profile.n,
        alpha_mc_error=named(sure.mc),
        methods={"log-determinant": profile.ratio.method, "quadratic form": profile.quadratic_form.method},
        bartlett_factor=sure.bartlett,
        note=sure.note,
        coefficients=profile.coefficients(found.theta),
        coefficient_covariance=profile.combine @ (found.inverse * profile.size**2 / beta) @ profile.combine.T,
        prior_variance=profile.prior_variance(found),
    )


def crowded(profile: Profile) -> bool:
    """Return whether there are more edge types than the labels can tell apart: fewer than ten labels for each."""
    return profile.p > max(3, profile.n / 10)


def untold(profile: Profile, a: np.ndarray, bartlett: float) -> str:
    """One line where 95 % intervals leave every alpha possible; empty where the labels tell something of it."""
    limit = profile.omega(a) + bartlett * float(chdtri(profile.p, 0.05))
    if profile.p <= 3:
        corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * profile.p)).reshape(profile.p, -1).T
    else:  # all together, and each by itself
        corners = np.concatenate([sign * np.vstack([np.ones(profile.p), np.eye(profile.p)]) for sign in (1, -1)])
    for corner in np.concatenate([0 * corners[:1], A_MAX * corners, A_MAX / 4 * corners]):
        if profile.omega(corner) > limit:
            return ""
    mean = f" beside {profile.rank} coefficient(s) of the mean" if profile.rank else ""
    return (
        f"the {profile.n} labels do not tell alpha{mean}: every value from -1 to 1 is likely enough, and it is kept at "
        "0; give more labels that edges join, or fewer features."
    )


def _wald(alpha: float, stderr: float, coverage: float) -> tuple[float, float]:
    width = ndtri((1 + coverage) / 2) * stderr / (1 - alpha**2)
    low, high = np.tanh(np.arctanh(alpha) + np.array([-width, width]))
    return float(low), float(high)
