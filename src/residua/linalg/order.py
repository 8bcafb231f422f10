"""An order of rows in which neighbours are near each other in memory, where one is worth having.

A product reads a row of its argument for every entry. Read again soon, it comes from a cache: what counts is how many
different columns a run of rows has beside its entries. Ids of a small world that were shuffled can be put right; of a
random graph no order is better than another, which a walk of a few thousand rows tells beforehand.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from residua.linalg.kernels.compiled import compiled
from residua.linalg.operator import Sparse

LARGE = 200_000  # rows: below, the argument of a product stays in a cache
RUN = 4096  # rows whose reads a cache may keep
WORTH = 0.75  # of the different columns: with more left, ordering costs more than it gives
MOST = 20_000  # neighbours: the time to order grows with the square of a row's length


def near_order(S: Sparse, inside: int) -> np.ndarray | None:
    """Look for a better order of the rows of S.

    Parameters
    ----------
    S : Sparse
        Symmetric, of n rows.
    inside : int
        A row of the largest component.

    Returns
    -------
    ndarray of shape (n,) or None
        None where the order is good as it is, or no other is much better.
    """
    n = S.shape[0]
    if n < LARGE or S.nnz >= 2**31 or np.diff(S.indptr).max() > MOST:
        return None
    starts = np.linspace(0, n - RUN, 10).astype(int)[1:-1]
    now = np.mean([different(S, np.arange(first, first + RUN)) for first in starts])
    walk = breadth_first(S.indptr, S.indices, inside, 8 * RUN)
    if len(walk) < 8 * RUN or different(S, walk[-2 * RUN : -RUN]) > WORTH * now:
        return None
    pattern = sp.csr_matrix((np.ones(S.nnz, np.int8), S.indices, S.indptr), shape=S.shape)
    order = reverse_cuthill_mckee(pattern, symmetric_mode=True)
    found = np.mean([different(S, order[first : first + RUN]) for first in starts])
    return order.astype(np.int64) if found <= WORTH * now else None


def different(S: Sparse, rows: np.ndarray) -> float:
    """Return the share of different columns among the entries of some rows; 1 where nothing is read twice."""
    counts = S.indptr[rows + 1] - S.indptr[rows]
    first = np.repeat(S.indptr[rows] - np.cumsum(counts) + counts, counts)  # of each row, less the entries before it
    columns = S.indices[first + np.arange(len(first))]
    return len(np.unique(columns)) / max(len(columns), 1)


@compiled
def breadth_first(indptr, indices, start, limit):
    """Return up to ``limit`` rows in the order in which they are first reached from ``start``; scipy's walks on."""
    seen = np.zeros(len(indptr) - 1, np.bool_)
    queue = np.empty(limit, np.int64)
    queue[0] = start
    seen[start] = True
    head, tail = 0, 1
    while head < tail and tail < limit:
        i = queue[head]
        head += 1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if not seen[j] and tail < limit:
                seen[j] = True
                queue[tail] = j
                tail += 1
    return queue[:tail]
