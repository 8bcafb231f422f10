"""Lanczos on row blocks, with one exchange a step.

    Y = V C,  V orthonormal;   D = V'S V;   next Y = S V - V D - (V before) C'

A step multiplies the vectors before they are normalised and takes Y'Y and Y'SY together, so that their norms cost no
round trip: S V = (S Y) C^-1. ``tridiagonal`` does so for each column by itself, ``BlockRun`` for all as one block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from distributed import Future

from residua.backends.dask import iteration
from residua.backends.dask.blocks import Block
from residua.backends.dask.matrix import BlockMatrix
from residua.backends.dask.vectors import Vector, squares
from residua.linalg.lanczos import BlockLanczos, BlockQuadrature

FLOOR = 32 * np.finfo(float).eps
# Of Y'Y, whose rounding is that of an operator of norm 1: directions below it carry no weight that a double can see.
SMALLEST = 1e-12


class ColumnState(NamedTuple):
    """Lanczos on each column by itself; vectors over own rows and halo."""

    V: np.ndarray
    before: np.ndarray
    product: np.ndarray
    partial: np.ndarray  # (3, k): V'V, V'SV, V'before
    history: tuple[tuple[np.ndarray, np.ndarray], ...]  # diagonal and norm of each step

    def advance(self, block: Block, product: np.ndarray, total: np.ndarray) -> ColumnState:
        diagonal, norm, scale, back = coefficients(self.history, total)
        V = product * scale - self.before * back - self.V * (diagonal * scale)
        return _column_state(block, V, self.V, (*self.history, (diagonal, norm)))


def coefficients(history: tuple, total: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Diagonal and norm of this step, and the factors of the product and of the vector before."""
    norm = np.sqrt(total[0])
    if history:
        norm[norm <= FLOOR] = 0
    scale = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    older = np.where(history[-1][1] > 0, history[-1][1], 1.0) if history else np.ones_like(norm)
    back = norm / older if history else np.zeros_like(norm)
    # An exhausted Krylov space goes on with weight zero, at a node inside the spectrum.
    inside = history[0][0] if history else np.zeros_like(norm)
    diagonal = np.where(scale > 0, (total[1] * scale - total[2] * back) * scale, inside)
    return diagonal, norm, scale, back


def _column_state(block: Block, V: np.ndarray, before: np.ndarray, history: tuple = ()) -> ColumnState:
    product, own = block.product(V), slice(0, block.rows)
    pairs = (V[own], product, before[own])
    partial = np.array([np.einsum("ij,ij->j", V[own], other) for other in pairs])
    return ColumnState(V, before, product, partial, history)


def _first_column_state(block: Block, V: np.ndarray) -> ColumnState:
    return _column_state(block, V, np.zeros_like(V))


def start_columns(matrix: BlockMatrix, Z: Vector) -> list[Future]:
    """States from the columns of Z (n, k); ``finish_columns`` asks for the result, so that several may run at once."""
    return matrix.cluster.each(_first_column_state, matrix.blocks, matrix.extended(Z))


def finish_columns(matrix: BlockMatrix, states: list[Future]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonals (steps, k), off-diagonals (steps - 1, k), and the squared norms of the first vectors."""
    history = matrix.cluster.fetch([matrix.cluster.run(_history, states[0], block=0)])[0]
    diagonal, norm, _, _ = coefficients(history, iteration.total(matrix, states))
    diagonals, norms = zip(*history, (diagonal, norm), strict=True)
    return np.array(diagonals), np.array(norms[1:]).reshape(-1, len(norm)), norms[0] ** 2


def tridiagonal(matrix: BlockMatrix, Z: Vector, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As ``residua.linalg.lanczos.tridiagonal``, for Z (n, k)."""
    return finish_columns(matrix, iteration.advance(matrix, start_columns(matrix, Z), steps - 1))


class BlockState(NamedTuple):
    """Lanczos on all columns as one block; vectors over own rows and halo."""

    Y: np.ndarray
    before: np.ndarray
    product: np.ndarray
    partial: np.ndarray  # (k, 2k + columns before): Y'Y, Y'SY, Y'before
    history: tuple[tuple[np.ndarray, np.ndarray], ...]  # D and C of each step

    def advance(self, block: Block, product: np.ndarray, total: np.ndarray) -> BlockState:
        k = self.Y.shape[1]
        inverse, C = _root(total[:, :k])
        back = C.T if self.before.shape[1] else np.zeros((0, len(C)))
        D = inverse.T @ (total[:, k : 2 * k] @ inverse - total[:, 2 * k :] @ back)
        V = self.Y @ inverse
        Y = product @ inverse - V @ D - self.before @ back
        return _block_state(block, Y, V, (*self.history, (D, C)))


def _root(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C with C'C = square, and its right inverse; directions below rounding are dropped."""
    values, vectors = np.linalg.eigh(square)
    keep = values > SMALLEST
    size = np.sqrt(values[keep])
    return vectors[:, keep] / size, size[:, None] * vectors[:, keep].T


def _block_state(block: Block, Y: np.ndarray, before: np.ndarray, history: tuple = ()) -> BlockState:
    product, own = block.product(Y), slice(0, block.rows)
    partial = Y[own].T @ np.hstack([Y[own], product, before[own]])
    return BlockState(Y, before, product, partial, history)


def _first_block_state(block: Block, Y: np.ndarray) -> BlockState:
    return _block_state(block, Y, np.empty((len(Y), 0)))


class BlockRun(BlockLanczos):
    """Block Lanczos on a ``BlockMatrix`` from the columns of B (n, k), which can be carried on."""

    def __init__(self, matrix: BlockMatrix, B: Vector):
        self.matrix = matrix
        self.size = np.sqrt(B.total(squares))
        unit = B.map(_unit, [np.where(self.size > 0, self.size, 1.0)] * len(B.parts))
        self.states = matrix.cluster.each(_first_block_state, matrix.blocks, matrix.extended(unit))
        self.diagonal, self.off = [], []
        self._exhausted = False
        self.taken = 0

    @property
    def exhausted(self) -> bool:
        return self._exhausted

    def more_steps(self, steps: int) -> BlockQuadrature:
        """Take further steps and return the quadrature so far."""
        if not self.exhausted:
            self.states = iteration.advance(self.matrix, self.states, steps, self.taken)
            self.taken += steps
            history = self.matrix.cluster.fetch([self.matrix.cluster.run(_history, self.states[0], block=0)])[0]
            taken = [(D, C) for D, C in history if len(C)]
            self._exhausted = len(taken) < len(history)
            self.R = (taken[0][1] if taken else np.zeros((0, len(self.size)))) * self.size
            self.diagonal = [(D + D.T) / 2 for D, _ in taken]
            self.off = [C for _, C in taken]
        return self._quadrature()


def _history(state: ColumnState | BlockState) -> tuple:
    return state.history


def _unit(part: np.ndarray, size: np.ndarray) -> np.ndarray:
    return part / size
