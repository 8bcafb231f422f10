"""Attributes of edges, a row for each entry of the adjacency matrix: what a network may see beside the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from residua.arrays import as_floats
from residua.graph.ids import check_length


def entry_attributes(source: np.ndarray, target: np.ndarray, values: Any, A: sp.csr_array) -> np.ndarray:
    """Return the attributes (entries, d) of the entries of A, row by row and columns in ascending order.

    An entry whose direction was not listed has the attributes of the other direction.

    Parameters
    ----------
    source, target : ndarray of int, shape (edges,)
        Ends of the edges as they were listed.
    values : array_like of shape (edges,) or (edges, d)
        Their attributes.
    A : csr_array of shape (n, n)
        Weights; an edge that is not in it, such as one of weight 0, is left out.
    """
    numbers = as_floats(values, "edge_attr")
    check_length("edge_attr", numbers, len(source))
    if numbers.ndim > 2 or not np.isfinite(numbers).all():
        raise ValueError(
            f"edge_attr has shape {numbers.shape} or is not finite; give finite numbers of shape (edges, d)."
        )
    n, entries = A.shape[0], sorted_entries(A)
    listed, first, again = np.unique(source * n + target, return_index=True, return_inverse=True)
    numbers = numbers.reshape(len(source), -1)
    differ = (numbers != numbers[first][again]).any(axis=1)
    if differ.any():
        row = int(differ.argmax())
        raise ValueError(
            f"edge_attr differs between rows of edge_index that list ({source[row]}, {target[row]}); "
            "a pair of nodes has one row for each direction: merge them, or drop edge_attr."
        )
    forward, backward = (_find(listed, keys) for keys in (entries[0] * n + entries[1], entries[1] * n + entries[0]))
    return numbers[first][np.where(forward >= 0, forward, backward)]


def sorted_entries(A: sp.csr_array) -> np.ndarray:
    """Return rows and columns (2, entries) of the entries of A, row by row and columns in ascending order."""
    ordered = A.sorted_indices().tocoo()
    return np.stack([ordered.row, ordered.col]).astype(np.int64)


def values_at(A: sp.csr_array, entries: np.ndarray) -> np.ndarray:
    """Return what A has at rows and columns (2, entries), 0 where it has nothing."""
    n, ordered = A.shape[0], A.sorted_indices()
    rows, columns = sorted_entries(ordered)
    at = _find(rows * n + columns, entries[0] * n + entries[1])
    return np.where(at >= 0, ordered.data[at], 0.0)


def _find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the position of each wanted key among sorted ones; -1 where it is none."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)
