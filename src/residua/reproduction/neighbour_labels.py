"""What the known labels around a node say, as features for trees and networks; a node's own label is never among them.

    [A v / A m, A m, A2 v / A2 m, A2 m],   v known labels about their mean and 0 elsewhere, m 1 where known

A is the adjacency of one edge type without loops, A2 = A A without the ways back to where they began.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from residua.graph import Graph
from residua.linalg import Sparse


def neighbour_labels(graph: Graph, y: np.ndarray) -> np.ndarray:
    """Return features (n, 4 x edge types) for labels y (n,), NaN where unknown."""
    known = ~np.isnan(y)
    both = np.column_stack([np.where(known, y - y[known].mean(), 0.0), known])
    columns = []
    for S in graph.operators.values():
        A = _without_loops(S)
        back = A.multiply(A).sum(axis=1)[:, None]
        one = A @ both
        two = A @ one - back * both
        for total in (one, two):
            seen = total[:, 1] > 1e-9 * A.sum(axis=1).max()
            columns += [np.divide(total[:, 0], total[:, 1], out=np.zeros(len(y)), where=seen), total[:, 1]]
    return np.column_stack(columns)


def _without_loops(S: Sparse) -> sp.csr_array:
    weights = np.ones(S.nnz) if S.weights is None else S.weights
    A = sp.csr_array((weights, S.indices, S.indptr), shape=S.shape).tocoo()
    apart = A.row != A.col
    return sp.csr_array((A.data[apart], (A.row[apart], A.col[apart])), shape=S.shape)
