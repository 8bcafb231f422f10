"""A smooth additive base: a curve of each feature, fitted by generalised least squares together with the correlation.

    y = theta_0 + sum_j (theta_j x_j + B(x_j) u_j) + r,    u_j ~ N(0, tau_j / beta)

Each curve is a natural cubic spline, a straight line beyond its first and last knot: a line, whose slope is as free as
that of a linear base, and bends B, penalised by the integral of the squared second derivative. How much, 1 / tau_j, is
where the restricted likelihood is highest: tau_j is 0 where the labels do not ask for bends. Knots are order statistics
of the feature at labelled nodes, evenly spaced in rank.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from residua.bases.linear import LinearBase
from residua.bases.registry import BENDS, MOST_BENDS
from residua.caller import warn
from residua.linalg.rows import Rows

KNOTS = BENDS + 2  # of a feature: a spline of k knots has k - 2 bends
LEAST_KNOTS = 3  # that a feature needs: fewer have no bend
APART = 1e-9  # of the range: knots nearer than this are one


class SplineBase(LinearBase):
    """A constant, the features, and bends of each of them.

    A feature of fewer than three distinct knots stays a line: one that is constant, binary, or the same at nearly all
    labelled nodes. All features together have at most 240 bends: with more than 40 features each has fewer than six,
    and with more than 240 none has any.

    Attributes
    ----------
    knots : list of ndarray
        Of each feature, standardised, in order; empty for one that stays a line.
    """

    knots: list[np.ndarray]

    def __init__(self) -> None:
        super().__init__("splines")

    def design(self, X: np.ndarray) -> np.ndarray:
        """Return Z (n, columns): the constant, the features, the bends of the first feature, of the second, ..."""
        x = (X - self.centre) / self.spread
        bent = [bends(column, knots) for column, knots in zip(x.T, self.knots, strict=True) if len(knots)]
        return np.column_stack([np.ones(len(x)), x, *bent])

    @property
    def features(self) -> np.ndarray:
        """The feature (columns,) that each column is made of, -1 for the constant."""
        counts = [max(len(knots) - 2, 0) for knots in self.knots]
        return np.concatenate([np.arange(-1, len(counts)), np.repeat(np.arange(len(counts)), counts)])

    @property
    def groups(self) -> np.ndarray:
        """Groups (columns,) of coefficients that share a prior variance: bends of a feature; 0 for all others."""
        features = self.features
        return np.where(np.arange(len(features)) <= len(self.knots), 0, features + 1)

    def fit_columns(self, known: np.ndarray, rows: Rows) -> None:
        """Learn centre, spread and knots from features (|L|, d) at labelled nodes."""
        super().fit_columns(known, rows)
        x = (known - self.centre) / self.spread
        count = min(KNOTS, 2 + MOST_BENDS // max(x.shape[1], 1))
        if count < LEAST_KNOTS:
            warn(
                f"base 'splines' has room for {MOST_BENDS} bends, too few for {x.shape[1]} features: it stays linear; "
                "choose features, or use base='linear'."
            )
        self.knots = [_knots(column, rows, count) for column in x.T]


def _knots(x: np.ndarray, rows: Rows, count: int) -> np.ndarray:
    """``count`` order statistics of x, evenly spaced in rank, each once; none where too few of them differ."""
    if count < LEAST_KNOTS:
        return np.empty(0)
    last = rows.sum(len(x)) - 1
    found = np.array([rows.kth_smallest(x, 1 + round(share * last)) for share in np.linspace(0, 1, count)])
    found = found[np.r_[True, np.diff(found) > APART * (found[-1] - found[0])]]
    return found if len(found) >= LEAST_KNOTS else np.empty(0)


def bends(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the bends B (n, k - 2) of a natural cubic spline f of k knots at x (n,).

    The integral of (B u)''^2 is u'u, so that independent coefficients u of one variance are the prior of a smoothing
    spline: the slopes between knots change by L u, L L' = R (Green and Silverman, 1994). Each bend is 0 at the first
    and the last knot; the line that this takes out is a column of its own.
    """
    h = np.diff(knots)
    R = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    slopes = np.cumsum(np.vstack([np.zeros(len(R)), np.linalg.cholesky(R)]), axis=0)
    values = np.cumsum(np.vstack([np.zeros(len(R)), h[:, None] * slopes]), axis=0)
    values -= np.outer((knots - knots[0]) / (knots[-1] - knots[0]), values[-1])
    curve = CubicSpline(knots, values, bc_type="natural")
    inside = np.clip(x, knots[0], knots[-1])
    return curve(inside) + curve(inside, 1) * (x - inside)[:, None]
