"""S as the rows that one member of a gang holds: a ``Matrix`` whose products fetch the halo from other members.

    w_b = S_b [v_b, halo of v],    S_b = diag(s_own) A_b diag(s_own, s_halo)

Everything else, the solvers and the model, is the code of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse import csgraph

from residua.backends.dask.blocks import Block
from residua.backends.dask.exchange import Gang
from residua.backends.dask.noise import hashed_noise
from residua.linalg import Matrix, Sparse
from residua.linalg.kernels.traces import low_traces, power_traces
from residua.linalg.operator import Given, Noise, connected_components
from residua.linalg.workspace import cached_property


class RowBlock(Matrix):
    """The rows of S of one member.

    Parameters
    ----------
    local : Sparse
        Rows of its own, columns over own rows and halo.
    ids : ndarray of int
        (rows + halo,) places in the whole graph.
    sends : dict of int to ndarray
        For each member that shares an edge, in order, the rows here that it needs.
    halo : sequence of int
        How many rows each of them has in the halo here.
    rows : Gang
        All members.
    """

    dtype = np.dtype(float)
    rows: Gang

    def __init__(self, local: Sparse, ids: np.ndarray, sends: dict[int, np.ndarray], halo: Sequence[int], rows: Gang):
        self.local, self.ids, self.sends, self.halo, self.rows = local, ids, sends, list(halo), rows
        self.n_local, self.nnz = local.n_local, local.nnz
        sizes = rows.gather(self.n_local)
        self.shape, self.first = (sum(sizes), sum(sizes)), sum(sizes[: rows.rank])

    @classmethod
    def of(cls, block: Block, rows: Gang) -> RowBlock:
        """Tell the owners of a block's halo what is needed of them, and ask them for its degrees."""
        n = len(block.degree)
        peers = np.flatnonzero(block.halo).tolist()
        halo = block.halo[peers].tolist()
        starts = np.cumsum([0, *rows.gather(n)])
        wanted = zip(peers, np.split(block.ids[n:], np.cumsum(halo)[:-1]), strict=True) if peers else ()
        needs = rows.swap({owner: ids - starts[owner] for owner, ids in wanted}, peers)
        sends = dict(zip(peers, needs, strict=True))
        degree = np.concatenate([block.degree, *rows.swap({to: block.degree[at] for to, at in sends.items()}, peers)])
        scale = np.divide(1.0, np.sqrt(degree), out=np.zeros(len(degree)), where=degree > 0)
        return cls(Sparse(block.indptr, block.indices, block.weights, scale), block.ids, sends, halo, rows)

    def _swap(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Give a piece to each member that shares an edge, and take one of each."""
        return self.rows.swap(dict(zip(self.sends, pieces, strict=True)), list(self.sends))

    def with_halo(self, V: np.ndarray) -> np.ndarray:
        """Return V (n_local, ...) with the rows of its halo below."""
        return np.concatenate([V, *self._swap([V[need] for need in self.sends.values()])])

    def combine(
        self, V: np.ndarray, p: np.ndarray, Z: Given = None, q: Given = None, out: Given = None, inner: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        out, dots = self.local.combine(self.with_halo(np.asarray(V, self.dtype)), p, Z, q, out, inner)
        return out, self.rows.sum(dots) if inner else dots

    def submatrix(self, rows: np.ndarray) -> RowBlock:
        """Return the principal submatrix on ``rows``: positions here, in increasing order."""
        S, n = self.local, self.n_local
        keep = np.zeros(n, bool)
        keep[rows] = True
        needed = self.with_halo(keep)
        A = S.adjacency[keep]
        # A row of the halo whose neighbours here are all gone is needed no more.
        needed[n:] &= np.bincount(A.indices, minlength=len(needed))[n:] > 0
        A = A[:, needed]
        A.sort_indices()
        local = Sparse(A.indptr, A.indices, None if S.weights is None else A.data, S.scale[needed])
        still = np.split(needed[n:], np.cumsum(self.halo)[:-1])[: len(self.halo)]
        asked = zip(self.sends.items(), self._swap(still), strict=True)
        place = np.cumsum(keep) - 1
        sends = {to: place[need[flags]] for (to, need), flags in asked if flags.any()}
        return RowBlock(local, self.ids[needed], sends, [int(f.sum()) for f in still if f.any()], self.rows)

    def scaled(self, c: np.ndarray) -> RowBlock:
        return RowBlock(self.local.scaled(self.with_halo(c)), self.ids, self.sends, self.halo, self.rows)

    def diagonal(self) -> np.ndarray:
        return self.local.diagonal()

    def inverse_scale(self) -> np.ndarray:
        return self.local.inverse_scale()

    def noise(self, alpha: float, rng: np.random.Generator) -> Noise:
        return hashed_noise(self.local, self.ids, alpha, int(rng.integers(1 << 62)))

    def power_moments(self, budget: float = np.inf) -> np.ndarray:
        S = self.local
        degree = np.diff(S.indptr).astype(float)
        low = low_traces(S.indptr, S.indices, S.weights, S.scale, S.blocks).sum(axis=0)
        n, first, second, entries, squares = self.rows.sum(np.array([self.n_local, *low, self.nnz, degree @ degree]))
        if squares > budget * max(entries, 1):
            return np.array([n, first, second])
        rows = self._with_rows_of_halo()
        high = power_traces(rows.indptr, rows.indices, rows.data, np.ones(rows.shape[1]), S.blocks).sum(axis=0)
        return np.array([n, first, second, *self.rows.sum(high)])

    def _with_rows_of_halo(self) -> sp.csr_array:
        """Return rows of S here and at the halo, and empty ones for other neighbours of the halo."""
        own = self.local.to_scipy()
        asked = [own, *(own[need] for need in self.sends.values())]
        parts = zip(*((np.diff(A.indptr), self.ids[A.indices], A.data) for A in asked), strict=True)
        lengths, ids, values = (np.concatenate([mine, *self._swap(sent)]) for mine, *sent in parts)
        columns, names = pd.factorize(np.concatenate([self.ids, ids]))  # the halo's places stay, others come after it
        indptr = np.full(len(names) + 1, len(ids))
        indptr[: len(lengths) + 1] = np.concatenate([[0], np.cumsum(lengths)])
        shape = (len(names), len(names))
        return sp.csr_array((values, columns[len(self.ids) :].astype(np.int32), indptr), shape=shape)

    @cached_property
    def _components(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return components by the edges here: that of each row, which of them reach other members, as part of what.

        The last number is how many there are that span several members.
        """
        n = self.n_local
        part = connected_components([self.local], len(self.ids))
        names = self.first + part  # no more components than rows, so names are unique
        pairs = np.column_stack([names[n:], self.with_halo(names[:n])[n:]])
        across, joined, total = self.rows.gather(np.unique(pairs, axis=0), _joined)
        mine = np.flatnonzero((across >= self.first) & (across < self.first + n))
        return part[:n], across[mine] - self.first, joined[mine], total

    def component_sums(self, values: np.ndarray) -> np.ndarray:
        part, across, joined, total = self._components
        inside = np.bincount(part, values)
        inside[across] = self.rows.sum(np.bincount(joined, inside[across], total))[joined]
        return inside[part]


def _joined(pairs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the names in some pairs, in order, the component of each, and how many components there are."""
    both = np.concatenate(pairs)
    names, at = np.unique(both, return_inverse=True)
    graph = sp.csr_array((np.ones(len(both), np.int8), at.reshape(both.shape).T), shape=(len(names),) * 2)
    count, label = csgraph.connected_components(graph, directed=False)
    return names, label, count


class BlockGraph:
    """The part of a graph that one member holds; what the field asks of a graph.

    Parameters
    ----------
    block : Block
        Its rows of the adjacency.
    rows : Gang
        All members.
    """

    edge_types = ("edge",)
    near_order = None

    def __init__(self, block: Block, rows: Gang):
        self.S = RowBlock.of(block, rows)
        self.operators, self.rows = {"edge": self.S}, rows
        self.n_nodes = self.S.n_local

    def reached(self, labelled: np.ndarray) -> np.ndarray:
        """Return the mask of nodes in a component that has a label."""
        return self.S.component_sums(labelled.astype(float)) > 0

    def count_components(self, labelled: np.ndarray) -> int:
        """Count the components that have a label."""
        share = self.reached(labelled) / self.S.component_sums(np.ones(len(labelled)))
        return round(self.rows.sum(float(share.sum())))
