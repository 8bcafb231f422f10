"""Rows of the adjacency that live together, in a numbering of their own: the block's rows, then its halo.

The halo of block b is the rows of other blocks in which a row of b has a neighbour, owner after owner, in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Block:
    """The rows of one block.

    Attributes
    ----------
    indptr, indices : ndarray of int
        The pattern of its rows, columns counted over own rows and halo and sorted in each row.
    weights : ndarray or None
        Of the entries; None where all are 1.
    degree : ndarray of shape (rows,)
        Sums of the weights.
    ids : ndarray of shape (rows + halo,)
        Places in the whole graph.
    halo : ndarray of shape (blocks,)
        Rows that it needs of each block.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    degree: np.ndarray
    ids: np.ndarray
    halo: np.ndarray

    def __sizeof__(self) -> int:
        # Dask places tasks by what would have to move.
        arrays = (self.indptr, self.indices, self.weights, self.degree, self.ids)
        return sum(array.nbytes for array in arrays if array is not None)

    def counts(self) -> tuple[np.ndarray, int, int]:
        """Return rows needed of each block, entries, and self-loops."""
        row = np.repeat(np.arange(len(self.degree)), np.diff(self.indptr))
        return self.halo, len(row), int((row == self.indices).sum())


def make_block(A: sp.csr_array, first: int, bounds: np.ndarray) -> Block:
    """Return the rows ``first`` .. of a symmetric matrix, given as A over all columns."""
    rows, columns = A.shape[0], A.indices
    outside = (columns < first) | (columns >= first + rows)
    halo = np.unique(columns[outside])
    local = np.where(outside, rows + np.searchsorted(halo, columns), columns - first).astype(np.int32)
    matrix = sp.csr_array((A.data, local, A.indptr), shape=(rows, rows + len(halo)), copy=True)
    matrix.sort_indices()
    return Block(
        matrix.indptr.astype(np.int64),
        matrix.indices,
        None if (matrix.data == 1).all() else matrix.data,
        np.asarray(A.sum(axis=1)).ravel(),
        np.concatenate([np.arange(first, first + rows), halo]),
        np.diff(np.searchsorted(halo, bounds)),
    )


def even_bounds(n: int, blocks: int) -> np.ndarray:
    """Return the first row of each block, and n."""
    return np.linspace(0, n, blocks + 1).astype(np.int64)
