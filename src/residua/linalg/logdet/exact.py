"""Log-determinants of ``I - M``, ``M = sum_t alpha_t S_t``, relative to a principal submatrix.

    h(alpha) = logdet(I - M) - logdet((I - M)_UU),    dh/dalpha_t = -tr((I - M)^-1 S_t) + tr((I - M)_UU^-1 S_t,UU)

A strategy prepares what does not depend on alpha once and returns a ``Ratio``, which is then asked for many alphas.
``Eigen`` and ``Cholesky`` are exact; ``Lanczos`` (in ``stochastic.py``) is linear in the entries of S and carries its
standard error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from residua.linalg.factor import Factor, Family, factor_seconds
from residua.linalg.ldl import LDL
from residua.linalg.operator import Sparse, weighted_sum


class Estimate(NamedTuple):
    """A number or vector and its standard error, 0 where it is exact."""

    value: np.ndarray | float
    stderr: np.ndarray | float = 0.0


class Ratio(ABC):
    """h as a function of alpha (p,)."""

    method: str  # how its numbers come about, for people
    exact: bool

    @abstractmethod
    def value(self, alpha: np.ndarray) -> Estimate:
        """h(alpha)."""

    @abstractmethod
    def gradient(self, alpha: np.ndarray) -> Estimate:
        """dh/dalpha, shape (p,)."""


class Strategy(ABC):
    """A way to compute h."""

    @abstractmethod
    def prepare(self, terms: Sequence[Sparse], subset: np.ndarray | None = None) -> Ratio:
        """Get ready for ``M = sum_t alpha_t terms[t]``; ``subset`` holds U in increasing order, None for no U."""


@dataclass(frozen=True)
class Eigen(Strategy):
    """Exact, by dense eigenvalues once (one term) or a dense inverse at each alpha (several). For small matrices."""

    def prepare(self, terms, subset=None):
        subset = _positions(subset)
        return _Spectrum(terms[0], subset) if len(terms) == 1 else _Dense(terms, subset)


@dataclass(frozen=True)
class Cholesky(Strategy):
    """Exact, by a sparse factorisation at each alpha. For graphs with small separators, such as maps and roads."""

    cholmod: bool | None = None

    def prepare(self, terms, subset=None):
        return _Factored(list(terms), _positions(subset), self.cholmod)


def _positions(subset: np.ndarray | None) -> np.ndarray:
    return np.empty(0, np.int64) if subset is None else np.asarray(subset, np.int64)


class _Spectrum(Ratio):
    exact = True

    def __init__(self, S: Sparse, subset: np.ndarray):
        self.method = f"exact: {S.shape[0]:,} eigenvalues"
        dense = S.to_scipy().toarray().astype(float)
        self.all = np.linalg.eigvalsh(dense)
        self.part = np.linalg.eigvalsh(dense[np.ix_(subset, subset)])

    def value(self, alpha):
        return Estimate(float(np.log1p(-alpha[0] * self.all).sum() - np.log1p(-alpha[0] * self.part).sum()))

    def gradient(self, alpha):
        slope = [(x / (1 - alpha[0] * x)).sum() for x in (self.all, self.part)]
        return Estimate(np.array([slope[1] - slope[0]]), np.zeros(1))


class _Dense(Ratio):
    exact = True

    def __init__(self, terms: Sequence[Sparse], subset: np.ndarray):
        self.method = f"exact: dense {terms[0].shape[0]:,} x {terms[0].shape[0]:,} determinant"
        self.all = [S.to_scipy().toarray().astype(float) for S in terms]
        self.part = [S[np.ix_(subset, subset)] for S in self.all]

    @staticmethod
    def _matrix(terms, alpha):
        return np.eye(len(terms[0])) - np.tensordot(alpha, terms, axes=1)

    def value(self, alpha):
        logdets = [np.linalg.slogdet(self._matrix(terms, alpha))[1] for terms in (self.all, self.part)]
        return Estimate(float(logdets[0] - logdets[1]))

    def gradient(self, alpha):
        slopes = []
        for terms in (self.all, self.part):
            inverse = np.linalg.inv(self._matrix(terms, alpha))
            slopes.append(np.array([(inverse * S).sum() for S in terms]))
        return Estimate(slopes[1] - slopes[0], np.zeros(len(alpha)))


class _Factored(Ratio):
    exact = True

    def __init__(self, terms: list[Sparse], subset: np.ndarray, cholmod: bool | None):
        self.method = "exact: sparse Cholesky factor"
        self.sides = [(1, Family(terms, cholmod))]
        if len(subset):
            self.sides.append((-1, Family([S.submatrix(subset) for S in terms], cholmod)))
        self._last: tuple[bytes, list[Factor | LDL]] = (b"", [])

    def _factors(self, alpha: np.ndarray) -> Iterator[tuple[int, Family, Factor | LDL]]:
        """Both factors; kept, since value and gradient are asked for the same alpha."""
        if self._last[0] != alpha.tobytes():
            self._last = (alpha.tobytes(), [family.factor(alpha) for _, family in self.sides])
        return ((*side, factor) for side, factor in zip(self.sides, self._last[1], strict=True))

    def value(self, alpha):
        if not alpha.any():
            return Estimate(0.0)
        return Estimate(float(sum(sign * factor.logdet for sign, _, factor in self._factors(alpha))))

    def gradient(self, alpha):
        slope = -sum(sign * family.traces(factor) for sign, family, factor in self._factors(alpha))
        return Estimate(slope, np.zeros(len(alpha)))


# Dense eigenvalues of 700 nodes take about 50 ms, once; a fit factors some thirty times.
EIGEN_NODES = 700
FACTOR_SECONDS = 0.1


def auto(terms: Sequence[Sparse], probabilistic: Strategy) -> Strategy:
    """Exact where that is cheap, else ``probabilistic``."""
    n = terms[0].shape[0]
    if len(terms) == 1:
        if n <= EIGEN_NODES:
            return Eigen()
        return Cholesky() if factor_seconds(terms[0], FACTOR_SECONDS) <= FACTOR_SECONDS else probabilistic
    # Several terms need the gradient too: a dense inverse, or a selected one, which takes five factorisations.
    dense = 1.5e-10 * n**3
    sparse = 5 * factor_seconds(weighted_sum(list(terms), np.ones(len(terms))), FACTOR_SECONDS)
    if min(dense, sparse) > FACTOR_SECONDS:
        return probabilistic
    return Eigen() if dense < sparse else Cholesky()
