"""Exact log-determinants: dense eigenvalues of small matrices, sparse factors of those with small separators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotri as potri

from residua.linalg.combination import Combination
from residua.linalg.factor import Factor, Family
from residua.linalg.ldl import LDL
from residua.linalg.logdet.strategy import Estimate, Ratio, Strategy, positions, submatrices
from residua.linalg.operator import Matrix


@dataclass(frozen=True)
class Eigen(Strategy):
    """Exact, by dense eigenvalues once (one term) or a dense inverse at each alpha (several). For small matrices."""

    def prepare(
        self,
        terms: Sequence[Matrix],
        subset: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        like: Ratio | None = None,
    ) -> Ratio:
        parts = submatrices(terms, positions(subset), scale)
        return SpectrumRatio(terms[0], parts[0], like) if len(terms) == 1 else DenseRatio(terms, parts)


@dataclass(frozen=True)
class Cholesky(Strategy):
    """Exact, by a sparse factorisation at each alpha. For graphs with small separators, such as maps and roads."""

    cholmod: bool | None = None

    def prepare(
        self,
        terms: Sequence[Matrix],
        subset: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        like: Ratio | None = None,
    ) -> Ratio:
        return FactorRatio(list(terms), submatrices(terms, positions(subset), scale), self.cholmod, like)


class SpectrumRatio(Ratio):
    """The ratio from all eigenvalues, for one term."""

    def __init__(self, S: Matrix, part: Matrix, like: Ratio | None = None):
        self.method = f"exact: {S.shape[0]:,} eigenvalues"
        self.all: np.ndarray = like.all if isinstance(like, SpectrumRatio) else _eigenvalues(S)
        self.part = _eigenvalues(part)

    def value(self, alpha: np.ndarray) -> Estimate:
        return Estimate(float(np.log1p(-alpha[0] * self.all).sum() - np.log1p(-alpha[0] * self.part).sum()))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        slope = [(x / (1 - alpha[0] * x)).sum() for x in (self.all, self.part)]
        return Estimate(np.array([slope[1] - slope[0]]), np.zeros(1))


def _eigenvalues(S: Matrix) -> np.ndarray:
    return np.linalg.eigvalsh(S.to_scipy().toarray().astype(float))


class DenseRatio(Ratio):
    """The ratio from dense factorisations, for several terms."""

    cheap = False

    def __init__(self, terms: Sequence[Matrix], parts: Sequence[Matrix]):
        self.method = f"exact: dense {terms[0].shape[0]:,} x {terms[0].shape[0]:,} determinant"
        self.sides = [Combination(terms), Combination(parts)]
        self._last: tuple[bytes, list[np.ndarray]] = (b"", [])

    def _factors(self, alpha: np.ndarray) -> list[np.ndarray]:
        """Lower triangles of both sides; kept, since value and gradient are asked for the same alpha."""
        if self._last[0] != alpha.tobytes():
            matrices = (np.eye(side.n) - side(alpha).to_scipy().toarray() for side in self.sides)
            self._last = alpha.tobytes(), [np.linalg.cholesky(matrix) for matrix in matrices]
        return self._last[1]

    def value(self, alpha: np.ndarray) -> Estimate:
        whole, part = (2 * np.log(L.diagonal()).sum() for L in self._factors(alpha))
        return Estimate(float(whole - part))

    def gradient(self, alpha: np.ndarray) -> Estimate:
        slopes = []
        for side, L in zip(self.sides, self._factors(alpha), strict=True):
            inverse = potri(L, lower=True)[0] if len(L) else L  # its lower triangle
            at = np.maximum(side.rows, side.columns), np.minimum(side.rows, side.columns)
            slopes.append(side.contractions(inverse[at]))
        return Estimate(slopes[1] - slopes[0], np.zeros(len(alpha)))


class FactorRatio(Ratio):
    """The ratio from sparse factors at each alpha."""

    cheap = False

    def __init__(self, terms: list[Matrix], parts: list[Matrix], cholmod: bool | None, like: Ratio | None = None):
        self.method, self.strategy = "exact: sparse Cholesky factor", Cholesky(cholmod)
        whole = like.sides[0] if isinstance(like, FactorRatio) else (1, Family(terms, cholmod))
        self.sides: list[tuple[int, Family]] = [whole]
        if parts[0].n_local:
            self.sides.append((-1, Family(parts, cholmod)))
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
