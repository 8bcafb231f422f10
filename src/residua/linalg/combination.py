"""Sums ``sum_t c_t S_t`` of matrices that share one scale, for many c: where their entries lie is found once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from residua.linalg.operator import Matrix, Sparse, summed


class Combination:
    """The entries of several matrices, and which of their sum's each belongs to.

    Parameters
    ----------
    terms : sequence of Sparse
        The S_t, all with the same scale.

    Attributes
    ----------
    rows, columns : ndarray of int
        Places of the entries of the sum; one that cancels keeps its place.
    """

    def __init__(self, terms: Sequence[Matrix]):
        parts = [S for S in terms if isinstance(S, Sparse)]
        self.scale, self.n, self.p = parts[0].scale, parts[0].shape[0], len(parts)
        every = summed(np.ones(len(parts)), [S.adjacency.tocoo() for S in parts], self.scale.dtype)
        self.values, self.kind = every.data, np.repeat(np.arange(len(parts)), [S.nnz for S in parts])
        found, self.place = np.unique(every.row * np.int64(self.n) + every.col, return_inverse=True)
        self.rows, self.columns = found // max(self.n, 1), found % max(self.n, 1)
        self.indptr = np.searchsorted(self.rows, np.arange(self.n + 1))

    def __call__(self, coefficients: np.ndarray) -> Sparse:
        """Return the sum with these coefficients (p,), as one matrix with signed weights."""
        weights = self.values * np.asarray(coefficients)[self.kind]
        return Sparse(self.indptr, self.columns, np.bincount(self.place, weights, len(self.rows)), self.scale)

    def contractions(self, Z: np.ndarray) -> np.ndarray:
        """Return ``tr(Z S_t)`` for each t, of the symmetric Z whose values at the places of the sum are given."""
        scaled = Z * self.scale[self.rows] * self.scale[self.columns]
        return np.bincount(self.kind, self.values * scaled[self.place], self.p)
