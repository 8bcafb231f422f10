"""Nodes and labels by id: an X that names nodes in place of features, and labels of a few nodes.

One rule tells the two kinds of X apart: a table (two dimensions) has features, a list (one dimension) names nodes.
Nodes that are not named stay in the graph, and their label is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from residua.arrays import as_floats
from residua.graph import Graph
from residua.graph.alignment import has_ids
from residua.graph.ids import as_ids, find_ids, first, show

NAMED = "X, of one dimension and so ids of nodes,"
WHOLE = (
    "for cross_val_score, GridSearchCV and their like, graph = graph.with_features(X), and give them graph.nodes in "
    "place of X"
)


def names_nodes(X: Any) -> bool:
    """Return whether X is a list of ids, not a table of features."""
    return X is not None and not isinstance(X, str | Mapping) and len(shape_of(X)) == 1


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of an array, a table, or a list; none for what has rows of several lengths."""
    if hasattr(values, "shape"):
        return tuple(values.shape)
    try:
        return np.asarray(values).shape
    except ValueError:
        return ()


def positions_of(nodes: Any, graph: Graph, name: str) -> np.ndarray:
    """Return the positions (k,) of nodes that are named by id, each once."""
    if getattr(nodes, "dtype", None) is not None and "bool" in str(nodes.dtype) and graph.nodes.dtype != bool:
        raise ValueError(f"{name} holds flags, not ids; give graph.nodes[mask], with the mask as a NumPy array.")
    found = graph.index(nodes, name)
    again = first(pd.Series(found).duplicated())
    if again is not None:
        raise ValueError(f"{name} names node {show(graph.nodes[found[again]])} again at row {again}; name each once.")
    return found


def features_of(X: Any, graph: Graph) -> Any:
    """Return the features to use: X, or those that the graph carries; never both."""
    if X is None or graph.features is None:
        return graph.features if X is None else X
    raise ValueError(
        "X has features, and so has graph: which to use? Leave X out (X=None, or the ids of nodes), or give the graph "
        "without them, graph.with_features(None)."
    )


def whole_tables(graph: Graph, X: Any, y: Any) -> tuple[Any, Any]:
    """Return features of every node, and labels of every node, NaN where unknown, also where X names nodes.

    Parameters
    ----------
    graph : Graph
        n nodes.
    X : (n, d) array, DataFrame, or ids of nodes (k,)
        Features of every node; or which nodes y is of, where the graph carries the features, or there are none.
    y : array, Series or DataFrame
        Labels of every node, or of the nodes that X names.
    """
    if not names_nodes(X):
        _refuse_parts(graph, X, y)
        return features_of(X, graph), y
    at = positions_of(X, graph, NAMED)
    rows = np.shape(y)[:1]
    if rows != (len(at),):
        raise ValueError(
            f"y has shape {np.shape(y)} but X names {len(at)} nodes; give a label for each, NaN if unknown."
        )
    if has_ids(y):
        ids = find_ids(pd.Index(graph.nodes, dtype=graph.nodes.dtype, tupleize_cols=False), as_ids(y.index, "y"))
        if (ids >= 0).all() and not np.array_equal(ids, at):
            raise ValueError(
                "y is indexed by ids in another order than X names nodes; pass y.loc[X], or y.to_numpy() if its rows "
                "follow those of X."
            )
    return graph.features, spread_rows(y, at, graph)


def spread_rows(y: Any, at: np.ndarray, graph: Graph) -> Any:
    """Return labels of the nodes at these positions as a table of all nodes by id, NaN elsewhere."""
    values = as_floats(y, "y")
    full = np.full((graph.n_nodes, *values.shape[1:]), np.nan)
    full[at] = values
    if full.ndim == 1:
        return pd.Series(full, index=index_of(graph))
    return pd.DataFrame(full, index=index_of(graph), columns=getattr(y, "columns", None))


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels with the variances of their noise, both as a user gave them."""

    y: Any
    variance: Any


def with_noise(y: Any, variance: Any) -> Any:
    """Return labels together with the variances of their noise, where these are given."""
    if variance is None:
        return y
    if y is None:
        raise ValueError(
            "noise_variance is that of the labels in y, and there is no y; label_noise is that of new labels."
        )
    return NoisyLabels(y, variance)


def labels_alone(y: Any) -> Any:
    """Return labels without the variances of their noise."""
    return y.y if isinstance(y, NoisyLabels) else y


def with_labels(given: Any, y: Any) -> Any:
    """Return labels y in place of those in ``given``, with the variances that are there."""
    return NoisyLabels(y, given.variance) if isinstance(given, NoisyLabels) else y


def whole_noise(graph: Graph, X: Any, values: Any, name: str) -> Any:
    """Return weights or variances of labels with a row for each node, as ``whole_tables`` does labels."""
    if values is None or isinstance(values, str) or (np.ndim(values) == 0 and not isinstance(values, Mapping)):
        return values
    if not names_nodes(X) or isinstance(values, Mapping):
        return labels_by_id(values, graph, name)
    return whole_tables(graph, X, values)[1]


def index_of(graph: Graph) -> pd.Index:
    """Return the ids of all nodes as an index."""
    return pd.Index(graph.nodes, dtype=graph.nodes.dtype, name="id", tupleize_cols=False)


def _refuse_parts(graph: Graph, X: Any, y: Any) -> None:
    """Refuse features of some of the nodes beside as many labels, as a fold of a cross-validation has them."""
    shape = shape_of(X)
    if len(shape) == 2 and shape_of(y)[:1] == shape[:1] and 0 < shape[0] < graph.n_nodes:
        raise ValueError(
            f"X and y have {shape[0]} rows but graph has {graph.n_nodes} nodes, and a model needs the features of "
            f"every node; give all rows, with y NaN where it is unknown; {WHOLE}."
        )


def labels_by_id(y: Any, graph: Graph, name: str = "y") -> Any:
    """Return labels with a row for each node: those of a dict or a Series of a few ids, and NaN at all other nodes.

    Parameters
    ----------
    y : mapping, Series, array or None
        A dict from id to label, a Series indexed by some ids of the graph, or labels of every node.
    graph : Graph
        n nodes.
    name : str
        What errors call the labels.

    Returns
    -------
    Series, array or None
        Indexed by every id; what has a row for each node comes back as it is, as does what is refused later.
    """
    if isinstance(y, Mapping):
        y = pd.Series(list(y.values()), index=pd.Index(list(y), tupleize_cols=False))
    elif not (isinstance(y, pd.Series) and has_ids(y) and 0 < len(y) < graph.n_nodes):
        return y
    else:
        _refuse_row_numbers(y.index, graph.nodes, name)
    at = positions_of(y.index.to_flat_index(), graph, f"the index of {name}")
    return spread_rows(y, at, graph)


def _refuse_row_numbers(index: pd.Index, nodes: np.ndarray, name: str) -> None:
    """Refuse numbers that nobody called ids, where rows and ids have the same numbers in another order."""
    counted = nodes.dtype == np.int64 and index.name is None and pd.api.types.is_integer_dtype(index.dtype)
    count = np.arange(len(nodes))
    if counted and not np.array_equal(nodes, count) and np.array_equal(np.sort(nodes), count):
        raise ValueError(
            f"{name} is indexed by numbers, and graph.nodes are 0, 1, 2, .. in another order: rows or ids? Pass "
            f'{name}.rename_axis("id") if ids; if rows, a label for each row, NaN where unknown.'
        )
