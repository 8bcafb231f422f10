"""What the field asks of a graph: the rows that this process holds, and how they hang together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from residua.linalg import Matrix, Rows


class GraphLike(Protocol):
    """A graph, or the part of one that a process holds.

    Attributes
    ----------
    edge_types : tuple of str
        Names of the edge types, in the order of alpha.
    operators : mapping of str to Matrix
        The normalised adjacency S_t of each edge type.
    n_nodes : int
        Nodes that this process holds.
    rows : Rows
        Reductions over all nodes.
    near_order : ndarray or None
        An order of the nodes in which work on them is faster; None where their own will do.
    """

    @property
    def edge_types(self) -> tuple[str, ...]: ...

    @property
    def operators(self) -> Mapping[str, Matrix]: ...

    @property
    def n_nodes(self) -> int: ...

    @property
    def rows(self) -> Rows: ...

    @property
    def near_order(self) -> np.ndarray | None: ...

    def reached(self, labelled: np.ndarray) -> np.ndarray:
        """Return the mask (n_nodes,) of nodes in a component that has a label."""

    def count_components(self, labelled: np.ndarray) -> int:
        """Count the components that have a label."""
