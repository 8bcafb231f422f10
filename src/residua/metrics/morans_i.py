"""Moran's I: what values share along edges, and its test.

    I = (n / S0) (x' W x) / (x' x)

x centred values, W adjacency without self-loops, S0 the sum of its entries. A node whose value is NaN is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import ndtr

from residua.graph import Graph
from residua.graph.alignment import align
from residua.metrics.known import as_vector, known_rows


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
    values = as_vector(align(values, graph.nodes, "values", unknown=True), "values")
    if len(values) != graph.n_nodes:
        raise ValueError(f"values has {len(values)} entries but graph has {graph.n_nodes} nodes; give one a node.")
    (x,) = known_rows(values, name="values")
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
