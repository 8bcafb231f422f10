"""Columns of numbers over the rows of a graph, a part on each worker.

v = (v_1, .., v_P),   v_b of shape (rows of block b,) or (rows of block b, columns)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Future

from residua.backends.dask.cluster import Cluster


class Vector:
    """Parts of an array (n,) or (n, k), cut by rows, one future for each block."""

    def __init__(self, cluster: Cluster, parts: Sequence[Future], sizes: np.ndarray):
        self.cluster, self.parts, self.sizes = cluster, list(parts), np.asarray(sizes)

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def map(self, f: Callable[..., Any], *others: Any, sizes: np.ndarray | None = None, **shared: Any) -> Vector:
        """Return ``f(part, other parts)`` block by block.

        Parameters
        ----------
        f : callable
            Gets a part, the same block's part of each of ``others``, and ``shared``.
        others : Vector or sequence
            A sequence has an item for each block.
        sizes : ndarray or None
            Rows of the results.
        shared : Any
            Goes to every block as it is.
        """
        items = [other.parts if isinstance(other, Vector) else other for other in others]
        parts = self.cluster.each(f, self.parts, *items, **shared)
        return Vector(self.cluster, parts, self.sizes if sizes is None else sizes)

    def partials(self, f: Callable[..., Any], *others: Any, **shared: Any) -> list[Any]:
        """Return ``f(part, other parts)`` of each block, fetched: small."""
        return self.cluster.fetch(self.map(f, *others, **shared).parts)

    def total(self, f: Callable[..., Any], *others: Any, **shared: Any) -> np.ndarray:
        """Return the sum over blocks of ``f(part, other parts)``."""
        return np.sum(self.partials(f, *others, **shared), axis=0)

    def to_numpy(self) -> np.ndarray:
        """Return all rows, moved to this process."""
        return np.concatenate(self.cluster.fetch(self.parts))

    def to_dask(self, columns: int | None = None) -> Any:
        """Return a dask array over the same futures; ``columns`` for one of two dimensions."""
        import dask.array as da
        from dask.delayed import delayed

        shapes = [(int(size),) if columns is None else (int(size), columns) for size in self.sizes]
        pairs = [(part, shape) for part, shape in zip(self.parts, shapes, strict=True) if shape[0]]
        return da.concatenate([da.from_delayed(delayed(part), shape, float) for part, shape in pairs])


def from_numpy(cluster: Cluster, values: np.ndarray, sizes: np.ndarray) -> Vector:
    """Return a Vector whose parts travel inside their tasks, so that a lost one can be made again."""
    pieces = np.split(np.ascontiguousarray(values), np.cumsum(sizes)[:-1])
    return Vector(cluster, cluster.each(np.asarray, pieces), sizes)
