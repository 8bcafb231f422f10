"""Rows of S that live together, in a numbering of their own: the block's rows, then its halo.

    S_b = diag(s_own) A_b diag(s_own, s_halo)        w_b = S_b [v_b, halo of v]

The halo of block b is the rows of other blocks in which a row of b has a neighbour, owner after owner, in order.
"""

from __future__ import annotations

import threading
from itertools import pairwise

import numba
import numpy as np
import scipy.sparse as sp
from distributed import get_worker

from residua.linalg import Sparse

# Compiled kernels take all threads of a worker, so its tasks take turns at them.
KERNELS = threading.Lock()
MOST_THREADS = numba.get_num_threads()
CHUNK = 20_000  # rows of S^2 at a time


class Block:
    """The rows of one block.

    Parameters
    ----------
    S : square over own rows and halo; the rows of the halo are empty
    rows : how many are its own
    ids : (rows + halo,) their places in the whole graph
    halo : (P,) rows that it needs of each block
    """

    def __init__(self, S: Sparse, rows: int, ids: np.ndarray, halo: np.ndarray):
        self.S, self.rows, self.ids, self.halo = S, rows, ids, halo

    def __sizeof__(self) -> int:
        # Dask places tasks by what would have to move.
        arrays = (self.S.indptr, self.S.indices, self.S.weights, self.S.scale, self.ids)
        return sum(array.nbytes for array in arrays if array is not None)

    def product(self, V: np.ndarray) -> np.ndarray:
        """(rows, k) of V (rows + halo, k)."""
        if not self.rows or not V.shape[1]:
            return np.zeros((self.rows, V.shape[1]))
        with KERNELS:
            numba.set_num_threads(min(_threads(), MOST_THREADS))
            out, _ = self.S.combine(np.ascontiguousarray(V), np.ones(V.shape[1]), inner=False)
        return out[: self.rows]

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Row of each stored entry, and its value in S."""
        S = self.S
        row = np.repeat(np.arange(len(S.scale)), np.diff(S.indptr))
        value = S.scale[row] * S.scale[S.indices]
        return row, value if S.weights is None else value * S.weights


def _threads() -> int:
    try:
        return get_worker().state.nthreads
    except ValueError:  # outside of a task
        return 1


def make_block(A: sp.csr_array, first: int, bounds: np.ndarray) -> Block:
    """Rows ``first`` .. of a symmetric A over all columns, before the scale of its halo is known."""
    rows = A.shape[0]
    columns = A.indices.astype(np.int64)
    inside = (columns >= first) & (columns < first + rows)
    halo = np.unique(columns[~inside])
    local = np.where(inside, columns - first, 0)
    local[~inside] = rows + np.searchsorted(halo, columns[~inside])
    counts = np.diff(np.searchsorted(halo, bounds))
    degree = np.asarray(A.sum(axis=1)).ravel()
    scale = np.zeros(rows + len(halo))
    np.divide(1.0, np.sqrt(degree), out=scale[:rows], where=degree > 0)
    weights = None if (A.data == 1).all() else A.data
    indices, weights = _sorted_rows(A.indptr, local, weights)
    S = Sparse(_padded(A.indptr, len(halo)), indices, weights, scale)
    return Block(S, rows, np.concatenate([np.arange(first, first + rows), halo]), counts)


def _padded(indptr: np.ndarray, halo: int) -> np.ndarray:
    """With empty rows for the halo."""
    return np.concatenate([indptr, np.full(halo, indptr[-1])])


def _sorted_rows(indptr: np.ndarray, columns: np.ndarray, weights: np.ndarray | None) -> tuple:
    """Columns in increasing order inside each row, as ``Sparse`` has them."""
    data = np.ones(len(columns), np.int8) if weights is None else weights
    shape = len(indptr) - 1, int(columns.max(initial=0)) + 1
    matrix = sp.csr_array((data, columns.astype(np.int32), indptr), shape=shape, copy=True)
    matrix.sort_indices()
    return matrix.indices, None if weights is None else matrix.data


def with_halo_scale(block: Block, *pieces: np.ndarray) -> Block:
    """The block with the scale of its halo."""
    S = block.S
    scale = np.concatenate([S.scale[: block.rows], *pieces])
    return Block(Sparse(S.indptr, S.indices, S.weights, scale), block.rows, block.ids, block.halo)


def needed_rows(block: Block, owner: int, first: int) -> np.ndarray:
    """Rows of ``owner``, in its own numbering, that this block needs."""
    cuts = block.rows + np.concatenate([[0], np.cumsum(block.halo)])
    return block.ids[cuts[owner] : cuts[owner + 1]] - first


def submatrix(block: Block, keep: np.ndarray) -> tuple[Block, list[np.ndarray]]:
    """The rows and columns that ``keep`` (rows + halo,) names, and, for each owner, which halo rows are still needed.

    A row of the halo whose neighbours here are all gone is needed no more.
    """
    S, rows = block.S, block.rows
    row, _ = block.entries()
    stays = keep[row] & keep[S.indices]
    needed = np.zeros(len(keep), bool)
    needed[S.indices[stays]] = True
    needed[:rows] = keep[:rows]
    place = np.cumsum(needed) - 1
    count = int(keep[:rows].sum())
    cuts = rows + np.concatenate([[0], np.cumsum(block.halo)])
    flags = [needed[a:b] for a, b in pairwise(cuts)]
    indptr = np.zeros(int(needed.sum()) + 1, np.int64)
    np.cumsum(np.bincount(place[row[stays]], minlength=len(indptr) - 1), out=indptr[1:])
    weights = None if S.weights is None else S.weights[stays]
    part = Sparse(indptr, place[S.indices[stays]], weights, S.scale[needed])
    return Block(part, count, block.ids[needed], np.array([f.sum() for f in flags])), flags


def kept_rows(need: np.ndarray, flags: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Which rows an owner sends after both sides have dropped some."""
    return (np.cumsum(keep) - 1)[need[flags]]


def low_traces(block: Block) -> np.ndarray:
    """The block's part of n, tr S, tr S^2; then entries, and their sum of squares by row."""
    row, value = block.entries()
    degree = np.diff(block.S.indptr[: block.rows + 1]).astype(float)
    loops = value[row == block.S.indices].sum()
    return np.array([block.rows, loops, value @ value, degree.sum(), degree @ degree])


def rows_of(block: Block, need: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some rows of S as counts, places in the whole graph, and values."""
    _, value = block.entries()
    matrix = sp.csr_array((value, block.S.indices, block.S.indptr), shape=(len(block.S.scale),) * 2)[need]
    return np.diff(matrix.indptr), block.ids[matrix.indices], matrix.data


def power_traces(block: Block, pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """The block's part of tr S^3 and tr S^4, given the rows of S at its halo."""
    _, value = block.entries()
    own = np.diff(block.S.indptr[: block.rows + 1]), block.ids[block.S.indices], value
    counts, ids, values = (np.concatenate(parts) for parts in zip(own, *pieces, strict=True))
    there, column = np.unique(ids, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    E = sp.csr_array((values, column, indptr), shape=(len(block.ids), len(there)))
    local = sp.csr_array((value, block.S.indices, block.S.indptr), shape=(len(block.ids),) * 2)
    out = np.zeros(2)
    for begin in range(0, block.rows, CHUNK):
        here = slice(begin, min(begin + CHUNK, block.rows))
        square = local[here] @ E
        out += square.multiply(E[here]).sum(), square.data @ square.data
    return out
