"""Connected components of a graph in row blocks, and the eigenvectors that they carry.

    S u = u   for   u = 1/scale on one component, 0 elsewhere

Each block finds its own components; those that touch across blocks are joined in one task, from pairs of names. A
component is named by the first row in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from distributed import Future
from scipy.sparse.csgraph import connected_components

from residua.backends.dask.blocks import Block
from residua.backends.dask.matrix import BlockMatrix
from residua.backends.dask.vectors import Vector, chosen


class Components:
    """Which component each row is in.

    Attributes
    ----------
    names : Vector of integers, the first row of the component
    spanning : future of the names of those with rows in several blocks, in order
    """

    def __init__(self, names: Vector, spanning: Future):
        self.names, self.spanning = names, spanning

    @classmethod
    def of(cls, matrix: BlockMatrix) -> Components:
        cluster = matrix.cluster
        names = Vector(cluster, cluster.each(_own_names, matrix.blocks), matrix.sizes)
        pairs = cluster.each(_touching, matrix.blocks, matrix.extended(names))
        merged = cluster.run(_merged, pairs)
        spanning = cluster.run(_roots, merged)
        return cls(names.map(_renamed, [merged] * len(pairs)), spanning)

    def restricted(self, mask: Vector, sizes: np.ndarray) -> Components:
        """On some of the rows."""
        return Components(self.names.map(chosen, mask, sizes=sizes), self.spanning)

    def reached(self, labelled: Vector) -> Vector:
        """Mask of the rows in a component that has a label."""
        everywhere = [self.spanning] * len(self.names.parts)
        there = self.names.map(_labelled_names, labelled, everywhere)
        across = self.names.cluster.run(_union, there.parts)
        return self.names.map(_is_reached, labelled, [across] * len(everywhere))


class DistributedConstants:
    """The eigenvectors ``1/scale``, one for each component with an edge; as ``Constants`` on one machine."""

    def __init__(self, matrix: BlockMatrix, components: Components):
        self.names, self.spanning = components.names, [components.spanning] * len(matrix.blocks)
        self.u = Vector(matrix.cluster, matrix.cluster.each(_first_eigenvector, matrix.blocks), matrix.sizes)
        self.totals = self._sum(self.u.map(_square))
        inside = self.names.total(_count_inside, self.u, self.spanning)
        across = matrix.cluster.fetch([matrix.cluster.run(_count_positive, self.totals)])[0]
        self.count = int(inside) + across

    def _sum(self, values: Vector) -> Future:
        """Sums over the spanning components of values (n, k)."""
        return self.names.cluster.run(_add, self.names.map(_sums_across, values, self.spanning).parts)

    def project_out(self, Z: Vector) -> Vector:
        """Z (n, k) without its part along them."""
        along = self._sum(Z.map(_times_column, self.u))
        same: Sequence[Future] = [along] * len(Z.parts)
        return Z.map(_projected, self.u, self.names, self.spanning, same, [self.totals] * len(Z.parts))


def _own_names(block: Block) -> np.ndarray:
    S, rows = block.S, block.rows
    row = np.repeat(np.arange(rows), np.diff(S.indptr[: rows + 1]))
    own = S.indices < rows
    matrix = sp.csr_array((np.ones(own.sum(), np.int8), (row[own], S.indices[own])), shape=(rows, rows))
    _, label = connected_components(matrix, directed=False)
    _, first = np.unique(label, return_index=True)
    return block.ids[:rows][first[label]] if rows else np.zeros(0, np.int64)


def _touching(block: Block, names: np.ndarray) -> np.ndarray:
    """(pairs, 2) names that an edge to another block joins."""
    S, rows = block.S, block.rows
    row = np.repeat(np.arange(rows), np.diff(S.indptr[: rows + 1]))
    away = S.indices >= rows
    pairs = np.column_stack([names[row[away]], names[S.indices[away]]]).astype(np.int64)
    return np.unique(pairs, axis=0)


def _merged(pairs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Names that change or span blocks, in order, and the new name of each."""
    both = np.concatenate(pairs)
    names, at = np.unique(both, return_inverse=True)
    at = at.reshape(both.shape)
    joined = sp.csr_array((np.ones(len(at), np.int8), (at[:, 0], at[:, 1])), shape=(len(names),) * 2)
    _, label = connected_components(joined, directed=False)
    _, first = np.unique(label, return_index=True)
    return names, names[first[label]] if len(names) else names


def _roots(merged: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.unique(merged[1])


def _renamed(names: np.ndarray, merged: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    old, new = merged
    at, found = _places(old, names)
    return np.where(found, new[at] if len(new) else names, names)


def _places(sorted_names: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place of each name in ``sorted_names``, and whether it is there."""
    if not len(sorted_names):
        return np.zeros(len(names), np.int64), np.zeros(len(names), bool)
    at = np.minimum(np.searchsorted(sorted_names, names), len(sorted_names) - 1)
    return at, sorted_names[at] == names


def _labelled_names(names: np.ndarray, labelled: np.ndarray, spanning: np.ndarray) -> np.ndarray:
    return np.intersect1d(names[labelled], spanning)


def _union(parts: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(parts))


def _is_reached(names: np.ndarray, labelled: np.ndarray, across: np.ndarray) -> np.ndarray:
    return np.isin(names, np.union1d(names[labelled], across))


def _first_eigenvector(block: Block) -> np.ndarray:
    scale = block.S.scale[: block.rows]
    return np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)


def _square(u: np.ndarray) -> np.ndarray:
    return (u * u)[:, None]


def _times_column(Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    return Z * u[:, None]


def _sums_across(names: np.ndarray, values: np.ndarray, spanning: np.ndarray) -> np.ndarray:
    at, found = _places(spanning, names)
    out = np.zeros((len(spanning), values.shape[1]))
    np.add.at(out, at[found], values[found])
    return out


def _add(parts: list[np.ndarray]) -> np.ndarray:
    return np.sum(parts, axis=0)


def _count_inside(names: np.ndarray, u: np.ndarray, spanning: np.ndarray) -> int:
    return len(np.setdiff1d(names[u > 0], spanning))


def _count_positive(totals: np.ndarray) -> int:
    return int((totals > 0).sum())


def _projected(
    Z: np.ndarray,
    u: np.ndarray,
    names: np.ndarray,
    spanning: np.ndarray,
    along: np.ndarray,
    totals: np.ndarray,
) -> np.ndarray:
    at, across = _places(spanning, names)
    _, here = np.unique(names, return_inverse=True)
    square = np.bincount(here, u * u)
    out = np.empty_like(Z)
    for k in range(Z.shape[1]):
        inside = np.bincount(here, u * Z[:, k]) / np.where(square > 0, square, 1)
        part = inside[here] if len(here) else np.zeros(0)
        if across.any():
            whole = along[:, k] / np.where(totals[:, 0] > 0, totals[:, 0], 1)
            part = np.where(across, whole[at], part)
        out[:, k] = Z[:, k] - part * u
    return out
