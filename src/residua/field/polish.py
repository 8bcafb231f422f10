"""The zero of the slope of Omega next to an optimum that was found by values.

A search by values of Omega alone ends within the root of their rounding, which differs from machine to machine; the
zero of the slope is known to rounding itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from residua.field.precision import A_MAX


def polished(profile: Any, at: np.ndarray, reach: float = 1e-3) -> np.ndarray:
    """``at`` of a ``Profile`` moved to where its slope is zero; of one edge type, with a quadrature for every alpha."""
    low, high = np.clip([at[0] - reach, at[0] + reach], -A_MAX, A_MAX)
    if profile.p > 1 or profile.form.rule is None or slope(profile, low) >= 0 or slope(profile, high) <= 0:
        return at  # at an end, or no smooth minimum here
    return np.array([brentq(lambda a: slope(profile, a), low, high, xtol=1e-13, rtol=1e-14)])


def slope(profile: Any, a: float) -> float:
    """``d Omega / d alpha`` at alpha = tanh(a)."""
    alpha, form = float(np.tanh(a)), profile.form
    at = np.array([alpha])
    q, theta, _ = profile.least_squares(at)
    direction = np.concatenate([[1.0], -theta])
    assert form.rule is not None
    inner = form.rule.apply(lambda x: (2 - alpha * x) / (1 - alpha * x) ** 2)
    along = float(direction @ (-form.linear - alpha * inner) @ direction)
    return profile.n * along / q - float(np.asarray(profile.likelihood.ratio.gradient(at).value)[0])
