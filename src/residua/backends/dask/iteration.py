"""One step of a Krylov method on all blocks: two tasks deep, whatever the method.

    send: (S v)[rows that c needs], and b's part of the inner products      b -> c
    step: all vectors one step on, own rows and halo alike, then the next product

A block keeps the vectors at its halo beside its own and moves both on with the same coefficients, so the inner
products need no round trip of their own: they travel with the halo of the product. With P blocks a step is P tasks
and a message for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from distributed import Future

from residua.backends.dask.blocks import Block
from residua.backends.dask.matrix import BlockMatrix

KEEP_EVERY = 50  # steps between states that are kept on two workers


class State(Protocol):
    """What a block knows between two steps."""

    product: np.ndarray  # (rows, k) of S at own rows
    partial: np.ndarray  # its part of the inner products

    def advance(self, block: Block, product: np.ndarray, total: np.ndarray) -> Any:
        """The next state, given the product at own rows and halo, and the inner products."""


def advance(matrix: BlockMatrix, states: Sequence[Future], steps: int, taken: int = 0) -> list[Future]:
    """States after some steps, ``taken`` before them; nothing returns to this process."""
    states = list(states)
    for step in range(taken, taken + steps):
        states = _step(matrix, states)
        if (step + 1) % KEEP_EVERY == 0:
            matrix.cluster.keep_twice(states)
    return states


def total(matrix: BlockMatrix, states: Sequence[Future]) -> np.ndarray:
    """The inner products of a state, fetched."""
    cluster = matrix.cluster
    return np.sum(cluster.fetch(cluster.each(_partial, states)), axis=0)


def _step(matrix: BlockMatrix, states: list[Future]) -> list[Future]:
    run, count = matrix.cluster.run, len(states)
    everyone = count * (count - 1)
    if len(matrix.needs) + count + 1 < everyone:  # few neighbours: sums go through one task instead of all pairs
        sums = run(_total, matrix.cluster.each(_partial, states))
        pairs = list(matrix.needs)
    else:
        sums, pairs = None, [(c, b) for b in range(count) for c in range(count) if c != b]
    sent = {(c, b): run(_send, states[c], matrix.needs.get((c, b)), block=c) for c, b in pairs}
    out = []
    for b, state in enumerate(states):
        messages = [sent[c, b] for c in range(count) if (c, b) in sent]
        out.append(run(_advance, matrix.blocks[b], state, messages, b, sums, block=b))
    return out


def _send(state: State, rows: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray]:
    return None if rows is None else state.product[rows], state.partial


def _partial(state: State) -> np.ndarray:
    return state.partial


def _total(partials: list[np.ndarray]) -> np.ndarray:
    return np.sum(partials, axis=0)


def _advance(block: Block, state: State, messages: list, place: int, sums: np.ndarray | None) -> Any:
    if sums is None:
        partials = [message[1] for message in messages]
        partials.insert(place, state.partial)  # added in the same order everywhere: the same coefficients to the bit
        sums = np.sum(partials, axis=0)
    pieces = [message[0] for message in messages if message[0] is not None]
    return state.advance(block, np.concatenate([state.product, *pieces]), sums)
