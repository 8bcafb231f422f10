"""Half-widths of prediction intervals, in standard deviations.

interval = mean -+ width * std,    width = Phi^-1((1 + coverage) / 2)                   (Gaussian)
                                   width = quantile of |error| / std at labels left out (conformal)
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


def gaussian_width(coverage: float) -> float:
    """Return the width of the central interval of a normal distribution that holds this share."""
    return float(ndtri((1 + coverage) / 2))


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """Return the width that covers this share of labels.

    Parameters
    ----------
    scores : (k,) array
        Absolute errors in standard deviations, of labels left out.
    coverage : float
        Share of labels, between 0 and 1.
    """
    scores = np.sort(scores)
    rank = int(np.ceil((len(scores) + 1) * coverage))
    # With few labels no finite width has the guarantee: fall back to the widest seen or the Gaussian's.
    return float(scores[rank - 1]) if rank <= len(scores) else max(scores[-1], gaussian_width(coverage))
