"""Positions for graphs that have none: pivot MDS for the broad shape, springs and repulsion for the detail."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import KDTree

from residua.graph import Graph

Array = NDArray[np.float64]


def layout(graph: Graph) -> Array:
    """Compute positions for a graph that has none: near in the graph is near in the picture, the same at every call.

    Pivot MDS (Brandes and Pich 2007: distances to a few far-apart nodes, projected to the plane) gives the
    broad shape; springs of length 1 with short-range repulsion give the detail. Components are laid out one
    by one, the largest first; beyond the 32 largest they become circles. 3,000 nodes take half a second,
    50,000 take ten.

    Returns
    -------
    array, shape (n, 2)
        In units of about one edge length.

    Examples
    --------
    >>> import residua
    >>> layout(residua.Graph.from_edges([0, 1, 2], [1, 2, 3])).shape
    (4, 2)
    """
    A = graph.adjacency()
    A = sparse.csr_array(A - sparse.diags_array(A.diagonal()))
    component = graph.components
    sizes = np.bincount(component)
    xy = _circles(component, sizes)
    for c in np.argsort(-sizes, kind="stable")[:32]:
        if sizes[c] > 2:
            members = np.flatnonzero(component == c)
            xy[members] = _unfold(A[members][:, members])
    return xy + _shelves(xy, component)[component]


def _unfold(A: sparse.csr_array, rounds: int = 80) -> Array:
    """Lay out a connected graph of at least 3 nodes, its long side along x."""
    X = _principal(_pivot_distances(A, pivots=32) ** 2)
    X /= np.sqrt(np.mean(np.sum(_edge_vectors(A, X) ** 2, axis=1)))
    # Twins (leaves of one hub) coincide so far; a spiral of small steps tells them apart.
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(len(X))
    radius = 0.3 * np.sqrt(np.arange(len(X)) / len(X))
    X += np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    for step in np.linspace(0.5, 0.05, rounds):
        force = _springs(A, X) + _repulsion(X)
        X += step * force / np.maximum(1, np.linalg.norm(force, axis=1, keepdims=True))
    return _principal(X)


def _pivot_distances(A: sparse.csr_array, pivots: int) -> Array:
    """Hop distances (n, k) to nodes each chosen farthest from those before it."""
    columns = [csgraph.dijkstra(A, unweighted=True, indices=0)]
    nearest = np.full(A.shape[0], np.inf)
    for _ in range(min(pivots, A.shape[0]) - 1):
        nearest = np.minimum(nearest, columns[-1])
        columns.append(csgraph.dijkstra(A, unweighted=True, indices=int(nearest.argmax())))
    return np.column_stack(columns)


def _principal(C: Array) -> Array:
    """The two principal coordinates (n, 2) of the rows, with a fixed sign."""
    C = C - C.mean(axis=0)
    C = C - C.mean(axis=1, keepdims=True) if C.shape[1] > 2 else C
    U, s, _ = np.linalg.svd(C, full_matrices=False)
    X = U[:, :2] * s[:2]
    return X * np.where(X[np.abs(X).argmax(axis=0), [0, 1]] < 0, -1, 1)


def _edge_vectors(A: sparse.csr_array, X: Array) -> Array:
    """Vectors from each node to each of its neighbours, in the order of A."""
    return X[A.indices] - np.repeat(X, np.diff(A.indptr), axis=0)


def _springs(A: sparse.csr_array, X: Array) -> Array:
    """Mean pull of a node's neighbours towards distance 1."""
    away = _edge_vectors(A, X)
    stretch = 1 - 1 / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)
    return np.add.reduceat(away * stretch, A.indptr[:-1]) / np.diff(A.indptr)[:, None]


def _repulsion(X: Array, reach: int = 8) -> Array:
    """Push from the few nearest nodes, fading with the square of distance."""
    near = KDTree(X).query(X, k=min(reach + 1, len(X)))[1][:, 1:]
    away = X[:, None] - X[near]
    distance = np.maximum(np.linalg.norm(away, axis=2, keepdims=True), 1e-9)
    return 0.3 * np.sum(away / (distance * (0.1 + distance**2)), axis=1)


def _circles(component: NDArray[np.intp], sizes: NDArray[np.intp]) -> Array:
    """Every component on a circle of its own around 0, of unit distance between nodes."""
    rank = pd.Series(component).groupby(component).cumcount().to_numpy()
    turn, radius = 2 * np.pi * rank / sizes[component], np.where(sizes > 1, sizes, 0)[component] / (2 * np.pi)
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])


def _shelves(xy: Array, component: NDArray[np.intp]) -> Array:
    """Shifts (components, 2) that set components in rows, the tallest first."""
    nodes = pd.DataFrame(xy).groupby(component)
    low, high = nodes.min().to_numpy(), nodes.max().to_numpy()
    box = high - low + 1.5
    order = np.argsort(-box[:, 1], kind="stable")
    left = np.cumsum(box[order, 0]) - box[order, 0]
    shelf = np.floor(left / max(box[:, 0].max(), np.sqrt(1.5 * box.prod(axis=1).sum()))).astype(int)
    shelf = np.unique(shelf, return_inverse=True)[1]
    first = np.searchsorted(shelf, np.arange(shelf[-1] + 1))
    top = -np.cumsum(np.r_[0, box[order[first], 1][:-1]])
    shift = np.empty_like(low)
    shift[order] = np.column_stack([left - left[first][shelf], top[shelf] - box[order, 1]]) - low[order]
    return shift
