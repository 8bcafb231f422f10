"""The correlation beneath noise: the likelihood has one more parameter, how loud the noise is beside the field.

    Omega(a) = min over t of Omega(a, t),   t = log(beta sigma^2),   N_i = sigma^2 v_i

At each t all else is a profile likelihood without noise on a scaled operator (``residua.field.noise``), which serves
every alpha. Where the variances are known, sigma^2 = 1 and t is log beta itself. Where they are known up to a factor,
or not at all, beta is at its best at every t, and sigma^2 = exp(t) / beta. Omega is smooth in t: it is computed at some
t, and interpolated between them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from residua.field.alpha_interval import alpha_errors, inverse_of
from residua.field.bartlett import bartlett_factor
from residua.field.correlation import CorrelationFit, Sureness, at_limits, fit_at, maximise_likelihood, p_value, untold
from residua.field.likelihood import Likelihood
from residua.field.line_search import NODES, interpolate, minimise
from residua.field.noise import Noise
from residua.field.precision import A_MAX
from residua.field.profile import Profile
from residua.field.search import search
from residua.linalg.ridge import least_squares

QUIET, LOUD = 1e-4, 1e5  # noise in units of 1 / beta between which it is looked for, where it is learned
SMOOTH, ROUGH = 0.1, 1e6  # the same of the residuals' variance, where noise is known and beta is looked for
COARSE = 9  # first looks, evenly spaced in t
NEAR = 0.005  # to which t is found: a small part of its standard error
SPACING = 0.35  # of the t between which Omega is interpolated
STEP = 0.1  # of differences in t
REACH = 24  # spacings to both sides, as far as an interval looks for the best t


class NoiseLevel:
    """Profile likelihoods at many t, each found once.

    Parameters
    ----------
    likelihood : Likelihood
        Of the labels without noise.
    y : ndarray of shape (|L|,)
        Labels or residuals.
    noise : Noise
        What is known of the noise.
    design, groups : ndarray or None
        As in ``Profile``.
    t : float
        Where the best t is, once it is known.

    Attributes
    ----------
    p : int
        Number of edge types.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        y: np.ndarray,
        noise: Noise,
        design: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        t: float = 0.0,
    ):
        self.likelihood, self.noise, self.t, self.p = likelihood, noise, t, len(likelihood.terms)
        self.given = y, design, groups
        self.effort: tuple[int, ...] = ()  # of the log-determinants: the same at every t, so that Omega is smooth
        self.steps = 0
        self.profiles: dict[float, Profile] = {}
        self._best: tuple[bytes, float] = (b"", t)

    def at(self, t: float) -> Profile:
        """Return the profile likelihood at t."""
        t = float(t)
        if t not in self.profiles:
            y, design, groups = self.given
            likelihood = self.likelihood.with_gain(self.noise.gain(t))
            ratio = likelihood.ratio.with_effort(self.effort) if self.effort else None
            beta = None if self.noise.learned else float(np.exp(t))
            found = Profile(likelihood, y, design, ratio, groups=groups, beta=beta)
            if self.steps:
                found.quadratic_form.with_steps(self.steps)
            self.profiles[t] = found
        return self.profiles[t]

    def drop_warm_start(self) -> None:
        """Forget the last solves."""
        for profile in self.profiles.values():
            profile.drop_warm_start()

    def range(self) -> tuple[float, float]:
        """Return the ends between which t is looked for."""
        v = self.noise.relative
        rows, there = self.likelihood.rows, v > 0
        size = float(np.exp(rows.sum(np.log(v[there]).sum()) / max(rows.sum(int(there.sum())), 1)))
        if self.noise.learned:
            return float(np.log(QUIET / size)), float(np.log(LOUD / size))
        spread = self.at(-np.log(size)).size ** 2
        return float(np.log(SMOOTH / spread)), float(np.log(ROUGH / spread))

    def search(self) -> tuple[np.ndarray, Profile]:
        """Return the best a, and the profile at the best t; both are kept."""
        found: dict[float, np.ndarray] = {}

        def omega(t: float, near: np.ndarray | None = None) -> float:
            a, profile = search(self.at(t), near, rough=True)
            found[float(t)], self.profiles[float(t)] = a, profile
            return profile.omega(a)

        coarse = np.linspace(*self.range(), COARSE)
        values = [omega(t) for t in coarse]
        best = int(np.argmin(values))
        self._settle(self.profiles[float(coarse[best])])

        def negative(t: float) -> float:
            if t in found and t in self.profiles:
                return -self.profiles[t].omega(found[t])
            nearest = min(found, key=lambda s: abs(s - t))
            return -omega(t, found[nearest])

        ends = coarse[max(best - 1, 0)], coarse[min(best + 1, COARSE - 1)]
        known = {float(t): negative(float(t)) for t in coarse}
        self.t = float(minimise(lambda t: 0.0, negative, known, ends, NEAR))
        start = found[min(found, key=lambda s: abs(s - self.t))]
        a, profile = search(self.at(self.t), start)
        self._settle(profile)
        self.profiles[self.t] = profile
        return a, profile

    def _settle(self, profile: Profile) -> None:
        """Take as many probes and steps everywhere as this profile took."""
        effort = tuple(profile.ratio.effort)
        self.steps = profile.quadratic_form.steps
        if effort != self.effort:
            self.effort, self.profiles = effort, {}

    def omega(self, a: np.ndarray) -> float:
        """Return Omega(a), at the best t."""
        a = np.atleast_1d(a)
        return float(self._between(self._at_best(a), lambda profile: np.array([profile.omega(a)]))[0])

    def gradient(self, a: np.ndarray) -> np.ndarray:
        """Return dOmega/da, shape (p,)."""
        return self._between(self._at_best(a), lambda profile: profile.gradient(a))

    def restricted_log_likelihood(self, a: np.ndarray) -> float:
        """Return the restricted log-likelihood at the best t, in the units of y."""
        profile = self.at(self.t)
        return -self.omega(a) / 2 - profile.counted * float(np.log(profile.size))

    def _lattice(self, k: int) -> Profile:
        profile = self.at(self.t + SPACING * k)
        profile.quadratic_form.refine(np.tanh(np.linspace(-A_MAX, A_MAX, 7)), tol=1e-3 / profile.n)
        return profile

    def _at_best(self, a: np.ndarray) -> float:
        """Return the best t at a, in spacings from the best of all."""
        if self._best[0] == a.tobytes():
            return self._best[1]
        half = NODES // 2
        values = {k: self._lattice(k).omega(a) for k in range(-half, half + 1)}
        while (best := min(values, key=lambda k: values[k])) in (min(values), max(values)) and abs(best) < REACH:
            beyond = best + (1 if best == max(values) else -1)
            values[beyond] = self._lattice(beyond).omega(a)
        nodes = self._nodes(best)
        nodes = nodes[np.isin(nodes, list(values))]
        smooth = interpolate(nodes.astype(float), np.array([values[k] for k in nodes]))
        ends = max(best - 1, nodes[0]), min(best + 1, nodes[-1])
        found = float(minimize_scalar(smooth, bounds=ends, options={"xatol": 1e-3}).x)
        self._best = a.tobytes(), found
        return found

    @staticmethod
    def _nodes(place: float) -> np.ndarray:
        return round(place) + np.arange(-(NODES // 2), NODES // 2 + 1)

    def _between(self, place: float, ask: Callable[[Profile], np.ndarray]) -> np.ndarray:
        nodes = self._nodes(place)
        columns = np.array([ask(self._lattice(k)) for k in nodes]).T
        return np.array([interpolate(nodes.astype(float), column)(place) for column in columns])


def fit_with_noise(
    likelihood: Likelihood,
    y: np.ndarray,
    noise: Noise,
    design: np.ndarray | None,
    groups: np.ndarray | None,
    edge_types: tuple[str, ...],
    random_state: int,
) -> tuple[CorrelationFit, Profile, NoiseLevel | None]:
    """Fit alpha, beta, the noise where it is learned, and the coefficients of a linear mean.

    Returns
    -------
    fit : CorrelationFit
    profile : Profile
        At the best t.
    level : NoiseLevel or None
        None where the labels are likelier without any noise.
    """
    level = NoiseLevel(likelihood, y, noise, design, groups)
    a, profile = level.search()
    free = design if design is None or groups is None else design[:, groups == 0]
    if noise.learned:
        plain = Profile(likelihood, y, design, groups=groups)
        none, found = maximise_likelihood(plain, edge_types, None, bartlett_factor(plain, free, random_state))
        if found.omega(np.arctanh(np.array(list(none.alpha.values())))) <= profile.omega(a):
            methods = none.methods | {"noise": "none: the labels are likelier without"}
            return replace(none, noise_variance=0.0, noise_stderr=np.nan, methods=methods), found, None
    independent = _independent(level, profile)
    bartlett = bartlett_factor(independent, free, random_state)
    beside, independent = search(independent)
    gain = independent.omega(np.zeros(level.p)) - independent.omega(beside)
    note = untold(profile, a, bartlett)
    a = np.zeros(level.p) if note else a
    spread = _spread(level, profile, a)
    stderr = at_limits(profile, a, np.sqrt(spread.a) * (1 - np.tanh(a) ** 2))
    mc = alpha_errors(profile, a)[1]
    sure = Sureness(stderr, mc, np.sqrt(spread.log_beta), p_value(gain, level.p, bartlett), bartlett, note)
    fit = fit_at(profile, a, edge_types, sure)
    how = "of unknown strength" if noise.learned else "of known variances"
    fit = replace(fit, methods=fit.methods | {"noise": f"{how}; log beta to {NEAR} by a search"})
    if noise.learned:
        variance = float(np.exp(level.t)) / fit.beta
        fit = replace(fit, noise_variance=variance, noise_stderr=variance * float(np.sqrt(spread.log_noise)))
    return fit, profile, level


def _independent(level: NoiseLevel, profile: Profile) -> Profile:
    """Return the profile at the t that is best where alpha is 0, for the test of no correlation.

    Noise that is alike at all labels is nothing but residuals without correlation: there t is that of no noise.
    """
    noise, rows = level.noise, profile.likelihood.rows
    y, design, groups = level.given
    v = noise.relative
    if noise.learned and rows.max(v.max(initial=0)) == -rows.max(-v.min(initial=np.inf)):
        return Profile(level.likelihood, y, design, groups=groups)
    R = profile.quadratic_form.columns()

    def omega(t: float) -> float:
        gain, at_t = noise.gain(t), copy.copy(profile)
        at_t.unit_beta = None if noise.learned else float(np.exp(t)) * profile.size**2
        found = least_squares(rows.gram(R, gain[:, None] * R), profile.groups, profile.freedom, at_t.unit_beta)
        return at_t.misfit_of(found) - float(rows.sum(np.log(gain).sum()))

    grid = np.linspace(*level.range(), 4 * COARSE)
    best = int(np.argmin([omega(t) for t in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return level.at(rows.agree(float(minimize_scalar(omega, bounds=ends).x)))


class _Spread(NamedTuple):
    """Variances of what was estimated."""

    a: np.ndarray  # (p,)
    log_beta: float
    log_noise: float  # of log sigma^2, where that is learned


def _spread(level: NoiseLevel, profile: Profile, a: np.ndarray) -> _Spread:
    """Return variances from the curvature of Omega in (a, t), and beta's around its best at each of them."""
    p = level.p
    up, down = (level.at(level.t + step) for step in (STEP, -STEP))
    hessian = np.empty((p + 1, p + 1))
    hessian[:p, :p] = profile.hessian(a)
    hessian[p, :p] = hessian[:p, p] = (up.gradient(a) - down.gradient(a)) / (2 * STEP)
    hessian[p, p] = (up.omega(a) - 2 * profile.omega(a) + down.omega(a)) / STEP**2
    inverse, unsure = inverse_of(hessian, profile.n)
    covariance = 2 * inverse
    own = np.where(unsure, np.inf, covariance.diagonal())
    if not level.noise.learned:
        return _Spread(own[:p], float(own[p]), 0.0)

    def log_q(at: Profile, move: np.ndarray) -> float:
        return float(np.log(at.least_squares(np.tanh(a + move)).q))

    moves, step = np.eye(p), 1e-3
    by_a = [(log_q(profile, step * d) - log_q(profile, -step * d)) / (2 * step) for d in moves]
    by_t = (log_q(up, 0 * a) - log_q(down, 0 * a)) / (2 * STEP)
    of_beta = -np.array([*by_a, by_t])
    of_noise = np.eye(p + 1)[p] - of_beta
    beta, noise = (2 / profile.counted + g @ covariance @ g for g in (of_beta, of_noise))
    return _Spread(own[:p], float(beta), float(noise) if np.isfinite(own[p]) else np.inf)
