"""Correlation learned from residuals: maximum likelihood with beta, and the mean's coefficients, profiled out.

    Omega(alpha) = |L| log(q / |L|) - h(alpha) + const,   beta = |L| / q,
    q = min over theta of (y - Z theta)' Gbar (y - Z theta),   Gbar = G_LL - G_LU G_UU^-1 G_UL

y labels or residuals at L, Z design of a linear mean (may be empty). The search runs over a = arctanh(alpha).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import chdtrc, chdtri, ndtri

from residua.field.likelihood import Likelihood, QuadraticForm
from residua.field.line_search import minimise
from residua.field.polish import polished
from residua.field.precision import A_MAX, ALPHA_MAX
from residua.graph import Graph
from residua.linalg import Strategy
from residua.linalg.cg import NotConverged
from residua.linalg.logdet.exact import Estimate
from residua.linalg.logdet.stochastic import StochasticRatio
from residua.validation import check_count, check_known_values

MAX_PROBES, MAX_STEPS = 512, 384
TINY = 1e-150  # whose square is still a number: a column smaller than this is none


@dataclass(frozen=True)
class CorrelationFit:
    """What residuals say of the correlation along edges, and how each number was computed."""

    alpha: dict[str, float]
    alpha_stderr: dict[str, float]
    beta: float
    beta_stderr: float
    log_likelihood: float
    p_value: float
    n_labelled: int
    alpha_mc_error: dict[str, float]  # from random probes; 0 where the log-determinant is exact
    methods: dict[str, str]
    coefficients: np.ndarray = field(default_factory=lambda: np.empty(0))
    coefficient_covariance: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    profile: Profile | None = field(default=None, repr=False, compare=False)

    def interval(self, coverage: float = 0.95) -> dict[str, tuple[float, float]]:
        """Profile-likelihood interval of each alpha; an end at -1 or 1 is open."""
        if self.profile is None:
            return {t: _wald(self.alpha[t], self.alpha_stderr[t], coverage) for t in self.alpha}
        at = np.arctanh(np.clip(list(self.alpha.values()), -ALPHA_MAX, ALPHA_MAX))
        ends = (self.profile.interval(at, t, coverage) for t in range(len(at)))
        return dict(zip(self.alpha, ends, strict=True))

    def summary(self) -> str:
        """The fit as a few lines of text."""
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


def fit_correlation(
    residual: np.ndarray, graph: Graph, *, logdet: str | Strategy = "auto", random_state: int = 0
) -> CorrelationFit:
    """Learn how strongly, and with which sign, residuals are shared along edges.

    Parameters
    ----------
    residual : (n,) residuals in the order of ``graph.nodes``, NaN where unknown
    graph : the graph
    logdet : "auto" (exact where cheap), ``Eigen()``, ``Cholesky()`` or ``Lanczos(probes, steps)``
    random_state : seed of the random probes, where they are used

    Examples
    --------
    >>> import numpy as np, residua
    >>> ring = residua.Graph.from_edges(np.arange(50), (np.arange(50) + 1) % 50)
    >>> fit = residua.fit_correlation(np.sin(np.arange(50) / 4), ring)
    >>> fit.alpha["edge"] > 0.9, fit.p_value < 1e-6
    (True, True)
    """
    values, labelled = check_known_values(residual, graph, "residual")
    check_count(random_state, "random_state", 0)
    likelihood = Likelihood(graph, labelled, logdet, random_state=random_state)
    return fit_profile(likelihood, values[labelled], graph.edge_types)


def fit_profile(
    likelihood: Likelihood,
    y: np.ndarray,
    edge_types: tuple[str, ...],
    design: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> CorrelationFit:
    """Fit alpha, beta and the coefficients of ``design`` (|L|, d) to y (|L|,); near ``start`` where that is given."""
    profile = Profile(likelihood, y, design)
    at = profile.optimise(start)
    return profile.result(at, edge_types)


class Profile:
    """Omega as a function of a = arctanh(alpha) alone."""

    def __init__(self, likelihood: Likelihood, y: np.ndarray, design: np.ndarray | None = None):
        Z = np.empty((len(y), 0)) if design is None else design
        self.likelihood = likelihood
        # Columns of unit size, and y without its least-squares fit: labels may be counted in millions or in
        # millionths, or lie far from zero.
        norms = np.linalg.norm(Z, axis=0)
        self.units = np.where(norms > TINY, norms, 1.0)
        self.offset = np.linalg.lstsq(Z / self.units, y, rcond=1e-10)[0]
        rest = y - (Z / self.units) @ self.offset
        self.size = float(np.sqrt(np.mean(rest**2)))
        if self.size <= 1e-13 * np.abs(y).max():
            self._refuse(len(y), Z.shape[1])
        self.form = QuadraticForm(likelihood, np.column_stack([rest / self.size, Z / self.units]))
        self.n = len(y)
        self.p = len(likelihood.terms)
        self._heights: dict[bytes, Estimate] = {}
        self._rough = False

    def least_squares(self, alpha: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """q, coefficients and ``(Z' Gbar Z)^+``, all in unit scale."""
        Q = self.form(alpha)
        inverse = np.linalg.pinv(Q[1:, 1:], rcond=1e-12, hermitian=True)
        theta = inverse @ Q[1:, 0]
        q = float(Q[0, 0] - Q[0, 1:] @ theta)
        if q <= 1e-13 * Q[0, 0]:
            self._refuse(self.n, len(theta))
        return q, theta, inverse

    @staticmethod
    def _refuse(labels: int, columns: int) -> NoReturn:
        if not columns:
            raise ValueError("residual is zero at every labelled node; there is nothing left to correlate.")
        raise ValueError(
            f"the mean fits all {labels} labels exactly with {columns} column(s), which leaves no residual to learn "
            "from: y is constant, or has as many features as labels; use fewer, or a base such as Ridge."
        )

    def h(self, alpha: np.ndarray) -> Estimate:
        key = alpha.tobytes()
        if key not in self._heights:
            self._heights[key] = self.likelihood.ratio.value(alpha)
        return self._heights[key]

    def omega(self, a: np.ndarray) -> float:
        """-2 log-likelihood in unit scale, beta and theta at their best."""
        return self._fitted(a) - float(self.h(np.tanh(np.atleast_1d(a))).value)

    def _fitted(self, a: np.ndarray | float) -> float:
        """Omega but for the log-determinant."""
        q, _, _ = self.least_squares(np.tanh(np.atleast_1d(a)))
        return self.n * (np.log(q / self.n) + 1 + np.log(2 * np.pi))

    def gradient(self, a: np.ndarray) -> np.ndarray:
        alpha = np.tanh(a)
        q, theta, _ = self.least_squares(alpha)
        direction = np.concatenate([[1.0], -theta])
        slopes = np.array([direction @ dQ @ direction for dQ in self.form.slopes(alpha)])
        return (self.n * slopes / q - self.likelihood.ratio.gradient(alpha).value) * (1 - alpha**2)

    def optimise(self, start: np.ndarray | None = None, rough: bool = False) -> np.ndarray:
        """The best a, with enough Lanczos steps and probes for it; near ``start`` where that is given.

        ``rough`` is for results on the way: three tenths of a standard error will do; with several edge types, fewer
        starts and a hundredth of Omega.
        """
        self._rough = rough
        at = self._search(start)
        ratio = self.likelihood.ratio
        if not isinstance(ratio, StochasticRatio):
            return at
        while ratio.strategy.probes is None and self._sharpen(ratio, at):
            doubtful = self._doubtful(at)
            self._heights.clear()
            at = self._search(None if doubtful else at)
        return at if rough else self._settled(polished(self, at), ratio)

    def _doubtful(self, at: np.ndarray) -> bool:
        """Whether the error of the log-determinant alone could make this alpha look better than none."""
        noise = float(self.h(np.tanh(at)).stderr)
        return noise > 0.05 and self.omega(np.zeros(self.p)) - self.omega(at) < 4 * noise

    def _settled(self, at: np.ndarray, ratio: StochasticRatio) -> np.ndarray:
        """``at``, or zero where probes leave it open; a warning where their error is not small."""
        told = f"{ratio.probes} probes x {ratio.steps} steps of the log-determinant"
        if self._doubtful(at):
            noise, gain = float(self.h(np.tanh(at)).stderr), self.omega(np.zeros(self.p)) - self.omega(at)
            _warn(
                f"{told} leave an error of {noise:.2g} in -2 log-likelihood, of which alpha gains {gain:.2g}: the "
                "labels do not tell alpha, which is set to 0; give more labels in each component, or use Cholesky()."
            )
            return np.zeros(self.p)
        stderr, mc = self.errors(at)
        worst = int(np.argmax(mc / np.where(stderr > 0, stderr, np.inf)))
        if mc[worst] > 0.5 * stderr[worst]:
            _warn(
                f"{told} leave an error of {mc[worst]:.2g} in alpha, whose standard error is {stderr[worst]:.2g}; "
                "use more probes, or Cholesky() where a factor is affordable."
            )
        return at

    def _sharpen(self, ratio: StochasticRatio, at: np.ndarray) -> bool:
        """Take more steps or probes until the error they leave in alpha is a tenth of its standard error."""
        stderr, mc = self.errors(at)
        worst = float(np.max(mc / np.where(stderr > 0, stderr, np.inf), initial=0))
        if not self._rough and self._doubtful(at):
            worst = max(worst, 0.2)
        if worst <= (0.3 if self._rough else 0.1):
            return False
        if ratio.truncation(np.tanh(at)) > 0.5 and ratio.steps < MAX_STEPS:
            ratio.deepen(2 * ratio.steps)
            return True
        wanted = min(MAX_PROBES, int(np.ceil(ratio.probes * 1.2 * (worst / 0.1) ** 2)))
        if wanted > ratio.probes:
            ratio.add_probes(wanted)
            return True
        return False

    def _search(self, start: np.ndarray | None = None) -> np.ndarray:
        return self._search_line(start) if self.p == 1 else self._search_space(start)

    def _search_line(self, start: np.ndarray | None, reach: float = 0.25) -> np.ndarray:
        cheap = "factor" not in self.likelihood.ratio.method
        grid = np.linspace(-A_MAX, A_MAX, 59 if cheap and not self._rough else 15)
        if start is not None:
            grid = np.unique(np.clip(start[0] + np.array([-reach, 0.0, reach]), -A_MAX, A_MAX))
        # Everywhere, not at the best alone: too few steps make the likelihood near 1 look worse than it is.
        while self.form.refine(np.tanh(grid), tol=(1e-1 if self._rough else 1e-3) / self.n):
            if self.form.rule is None and len(grid) > 15:
                grid = np.linspace(grid[0], grid[-1], 15)  # each alpha costs a solve from now on
        values = [self.omega(a) for a in grid]
        best = int(np.argmin(values))
        if start is not None and best in (0, len(grid) - 1) and abs(grid[best]) < A_MAX:
            return self._search_line(grid[best : best + 1], 2 * reach)  # it has moved far
        # Eigenvalues are known to 1e-13 or so, at a distance of 1e-6 to the limit.
        if max(values) - min(values) < 1e-7 * self.n:
            return np.zeros(1)  # no edge joins what is known: the labels do not speak of alpha
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        while True:
            near = 1e-2 if self._rough else 1e-4
            found = minimise(self._fitted, lambda a: float(self.h(np.tanh(np.array([a]))).value), grid, bounds, near)
            if not self.form.refine(np.tanh(np.array([found]))):
                return np.array([found])

    def _search_space(self, start: np.ndarray | None) -> np.ndarray:
        """Several edge types have local optima: start from corners and the middle, keep the best."""
        corners = np.array(np.meshgrid(*[[-3.0, 0.0, 3.0]] * min(self.p, 4))).reshape(min(self.p, 4), -1).T
        corners = np.pad(corners, ((0, 0), (0, self.p - corners.shape[1])))
        cheap = self.likelihood.terms[0].shape[0] <= 300
        count = 9 if cheap else 2 if self._rough else 4
        starts = [start] if start is not None else sorted(corners, key=self.omega)[:count]
        bounds = [(-A_MAX, A_MAX)] * self.p
        options = {"ftol": 1e-2 / max(abs(self.omega(starts[0])), 1.0)} if self._rough else {}
        runs = [
            minimize(self.omega, s, jac=self.gradient, method="L-BFGS-B", bounds=bounds, options=options)
            for s in starts
        ]
        return min(runs, key=lambda run: run.fun).x

    def hessian(self, at: np.ndarray, step: float = 0.02) -> np.ndarray:
        """Second derivatives of Omega in a, by central differences."""
        if self.p == 1:
            up, here, down = (self.omega(at + d) for d in (step, 0.0, -step))
            return np.array([[(up - 2 * here + down) / step**2]])
        rows = [(self.gradient(at + d) - self.gradient(at - d)) / (2 * step) for d in step * np.eye(self.p)]
        return (np.array(rows) + np.array(rows).T) / 2

    def _inverse_hessian(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inverse along directions in which Omega curves upward, and (p,) bool: alphas that have part in others."""
        values, vectors = np.linalg.eigh(self.hessian(at))
        flat = values < 1e-9 * self.n
        inverse = (vectors / np.where(flat, np.inf, values)) @ vectors.T
        return inverse, np.any(np.abs(vectors[:, flat]) > 1e-6, axis=1)

    def errors(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors of alpha and their Monte-Carlo errors."""
        alpha = np.tanh(at)
        inverse, unsure = self._inverse_hessian(at)
        stderr = np.sqrt(2 * np.diag(inverse)) * (1 - alpha**2)
        mc, ratio = np.zeros(self.p), self.likelihood.ratio
        if not ratio.exact:
            noise = np.asarray(ratio.gradient(alpha).stderr) * (1 - alpha**2)
            mc = np.sqrt((inverse**2) @ noise**2) * (1 - alpha**2)
        return np.where(unsure, np.inf, stderr), mc

    def _drop_by_one(self, at: np.ndarray, t: int) -> float:
        """The standard error near the limit, where curvature says little: how far inside Omega has risen by one."""
        top = self.omega(at) + 1.0
        inside = self._crossing(lambda x: self._others_best(at, t, x) - top, at[t], -int(np.sign(at[t])), tol=0.02)
        return abs(float(np.tanh(at[t])) - inside)

    def interval(self, at: np.ndarray, t: int, coverage: float) -> tuple[float, float]:
        """Where the profile likelihood of alpha_t falls by the chi-square quantile."""
        self.form.forget()  # the same answer twice, and from a loaded model
        limit = self.omega(at) + chdtri(1, 1 - coverage)

        def excess(x: float) -> float:
            return self._others_best(at, t, x) - limit

        ends = [self._crossing(excess, at[t], sign) for sign in (-1, 1)]
        return ends[0], ends[1]

    @staticmethod
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

    def _others_best(self, at: np.ndarray, t: int, x: float) -> float:
        fixed = at.copy()
        fixed[t] = x
        if self.p == 1:
            return self.omega(fixed)
        bounds = [(-A_MAX, A_MAX)] * self.p
        bounds[t] = (x, x)
        # A thousandth of the likelihood's drop at the interval's end is close enough.
        loose = {"ftol": 1e-3 / max(abs(self.omega(fixed)), 1.0)}
        run = minimize(self.omega, fixed, jac=self.gradient, method="L-BFGS-B", bounds=bounds, options=loose)
        return float(run.fun)

    def result(self, at: np.ndarray, edge_types: tuple[str, ...]) -> CorrelationFit:
        alpha = np.tanh(at)
        q, theta, inverse = self.least_squares(alpha)
        stderr, mc = self.errors(at)
        for t in np.flatnonzero(np.abs(alpha) > 0.9999):
            stderr[t] = self._drop_by_one(at, int(t))
        beta = self.n / q
        gain = self.omega(np.zeros(self.p)) - self.omega(at)
        units = self.size / self.units

        def named(values: np.ndarray) -> dict[str, float]:
            return dict(zip(edge_types, map(float, values), strict=True))

        return CorrelationFit(
            alpha=named(alpha),
            alpha_stderr=named(stderr),
            beta=beta / self.size**2,
            beta_stderr=self._log_beta_stderr(at, q) * beta / self.size**2,
            log_likelihood=-self.omega(at) / 2 - self.n * float(np.log(self.size)),
            p_value=float(chdtrc(self.p, max(gain, 0.0))),
            n_labelled=self.n,
            alpha_mc_error=named(mc),
            methods={"log-determinant": self.likelihood.ratio.method, "quadratic form": self.form.method},
            coefficients=(self.offset + theta * self.size) / self.units,
            coefficient_covariance=inverse / beta * np.outer(units, units),
            profile=self,
        )

    def _log_beta_stderr(self, at: np.ndarray, q: float, step: float = 1e-3) -> float:
        """From the joint information of (a, log beta), whose Schur complement in a is the profile's Hessian."""
        moves = step * np.eye(self.p)
        cross = [self.least_squares(np.tanh(at + d))[0] - self.least_squares(np.tanh(at - d))[0] for d in moves]
        slope = self.n * np.array(cross) / (2 * step * q)
        spread, _ = self._inverse_hessian(at)
        return float(np.sqrt(2 / self.n + 2 * slope @ spread @ slope / self.n**2))


def _warn(text: str) -> None:
    warnings.warn(text, NotConverged, stacklevel=5)


def _wald(alpha: float, stderr: float, coverage: float) -> tuple[float, float]:
    width = ndtri((1 + coverage) / 2) * stderr / (1 - alpha**2)
    low, high = np.tanh(np.arctanh(alpha) + np.array([-width, width]))
    return float(low), float(high)
