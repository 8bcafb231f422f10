"""PyTorch Geometric data as residua takes it: graph, features, labels, and one's own masks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from residua.arrays import as_floats
from residua.graph import Graph


class NodeTask(NamedTuple):
    """What PyTorch Geometric data hold, in the order of ``graph.nodes``.

    Attributes
    ----------
    graph : Graph
        n nodes.
    X : ndarray of shape (n, d) or None
        Features, ``data.x``.
    y : ndarray of shape (n,), or (n, targets)
        All labels, those of test nodes too, NaN where unknown; ``np.where(known, y, np.nan)`` is what ``fit`` may see.
    known : ndarray of bool, shape (n,)
        ``data.train_mask`` where there is a label; where there is no mask, every node with a label.
    validation : ndarray of bool, shape (n,), or None
        ``data.val_mask`` where there is a label; None where there is no mask.
    """

    graph: Graph
    X: np.ndarray | None
    y: np.ndarray
    known: np.ndarray
    validation: np.ndarray | None


def from_pyg(data: Any, *, split: int | None = None, symmetrize: str | None = None) -> NodeTask:
    """Read graph, features, labels and masks of torch_geometric ``Data``, or ``HeteroData`` of one node type.

    Parameters
    ----------
    data : torch_geometric.data.Data or HeteroData
        With ``y``; ``x``, ``train_mask`` and ``val_mask`` where there are some.
    split : int, optional
        Which column of masks of shape (n, splits).
    symmetrize : {"max", "mean", "sum"}, optional
        As in ``Graph.from_pyg``.

    Returns
    -------
    NodeTask
        ``graph, X, y, known, validation``.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> import residua
    >>> data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([1.0, 2.0, 3.0]))
    >>> data.train_mask = torch.tensor([True, True, False])
    >>> graph, X, y, known, validation = residua.from_pyg(data)
    >>> graph, X.shape, known, validation
    (Graph(3 nodes, 2 edges), (3, 2), array([ True,  True, False]), None)
    """
    graph = Graph.from_pyg(data, symmetrize=symmetrize)
    store, n = _node_store(data), graph.n_nodes
    if store.get("y") is None:
        raise ValueError("data has no y; set data.y, one number for each node and NaN where unknown.")
    y = as_floats(store["y"], "data.y")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    X = None if store.get("x") is None else as_floats(store["x"], "data.x")
    for name, values in (("x", X), ("y", y)):
        if values is not None and (not values.ndim or len(values) != n):
            raise ValueError(f"data.{name} has shape {values.shape} but data has {n} nodes; give a row for each node.")
    there = ~np.isnan(y if y.ndim == 1 else y.sum(axis=1))
    train, validation = (_mask(store, name, n, split) for name in ("train_mask", "val_mask"))
    known = there if train is None else there & train
    if validation is None:
        return NodeTask(graph, X, y, known, None)
    if train is None:
        raise ValueError("data has a val_mask and no train_mask; set data.train_mask.")
    if (train & validation).any():
        raise ValueError(f"{(train & validation).sum():,} nodes are in train_mask and in val_mask; put each in one.")
    return NodeTask(graph, X, y, known, there & validation)


def _node_store(data: Any) -> Any:
    """Return what data know of the nodes, as a mapping."""
    if hasattr(type(data), "node_types"):  # of one type, or reading the graph has refused it
        return data[data.node_types[0]]
    return data.to_dict()


def _mask(store: Any, name: str, n: int, split: int | None) -> np.ndarray | None:
    if store.get(name) is None:
        return None
    mask = np.asarray(store[name].detach().cpu())
    if mask.dtype != bool:
        raise ValueError(f"data.{name} has dtype {mask.dtype}; give flags: data.{name}.bool().")
    if mask.ndim == 2 and split is None:
        raise ValueError(f"data.{name} has {mask.shape[1]} splits; choose one, such as split=0.")
    if mask.ndim == 2:
        if not 0 <= int(split or 0) < mask.shape[1]:
            raise ValueError(f"split={split} is not from 0 to {mask.shape[1] - 1}, the splits of data.{name}.")
        mask = mask[:, split]
    if mask.shape != (n,):
        raise ValueError(f"data.{name} has shape {mask.shape} but data has {n} nodes; give one flag a node.")
    return mask
