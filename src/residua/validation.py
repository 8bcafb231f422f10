"""Checks at the door: every public function passes its arguments through here once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from residua.graph import Graph

MIN_LABELS = 3


def check_graph(graph: Any) -> Graph:
    """Refuse what is not a Graph."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph is {type(graph).__name__}, not a residua.Graph; "
            "build one with Graph.from_edges, from_pandas, from_scipy or from_networkx."
        )
    return graph


def check_values(values: Any, graph: Graph, name: str) -> np.ndarray:
    """Return values (n,) as floats in the order of the nodes, NaN where unknown, never infinite."""
    check_index(values, graph, name)
    array = _floats(values, name, "give numbers, NaN where unknown")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (graph.n_nodes,):
        raise ValueError(
            f"{name} has shape {array.shape} but graph has {graph.n_nodes} nodes; "
            f"give one number for each node, ordered like graph.nodes, NaN where unknown."
        )
    if np.isinf(array).any():
        at = np.isinf(array).argmax()
        raise ValueError(f"{name}[{at}] is {array[at]}; replace infinite values, or use NaN for unknown ones.")
    return array


def check_known_values(values: Any, graph: Any, name: str, least: int = MIN_LABELS) -> tuple[np.ndarray, np.ndarray]:
    """Return the checked values and the mask of known ones, of which there are at least ``least``."""
    array = check_values(values, check_graph(graph), name)
    known = ~np.isnan(array)
    if known.sum() < least:
        found = "no known value (all NaN)" if not known.any() else f"only {known.sum()} known values"
        raise ValueError(f"{name} has {found}; at least {least} are needed.")
    return array, known


def check_index(table: Any, graph: Graph, name: str) -> None:
    """Refuse a pandas object that is indexed by node ids in another order than the graph's."""
    indexed = isinstance(table, pd.DataFrame | pd.Series) and not isinstance(table.index, pd.RangeIndex)
    if not indexed or len(table) != graph.n_nodes:  # a wrong length is refused elsewhere
        return
    nodes = pd.Index(graph.nodes)
    if not table.index.equals(nodes) and table.index.isin(nodes).all():
        raise ValueError(f"{name} is indexed by the graph's nodes in another order; use {name}.loc[graph.nodes].")


def check_features(
    X: Any, graph: Graph, *, optional: bool = False, like: tuple[int, np.ndarray | None] | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check a table of features.

    Parameters
    ----------
    X : array_like of shape (n, d) or None
        Finite numbers, one row for each node in the order of the graph.
    graph : Graph
        The graph.
    optional : bool, default False
        Whether X may be None.
    like : (int, ndarray) tuple, optional
        Number and names of the columns that a fitted model expects.

    Returns
    -------
    features : ndarray of shape (n, d)
        No columns where X is None.
    names : ndarray of shape (d,) or None
        The column names of a DataFrame.
    """
    if X is None:
        if not optional:
            raise ValueError("X is None; this base needs features (n, d), one row for each node.")
        return np.empty((graph.n_nodes, 0)), None
    check_index(X, graph, "X")
    names = None
    if isinstance(X, pd.DataFrame):
        names = np.array(X.columns, dtype=object)
        text = [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]
        if text:
            raise ValueError(f"X has columns that are not numbers: {text}; encode or drop them.")
    array = _floats(X, "X", "encode text columns as numbers first")
    if array.ndim != 2 or len(array) != graph.n_nodes:
        raise ValueError(
            f"X has shape {array.shape} but graph has {graph.n_nodes} nodes; give one row for each node, "
            "ordered like graph.nodes."
        )
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        which = column if names is None else names[column]
        raise ValueError(f"X has {array[row, column]} in row {row}, column {which}; fill or drop such values first.")
    width, expected = like or (array.shape[1], None)
    if array.shape[1] != width:
        raise ValueError(f"X has {array.shape[1]} columns but the model was fitted on {width}; give the same features.")
    if names is not None and expected is not None and not np.array_equal(names, expected):
        raise ValueError(
            f"X has columns {list(names)} but the model was fitted on {list(expected)}; reorder them to match."
        )
    return array, names


def _floats(values: Any, name: str, remedy: str) -> np.ndarray:
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not numeric ({error}); {remedy}.") from None


def check_choice(value: Any, choices: tuple, name: str) -> None:
    """Refuse a value that is none of ``choices``."""
    if not isinstance(value, str | None) or value not in choices:
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}.")


def check_count(value: Any, name: str, least: int) -> None:
    """Refuse what is not a whole number, or below ``least``."""
    if not isinstance(value, Integral):
        raise ValueError(f"{name}={value!r} is not a whole number.")
    if value < least:
        raise ValueError(f"{name}={value} is below {least}.")


def check_share(value: float, name: str) -> None:
    """Refuse a number that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name}={value} is not between 0 and 1.")


def check_fitted(model: Any) -> None:
    """Refuse a model that has not been fitted."""
    if not hasattr(model, "field_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet; call fit(X, y, graph=graph) first.")


def printable(text: object) -> str:
    """Return text that a file has a part in, without characters that would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))


def one_line(what: object, length: int = 200) -> str:
    """Return the same, kept short and on one line."""
    text = printable(" ".join(str(what).split())) or type(what).__name__
    return text if len(text) <= length else text[: length - 3] + "..."
