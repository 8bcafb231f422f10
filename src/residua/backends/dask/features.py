"""Averages over neighbours as features, on row blocks: a product for each hop.

[x, M x, .., M^K x, log(1 + d), M log(1 + d)],    M = D^-1 A
"""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Client

from residua.backends.dask.blocks import Block
from residua.backends.dask.likelihood import as_distributed
from residua.backends.dask.vectors import Vector, column
from residua.validation import check_count


def neighbour_features(client: Client, X: Any, graph: Any, *, hops: int = 2, degree: bool = True) -> Vector:
    """Features of every node and of its surroundings, as ``residua.NeighbourFeatures``.

    Parameters
    ----------
    client : a connected ``distributed.Client``
    X : (n, d) columns: names of columns of the node table, an array, or a ``Vector``
    graph : a ``DistributedGraph`` or a ``Graph``
    hops : how far to look; 0 keeps the features alone
    degree : add the logarithm of the degree and its neighbour average
    """
    graph = as_distributed(client, graph)
    check_count(hops, "hops", 0)
    with graph.cluster.guarded():
        names = isinstance(X, list | tuple) and all(isinstance(name, str) for name in X)
        hop = (graph.columns(list(X)) if names else graph.vector(X, "X")).map(column)
        root = Vector(graph.cluster, graph.cluster.each(_root_degree, graph.S.blocks), graph.S.sizes)
        columns = [hop]
        for _ in range(hops):
            hop = graph.S.product(hop.map(np.multiply, root)).map(_average, root)
            columns.append(hop)
        if degree:
            logs = root.map(_log_degree)
            columns += [logs, graph.S.product(logs.map(np.multiply, root)).map(_average, root)]
        return columns[0].map(_stacked, *columns[1:])


def _root_degree(block: Block) -> np.ndarray:
    scale = block.S.scale[: block.rows]
    return np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)[:, None]


def _average(product: np.ndarray, root: np.ndarray) -> np.ndarray:
    """``D^-1 A x = D^-1/2 (S D^1/2 x)``."""
    return np.divide(product, root, out=np.zeros_like(product), where=root > 0)


def _log_degree(root: np.ndarray) -> np.ndarray:
    return np.log1p(root * root)


def _stacked(*columns: np.ndarray) -> np.ndarray:
    return np.hstack(columns)
