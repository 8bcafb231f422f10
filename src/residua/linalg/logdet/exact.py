"""Exact log-determinants: dense eigenvalues of small matrices, sparse factors of those with small separators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from residua.linalg.factor import Factor, Family
from residua.linalg.ldl import LDL
from residua.linalg.logdet.strategy import Estimate, Ratio, Strategy, positions
from residua.linalg.operator import Matrix


@dataclass(frozen=True)
class Eigen(Strategy):
    """Exact, by dense eigenvalues once (one term) or a dense inverse at each alpha (several). For small matrices."""

    def prepare(self, terms: Sequence[Matrix], subset: np.ndarray | None = None) -> Ratio:
        subset = positions(subset)
        return SpectrumRatio(terms[0], subset) if len(terms) == 1 else DenseRatio(terms, subset)


@dataclass(frozen=True)
class Cholesky(Strategy):
    """Exact, by a sparse factorisation at each alpha. For graphs with small separators, such as maps and roads."""

    cholmod: bool | None = None

    def prepare(self, terms: Sequence[Matrix], subset: np.ndarray | None = None) -> Ratio:
        return FactorRatio(list(terms), positions(subset), self.cholmod)


class SpectrumRatio(Ratio):
    """The ratio from all eigenvalues, for one term."""

    def __init__(self, S: Matrix, subset: np.ndarray):
        self.method = f"exact: {S.shape[0]:,} eigenvalues"
        dense = S.to_scipy().toarray().astype(float)
        self.all = np.linalg.eigvalsh(dense)
        self.part = np.linalg.eigvalsh(dense[np.ix_(subset, subset)])

    def value(self, alpha: np.ndarray) -> Estimate:
        return Estimate(float(np.log1p(-alpha[0] * self.all).sum() - np.log1p(-alpha[0] * self.part).sum()))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        slope = [(x / (1 - alpha[0] * x)).sum() for x in (self.all, self.part)]
        return Estimate(np.array([slope[1] - slope[0]]), np.zeros(1))


class DenseRatio(Ratio):
    """The ratio from dense factorisations, for several terms."""

    cheap = False

    def __init__(self, terms: Sequence[Matrix], subset: np.ndarray):
        self.method = f"exact: dense {terms[0].shape[0]:,} x {terms[0].shape[0]:,} determinant"
        self.all = [S.to_scipy().toarray().astype(float) for S in terms]
        self.part = [S[np.ix_(subset, subset)] for S in self.all]

    @staticmethod
    def _matrix(terms: list[np.ndarray], alpha: np.ndarray) -> np.ndarray:
        return np.eye(len(terms[0])) - np.tensordot(alpha, terms, axes=1)

    def value(self, alpha: np.ndarray) -> Estimate:
        logdets = [np.linalg.slogdet(self._matrix(terms, alpha))[1] for terms in (self.all, self.part)]
        return Estimate(float(logdets[0] - logdets[1]))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        slopes = []
        for terms in (self.all, self.part):
            inverse = np.linalg.inv(self._matrix(terms, alpha))
            slopes.append(np.array([(inverse * S).sum() for S in terms]))
        return Estimate(slopes[1] - slopes[0], np.zeros(len(alpha)))


class FactorRatio(Ratio):
    """The ratio from sparse factors at each alpha."""

    cheap = False

    def __init__(self, terms: list[Matrix], subset: np.ndarray, cholmod: bool | None):
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

    def value(self, alpha: np.ndarray) -> Estimate:
        if not alpha.any():
            return Estimate(0.0)
        return Estimate(float(sum(sign * factor.logdet for sign, _, factor in self._factors(alpha))))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        slope = -sum(sign * family.traces(factor) for sign, family, factor in self._factors(alpha))
        return Estimate(slope, np.zeros(len(alpha)))
