"""How good predictions and intervals are.

    R2   = 1 - sum (y - m)^2 / sum (y - mean y)^2
    NLL  = mean of log s + z^2 / 2 + log(2 pi) / 2
    CRPS = mean of s (z erf(z / sqrt 2) + 2 phi(z) - 1 / sqrt pi);  of draws x, x': mean of E|x - y| - E|x - x'| / 2

m mean, s standard deviation, z = (y - m) / s, phi the normal density. A node whose y is NaN is unknown and left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf
from scipy.stats import norm

from residua.arrays import as_floats
from residua.graph.alignment import check_one_index
from residua.metrics.known import as_vector, known_rows


def r2(y: ArrayLike, prediction: ArrayLike) -> float:
    """Return the share of the variance of y that the prediction explains.

    Parameters
    ----------
    y, prediction : array_like of shape (n,)
        Nodes with y NaN are left out.

    Returns
    -------
    float
        1 is perfect, 0 no better than the mean of y.

    Examples
    --------
    >>> r2([1.0, 2.0, 3.0, float("nan")], [1.0, 2.0, 2.0, 9.0])
    0.5
    """
    y, prediction = known_rows(y, prediction=prediction)
    if np.ptp(y) == 0:
        raise ValueError(f"y is {y[0]} at all {len(y)} known nodes, so R2 is undefined; use rmse.")
    from sklearn.metrics import r2_score  # here: a fit has no use for it, and it takes a while to load

    return float(r2_score(*_near_one(y, prediction)[0]))


def rmse(y: ArrayLike, prediction: ArrayLike) -> float:
    """Return the root mean square error.

    Parameters
    ----------
    y, prediction : array_like of shape (n,)
        Nodes with y NaN are left out.

    Returns
    -------
    float
        In the units of y.

    Examples
    --------
    >>> rmse([0.0, 0.0], [3.0, 4.0])  # sqrt(12.5)
    3.5355339059327378
    """
    y, prediction = known_rows(y, prediction=prediction)
    columns, power = _near_one(y, prediction)
    from sklearn.metrics import root_mean_squared_error

    return float(np.ldexp(root_mean_squared_error(*columns), power))


def sign_accuracy(y: ArrayLike, prediction: ArrayLike) -> float:
    """Return the share of nodes where the prediction falls on y's side of zero; zero counts as negative.

    Parameters
    ----------
    y, prediction : array_like of shape (n,)
        Nodes with y NaN are left out.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> sign_accuracy([1, -1, 1, -1], [0.2, -0.1, -0.3, -5.0])
    0.75
    """
    y, prediction = known_rows(y, prediction=prediction)
    return float(np.mean((y > 0) == (prediction > 0)))


def gaussian_nll(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Return the mean negative log-density of y under independent normals.

    Parameters
    ----------
    y, mean, std : array_like of shape (n,)
        Nodes with y NaN are left out; std is positive at the others.

    Returns
    -------
    float
        In nats per node; lower is better.

    Examples
    --------
    >>> round(gaussian_nll([0.0], [0.0], [1.0]), 4)  # log(2 pi) / 2
    0.9189
    """
    y, mean, std = known_rows(y, mean=mean, std=std)
    _check_positive(std)
    return float(-norm.logpdf(y, mean, std).mean())


def gaussian_crps(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Return the mean continuous ranked probability score of normal predictions.

    It rewards sharp and calibrated error bars together, and tends to the mean absolute error as std goes to 0. No
    library that is required here has it, nor the score of draws, nor Moran's I.

    Parameters
    ----------
    y, mean, std : array_like of shape (n,)
        Nodes with y NaN are left out; std is positive at the others.

    Returns
    -------
    float
        In the units of y; lower is better.

    Examples
    --------
    >>> round(gaussian_crps([0.0], [0.0], [1.0]), 4)  # (sqrt 2 - 1) / sqrt pi
    0.2337
    """
    y, mean, std = known_rows(y, mean=mean, std=std)
    _check_positive(std)
    z = (y - mean) / std
    return float(np.mean(std * (z * erf(z / np.sqrt(2)) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))))


def sample_crps(y: ArrayLike, draws: ArrayLike) -> float:
    """Return the mean continuous ranked probability score of draws, each node's taken as its distribution.

    Parameters
    ----------
    y : array_like of shape (n,)
        Nodes with y NaN are left out.
    draws : array_like of shape (k, n)
        Such as ``model.sample(k)``; with one draw the score is the mean absolute error.

    Returns
    -------
    float
        In the units of y; lower is better.

    Examples
    --------
    >>> sample_crps([0.0], [[-1.0], [1.0]])  # 1 - 1 / 2
    0.5
    """
    check_one_index({"y": y, "draws.T": getattr(draws, "T", None)})
    table = as_floats(draws, "draws")
    if table.ndim != 2 or not len(table):
        raise ValueError(f"draws has shape {table.shape}; give at least one row of draws, shape (k, n).")
    known = ~np.isnan(as_vector(y, "y"))
    y, _ = known_rows(y, draws=table.sum(axis=0))  # a sum is finite where all of its draws are
    table, k = np.sort(table[:, known], axis=0), len(table)
    rank = 2 * np.arange(1, k + 1) - k - 1  # sum of |x - x'| over pairs, by order
    return float(np.mean(np.abs(table - y).mean(axis=0) - rank @ table / k**2))


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Return the share of nodes whose y lies in its interval, ends included.

    Parameters
    ----------
    y, lower, upper : array_like of shape (n,)
        Nodes with y NaN are left out; an end may be infinite.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> coverage([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0])
    0.75
    """
    y, lower, upper = known_rows(y, finite=False, lower=lower, upper=upper)
    _check_ordered(lower, upper)
    return float(np.mean((lower <= y) & (y <= upper)))


def interval_score(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, coverage: float = 0.9) -> float:
    """Return the mean width of intervals plus ``2 / (1 - coverage)`` times the distance by which y misses them.

    The score is lowest, on average, for the true central interval.

    Parameters
    ----------
    y, lower, upper : array_like of shape (n,)
        Nodes with y NaN are left out.
    coverage : float
        The share of nodes that the intervals claim to cover, between 0 and 1.

    Returns
    -------
    float
        In the units of y; lower is better.

    Examples
    --------
    >>> round(interval_score([0.5, 1.5], [0.0, 0.0], [1.0, 1.0], coverage=0.9), 6)  # (1 + 1 + 20 * 0.5) / 2
    6.0
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage is {coverage}; give a share between 0 and 1, such as 0.9.")
    y, lower, upper = known_rows(y, finite=False, lower=lower, upper=upper)
    _check_ordered(lower, upper)
    miss = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - coverage) * miss))


def _near_one(*columns: NDArray[np.float64]) -> tuple[list[NDArray[np.float64]], int]:
    """Return columns over a power of two, and the power: no digit changes, and squares of 1e155 are floats then."""
    power = int(np.frexp(max(np.abs(column).max() for column in columns))[1])
    return [np.ldexp(column, -power) for column in columns], power


def _check_positive(std: NDArray[np.float64]) -> None:
    if not (std > 0).all():
        raise ValueError(
            f"std is {std.min()} at {np.sum(std <= 0)} of {len(std)} known nodes; densities need std > 0, "
            "so set y to NaN at nodes whose label was given to the model."
        )


def _check_ordered(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    crossed = lower > upper
    if crossed.any():
        first = crossed.argmax()
        ends = f"{lower[first]} > {upper[first]}"
        raise ValueError(f"lower exceeds upper at {crossed.sum()} nodes, first {ends}; swap the two.")
