"""How good predictions are, and what their residuals still share along edges.

    R2   = 1 - sum (y - m)^2 / sum (y - mean y)^2
    NLL  = mean of log s + z^2 / 2 + log(2 pi) / 2
    CRPS = mean of s (z erf(z / sqrt 2) + 2 phi(z) - 1 / sqrt pi);  of draws x, x': mean of E|x - y| - E|x - x'| / 2
    I    = (n / S0) (x' W x) / (x' x)                                  (Moran)

m mean, s standard deviation, z = (y - m) / s, phi the normal density; x centred values, W adjacency without
self-loops, S0 the sum of its entries. A node whose y (or value) is NaN is unknown and left out everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import erf, ndtr
from scipy.stats import norm

from residua.arrays import as_floats
from residua.graph import Graph
from residua.graph.alignment import align, check_one_index

__all__ = [
    "MoranResult",
    "coverage",
    "gaussian_crps",
    "gaussian_nll",
    "interval_score",
    "morans_i",
    "r2",
    "rmse",
    "sample_crps",
    "sign_accuracy",
]


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
    y, prediction = _known(y, prediction=prediction)
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
    y, prediction = _known(y, prediction=prediction)
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
    y, prediction = _known(y, prediction=prediction)
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
    y, mean, std = _known(y, mean=mean, std=std)
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
    y, mean, std = _known(y, mean=mean, std=std)
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
    known = ~np.isnan(_vector(y, "y"))
    y, _ = _known(y, draws=table.sum(axis=0))  # a sum is finite where all of its draws are
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
    y, lower, upper = _known(y, finite=False, lower=lower, upper=upper)
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
    y, lower, upper = _known(y, finite=False, lower=lower, upper=upper)
    _check_ordered(lower, upper)
    miss = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - coverage) * miss))


@dataclass(frozen=True)
class MoranResult:
    """Moran's I with its test against values that know nothing of the graph.

    Attributes
    ----------
    statistic : float
        Moran's I.
    expected : float
        Its mean where the values are dealt to the nodes at random.
    z_score : float
        Its distance from that mean, in standard deviations.
    p_value : float
        Two-sided, by the normal limit.
    """

    statistic: float
    expected: float
    z_score: float
    p_value: float


def morans_i(values: ArrayLike, graph: Graph) -> MoranResult:
    """Return Moran's I: near 1 where neighbours are alike, near 0 for noise, negative for contrast.

    Weights are the graph's own, summed over edge types, without self-loops. The test compares with the same
    values dealt to the nodes at random (the randomisation assumption): mean and variance are exact (Cliff and
    Ord, Spatial Processes, 1981), the two-sided p-value takes the normal limit. Where every deal has the same
    I, as on a complete graph, the z-score is 0 and the p-value 1.

    Parameters
    ----------
    values : array_like of shape (n,)
        In the order of ``graph.nodes``, or a Series indexed by id; NaN leaves a node out, with its edges.
    graph : Graph
        n nodes, of which at least 4 have a value and one edge joins two of them.

    Returns
    -------
    MoranResult
        The statistic and its test.

    Examples
    --------
    >>> import numpy as np, residua
    >>> path = residua.Graph.from_edges(np.arange(19), np.arange(1, 20))
    >>> result = morans_i(np.arange(20.0), path)
    >>> round(result.statistic, 3), result.p_value < 0.001
    (0.895, True)
    """
    x, W = values_and_weights(values, graph)
    n, S0, x2 = len(x), W.sum(), x @ x
    statistic, expected = n / S0 * (x @ (W @ x)) / x2, -1 / (n - 1)
    variance = _second_moment(W, kurtosis=float(n * np.sum(x**4) / x2**2)) - expected**2
    # Rounding leaves a trace where the variance is exactly zero.
    z = (statistic - expected) / np.sqrt(variance) if variance > 1e-12 * expected**2 else 0.0
    return MoranResult(float(statistic), float(expected), float(z), float(2 * ndtr(-abs(z))))


def values_and_weights(values: ArrayLike, graph: Graph) -> tuple[NDArray[np.float64], sparse.csr_array]:
    """Centred, scaled values where known, and the weights among those nodes."""
    values = _vector(align(values, graph.nodes, "values", unknown=True), "values")
    if len(values) != graph.n_nodes:
        raise ValueError(f"values has {len(values)} entries but graph has {graph.n_nodes} nodes; give one a node.")
    (x,) = _known(values, name="values")
    if len(x) < 4:
        raise ValueError(f"values is known at {len(x)} nodes; Moran's I and its variance need at least 4.")
    if np.ptp(x) == 0:
        raise ValueError(f"values is {x[0]} at all {len(x)} known nodes; Moran's I needs values that differ.")
    known = np.flatnonzero(~np.isnan(values))
    W = graph.adjacency()[known][:, known]
    W = W - sparse.diags_array(W.diagonal())
    if W.sum() == 0:
        raise ValueError(f"graph has no edge among the {len(x)} nodes with a value; Moran's I needs one.")
    x = x - x.mean()
    return x / np.abs(x).max(), W


def _second_moment(W: sparse.csr_array, kurtosis: float) -> float:
    """E[I^2] under randomisation (Cliff and Ord) for symmetric weights."""
    n, S0 = W.shape[0], W.sum()
    S1 = 2 * np.sum(W.data**2)
    S2 = 4 * np.sum(W.sum(axis=1) ** 2)
    normal = n * ((n**2 - 3 * n + 3) * S1 - n * S2 + 3 * S0**2)
    peaked = kurtosis * ((n**2 - n) * S1 - 2 * n * S2 + 6 * S0**2)
    return (normal - peaked) / ((n - 1) * (n - 2) * (n - 3) * S0**2)


def _known(y: ArrayLike, *, name: str = "y", finite: bool = True, **others: ArrayLike) -> list[NDArray[np.float64]]:
    """Validate columns of one length, and keep the rows where the first is known."""
    check_one_index({name: y, **others})
    first = _vector(y, name)
    if np.isinf(first).any():
        raise ValueError(f"{name} is infinite at index {np.isinf(first).argmax()}; mark unknown nodes with NaN.")
    known = ~np.isnan(first)
    if not known.any():
        raise ValueError(f"{name} has {len(first)} entries and none is known; give at least one that is not NaN.")
    columns = {key: _vector(column, key) for key, column in others.items()}
    for key, column in columns.items():
        if len(column) != len(known):
            raise ValueError(f"{key} has {len(column)} entries but {name} has {len(known)}; give one per node.")
        bad = known & (~np.isfinite(column) if finite else np.isnan(column))
        if bad.any():
            raise ValueError(
                f"{key} is {column[bad][0]} at index {bad.argmax()}, where {name} is known; "
                f"give a number there, or set {name} to NaN to leave the node out."
            )
    return [first[known], *(column[known] for column in columns.values())]


def _near_one(*columns: NDArray[np.float64]) -> tuple[list[NDArray[np.float64]], int]:
    """Return columns over a power of two, and the power: no digit changes, and squares of 1e155 are floats then."""
    power = int(np.frexp(max(np.abs(column).max() for column in columns))[1])
    return [np.ldexp(column, -power) for column in columns], power


def _vector(column: ArrayLike, name: str) -> NDArray[np.float64]:
    vector = as_floats(column, name)
    if vector.ndim != 1:
        raise ValueError(f"{name} has shape {vector.shape}; give one number per node, shape (n,).")
    return vector


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
