"""Label propagation on row blocks: the conditional mean at alpha = 1.

(I - S_UU) f_U = S_UL f_L
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from distributed import Client

from residua.backends.dask.conditional import DistributedConditional
from residua.backends.dask.likelihood import as_distributed, check_labels
from residua.backends.dask.vectors import Vector


def propagate(client: Client, values: Any, graph: Any, *, fallback: float | None = None) -> Vector:
    """Fill unknown nodes from known ones by label propagation.

    Parameters
    ----------
    client : a connected ``distributed.Client``
    values : a column of the node table, an array in the order of the nodes, or a ``Vector``; NaN where unknown
    graph : a ``DistributedGraph`` or a ``Graph``
    fallback : number for nodes that no known value reaches; by default the mean of the known values
    """
    graph = as_distributed(client, graph)
    with graph.cluster.guarded():
        y = graph.vector(values)
        labelled = check_labels(y, "values", 1)
        filled = DistributedConditional(graph, y, 1.0).mean()
        reached = graph.components.reached(labelled)
        alone = graph.n_nodes - int(reached.total(np.sum))
        total, count = y.total(_mean_parts)
        number = float(total / count) if fallback is None else float(fallback)
        if alone:
            warnings.warn(f"{alone} nodes are in components without a label; they get {number:.4g}.", stacklevel=2)
        return filled.map(_with_fallback, reached, [number] * len(y.parts))


def _mean_parts(y: np.ndarray) -> np.ndarray:
    there = ~np.isnan(y)
    return np.array([y[there].sum(), there.sum()])


def _with_fallback(filled: np.ndarray, reached: np.ndarray, number: float) -> np.ndarray:
    return np.where(reached, filled, number)
