"""An order statistic of numbers that are spread over blocks: narrow it down by counting, then look."""

from __future__ import annotations

import numpy as np

from residua.backends.dask.vectors import Vector

CUTS = 64
FEW = 100_000  # numbers that may come to this process


def kth_smallest(values: Vector, k: int) -> float:
    """The k-th smallest (from 1) of the numbers that are not NaN."""
    ends = np.array([part for part in values.partials(_range) if np.isfinite(part).all()])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    before = 0  # numbers below low
    while True:
        cuts = np.linspace(low, high, CUTS + 1)
        counts = before + np.cumsum(values.total(_histogram, [cuts] * len(values.parts)))
        cell = int(np.searchsorted(counts, k))
        inside = int(counts[cell] - (counts[cell - 1] if cell else before))
        if inside <= FEW or cuts[cell + 1] <= np.nextafter(cuts[cell], np.inf):
            break
        before = int(counts[cell - 1]) if cell else before
        low, high = cuts[cell], cuts[cell + 1]
    rank = k - int(counts[cell - 1] if cell else before)
    found = np.concatenate(values.partials(_between, [(cuts, cell)] * len(values.parts)))
    return float(np.sort(found)[rank - 1])


def _range(part: np.ndarray) -> tuple[float, float]:
    known = part[~np.isnan(part)]
    return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)


def _cells(part: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Cell of each number in [first cut, last cut]; -1 outside."""
    cell = np.minimum(np.searchsorted(cuts, part, side="right") - 1, len(cuts) - 2)
    return np.where((part >= cuts[0]) & (part <= cuts[-1]), cell, -1)


def _histogram(part: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    known = part[~np.isnan(part)]
    cell = _cells(known, cuts)
    return np.bincount(cell[cell >= 0], minlength=len(cuts) - 1)


def _between(part: np.ndarray, given: tuple[np.ndarray, int]) -> np.ndarray:
    cuts, cell = given
    known = part[~np.isnan(part)]
    return known[_cells(known, cuts) == cell]
