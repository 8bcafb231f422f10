"""What the size of errors may depend on: columns over the nodes of a graph, by name.

Features that are numbers, the logarithm of the degree, the prediction (at a known label from all the others), and how
far it is from the middle. A feature is named by its position, x0, x1, ..; tables of more than 64 are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from residua.features import number_columns
from residua.graph import Graph

MOST = 64  # features: their number times that of the nodes is memory
DEGREE, PREDICTION, DISTANCE = "degree (log)", "prediction", "distance of the prediction from the middle"


def spread_columns(graph: Graph, X: Any, mean: np.ndarray, middle: float) -> dict[str, np.ndarray]:
    """Return columns (n,) by name.

    Parameters
    ----------
    graph : Graph
        n nodes.
    X : (n, d) array, DataFrame, sparse matrix or None
        Features.
    mean : (n,) array
        Predictions.
    middle : float
        Of the predictions at the labels of the fit.
    """
    return number_columns(X, MOST) | {
        DEGREE: np.log1p(graph.degree),
        PREDICTION: mean,
        DISTANCE: np.abs(mean - middle),
    }


def named(columns: dict[str, np.ndarray], names: Sequence[str]) -> np.ndarray:
    """Return columns of these names as one table (n, k)."""
    n = len(next(iter(columns.values())))
    return np.column_stack([columns[name] for name in names]) if names else np.zeros((n, 0))


def is_column(name: str, n_features: int) -> bool:
    """Return whether a column of this name is there with so many features."""
    return name in (DEGREE, PREDICTION, DISTANCE) or name in {f"x{k}" for k in range(min(n_features, MOST))}
