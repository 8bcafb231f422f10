"""Watts-Strogatz graphs, and residuals drawn on them from the model."""

from __future__ import annotations

import numpy as np

from residua.field.precision import unit_precision
from residua.graph import Graph
from residua.linalg import Solver


def watts_strogatz(n: int, degree: int = 10, rewired: float = 0.1, seed: int = 0) -> Graph:
    """A ring of n nodes, each joined to its nearest ``degree``, a share of the far ends drawn anew."""
    return Graph.from_edges(*watts_strogatz_edges(n, degree, rewired, seed))


def watts_strogatz_edges(
    n: int, degree: int = 10, rewired: float = 0.1, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a small world, each once."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(n), degree // 2)
    target = (source + np.tile(np.arange(1, degree // 2 + 1), n)) % n
    moved = rng.random(len(target)) < rewired
    target[moved] = rng.integers(0, n, moved.sum())
    keep = source != target
    source, target = source[keep], target[keep]
    _, first = np.unique(np.minimum(source, target) * n + np.maximum(source, target), return_index=True)
    return source[first], target[first]


def correlated_residuals(graph: Graph, alpha: float, labelled: float, seed: int = 0) -> np.ndarray:
    """Draw from the model with beta = 1, NaN where unlabelled."""
    rng = np.random.default_rng(seed)
    precision = unit_precision(list(graph.operators.values()), np.array([alpha]))
    residual = Solver().solve(precision, precision.noise(rng)(1)).X[:, 0]
    residual[rng.random(graph.n_nodes) >= labelled] = np.nan
    return residual
