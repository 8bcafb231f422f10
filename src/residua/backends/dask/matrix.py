"""S as row blocks on the workers, and the plan of what a product moves.

halo[b, c] = rows of block c that block b needs;   a product of k columns moves sum(halo) k numbers
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from distributed import Future

from residua.backends.dask import blocks as local
from residua.backends.dask.blocks import Block
from residua.backends.dask.cluster import Cluster
from residua.backends.dask.vectors import Vector, item, same

# S^2 may cost this many products with a vector, as on one machine.
from residua.linalg.logdet.stochastic import MOMENT_BUDGET


class BlockMatrix:
    """A symmetric matrix in row blocks.

    Parameters
    ----------
    cluster : where it lives
    blocks : futures of ``Block``
    needs : for a pair (owner, block), the future of the owner's rows that the block needs; pairs without any are absent
    sizes : (P,) rows of each block
    halo : (P, P) rows that a block (first index) needs of another
    """

    def __init__(
        self,
        cluster: Cluster,
        blocks: Sequence[Future],
        needs: dict[tuple[int, int], Future],
        sizes: np.ndarray,
        halo: np.ndarray,
    ):
        self.cluster, self.blocks, self.needs = cluster, list(blocks), needs
        self.sizes, self.halo = np.asarray(sizes), np.asarray(halo)

    @property
    def n(self) -> int:
        return int(self.sizes.sum())

    @property
    def moved_rows(self) -> int:
        """Rows of a vector that travel in one product."""
        return int(self.halo.sum())

    def owners(self, block: int) -> list[int]:
        """Blocks of which this one needs rows, in order."""
        return np.flatnonzero(self.halo[block]).tolist()

    def gathered(self, parts: Sequence[Future]) -> list[list[Future]]:
        """For each block, the rows of ``parts`` that it needs, owner after owner."""
        pieces = {(c, b): self.cluster.run(_rows, parts[c], need, block=c) for (c, b), need in self.needs.items()}
        return [[pieces[c, b] for c in self.owners(b)] for b in range(len(self.blocks))]

    def extended(self, vector: Vector) -> list[Future]:
        """Each part with its halo below."""
        return self.cluster.each(_joined, vector.parts, self.gathered(vector.parts))

    def product(self, vector: Vector) -> Vector:
        """``S v`` of v (n, k)."""
        parts = self.cluster.each(_product, self.blocks, self.extended(vector))
        return Vector(self.cluster, parts, self.sizes)

    def totals(self, f: Any, *arguments: Sequence[Any]) -> np.ndarray:
        """Sum over blocks of ``f(block, ...)``, fetched."""
        return np.sum(self.cluster.fetch(self.cluster.each(f, self.blocks, *arguments)), axis=0)

    def submatrix(self, mask: Vector) -> BlockMatrix:
        """The principal submatrix on the rows where ``mask`` is True."""
        run = self.cluster.run
        both = self.cluster.each(local.submatrix, self.blocks, self.extended(mask))
        blocks = [run(item, pair, 0, block=b) for b, pair in enumerate(both)]
        halo = np.array(self.cluster.fetch([run(_halo, block, block=b) for b, block in enumerate(blocks)]))
        needs = {}
        for (c, b), need in self.needs.items():
            if halo[b, c]:
                flags = run(_flags, both[b], c, block=b)
                needs[c, b] = run(local.kept_rows, need, flags, mask.parts[c], block=c)
        sizes = np.array(mask.partials(_count))
        return BlockMatrix(self.cluster, blocks, needs, sizes, halo)

    @cached_property
    def moments(self) -> np.ndarray:
        """``tr S^j`` for j = 0..2, and 3, 4 where S^2 is cheap enough; for those, rows of S at the halo move once."""
        n, first, second, entries, squares = self.totals(local.low_traces)
        if squares > MOMENT_BUDGET * max(entries, 1):
            return np.array([n, first, second])
        pieces = {
            (c, b): self.cluster.run(local.rows_of, self.blocks[c], need, block=c)
            for (c, b), need in self.needs.items()
        }
        halos = [[pieces[c, b] for c in self.owners(b)] for b in range(len(self.blocks))]
        return np.array([n, first, second, *self.totals(local.power_traces, halos)])


def assemble(cluster: Cluster, blocks: Sequence[Future], bounds: np.ndarray) -> BlockMatrix:
    """The plan of a matrix whose blocks do not know the scale of their halo yet."""
    run = cluster.run
    halo = np.array(cluster.fetch([run(_halo, block, block=b) for b, block in enumerate(blocks)]))
    needs = {}
    for b, c in zip(*np.nonzero(halo), strict=True):
        b, c = int(b), int(c)
        found = run(local.needed_rows, blocks[b], c, int(bounds[c]), block=b)
        needs[c, b] = run(same, found, block=c)  # where it is used at each product
    rough = BlockMatrix(cluster, blocks, needs, np.diff(bounds), halo)
    scales = cluster.each(_scale, blocks)
    whole = [
        run(local.with_halo_scale, block, *pieces, block=b)
        for b, (block, pieces) in enumerate(zip(blocks, rough.gathered(scales), strict=True))
    ]
    return BlockMatrix(cluster, whole, needs, np.diff(bounds), halo)


def _flags(pair: tuple[Block, list[np.ndarray]], owner: int) -> np.ndarray:
    return pair[1][owner]


def _halo(block: Block) -> np.ndarray:
    return block.halo


def _scale(block: Block) -> np.ndarray:
    return block.S.scale[: block.rows]


def _count(mask: np.ndarray) -> int:
    return int(mask.sum())


def _rows(part: np.ndarray, need: np.ndarray) -> np.ndarray:
    return part[need]


def _joined(part: np.ndarray, pieces: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([part, *pieces])


def _product(block: Block, V: np.ndarray) -> np.ndarray:
    return block.product(V)
