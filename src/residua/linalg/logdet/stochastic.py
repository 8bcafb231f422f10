"""Stochastic log-determinants: Lanczos quadrature on random signs, with what is known exactly taken out first.

    tr f(S) = sum_c f(1) + sum_j c_j tr S^j + E[ z'(f - p)(S) z ],    p(x) = sum_j c_j x^j

Three reductions of variance, all nearly free: (1) a graph's S has the eigenvector 1/scale with eigenvalue 1 on each
component c, which is projected out; (2) the traces of the first powers of S are sums over edges, so the polynomial p
nearest to f on the sampled spectrum is integrated exactly; (3) S_UU is probed by the same signs z, restricted to U.
For one term the nodes of S serve every alpha.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval, polyvander

from residua.linalg.cg import CG
from residua.linalg.lanczos import Function, Quadrature, gauss_rule, tridiagonal
from residua.linalg.logdet.strategy import Estimate, Ratio, Strategy, positions, submatrices
from residua.linalg.null_space import UnitEigenvectors
from residua.linalg.operator import Matrix, Shifted, weighted_sum
from residua.linalg.workspace import cached_property

FIRST_PROBES = 8  # and as many at once, where a fit asks for more
MAX_PROBES, MAX_STEPS = 512, 384
# Chebyshev's bound: the error falls by 1,000 in ln(1000) / (2 sqrt(2)) / sqrt(1 - |alpha|) steps or fewer. Fits of the
# California map by probes alone, eight seeds, end with 13 to 102 probes, half of them with more than 38.
CONVERGED, USUAL_PROBES = 2.4, 38
SHARES = 1, 2, 4  # all steps, half of them and a quarter: how they differ tells what more steps would change
SLOWEST = 0.9  # of two such changes the later is at most so large a part of the earlier, or nothing can be told
PROBE_NUMBERS = 5_000_000  # in one block of probes: hundreds of them on a large graph are taken in turns
MOMENT_BUDGET = 48.0  # products with a vector that S^2 may cost: a quarter of the first probes' Lanczos runs


class Trace(NamedTuple):
    """A trace: what is exact of it, and the remainder by probe."""

    exact: float
    remainder: np.ndarray


@dataclass(frozen=True)
class Lanczos(Strategy):
    """Stochastic Lanczos quadrature.

    Parameters
    ----------
    probes : int or None
        Random sign vectors; None starts with 8 and lets a fit ask for more, and for more steps, until the error they
        leave in alpha is a tenth of its standard error.
    steps : int
        Lanczos steps for each.
    control_variates : bool
        Take out what is known exactly; without, the plain estimator of the paper.
    random_state : int
        Seed of the probes.
    dtype : type
        float64, or float32 for half the memory traffic.
    """

    probes: int | None = None
    steps: int = 24
    control_variates: bool = True
    random_state: int = 0
    dtype: type = np.float64

    def __post_init__(self) -> None:
        if (self.probes or 2) < 2 or self.steps < 2:
            raise ValueError(f"probes={self.probes}, steps={self.steps}: Lanczos needs at least 2 of each.")

    def prepare(
        self,
        terms: Sequence[Matrix],
        subset: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        like: Ratio | None = None,
    ) -> StochasticRatio:
        terms, U = [S.astype(self.dtype) for S in terms], positions(subset)
        sides = [terms]
        if terms[0].rows.sum(len(U)):
            sides.append(submatrices(terms, U, scale))
        first = self.probes or FIRST_PROBES, self.steps
        if len(terms) > 1:
            return SeveralTermsRatio(self, sides, U, first)
        estimates = [SpectralEstimate.of(side[0], self.control_variates) for side in sides]
        return OneTermRatio(self, estimates, U, (0, self.steps)).with_effort(first)

    def signs(self, S: Matrix, first: int, last: int) -> np.ndarray:
        """Return probes ``first`` to ``last`` as int8 columns over the rows of S that this process holds.

        Each probe has its own stream, so more probes keep the first ones; eight signs take one number of it, so those
        of earlier rows can be skipped.
        """
        out = np.empty((S.n_local, last - first), np.int8)
        skipped = S.first // 8
        for k, probe in enumerate(range(first, last)):
            generator = np.random.PCG64([self.random_state, probe])  # that of ``default_rng``
            rng = np.random.Generator(generator.advance(skipped) if skipped else generator)
            out[:, k] = rng.integers(0, 2, S.first + S.n_local - 8 * skipped, np.int8)[S.first - 8 * skipped :]
        return 2 * out - 1


@dataclass(frozen=True)
class SpectralEstimate:
    """The spectrum of one matrix as probes see it, and what is known of it exactly."""

    S: Matrix
    null_space: UnitEigenvectors | None
    moments: np.ndarray
    tridiagonals: tuple[np.ndarray, ...] = ()  # diagonals, off-diagonals and squared norms, a column for each probe

    @classmethod
    def of(cls, S: Matrix, control_variates: bool) -> SpectralEstimate:
        """Return what is known of S before it is probed."""
        if not control_variates:
            return cls(S, None, np.zeros(0))
        null_space = UnitEigenvectors(S)
        return cls(S, null_space, S.power_moments(MOMENT_BUDGET) - null_space.count)

    def probed(self, Z: np.ndarray, steps: int) -> SpectralEstimate:
        """Return the estimate with further probes, the columns of Z."""
        Z = self.null_space.project_out(Z.astype(self.S.dtype)) if self.null_space else Z
        found = tridiagonal(self.S, Z, min(steps, self.S.shape[0]))
        if not self.tridiagonals:
            return replace(self, tridiagonals=found)
        pairs = zip(self.tridiagonals, found, strict=True)
        return replace(self, tridiagonals=tuple(np.concatenate(pair, axis=-1) for pair in pairs))

    def first(self, count: int) -> SpectralEstimate:
        """Return the estimate with its first probes only."""
        return replace(self, tridiagonals=tuple(part[..., :count] for part in self.tridiagonals) if count else ())

    @cached_property
    def quadratures(self) -> tuple[tuple[Quadrature, np.ndarray], ...]:
        """Quadratures with all steps, half and a quarter of them, each with its fit of polynomials."""
        diagonal, off, norms = self.tridiagonals
        lengths = (max(1, len(diagonal) // part) for part in SHARES)
        found = (gauss_rule(diagonal[:steps], off, norms) for steps in lengths)
        return tuple((rule, _polynomial_fit(rule, len(self.moments))) for rule in found)

    def trace(self, f: Function, share: int = 0) -> Trace:
        """Return ``tr f(S)`` by all steps, or by a share of them, counted in ``SHARES``."""
        quadrature, fit = self.quadratures[share]
        c = fit @ f(quadrature.nodes).ravel()
        remainder = quadrature.apply(lambda x: f(x) - (polyval(x, c) if len(c) else 0.0))
        count = self.null_space.count if self.null_space else 0
        return Trace((count * float(f(np.ones(1))[0]) if count else 0.0) + float(c @ self.moments), remainder)


class StochasticRatio(Ratio):
    """The ratio h estimated from probes, of which more can be had."""

    exact = False

    def __init__(self, strategy: Lanczos, sides: list[Any], U: np.ndarray, effort: Sequence[int]):
        self.strategy, self.sides, self.U = strategy, sides, U
        self.effort = self.probes, self.steps = int(effort[0]), int(effort[1])
        how = "with exact moments as control variates" if strategy.control_variates else "plain"
        self.method = f"estimated: Lanczos quadrature, {self.probes} probes x {self.steps} steps, {how}"

    @abstractmethod
    def estimates(self, alpha: np.ndarray) -> list[Estimate]:
        """Return h estimated with all steps, with half and with a quarter of them."""

    def value(self, alpha: np.ndarray) -> Estimate:
        return _with_truncation(self.estimates(alpha))

    def truncation(self, alpha: np.ndarray) -> float:
        """Return how far too few steps may leave h or its slope off, in standard errors."""
        return _truncation_errors(self.estimates(alpha))

    def further_effort(self, alpha: np.ndarray, factor: float) -> tuple[int, int] | None:
        if self.strategy.probes is not None:
            return None
        if self.truncation(alpha) > 0.5 and self.steps < MAX_STEPS:
            return self.probes, 2 * self.steps
        wanted = min(MAX_PROBES, int(np.ceil(1.2 * factor**2 * self.probes)))
        return (wanted, self.steps) if wanted > self.probes else None

    def foreseen_effort(self, alpha: np.ndarray, effort: Sequence[int]) -> tuple[int, int]:
        """Steps until those of an interval from -1 to 1 converge at alpha; probes as most fits near 1 end with."""
        probes, steps = effort
        if steps == self.steps:
            return probes, steps
        gap = 1 - float(np.abs(alpha).max())
        return max(probes, USUAL_PROBES), int(np.clip(CONVERGED / np.sqrt(gap), steps, MAX_STEPS))


class OneTermRatio(StochasticRatio):
    """One term: the quadrature of S serves every alpha."""

    sides: list[SpectralEstimate]

    def with_effort(self, effort: Sequence[int]) -> OneTermRatio:
        probes, steps = effort
        width = FIRST_PROBES
        if self.strategy.probes is not None:
            width = max(width, PROBE_NUMBERS // self.sides[0].S.shape[0])
        # Probes run together as they would have from the start, whatever the way here: a batch that was cut runs anew.
        kept = 0 if steps != self.steps else self.probes // width * width
        sides = [side.first(kept) for side in self.sides]
        for first, last in pairwise([*range(kept, probes, width), probes]):
            Z = self.strategy.signs(self.sides[0].S, first, last)
            sides = [side.probed(Z[self.U] if k else Z, steps) for k, side in enumerate(sides)]
        return OneTermRatio(self.strategy, sides, self.U, (probes, steps))

    def estimates(self, alpha: np.ndarray) -> list[Estimate]:
        return _shares(self.sides, lambda x: np.log1p(-alpha[0] * x))

    def _slopes(self, alpha: np.ndarray) -> list[Estimate]:
        return _shares(self.sides, lambda x: -x / (1 - alpha[0] * x))

    def truncation(self, alpha: np.ndarray) -> float:
        return max(super().truncation(alpha), _truncation_errors(self._slopes(alpha)))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        value, error = _with_truncation(self._slopes(alpha))
        return Estimate(np.array([value]), np.array([error]))


class SeveralTermsRatio(StochasticRatio):
    """Several terms share no Krylov space: the probes are kept, Lanczos is run anew for each alpha."""

    cheap = False

    def __init__(self, strategy: Lanczos, sides: list[list[Matrix]], U: np.ndarray, effort: Sequence[int]):
        super().__init__(strategy, sides, U, effort)
        self.method += ", run anew for each alpha"
        Z: np.ndarray = strategy.signs(sides[0][0], 0, self.probes).astype(strategy.dtype)
        self.Z = [Z, np.ascontiguousarray(Z[U])]

    def with_effort(self, effort: Sequence[int]) -> SeveralTermsRatio:
        return SeveralTermsRatio(self.strategy, self.sides, self.U, effort)

    def estimates(self, alpha: np.ndarray) -> list[Estimate]:
        sides = []
        for terms, Z in zip(self.sides, self.Z, strict=False):
            known = SpectralEstimate.of(weighted_sum(terms, alpha), self.strategy.control_variates)
            sides.append(known.probed(Z, self.steps))
        return _shares(sides, lambda x: np.log1p(-x))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        pairs = zip(self.sides, self.Z, strict=False)
        parts = [self._slopes(terms, weighted_sum(terms, alpha), Z) for terms, Z in pairs]
        estimates = [_difference([side[t] for side in parts]) for t in range(len(alpha))]
        return Estimate(*(np.array(column) for column in zip(*estimates, strict=True)))

    def _slopes(self, terms: list[Matrix], M: Matrix, Z: np.ndarray) -> list[Trace]:
        """``-tr((I - M)^-1 S_t)`` for each t; the first terms of its series, tr S_t and tr(M S_t), are exact."""
        X = CG(tol=1e-8).solve(Shifted(M, 1.0), Z).X
        exact = [0.0] * len(terms)
        if self.strategy.control_variates:
            X -= Z + M @ Z
            matrix = M.to_scipy()
            exact = [-float(S.diagonal().sum() + matrix.multiply(S.to_scipy()).sum()) for S in terms]
        return [Trace(e, -M.rows.inner(S @ Z, X)) for e, S in zip(exact, terms, strict=True)]


def _shares(sides: list[SpectralEstimate], f: Function) -> list[Estimate]:
    """``tr f`` of the first side minus that of the second, with all steps, with half and with a quarter of them."""
    return [_difference([side.trace(f, share) for side in sides]) for share in range(len(SHARES))]


def _difference(parts: list[Trace]) -> Estimate:
    """First side minus second, with the standard error of the difference by probe."""
    exact = parts[0].exact - sum(part.exact for part in parts[1:])
    remainder = parts[0].remainder - sum(part.remainder for part in parts[1:])
    return Estimate(float(exact + remainder.mean()), float(remainder.std(ddof=1) / np.sqrt(len(remainder))))


def _truncation(estimates: list[Estimate]) -> float:
    """Estimate what steps without end would still change.

    Near alpha = 1 the error of few steps falls by a power of them, and what the last ones changed is a small part of
    it. Of such errors the ratio of two changes, each by half of the steps, tells the sum of all to come.
    """
    full, half, quarter = (float(estimate.value) for estimate in estimates)
    last, before = abs(full - half), abs(half - quarter)
    ratio = last / before if last < SLOWEST * before else SLOWEST
    return last * ratio / (1 - ratio)


def _truncation_errors(estimates: list[Estimate]) -> float:
    return _truncation(estimates) / max(float(estimates[0].stderr), np.finfo(float).tiny)


def _with_truncation(estimates: list[Estimate]) -> Estimate:
    """The error of too few steps, as far as fewer still tell it, is part of the error reported."""
    return Estimate(estimates[0].value, float(np.hypot(estimates[0].stderr, _truncation(estimates))))


def _polynomial_fit(quadrature: Quadrature, count: int) -> np.ndarray:
    """The matrix that turns values of f at the nodes into its least-squares polynomial in the sampled measure."""
    root = np.sqrt(quadrature.weights.ravel())
    if not count:
        return np.zeros((0, root.size))
    # Nodes that differ by no more than rounding are one node: no slope is fitted through them.
    return np.linalg.pinv(polyvander(quadrature.nodes.ravel(), count - 1) * root[:, None], rcond=1e-10) * root
