"""Rows of an edge table that list an edge again: what becomes of them, and how many rows of each kind there are.

    rows = edges + repeated + of weight zero + of unknown ends

Rows in one direction become one weight by the rule; so do the two directions, unless they agree: an edge that is listed
both ways with one weight has that weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from residua.graph.adjacency import AGREE

RULES = ("error", "first", "sum", "mean", "max")


@dataclass(frozen=True)
class EdgeRows:
    """How many rows of an edge table became edges, and what became of the others.

    Parameters
    ----------
    rows : int
        Lines of the table.
    edges : int
        Edges that they make, self-loops among them.
    self_loops : int
        Edges from a node to itself.
    repeated : int
        Rows that list an edge again in the same direction.
    both_ways : int
        Rows that list an edge again, the other way round.
    zero : int
        Rows of weight zero, which are no edges.
    unknown : int
        Rows that name a node which is not in the node table.
    """

    rows: int
    edges: int
    self_loops: int
    repeated: int
    both_ways: int
    zero: int
    unknown: int


class Rows(NamedTuple):
    """Rows of an edge table, by positions of nodes."""

    i: np.ndarray
    j: np.ndarray
    weight: np.ndarray
    type: np.ndarray  # codes
    row: np.ndarray  # of the table


def merge(rows: Rows, rule: str, refuse: Callable[[int, int, str], NoReturn]) -> tuple[Rows, int, int]:
    """Return one row for each edge, and how many rows repeat one in the same direction and in the other.

    Parameters
    ----------
    rows : Rows
        Rows of positive weight.
    rule : {"error", "first", "sum", "mean", "max"}
        What several rows become.
    refuse : callable
        Is given the first two rows that do not go together, and how many more edges have such; raises.
    """
    low, high, back = np.minimum(rows.i, rows.j), np.maximum(rows.i, rows.j), rows.i > rows.j
    order = np.lexsort((rows.row, back, high, low, rows.type))
    keys = np.stack([rows.type, low, high, back])[:, order]
    starts = _starts(keys)
    counts = np.diff(np.append(starts, len(order)))
    repeated = int((counts - 1).sum())
    if rule == "error" and repeated:
        at = starts[np.argmax(counts > 1)]
        refuse(rows.row[order[at]], rows.row[order[at + 1]], f"{(counts > 1).sum() - 1:,}")
    weight, first = _combined(rows.weight[order], starts, counts, rule), rows.row[order][starts]
    pairs = _starts(keys[:3, starts])
    sides = np.diff(np.append(pairs, len(starts)))
    two = np.flatnonzero(sides == 2)
    here, there = weight[pairs[two]], weight[pairs[two] + 1]
    differ = abs(here - there) > AGREE * np.maximum(here, there)
    if rule == "error" and differ.any():
        at = pairs[two[np.argmax(differ)]]
        one, other = sorted((int(first[at]), int(first[at + 1])))
        refuse(one, other, f"{differ.sum() - 1:,}")
    if rule == "first":
        both = np.where(first[pairs[two]] < first[pairs[two] + 1], here, there)
    else:
        both = {"sum": here + there, "mean": (here + there) / 2}.get(rule, np.maximum(here, there))
    found = weight[pairs]
    found[two] = np.where(differ, both, here)
    seen = np.minimum.reduceat(first, pairs) if len(pairs) else first
    at = np.argsort(seen, kind="stable")  # as they come in the file
    kept = order[starts[pairs]][at]
    return Rows(low[kept], high[kept], found[at], rows.type[kept], seen[at]), repeated, len(two)


def _starts(keys: np.ndarray) -> np.ndarray:
    """Return where, among sorted columns, another one begins."""
    if not keys.shape[1]:
        return np.empty(0, int)
    return np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])


def _combined(weight: np.ndarray, starts: np.ndarray, counts: np.ndarray, rule: str) -> np.ndarray:
    if rule in ("sum", "mean") and len(starts):
        return np.add.reduceat(weight, starts) / (counts if rule == "mean" else 1)
    return np.maximum.reduceat(weight, starts) if rule == "max" and len(starts) else weight[starts]
