"""How much larger errors are at some nodes than the field says, and how long their tails are.

    z_i = s_i e_i,   e_i ~ t_nu of variance 1,    log s_i = c + v_i' g + log(local_i)
    local_i^2 = (b w_i + T_i1 + r T_i2) / (b + W_i1 + r W_i2),   w_i = (a m + T_i3) / (a + W_i3)

z leave-one-out errors over the standard deviations of the field, v columns (features, degree, the prediction itself),
T and W sums of squared z over the labels around i and of ones (`neighbour_errors.py`), w that of its region, m of all.
All of it is fitted after the mean, which does not change, by maximum likelihood of the z; g has a prior whose variance
is learned: columns that tell nothing are given up. With few labels, or where z do not support more, s = 1 and e is
Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import digamma, gammaln, ndtr, ndtri, stdtrit

from residua.field.neighbour_errors import HOPS, LARGEST, Neighbourhood

FEWEST = 50  # labels left out: with fewer the field is taken at its word
MOST = 50_000  # labels that a fit looks at
SLIMMEST = 2.5  # degrees of freedom at least: a variance has to be there, and not to be all tail
FURTHEST = 2.5  # standard deviations of a column that count
MARGIN = 2.0  # nats by which a richer spread has to be likelier, beside one for each parameter
ROUNDS = 4  # of learning the variance of the coefficients
# Standard deviations of wide normal priors of log b, the logit of r, log a and log(nu - 2.5), and their means.
PRIORS = np.array([3.0, 2.0, 3.0, 2.0])
START = np.array([0.0, 0.0, -2.0, 1.0])
LIMITS = [(None, None), (-6.0, 12.0), (-5.0, 5.0), (-8.0, 8.0), (-8.0, 5.0)]
SHAPE = len(LIMITS)  # numbers beside the coefficients
AROUND = "errors of labels around"  # what these add to the scale is called so
TABLE = np.linspace(-8.5, 8.5, 3401)


def _none() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True)
class Spread:
    """A fitted scale and the tails of errors; by default none: scale 1 and Gaussian tails.

    Attributes
    ----------
    df : float
        Degrees of freedom of Student's t, infinite for a Gaussian.
    level : float
        c, log of the scale at an average node.
    names : tuple of str
        What each column is.
    coefficients : (k,) array
        Change of the log scale by a standard deviation of each column.
    centre, unit : (k,) array
        Mean and standard deviation of each column at the labels of the fit.
    prior_weight : float
        b, what the region counts beside the labels around a node; infinite where these say nothing.
    region_weight : float
        a, what the mean square of all labels counts beside those of the region.
    mean_square : float
        m.
    decay : float
        r, weight of labels two steps away.
    middle : float
        Mean prediction at the labels of the fit.
    n_scores : int
        Labels left out that it was learned from.
    """

    df: float = np.inf
    level: float = 0.0
    names: tuple[str, ...] = ()
    coefficients: np.ndarray = field(default_factory=_none)
    centre: np.ndarray = field(default_factory=_none)
    unit: np.ndarray = field(default_factory=_none)
    prior_weight: float = np.inf
    region_weight: float = 1.0
    mean_square: float = 1.0
    decay: float = 0.0
    middle: float = 0.0
    n_scores: int = 0

    @property
    def constant(self) -> bool:
        """Whether the scale is the same at all nodes."""
        return not len(self.coefficients) and not np.isfinite(self.prior_weight)

    @property
    def gaussian(self) -> bool:
        """Whether the field is taken at its word: scale 1, Gaussian tails."""
        return self.constant and self.level == 0 and not np.isfinite(self.df)

    def standardised(self, columns: np.ndarray) -> np.ndarray:
        """Return columns (n, k) as they count: over their standard deviation, clipped; 0 where there is no number."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = (columns - self.centre) / self.unit
        return np.clip(np.nan_to_num(values, nan=0.0), -FURTHEST, FURTHEST)

    def local(self, around: Neighbourhood) -> np.ndarray:
        """Return log(local) (n,) of what is known of the labels around each node."""
        if not np.isfinite(self.prior_weight):
            return np.zeros(around.squares.shape[1])
        theta = np.log([self.prior_weight, self.region_weight])
        return _local(theta[0], self.decay, theta[1], self.mean_square, around)[0]

    def scale(self, columns: np.ndarray, around: Neighbourhood) -> np.ndarray:
        """Return the scale (n,) of each node, of its columns (n, k) and the labels around it."""
        linear = self.standardised(columns) @ self.coefficients if len(self.coefficients) else 0.0
        return np.asarray(np.exp(self.level + linear + self.local(around)))

    @property
    def _unit_variance(self) -> float:
        """Factor that makes the standard deviation of Student's t 1."""
        return float(np.sqrt((self.df - 2) / self.df)) if np.isfinite(self.df) else 1.0

    def width(self, coverage: float) -> float:
        """Return the half-width of central intervals that cover this share, in standard deviations."""
        tail = (1 + coverage) / 2
        return float(stdtrit(self.df, tail) if np.isfinite(self.df) else ndtri(tail)) * self._unit_variance

    def with_tails(self, normal: np.ndarray) -> np.ndarray:
        """Return standard normal numbers as those of variance 1 with these tails, at the same quantiles."""
        if not np.isfinite(self.df):
            return normal
        table = stdtrit(self.df, ndtr(-np.abs(TABLE))) * -np.sign(TABLE) * self._unit_variance
        return np.asarray(np.interp(normal, TABLE, table))

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return the log density of errors (n,) over their standard deviations."""
        if not np.isfinite(self.df):
            return np.asarray(-0.5 * (z**2 + np.log(2 * np.pi)))
        return _log_density(z**2, 0.0, self.df)[0]

    def summed(self, columns: np.ndarray, around: Neighbourhood) -> dict[str, np.ndarray]:
        """Return what each column, and the labels around a node, add to its log scale (n,), by name."""
        parts = dict(zip(self.names, (self.standardised(columns) * self.coefficients).T, strict=True))
        return parts | ({} if not np.isfinite(self.prior_weight) else {AROUND: self.local(around)})


class Scores(NamedTuple):
    """What a spread is learned from, at k labels that were left out."""

    z: np.ndarray  # (k,)
    columns: np.ndarray  # (k, d)
    names: tuple[str, ...]
    around: Neighbourhood  # of these labels
    middle: float = 0.0  # mean prediction

    def part(self, at: np.ndarray) -> Scores:
        """Return some of the labels."""
        around = Neighbourhood(self.around.squares[:, at], self.around.weights[:, at])
        return self._replace(z=self.z[at], columns=self.columns[at], around=around)


def fit_spread(scores: Scores, random_state: int = 0) -> Spread:
    """Return the spread of leave-one-out errors: constant where they are few or do not support another.

    Parameters
    ----------
    scores : Scores
        Errors and what may explain their size.
    random_state : int
        Seed of the choice of labels where they are more than a fit looks at.
    """
    usable = np.isfinite(scores.z)
    scores = scores if usable.all() else scores.part(usable)
    count = len(scores.z)
    if count < FEWEST or not np.mean(np.minimum(scores.z**2, LARGEST)) > 1e-12:
        return Spread(n_scores=count)
    if count > MOST:
        scores = scores.part(np.sort(np.random.default_rng(random_state).choice(count, MOST, replace=False)))
    plain = Spread(n_scores=count)
    tails, gain = _fit_level(scores, plain)
    found = (tails, gain) if gain > MARGIN else (plain, 0.0)
    whole, gain = _fit_whole(scores, tails)
    return whole if gain > found[1] + MARGIN else found[0]


def fit_tails(z: np.ndarray, df: float) -> Spread:
    """Return the most likely tails of errors z (k,) in standard deviations; those of ``df`` where they are few."""
    if len(z) < FEWEST:
        return Spread(df=df)
    found = minimize_scalar(lambda a: -Spread(df=SLIMMEST + np.exp(a)).log_density(z).sum(), bounds=LIMITS[-1])
    return Spread(df=float(SLIMMEST + np.exp(found.x)), n_scores=len(z))


def _fit_level(scores: Scores, plain: Spread) -> tuple[Spread, float]:
    """Return the best spread of one scale, and by how much it is likelier than a Gaussian, less its parameters."""
    none = scores._replace(columns=np.zeros((len(scores.z), 0)), names=())
    likelihood = Likelihood(none, local=False)
    theta = likelihood.maximise(np.r_[0.0, START], 1.0)
    return likelihood.spread(theta, plain, 2.0), likelihood.log_likelihood(theta) - plain.log_density(
        scores.z
    ).sum() - 2


def _fit_whole(scores: Scores, tails: Spread) -> tuple[Spread, float]:
    """Return the best spread of columns and neighbours, and by how much it is likelier, less its parameters."""
    plain, found = _standardise(scores, tails.n_scores)
    likelihood = Likelihood(scores._replace(columns=found, names=plain.names))
    d, ridge, used = found.shape[1], 10.0, 0.0
    theta = np.r_[tails.level, START[:3], np.clip(np.log(tails.df - SLIMMEST), *LIMITS[-1]), np.zeros(d)]
    for _ in range(ROUNDS if d else 1):
        theta = likelihood.maximise(theta, ridge)
        g, nu = theta[SHAPE:], SLIMMEST + np.exp(theta[4])
        values = np.maximum(np.linalg.eigvalsh(found.T @ found), 0) * 2 * nu / (nu + 3)  # Fisher information
        used = float((values / (values + ridge)).sum())
        ridge = float(np.clip(used / max(g @ g, 1e-12), 1.0, 1e6))  # MacKay: as large as the prior variance says
    gain = likelihood.log_likelihood(theta) - Spread().log_density(scores.z).sum() - used - SHAPE
    return likelihood.spread(theta, plain, used + SHAPE), gain


def _standardise(scores: Scores, count: int) -> tuple[Spread, np.ndarray]:
    """Return a spread that knows the columns which vary, and these, standardised."""
    columns = np.where(np.isfinite(scores.columns), scores.columns, np.nan)
    size = np.nanmax(np.abs(columns), axis=0, initial=0.0)
    finite = size > 0
    scaled = columns[:, finite] / size[finite]
    centre, unit = np.nanmean(scaled, axis=0), np.nanstd(scaled, axis=0)
    varies = unit > 1e-10
    centre, unit, size = centre[varies], unit[varies], size[finite][varies]
    kept = np.flatnonzero(finite)[varies]
    plain = Spread(
        names=tuple(scores.names[k] for k in kept),
        coefficients=np.zeros(len(kept)),
        centre=centre * size,
        unit=unit * size,
        middle=scores.middle,
        n_scores=count,
    )
    return plain, plain.standardised(columns[:, kept]) if len(kept) else np.zeros((len(columns), 0))


class Likelihood:
    """The likelihood of standardised errors, as a function of theta = (c, log b, logit r, log a, log(nu - 2.5), g).

    Parameters
    ----------
    scores : Scores
        Errors, with standardised columns.
    local : bool
        Whether the labels around a node count.
    """

    def __init__(self, scores: Scores, local: bool = True):
        self.V, self.around, self.local = scores.columns, scores.around, local
        self.squares = scores.z**2
        self.mean_square = float(np.mean(np.minimum(self.squares, LARGEST)))

    def log_likelihood(self, theta: np.ndarray) -> float:
        """Return the log likelihood without priors."""
        return float(self._terms(theta)[0].sum())

    def penalised(self, theta: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
        """Return what is minimised, minus the log likelihood and the log priors, and its gradient."""
        each, slopes, columns = self._terms(theta)
        g, pull = theta[SHAPE:], (theta[1:SHAPE] - START) / PRIORS
        value = -each.sum() + 0.5 * (pull @ pull + ridge * g @ g)
        gradient = np.r_[-columns.sum(axis=1), -(self.V.T @ slopes) + ridge * g]
        gradient[1:SHAPE] += pull / PRIORS
        if not self.local:
            gradient[1:4] = 0
        return float(value), gradient

    def _terms(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log density of each error (k,), its slope in the log scale, and its slopes (5, k) in c, log b, .. ."""
        nu, ls, slopes = SLIMMEST + np.exp(theta[4]), theta[0] + self.V @ theta[SHAPE:], np.zeros((3, len(self.V)))
        if self.local:
            local, slopes = _local(theta[1], 1 / (1 + np.exp(-theta[2])), theta[3], self.mean_square, self.around)
            ls = ls + local
        each, by_scale, by_nu = _log_density(self.squares, ls, nu)
        return each, by_scale, np.vstack([by_scale, slopes * by_scale, by_nu * (nu - SLIMMEST)])

    def maximise(self, theta: np.ndarray, ridge: float) -> np.ndarray:
        """Return the most likely theta, from where to begin."""
        limits = LIMITS + [(None, None)] * self.V.shape[1]
        found = minimize(self.penalised, theta, (ridge,), "L-BFGS-B", jac=True, bounds=limits, options={"maxiter": 300})
        return np.asarray(found.x)

    def spread(self, theta: np.ndarray, plain: Spread, used: float) -> Spread:
        """Return the spread of theta, wider by what ``used`` parameters take of the errors that they are fitted to."""
        local: dict[str, Any] = {}
        if self.local:
            local = {"prior_weight": float(np.exp(theta[1])), "mean_square": self.mean_square}
            local |= {"decay": float(1 / (1 + np.exp(-theta[2]))), "region_weight": float(np.exp(theta[3]))}
        level = float(theta[0]) + used / len(self.V)
        return replace(plain, df=float(SLIMMEST + np.exp(theta[4])), level=level, coefficients=theta[SHAPE:], **local)


