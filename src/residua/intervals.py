"""Half-widths of prediction intervals, in standard deviations.

interval = mean -+ width * std,    width = Phi^-1((1 + coverage) / 2)                   (Gaussian)
                                   width = quantile of |error| / std at labels left out (conformal)
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from residua.linalg.rows import LOCAL, Rows


def gaussian_width(coverage: float) -> float:
    """Return the width of the central interval of a normal distribution that covers this share."""
    return float(ndtri((1 + coverage) / 2))


def conformal_quantile(scores: np.ndarray, coverage: float, rows: Rows = LOCAL) -> float:
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
