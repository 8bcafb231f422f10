"""What a module is given of the edges: their weights and attributes, where its ``forward`` takes them.

edge_weight (entries,)      the weight of each entry of edge_index, summed over edge types
edge_attr   (entries, d)    attributes that the graph has; where it has none, the weights, a column an edge type
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor

from residua.caller import warn
from residua.graph import Graph
from residua.graph.edge_attributes import sorted_entries, values_at

NAMES = ("edge_weight", "edge_attr")


def edge_arguments(module: Any) -> tuple[str, ...]:
    """Return which of ``NAMES`` a module's ``forward`` takes; refuse one that asks for something else."""
    try:
        parameters = inspect.signature(module.forward).parameters
    except (TypeError, ValueError):  # compiled elsewhere
        return ()
    kinds = inspect.Parameter
    named = [p for p in parameters.values() if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    if len(named) < 2 and all(p.kind != kinds.VAR_POSITIONAL for p in parameters.values()):
        raise ValueError(_one_argument(type(module).__name__, [p.name for p in named]))
    more = named[2:]
    for p in more:
        if p.name not in NAMES and p.default is kinds.empty:
            raise ValueError(
                f"base {type(module).__name__} asks for {p.name!r}; a module is called with x, edge_index and, where "
                f"its forward has arguments of these names, {' and '.join(NAMES)}: give {p.name!r} a default."
            )
    # PyG's own models take both and drop what their layers do not support.
    return tuple(p.name for p in more if p.name in NAMES and getattr(module, f"supports_{p.name}", True))


def _one_argument(name: str, found: list[str]) -> str:
    """Say how a module that takes a whole ``Data``, or features alone, is to be called."""
    given = "x" if found and found[0] in ("x", "input", "features", "X") else "Data(x=x, edge_index=edge_index)"
    return (
        f"base {name} has forward({', '.join(['self', *found])}), and a module is called as module(x, edge_index); "
        f"write forward(self, x, edge_index), or put it into a module whose forward does `return self.inner({given})`."
    )


def edge_tensors(graph: Graph, wanted: tuple[str, ...], dtype: torch.dtype) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the edge index (2, entries) of a graph, both directions, and what is wanted of its entries."""
    A = graph.adjacency().sorted_indices()
    entries = sorted_entries(A)
    values: dict[str, Any] = {"edge_weight": A.data} if "edge_weight" in wanted else {}
    if "edge_attr" in wanted:
        values["edge_attr"] = _weights_by_type(graph, entries) if graph.edge_attr is None else graph.edge_attr
    return torch.as_tensor(entries), {name: torch.tensor(value, dtype=dtype) for name, value in values.items()}


def _weights_by_type(graph: Graph, entries: np.ndarray) -> np.ndarray:
    """Return weights (entries, edge types)."""
    return np.stack([values_at(graph.adjacency(name), entries) for name in graph.edge_types], axis=1)


def _weights_differ(A: Any) -> bool:
    """Return whether some edges weigh more than others; those of a node with itself do not count."""
    entries = A.tocoo()
    between = entries.data[entries.row != entries.col]
    return bool((between != between[:1]).any())


def warn_of_unused(graph: Graph, wanted: tuple[str, ...], name: str) -> None:
    """Warn where a graph has weights or attributes of edges that a network does not look at."""
    weighted = any(_weights_differ(graph.adjacency(name)) for name in graph.edge_types)
    unused = ["weights"] if weighted and "edge_weight" not in wanted else []
    if unused and "edge_attr" in wanted and graph.edge_attr is None:  # which are the weights
        unused = []
    unused += ["attributes"] if graph.edge_attr is not None and "edge_attr" not in wanted else []
    if unused:
        arguments = " and ".join({"weights": "edge_weight", "attributes": "edge_attr"}[what] for what in unused)
        correlated = " (the correlation uses the weights)" if "weights" in unused else ""
        warn(
            f"the edges have {' and '.join(unused)}, which base {name} does not look at{correlated}; a module of your "
            f"own is given them where its forward takes {arguments}."
        )
