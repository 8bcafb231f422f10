"""Stochastic log-determinants: Lanczos quadrature on random signs, with what is known exactly taken out first.

    tr f(S) = sum_c f(1) + sum_j c_j tr S^j + E[ z'(f - p)(S) z ],    p(x) = sum_j c_j x^j

Three reductions of variance, all nearly free: (1) a graph's S has the eigenvector 1/scale with eigenvalue 1 on each
component c, which is projected out; (2) the traces of the first powers of S are sums over edges, so the polynomial p
nearest to f on the sampled spectrum is integrated exactly; (3) S_UU is probed by the same signs z, restricted to U.
For one term the nodes of S serve every alpha.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyval, polyvander

from residua.linalg.cg import CG
from residua.linalg.lanczos import Quadrature, gauss_rule, tridiagonal
from residua.linalg.logdet.exact import Estimate, Ratio, Strategy, _positions
from residua.linalg.operator import Shifted, Sparse, connected_components, weighted_sum

FIRST_PROBES = 8
PROBE_NUMBERS = 5_000_000  # in one block of probes: hundreds of them on a large graph are taken in turns
MOMENT_BUDGET = 48.0  # products with a vector that S^2 may cost: a quarter of the first probes' Lanczos runs

Function = Callable[[np.ndarray], np.ndarray]
Part = tuple[float, np.ndarray]  # what is exact of a trace, and the remainder by probe


@dataclass(frozen=True)
class Lanczos(Strategy):
    """Stochastic Lanczos quadrature.

    Parameters
    ----------
    probes : random sign vectors; None starts with 8 and lets a fit ask for more, and for more steps, until the error
        they leave in alpha is a tenth of its standard error
    steps : Lanczos steps for each
    control_variates : take out what is known exactly; without, the plain estimator of the paper
    random_state : seed of the probes
    dtype : float64, or float32 for half the memory traffic
    """

    probes: int | None = None
    steps: int = 24
    control_variates: bool = True
    random_state: int = 0
    dtype: type = np.float64

    def __post_init__(self):
        if (self.probes or 2) < 2 or self.steps < 2:
            raise ValueError(f"probes={self.probes}, steps={self.steps}: Lanczos needs at least 2 of each.")

    def prepare(self, terms, subset=None):
        terms = [S.astype(self.dtype) for S in terms]
        kind = _Cached if len(terms) == 1 else _Moving
        return kind(self, terms, _positions(subset), self.probes or FIRST_PROBES)

    def signs(self, n: int, first: int, last: int) -> np.ndarray:
        """Probes ``first`` to ``last`` as columns; each has its own stream, so more probes keep the first ones."""
        streams = [np.random.default_rng([self.random_state, i]) for i in range(first, last)]
        return (2 * np.stack([rng.integers(0, 2, n, np.int8) for rng in streams], axis=1) - 1).astype(self.dtype)


class Side:
    """One matrix of the ratio: its quadrature, and what is known of it exactly."""

    def __init__(self, S: Sparse, strategy: Lanczos):
        self.S, self.control = S, strategy.control_variates
        self.kernel = Constants(S) if self.control else None
        self.moments = np.zeros(0)
        if self.kernel:
            self.moments = S.power_moments(MOMENT_BUDGET) - self.kernel.count
        self.tridiagonals: list[np.ndarray] = []

    def probe(self, Z: np.ndarray, steps: int) -> None:
        """Run Lanczos from the columns of Z; later calls add to the earlier."""
        Z = self.kernel.project_out(Z) if self.kernel else Z
        self.add(tridiagonal(self.S, Z, min(steps, self.S.shape[0])))

    def add(self, run: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        """Take in the tridiagonals of further probes."""
        pairs = zip(self.tridiagonals, run, strict=True)
        self.tridiagonals = [np.concatenate(pair, axis=-1) for pair in pairs] if self.tridiagonals else list(run)
        diagonal, off, norms = self.tridiagonals
        shorter = max(2, 3 * len(diagonal) // 4)
        self.rules = gauss_rule(diagonal, off, norms), gauss_rule(diagonal[:shorter], off, norms)
        self.fits = [_polynomial_fit(rule, len(self.moments)) for rule in self.rules]

    def estimate(self, f: Function, short: bool = False) -> Part:
        """The part of ``tr f(S)`` that is exact, and the remainder by probe; ``short`` takes fewer steps."""
        rule, fit = self.rules[short], self.fits[short]
        c = fit @ f(rule.nodes).ravel()
        remainder = rule.apply(lambda x: f(x) - (polyval(x, c) if len(c) else 0.0))
        exact = self.kernel.count * float(f(np.ones(1))[0]) if self.kernel and self.kernel.count else 0.0
        return exact + float(c @ self.moments), remainder


class StochasticRatio(Ratio):
    """h estimated from probes, of which more can be had."""

    exact = False
    strategy: Lanczos
    probes: int
    steps: int
    history: list[tuple[int, int]]  # probes and steps after each change

    def repeat(self, history: list[tuple[int, int]]) -> None:
        """Grow as another one did, in the same order: the same numbers to the last bit."""
        for probes, steps in history[len(self.history) :]:
            self.add_probes(probes) if steps == self.steps else self.deepen(steps)

    @abstractmethod
    def add_probes(self, total: int) -> None:
        """Go on until there are ``total`` probes."""

    @abstractmethod
    def deepen(self, steps: int) -> None:
        """Run Lanczos anew, with more steps."""

    @abstractmethod
    def truncation(self, alpha: np.ndarray) -> float:
        """How much three quarters of the steps would change h or its slope, in standard errors."""


class _Cached(StochasticRatio):
    """One term: the quadrature of S serves every alpha."""

    def __init__(self, strategy: Lanczos, terms: list[Sparse], subset: np.ndarray, probes: int):
        self.strategy, self.subset, self.probes, self.steps = strategy, subset, 0, strategy.steps
        self.history = []
        self.sides = [Side(terms[0], strategy)]
        if len(subset):
            self.sides.append(Side(terms[0].submatrix(subset), strategy))
        self.add_probes(probes)

    def add_probes(self, total):
        n = self.sides[0].S.shape[0]
        width = max(FIRST_PROBES, PROBE_NUMBERS // n)
        for first in range(self.probes, total, width):
            Z = self.strategy.signs(n, first, min(first + width, total))
            self.sides[0].probe(Z, self.steps)
            if len(self.subset):
                self.sides[1].probe(np.ascontiguousarray(Z[self.subset]), self.steps)
        self.probes = total
        self.history.append((total, self.steps))
        self.method = _method(self)

    def deepen(self, steps):
        probes, self.probes, self.steps = self.probes, 0, steps
        for side in self.sides:
            side.tridiagonals = []
        self.add_probes(probes)

    def truncation(self, alpha):
        functions = (lambda x: np.log1p(-alpha[0] * x), lambda x: -x / (1 - alpha[0] * x))
        return max(_change(*self._estimates(f)) for f in functions)

    def _estimate(self, f: Function) -> Estimate:
        full, short = self._estimates(f)
        return _with_truncation(full, short)

    def _estimates(self, f: Function) -> list[Estimate]:
        """With all steps, and with three quarters of them."""
        return [_difference([side.estimate(f, short) for side in self.sides]) for short in (False, True)]

    def value(self, alpha):
        return self._estimate(lambda x: np.log1p(-alpha[0] * x))

    def gradient(self, alpha):
        value, error = self._estimate(lambda x: -x / (1 - alpha[0] * x))
        return Estimate(np.array([value]), np.array([error]))


class _Moving(StochasticRatio):
    """Several terms share no Krylov space: the probes are kept, Lanczos is run anew for each alpha."""

    def __init__(self, strategy: Lanczos, terms: list[Sparse], subset: np.ndarray, probes: int):
        self.strategy, self.subset, self.steps = strategy, subset, strategy.steps
        self.history = []
        self.sides = [terms]
        if len(subset):
            self.sides.append([S.submatrix(subset) for S in terms])
        self.add_probes(probes)

    def add_probes(self, total):
        self.Z = self.strategy.signs(self.sides[0][0].shape[0], 0, total)
        self.probes = total
        self.history.append((total, self.steps))
        self.method = _method(self) + ", run anew for each alpha"

    def deepen(self, steps):
        self.steps = steps
        self.add_probes(self.probes)

    def truncation(self, alpha):
        return _change(*self._values(alpha))

    def _probes(self) -> list[np.ndarray]:
        return [self.Z, np.ascontiguousarray(self.Z[self.subset])]

    def value(self, alpha):
        return _with_truncation(*self._values(alpha))

    def _values(self, alpha: np.ndarray) -> tuple[Estimate, Estimate]:
        """With all steps, and with three quarters of them."""
        sides = []
        for terms, Z in zip(self.sides, self._probes(), strict=False):
            sides.append(Side(weighted_sum(terms, alpha), self.strategy))
            sides[-1].probe(Z, self.steps)
        full, short = (_difference([s.estimate(lambda x: np.log1p(-x), cut) for s in sides]) for cut in (False, True))
        return full, short

    def gradient(self, alpha):
        pairs = zip(self.sides, self._probes(), strict=False)
        parts = [self._slopes(terms, weighted_sum(terms, alpha), Z) for terms, Z in pairs]
        estimates = [_difference([side[t] for side in parts]) for t in range(len(alpha))]
        return Estimate(*(np.array(column) for column in zip(*estimates, strict=True)))

    def _slopes(self, terms: list[Sparse], M: Sparse, Z: np.ndarray) -> list[Part]:
        """``-tr((I - M)^-1 S_t)`` for each t; the first terms of its series, tr S_t and tr(M S_t), are exact."""
        X = CG(tol=1e-8).solve(Shifted(M, 1.0), Z).X
        exact = [0.0] * len(terms)
        if self.strategy.control_variates:
            X -= Z + M @ Z
            matrix = M.to_scipy()
            exact = [-float(S.diagonal().sum() + matrix.multiply(S.to_scipy()).sum()) for S in terms]
        return [(e, -np.einsum("ij,ij->j", S @ Z, X, dtype=float)) for e, S in zip(exact, terms, strict=True)]


def _method(ratio: StochasticRatio) -> str:
    how = "with exact moments as control variates" if ratio.strategy.control_variates else "plain"
    return f"estimated: Lanczos quadrature, {ratio.probes} probes x {ratio.steps} steps, {how}"


def _difference(parts: list[Part]) -> Estimate:
    """First side minus second, with the standard error of the difference by probe."""
    exact = parts[0][0] - sum(part[0] for part in parts[1:])
    remainder = parts[0][1] - sum(part[1] for part in parts[1:])
    return Estimate(float(exact + remainder.mean()), float(remainder.std(ddof=1) / np.sqrt(len(remainder))))


def _change(full: Estimate, short: Estimate) -> float:
    return float(abs(full.value - short.value) / max(full.stderr, np.finfo(float).tiny))


def _with_truncation(full: Estimate, short: Estimate) -> Estimate:
    """The error of too few steps, seen from fewer still, is part of the error told."""
    return Estimate(full.value, float(np.hypot(full.stderr, full.value - short.value)))


def _polynomial_fit(rule: Quadrature, count: int) -> np.ndarray:
    """The matrix that turns values of f at the nodes into its least-squares polynomial in the sampled measure."""
    root = np.sqrt(rule.weights.ravel())
    if not count:
        return np.zeros((0, root.size))
    # Nodes that differ by rounding alone are one node: no slope is fitted through them.
    return np.linalg.pinv(polyvander(rule.nodes.ravel(), count - 1) * root[:, None], rcond=1e-10) * root


class Constants:
    """The vectors ``1/scale`` on each component of S, where they are eigenvectors of eigenvalue 1."""

    def __init__(self, S: Sparse):
        used = (S.scale > 0) & (np.diff(S.indptr) > 0)
        self.u = np.divide(1.0, S.scale, out=np.zeros(S.shape[0], S.dtype), where=used)
        self.count = 0
        tolerance = 1e3 * np.finfo(S.dtype).eps * max(float(np.abs(self.u).max(initial=0)), 1.0)
        if used.any() and np.abs(S @ self.u - self.u).max() <= tolerance:
            self.component = connected_components([S], S.shape[0])
            square = np.bincount(self.component, self.u * self.u)
            self.count = int((square > 0).sum())
            self.square = np.where(square > 0, square, 1)

    def project_out(self, Z: np.ndarray) -> np.ndarray:
        """Z (n, k) without its part along them."""
        if not self.count:
            return Z
        Z = Z.copy()
        for k in range(Z.shape[1]):
            along = np.bincount(self.component, self.u * Z[:, k]) / self.square
            Z[:, k] -= along[self.component] * self.u
        return Z