def _local(log_b: float, r: float, log_a: float, m: float, around: Neighbourhood) -> tuple[np.ndarray, np.ndarray]:
    """Return log(local) (k,), and its slopes (3, k) in log b, the logit of r and log a."""
    b, a, powers = np.exp(log_b), np.exp(log_a), r ** np.arange(HOPS)
    raised = np.arange(HOPS) * powers * (1 - r)
    (T, wide), (W, count) = ((part[:HOPS], part[HOPS]) for part in around)
    w = (a * m + wide) / (a + count)
    top, bottom = b * w + powers @ T, b + powers @ W
    by_region = b / top * a * (m - w) / (a + count)
    slopes = [b * (w / top - 1 / bottom), raised @ T / top - raised @ W / bottom, by_region]
    return 0.5 * np.log(top / bottom), 0.5 * np.array(slopes)


def _log_density(square: np.ndarray, ls: np.ndarray | float, nu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log density of errors of these squares under scales exp(ls) and Student tails; its slopes in ls and in nu."""
    q = square * np.exp(-2 * np.asarray(ls)) / (nu - 2)
    bend = np.log1p(q)
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * (nu - 2))
    pull = (nu + 1) * q / (1 + q)
    by_nu = 0.5 * (digamma((nu + 1) / 2) - digamma(nu / 2) - 1 / (nu - 2) - bend + pull / (nu - 2))
    return constant - ls - (nu + 1) / 2 * bend, pull - 1, by_nu
