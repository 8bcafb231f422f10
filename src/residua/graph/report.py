"""What a graph holds, in a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from residua.arrays import as_flags

RULES = (
    "A row is an undirected edge: (a, b) and (b, a) are one edge; rows repeated in one direction add up.\n"
    "Zero weight is no edge. A self-loop of weight w adds w to its node's degree."
)


@dataclass(frozen=True)
class GraphReport:
    """What a graph holds; prints as a short table.

    Attributes
    ----------
    n_nodes : int
        Nodes.
    edges : dict of str to int
        Undirected edges of each edge type.
    weighted : bool
        Whether any weight differs from 1.
    self_loops, isolates : int
        Edges from a node to itself; nodes without an edge.
    components, largest_component : int
        Connected components over all edge types; nodes in the largest.
    unlabelled_components, unlabelled_nodes : int or None
        Components in which no node has a label, and the nodes in them; None where no labels were given.
    """

    n_nodes: int
    edges: dict[str, int]
    weighted: bool
    self_loops: int
    isolates: int
    components: int
    largest_component: int
    unlabelled_components: int | None = None
    unlabelled_nodes: int | None = None

    def __str__(self) -> str:
        by_type = ", ".join(f"{name} {count:,}" for name, count in self.edges.items())
        lines = {
            "nodes": f"{self.n_nodes:,}",
            "edges": f"{sum(self.edges.values()):,}" + (f" ({by_type})" if len(self.edges) > 1 else ""),
            "weights": "given" if self.weighted else "all 1",
            "self-loops": f"{self.self_loops:,}",
            "isolates": f"{self.isolates:,}",
            "components": f"{self.components:,} (nodes in the largest: {self.largest_component:,})",
        }
        if self.unlabelled_components is not None:
            lines["without label"] = f"{self.unlabelled_components:,} (nodes in them: {self.unlabelled_nodes:,})"
        return "\n".join(f"{name:<15}{text}" for name, text in lines.items()) + f"\n{RULES}"


def as_mask(labelled: Any, n: int) -> np.ndarray:
    """Return the mask of labelled nodes, from a mask or from labels."""
    values = as_flags(labelled)
    if values.shape != (n,):
        raise ValueError(f"labelled has shape {values.shape} but graph has {n} nodes; order it like graph.nodes.")
    if values.dtype.kind not in "bf":
        raise ValueError(f"labelled has dtype {values.dtype}; give a boolean mask, or y with NaN where unknown.")
    return values if values.dtype == bool else ~np.isnan(values)
