"""Half-widths of prediction intervals, in standard deviations, and intervals of models fitted without some labels.

    interval = mean -+ width * std,    width = Phi^-1((1 + coverage) / 2)                      (Gaussian)
                                       width = quantile of |error| / std at labels left out    (jackknife)

    [ q-{m_k(i) - z_i s_k(i)},  q+{m_k(i) + z_i s_k(i)} ],    z_i = |y_i - m_k(i)| / s_k(i) at label i    (jackknife+)

m_k, s_k mean and standard deviation of the model that was fitted without the fold k, k(i) the fold of label i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from residua.linalg.rows import LOCAL, Rows

METHODS = ("jackknife", "jackknife+", "predictive", "conformal", "gaussian")  # the last two are former names
LEFT_OUT = ("auto", "nodes", "blocks")
FOLDS = 10  # of labels, each left out of a fit of its own


def gaussian_width(coverage: float) -> float:
    """Return the width of the central interval of a normal distribution that covers this share."""
    return float(ndtri((1 + coverage) / 2))


def jackknife_quantile(scores: np.ndarray, coverage: float, rows: Rows = LOCAL) -> float:
    """Return the width that covers this share of labels.

    Parameters
    ----------
    scores : (k,) array
        Absolute errors in standard deviations, of labels left out.
    coverage : float
        Share of labels, between 0 and 1.
    rows : Rows
        Reductions over all labels, where this process has some of them.
    """
    count = int(rows.sum(len(scores)))
    rank = int(np.ceil((count + 1) * coverage))
    widest = rows.kth_smallest(scores, min(rank, count))
    # With few labels no finite width has the guarantee: fall back to the widest seen or the Gaussian's.
    return widest if rank <= count else max(widest, gaussian_width(coverage))


def without_folds(
    y: np.ndarray, refitted: Callable[[np.ndarray], Any], asked: Callable[[Any], Any], seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what ``jackknife_plus`` needs: folds and scores of the labels, means and standard deviations by fold.

    Parameters
    ----------
    y : (n,) array
        Labels, NaN where unknown.
    refitted : callable
        Returns the model fitted to labels (n,).
    asked : callable
        Returns means and standard deviations (k,) of a model where intervals are asked for.
    seed : int
        Of the folds.
    """
    labelled = np.flatnonzero(~np.isnan(y))
    if len(labelled) < 2 * FOLDS:
        raise ValueError(
            f'method="jackknife+" leaves out a tenth of the labels at a time, of which there are {len(labelled)}, and '
            f'needs {2 * FOLDS}; use method="jackknife".'
        )
    fold = np.random.default_rng([seed, 4]).permutation(np.arange(len(labelled)) % FOLDS)
    scores, found = np.empty(len(labelled)), []
    for k in range(FOLDS):
        left_out, rest = labelled[fold == k], y.copy()
        rest[left_out] = np.nan
        model = refitted(rest)
        mean, std = model.predict(return_std=True)
        scores[fold == k] = np.abs(y[left_out] - mean[left_out]) / std[left_out]
        found.append(asked(model))
    means, stds = (np.stack(part) for part in zip(*found, strict=True))
    return fold, scores, means, stds


def jackknife_plus(
    fold: np.ndarray, scores: np.ndarray, means: np.ndarray, stds: np.ndarray, coverage: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return ends (n,) of the intervals of jackknife+, of labels in folds (CV+).

    Parameters
    ----------
    fold, scores : (k,) arrays
        Of each label its fold, and its absolute error in standard deviations as predicted without that fold.
    means, stds : (folds, n) arrays
        Of all nodes, as predicted without each fold.
    coverage : float
        Share of nodes, between 0 and 1; a label yet to come is inside with probability 2 coverage - 1 at least.
    """
    count = len(scores)
    rank = int(np.ceil((count + 1) * coverage))
    lower, upper = np.full(means.shape[1], -np.inf), np.full(means.shape[1], np.inf)
    if rank > count:
        return lower, upper
    for first in range(0, means.shape[1], tile := max(1, 20_000_000 // count)):
        mean, std = means[fold, first : first + tile], stds[fold, first : first + tile]
        reach = scores[:, None] * std
        upper[first : first + tile] = np.partition(mean + reach, rank - 1, axis=0)[rank - 1]
        lower[first : first + tile] = np.partition(mean - reach, count - rank, axis=0)[count - rank]
    return lower, upper
