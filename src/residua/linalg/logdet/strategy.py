"""Log-determinants of ``I - M``, ``M = sum_t alpha_t S_t``, relative to a principal submatrix.

    h(alpha) = logdet(I - M) - logdet(I - C M_UU C)
    dh/dalpha_t = -tr((I - M)^-1 S_t) + tr((I - C M_UU C)^-1 C S_t,UU C)

C = I, or diagonal with positive entries of at most 1: rows of U that are seen through noise.

A strategy prepares what does not depend on alpha once and returns a ``Ratio``, which is then asked for many alphas.
``Eigen`` and ``Cholesky`` (``exact.py``) are exact; ``Lanczos`` (``stochastic.py``) is linear in the entries of S and
carries its standard error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from residua.linalg.operator import Matrix


class Estimate(NamedTuple):
    """A number or vector and its standard error, 0 where it is exact."""

    value: np.ndarray | float
    stderr: np.ndarray | float = 0.0


class Ratio(ABC):
    """The ratio h as a function of alpha (p,).

    Attributes
    ----------
    method : str
        How its numbers come about, for people.
    exact : bool
        Whether they are free of chance.
    cheap : bool
        Whether a further alpha costs next to nothing.
    effort : tuple of int
        Probes and steps that it has taken; empty where it takes none. ``with_effort`` brings another there.
    """

    method: str
    exact = True
    cheap = True
    effort: tuple[int, ...] = ()

    @abstractmethod
    def value(self, alpha: np.ndarray) -> Estimate:
        """Return h(alpha)."""

    @abstractmethod
    def gradient(self, alpha: np.ndarray) -> Estimate:
        """Return dh/dalpha, shape (p,)."""

    def further_effort(self, alpha: np.ndarray, factor: float) -> tuple[int, ...] | None:
        """Return the effort that makes the error at alpha ``factor`` times smaller; None where none does."""
        return None

    def foreseen_effort(self, alpha: np.ndarray, effort: Sequence[int]) -> tuple[int, ...]:
        """Return what a fit that now asks for ``effort`` is likely to end with."""
        return tuple(effort)

    def with_effort(self, effort: Sequence[int]) -> Ratio:
        """Return the same ratio after this effort, whatever the way there: the same numbers to the last bit."""
        return self


class Strategy(ABC):
    """A way to compute h."""

    @abstractmethod
    def prepare(
        self,
        terms: Sequence[Matrix],
        subset: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        like: Ratio | None = None,
    ) -> Ratio:
        """Get ready for ``M = sum_t alpha_t terms[t]``.

        Parameters
        ----------
        terms : sequence of Matrix
            The S_t.
        subset : ndarray of int or None
            U, in increasing order; None for no U.
        scale : ndarray of shape (|U|,) or None
            The diagonal of C, positive and at most 1; None for all 1.
        like : Ratio or None
            One of the same terms and another U or C, whose work on I - M an exact ratio takes over.
        """


def positions(subset: np.ndarray | None) -> np.ndarray:
    """Return ``subset`` as an array of integers, empty for None."""
    return np.empty(0, np.int64) if subset is None else np.asarray(subset, np.int64)


def submatrices(terms: Sequence[Matrix], subset: np.ndarray, scale: np.ndarray | None) -> list[Matrix]:
    """Return ``C S_t,UU C`` of each term."""
    parts = [S.submatrix(subset) for S in terms]
    return parts if scale is None else [S.scaled(scale) for S in parts]
