"""The best alpha of a profile likelihood, with as many Lanczos steps and probes as it needs.

    a* = argmin Omega(a),   a = arctanh(alpha)

One edge type: a grid, then a line search that asks for few log-determinants, then the zero of the slope. A search by
values of Omega ends within the root of their rounding, which differs from machine to machine; the zero of the
slope is known to rounding itself. Several edge types have local optima: descent from corners and the middle.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from residua.caller import warn
from residua.field.alpha_interval import alpha_errors, descend
from residua.field.line_search import minimise
from residua.field.precision import A_MAX
from residua.field.profile import Profile
from residua.linalg import NotConverged, Ratio
from residua.linalg.logdet.choice import exact_instead

ROUGH, FINE = 0.3, 0.1  # Monte-Carlo error of alpha, in standard errors, that will do
GRID, COARSE_GRID = 59, 15
REACH, MOVES = 0.25, 5  # from a start: to begin with, and how often before a search looks everywhere
SURE = 4.0  # standard errors of a log-determinant
WIDE = 100  # columns of the mean, from which on every alpha has its price


def search(profile: Profile, start: np.ndarray | None = None, rough: bool = False) -> tuple[np.ndarray, Profile]:
    """Find the best a.

    Parameters
    ----------
    profile : Profile
        Omega as a function of a.
    start : ndarray of shape (p,) or None
        An a near which to look; None to look everywhere.
    rough : bool
        For results on the way: three tenths of a standard error will do; with several edge types, fewer starts and a
        hundredth of Omega.

    Returns
    -------
    a : ndarray of shape (p,)
    profile : Profile
        With the probes that it took.
    """
    a = _search(profile, start, rough)
    if start is not None and not rough and _worse_than_none(profile, a):
        a = _search(profile, None, rough)
    while (sharper := _sharper(profile, a, rough)) is not None:
        doubtful = _doubtful(profile, a)
        grid = _plausible(profile, a) if sharper.exact and not profile.quadratic_form.by_solves else None
        profile = profile.with_ratio(sharper)
        a = _search(profile, None if doubtful else a, rough) if grid is None else _search_line(profile, grid=grid)
    if not rough and not profile.ratio.exact:
        a = _settled(profile, _polished(profile, a))
    return profile.likelihood.rows.agree(a), profile


def _worse_than_none(profile: Profile, a: np.ndarray) -> bool:
    """Whether no correlation at all is likelier than this one: a local optimum, as flat ends have."""
    return bool(profile.likelihood.rows.agree(profile.omega(a) > profile.omega(np.zeros(profile.p))))


def _doubtful(profile: Profile, a: np.ndarray) -> bool:
    """Whether the error of the log-determinant by itself could make this alpha look better than none."""
    noise = float(profile.logdet(np.tanh(a)).stderr)
    doubtful = noise > 0.05 and profile.omega(np.zeros(profile.p)) - profile.omega(a) < 4 * noise
    return bool(profile.likelihood.rows.agree(doubtful))


def _settled(profile: Profile, a: np.ndarray) -> np.ndarray:
    """``a``, or zero where probes leave it open; a warning where their error is not small."""
    probes = f"{profile.ratio.effort[0]} probes x {profile.ratio.effort[1]} steps of the log-determinant"
    if _doubtful(profile, a):
        noise = float(profile.logdet(np.tanh(a)).stderr)
        gain = profile.omega(np.zeros(profile.p)) - profile.omega(a)
        warn(
            f"{probes} leave an error of {noise:.2g} in -2 log-likelihood, of which alpha gains {gain:.2g}: the "
            "labels do not tell alpha, which is set to 0; give more labels in each component, or use Cholesky().",
            NotConverged,
        )
        profile.doubted = True
        return np.zeros(profile.p)
    stderr, mc = alpha_errors(profile, a)
    worst = int(np.argmax(mc / np.where(stderr > 0, stderr, np.inf)))
    if mc[worst] > 0.5 * stderr[worst]:
        warn(
            f"{probes} leave an error of {mc[worst]:.2g} in alpha, whose standard error is {stderr[worst]:.2g}; "
            "use more probes, or Cholesky() where a factor is affordable.",
            NotConverged,
        )
    return a


def _sharper(profile: Profile, a: np.ndarray, rough: bool) -> Ratio | None:
    """Log-determinants with more steps or probes, or exact ones, while the error they leave in alpha is too large."""
    if profile.ratio.exact:
        return None
    stderr, mc = alpha_errors(profile, a)
    worst = float(np.max(mc / np.where(stderr > 0, stderr, np.inf), initial=0))
    if not rough and _doubtful(profile, a):
        worst = max(worst, 2 * FINE)
    effort = None
    if worst > (ROUGH if rough else FINE):
        effort = profile.ratio.further_effort(np.tanh(a), worst / FINE)
    effort = profile.likelihood.rows.agree(effort)
    if effort is None:
        return None
    likelihood = profile.likelihood
    if likelihood.automatic and not rough:
        exact = exact_instead(likelihood.terms, profile.ratio.foreseen_effort(np.tanh(a), effort))
        if exact is not None:
            return likelihood.prepare(exact)
    return profile.ratio.with_effort(effort)


def _plausible(profile: Profile, a: np.ndarray) -> np.ndarray:
    """Points of the coarse grid at which Omega may be least, by its stated error, and one more at each end.

    An exact log-determinant has its price at each of them; Omega itself costs little here, before it is exact.
    """
    grid = np.linspace(-A_MAX, A_MAX, COARSE_GRID)
    profile.quadratic_form.refine(np.tanh(grid), tol=1e-3 / profile.n)
    errors = [float(profile.logdet(np.tanh(np.array([x]))).stderr) for x in [*grid, a[0]]]
    lowest = np.array([profile.omega(x) for x in [*grid, a[0]]]) - SURE * np.array(errors)
    inside = np.flatnonzero(lowest[:-1] <= lowest[-1] + 2 * SURE * errors[-1])
    if not len(inside):
        inside = np.array([np.argmin(np.abs(grid - a[0]))])
    return profile.likelihood.rows.agree(grid[max(inside[0] - 1, 0) : inside[-1] + 2])


def _search(profile: Profile, start: np.ndarray | None, rough: bool) -> np.ndarray:
    return _search_line(profile, start, rough) if profile.p == 1 else _search_space(profile, start, rough)


def _search_line(
    profile: Profile,
    start: np.ndarray | None = None,
    rough: bool = False,
    moves: int = 0,
    grid: np.ndarray | None = None,
) -> np.ndarray:
    form, agree, narrow = profile.quadratic_form, profile.likelihood.rows.agree, start is not None or grid is not None
    if grid is None:
        grid = np.linspace(-A_MAX, A_MAX, GRID if profile.ratio.cheap and not rough else COARSE_GRID)
    if start is not None:
        # Wide steps may pass over an optimum, which only training, that goes on, can afford.
        reach = REACH * 2 ** (moves if rough else min(moves, 1))
        here = round(start[0] * 2**20) / 2**20  # a move back meets the bits of where it came from
        grid = np.unique(np.clip(here + np.array([-reach, 0.0, reach]), -A_MAX, A_MAX))
    # Everywhere, not only at the best: too few steps make the likelihood near 1 look worse than it is.
    form.refine(np.tanh(grid), tol=(1e-1 if rough else 1e-3) / profile.n)
    if len(grid) > COARSE_GRID and (form.by_solves or len(profile.groups) > WIDE or profile.groups.any()):
        grid = np.linspace(grid[0], grid[-1], COARSE_GRID)
    values = agree([profile.omega(a) for a in grid])
    best = int(np.argmin(values))
    if narrow and best in (0, len(grid) - 1) and abs(grid[best]) < A_MAX:
        on = start is not None and (rough or moves < MOVES)
        return _search_line(profile, grid[best : best + 1] if on else None, rough, moves + 1)
    # Eigenvalues are known to 1e-13 or so, at a distance of 1e-6 to the limit.
    if max(values) - min(values) < 1e-7 * profile.n:
        if narrow:
            return _search_line(profile, None, rough)  # flat here, as it is near -1 and 1
        return np.zeros(1)  # no edge joins what is known: the labels do not speak of alpha
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]

    def logdet(a: float) -> float:
        return float(profile.logdet(np.tanh(np.array([a]))).value)

    near, tol = (1e-2, 1e-4 / profile.n) if rough else (1e-4, 1e-11)
    asked = {float(a): logdet(a) for a in grid} if form.cheap else {}
    found: float | None = None
    while True:
        if form.cheap:
            found = agree(minimise(profile.misfit, logdet, asked, bounds, near, found))
        else:  # the quadratic form has its price too: it is asked where the log-determinant is, and nowhere else
            gains = {float(a): -profile.omega(a) for a in grid}
            found = agree(minimise(lambda a: 0.0, lambda a: -profile.omega(a), gains, bounds, near))
        if not form.refine(np.tanh(np.array([found])), tol):
            return np.array([found])


def _polished(profile: Profile, a: np.ndarray, reach: float = 1e-3) -> np.ndarray:
    """``a`` moved to where the slope of Omega is zero; of one edge type, with a Lanczos run for every alpha."""

    def slope(x: float) -> float:
        return float(profile.gradient(np.array([x]))[0])

    low, high = np.clip([a[0] - reach, a[0] + reach], -A_MAX, A_MAX)
    if profile.p > 1 or profile.quadratic_form.by_solves or slope(low) >= 0 or slope(high) <= 0:
        return a  # at an end, or no smooth minimum here
    return np.array([brentq(slope, low, high, xtol=1e-13, rtol=1e-14)])


def _search_space(profile: Profile, start: np.ndarray | None, rough: bool) -> np.ndarray:
    """Descend from one or a few starts, roughly; then from the best of their ends."""
    bounds, count = [(-A_MAX, A_MAX)] * profile.p, 3 if profile.likelihood.terms[0].shape[0] <= 300 else 2
    starts = [start] if start is not None else sorted(_starts(profile), key=profile.omega)[:count]
    best = min((descend(profile, s, bounds, 1e-2 if rough else 1e-3) for s in starts), key=lambda run: run.fun).x
    return best if rough else descend(profile, best, bounds, 1e-8).x


def _starts(profile: Profile) -> list[np.ndarray]:
    """Alphas from which to look: few types in all combinations of signs; many together, and each by its slope at 0."""
    p = profile.p
    if p <= 3:
        return list(np.array(np.meshgrid(*[[-1.5, 0.0, 1.5]] * p)).reshape(p, -1).T)
    signs = -np.sign(profile.gradient(np.zeros(p)))
    return [np.zeros(p), np.full(p, 1.5), np.full(p, -1.5), 0.75 * signs, 1.5 * signs]
