"""Columns as codes from 0 to 255, all that trees see: quantiles of numbers, categories, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from residua.bases.trees.kernels import MISSING


@dataclass(frozen=True)
class Bins:
    """Where the columns of a table are cut.

    Parameters
    ----------
    edges : ndarray of shape (total,)
        Borders between codes, one column after the other, ascending in each.
    counts : ndarray of shape (d,)
        How many borders each column has; codes 0 .. count.
    categorical : ndarray of bool, shape (d,)
        Columns whose numbers are names of categories: codes as they are, without an order.
    """

    edges: np.ndarray
    counts: np.ndarray
    categorical: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, categorical: np.ndarray | None = None) -> Bins:
        """Return borders at midpoints between the values of a column, or at its quantiles where they are many.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Numbers, NaN where missing; categories 0, 1, 2, ..
        categorical : ndarray of bool, shape (d,), optional
            Columns of categories.
        """
        categorical = np.zeros(X.shape[1], bool) if categorical is None else categorical
        edges = [np.empty(0) if c else _borders(x[np.isfinite(x)]) for x, c in zip(X.T, categorical, strict=True)]
        total = np.concatenate(edges) if edges else np.empty(0)
        return cls(total, np.array([len(e) for e in edges], np.int64), categorical)

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Return the codes (n, d) of numbers X (n, d); ``MISSING`` for NaN and for categories beyond the largest."""
        out = np.empty(X.shape, np.uint8)
        ends = np.cumsum(self.counts)
        for j, x in enumerate(X.T):
            missing = np.isnan(x)
            if self.categorical[j]:
                missing = missing | (x >= MISSING) | (x < 0)
                out[:, j] = np.where(missing, MISSING, x).astype(np.uint8)
                continue
            out[:, j] = np.searchsorted(self.edges[ends[j] - self.counts[j] : ends[j]], x)
            out[missing, j] = MISSING
        return out


def _borders(x: np.ndarray) -> np.ndarray:
    """Return ascending borders, at most ``MISSING - 1`` of them, none of them a value of x where that can be."""
    values, counts = np.unique(x, return_counts=True)
    if len(values) > MISSING:
        # Quantiles of the values, each as often as it occurs.
        at = np.searchsorted(np.cumsum(counts), len(x) * np.arange(1, MISSING) / MISSING)
        lower = np.unique(np.minimum(at, len(values) - 2))
    else:
        lower = np.arange(len(values) - 1)
    return values[lower] + (values[lower + 1] - values[lower]) / 2
