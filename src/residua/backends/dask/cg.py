"""Conjugate gradients on row blocks, with one exchange an iteration.

    (I - alpha S) X = B,    w = A r,   gamma = r'r,   delta = r'w
    b = gamma / gamma before,   a = gamma / (delta - b gamma / a before)
    p = r + b p,   s = w + b s,   x += a p,   r -= a s

The form of Chronopoulos and Gear: both inner products are known after one product. Its residual may drift from the
true one, which is therefore computed at the end; where it is too large, iterations go on from there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from residua.backends.dask import iteration
from residua.backends.dask.blocks import Block
from residua.backends.dask.matrix import BlockMatrix
from residua.backends.dask.vectors import Vector, squares
from residua.linalg import CG, NotConverged

FIRST = 10  # iterations before the first look at the residuals
MOST = 50  # between two looks
RESTARTS = 5


class CGState(NamedTuple):
    """A solve under way; r and s over own rows and halo, x and p over own rows."""

    x: np.ndarray
    p: np.ndarray
    r: np.ndarray
    s: np.ndarray
    product: np.ndarray  # A r at own rows
    partial: np.ndarray  # (2, k): r'r, r'Ar
    last: np.ndarray  # (2, k): gamma and a of the last iteration; 0 before the first
    goal: np.ndarray  # (k,) squared norm of a residual that will do
    alpha: float

    def advance(self, block: Block, product: np.ndarray, total: np.ndarray) -> CGState:
        gamma, delta = total
        moving = gamma > self.goal
        under_way = moving & (self.last[1] > 0)
        b = np.where(under_way, gamma / np.where(under_way, self.last[0], 1), 0)
        below = delta - np.where(under_way, b * gamma / np.where(under_way, self.last[1], 1), 0)
        a = np.where(moving & (below > 0), gamma / np.where(below > 0, below, 1), 0)
        s = product + b * self.s
        p = self.r[: block.rows] + b * self.p
        r = self.r - a * s
        return _state(block, self.x + a * p, p, r, s, np.array([gamma, a]), self.goal, self.alpha)


def _state(
    block: Block,
    x: np.ndarray,
    p: np.ndarray,
    r: np.ndarray,
    s: np.ndarray,
    last: np.ndarray,
    goal: np.ndarray,
    alpha: float,
) -> CGState:
    own = r[: block.rows]
    product = own - alpha * block.product(r)
    partial = np.array([np.einsum("ij,ij->j", own, other) for other in (own, product)])
    return CGState(x, p, r, s, product, partial, last, goal, alpha)


def _start(block: Block, r: np.ndarray, x: np.ndarray, goal: np.ndarray, alpha: float) -> CGState:
    k = r.shape[1]
    return _state(block, x, np.zeros((block.rows, k)), r, np.zeros_like(r), np.zeros((2, k)), goal, alpha)


@dataclass(frozen=True)
class Solved:
    """The solution, and the evidence for it."""

    X: Vector
    iterations: int
    residual: np.ndarray  # (k,) |b - A x| / |b|


def solve(S: BlockMatrix, alpha: float, B: Vector, cg: CG | None = None) -> Solved:
    """Solve ``(I - alpha S) X = B`` for B (n, k), to the tolerance and within the steps of ``cg``."""
    cg = cg or CG()
    norm = np.sqrt(B.total(squares))
    goal = (cg.tol * norm) ** 2
    X, R, steps, before = B.map(np.zeros_like), B, 0, np.inf
    for _ in range(RESTARTS):
        X, taken = _run(S, alpha, X, R, goal, cg.max_iter - steps)
        steps += taken
        R = B.map(_residual, X, S.product(X), [alpha] * len(B.parts))
        left = R.total(squares)
        worst = float(np.max(left / np.where(goal > 0, goal, 1), initial=0))
        if worst <= 4 or steps >= cg.max_iter or worst > before / 4:  # there, or no nearer than rounding allows
            break
        before = worst
    residual = np.sqrt(left) / np.where(norm > 0, norm, 1)
    if (residual > 10 * cg.tol).any():
        warnings.warn(
            f"CG stopped after {steps} steps with relative residual {residual.max():.1e} > {cg.tol:.1e}; "
            f"alpha={alpha:.6g} is near 1, or raise max_iter.",
            NotConverged,
            stacklevel=2,
        )
    return Solved(X, steps, residual)


def _run(S: BlockMatrix, alpha: float, X: Vector, R: Vector, goal: np.ndarray, limit: int) -> tuple[Vector, int]:
    """On from X, whose residual is R, until every column has arrived."""
    cluster, count = S.cluster, len(S.blocks)
    states = cluster.each(_start, S.blocks, S.extended(R), X.parts, [goal] * count, [alpha] * count)
    gamma = iteration.total(S, states)[0]
    first, taken, batch = gamma, 0, FIRST
    while (gamma > goal).any() and taken < limit:
        batch = min(batch, limit - taken)
        states = iteration.advance(S, states, batch, taken)
        taken += batch
        gamma = iteration.total(S, states)[0]
        batch = _iterations_left(first, gamma, goal, taken)
    return Vector(cluster, cluster.each(_solution, states), S.sizes), taken


def _iterations_left(first: np.ndarray, gamma: np.ndarray, goal: np.ndarray, taken: int) -> int:
    """A guess from the rate so far: looking costs a round trip, and an iteration too many costs as much."""
    under_way = gamma > goal
    if not under_way.any():
        return 0
    rate = np.log(np.maximum(first[under_way] / gamma[under_way], 1.01)) / taken
    left = np.log(gamma[under_way] / goal[under_way]) / rate
    return int(np.clip(np.ceil(left.max()), 2, MOST))


def _solution(state: CGState) -> np.ndarray:
    return state.x


def _residual(b: np.ndarray, x: np.ndarray, product: np.ndarray, alpha: float) -> np.ndarray:
    return b - x + alpha * product
