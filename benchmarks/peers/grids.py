"""Square grids: maps of any size."""

from __future__ import annotations

import numpy as np

from residua import Graph


def grid(side: int) -> Graph:
    """``side`` x ``side`` nodes, each joined to the next in its row and in its column."""
    at = np.arange(side * side).reshape(side, side)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    source, target = (np.concatenate([pair[k].ravel() for pair in ends]) for k in (0, 1))
    return Graph.from_edges(source, target, nodes=np.arange(side * side))
