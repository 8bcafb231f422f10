"""Checks at the door: every public function passes its arguments through here once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from residua.arrays import as_flags, as_floats
from residua.caller import warn
from residua.features import in_rows
from residua.graph import Graph
from residua.graph.alignment import align, align_together, has_ids, refuse_unset_index
from residua.graph.ids import show
from residua.linalg.rows import LOCAL, Rows

MIN_LABELS = 3
LARGEST = 1e140  # squares of numbers up to this, or of what a good fit leaves of its inverse, are floats
Like = tuple[int, np.ndarray | None]  # number of columns, and their names
FEW_DIGITS, GOOD_DIGITS = 256, 1e5  # steps of floats between the lowest label and the highest: too few, and enough


def check_graph(graph: Any) -> Graph:
    """Refuse what is not a Graph."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph is {type(graph).__name__}, not a residua.Graph; "
            "build one with Graph.from_edges, from_pandas, from_scipy, from_networkx, from_geopandas or from_pyg."
        )
    return graph


def check_values(values: Any, graph: Graph, name: str) -> np.ndarray:
    """Return values (n,) as floats in the order of the nodes, NaN where unknown, never infinite."""
    refuse_unset_index(values, graph, name)
    by_id, values = has_ids(values), align(values, graph.nodes, name, unknown=True)
    array = as_floats(values, name, "give numbers, NaN where unknown")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (graph.n_nodes,):
        raise ValueError(
            f"{name} has shape {array.shape} but graph has {graph.n_nodes} nodes; "
            f"give one number for each node, ordered like graph.nodes or indexed by id, NaN where unknown."
        )
    if np.isinf(array).any():
        at = int(np.isinf(array).argmax())
        which = show(graph.nodes[at]) if by_id else at
        raise ValueError(f"{name}[{which}] is {array[at]}; replace infinite values, or use NaN for unknown ones.")
    size = np.nanmax(np.abs(array), initial=0.0)
    if size > LARGEST:
        raise _no_squares(size, name)
    return array


def check_known_values(values: Any, graph: Any, name: str, least: int = MIN_LABELS) -> tuple[np.ndarray, np.ndarray]:
    """Return the checked values and the mask of known ones, of which there are at least ``least``."""
    array = check_values(values, check_graph(graph), name)
    known = ~np.isnan(array)
    if known.sum() < least:
        found = "no known value (all NaN)" if not known.any() else f"only {known.sum()} known values"
        raise ValueError(f"{name} has {found}; at least {least} are needed.")
    check_digits(array[known], name)
    return array, known


def check_noise(
    weight: Any, variance: Any, graph: Graph, labelled: np.ndarray, called: str = ""
) -> tuple[np.ndarray, bool] | None:
    """Return the noise variances (n,) of labels, NaN elsewhere, and whether their common factor is to be learned.

    Parameters
    ----------
    weight : (n,) array, Series or None
        Weights of labels: variances are inverse to them.
    variance : float, (n,) array, Series, "learned" or None
        The variances themselves.
    graph : Graph
        n nodes.
    labelled : (n,) array of bool
        Which nodes have labels.
    called : str
        What errors add to the names of the arguments.
    """
    learned = variance is None or (isinstance(variance, str) and variance == "learned")
    if weight is None and variance is None:
        return None
    if weight is not None and not learned:
        raise ValueError(
            "sample_weight and noise_variance both say how noisy each label is; give one of them. Weights go with "
            'noise_variance="learned", one number for a label of weight 1.'
        )
    if isinstance(variance, str) and not learned:
        raise ValueError(f'noise_variance={variance!r} is unknown; give variances of labels, or "learned".')
    if learned and weight is None:
        return np.where(labelled, 1.0, np.nan), True
    given, name = (variance, "noise_variance") if weight is None else (weight, "sample_weight")
    values = np.full(graph.n_nodes, float(given)) if np.ndim(given) == 0 else check_values(given, graph, name + called)
    _check_variances(values, graph, labelled, name + called, positive=learned)
    values = np.where(labelled, values, np.nan)
    return (1 / values if learned else values), learned


def _check_variances(values: np.ndarray, graph: Graph, labelled: np.ndarray, name: str, positive: bool) -> None:
    """Refuse what is no variance, or no weight, at a label."""
    wrong = labelled & ~((values > 0) & (values < LARGEST) if positive else (values >= 0) & (values < LARGEST))
    if not wrong.any():
        return
    at = int(wrong.argmax())
    remedy = (
        "give each label a positive weight, and leave a label that says nothing out of y"
        if positive
        else "give each label the variance of its noise, 0 for one without"
    )
    raise ValueError(f"{name} is {values[at]} at node {show(graph.nodes[at])}, which has a label; {remedy}.")


def check_digits(values: np.ndarray, name: str, rows: Rows = LOCAL) -> None:
    """Refuse numbers that differ by little more than their last digits, or whose squares floats do not hold."""
    highest, lowest = (sign * float(rows.max((sign * values).max(initial=-np.inf))) for sign in (1, -1))
    size, spread = max(highest, -lowest), highest - lowest
    if size > LARGEST or 0 < size < 1 / LARGEST:
        raise _no_squares(size, name)
    digits = spread / np.spacing(size)  # how many floats there are between the lowest and the highest
    if not 0 < digits < GOOD_DIGITS:
        return
    found = f"{name} lies near {size:.3g} and varies by {spread:.2g} only, which leaves floats {digits:.0f} steps"
    remedy = f"subtract a constant from {name} before it is rounded"
    if digits < FEW_DIGITS:
        raise ValueError(f"{found}; {remedy}.")
    warn(f"{found}: results are as rough as that; {remedy}.")


def _no_squares(size: float, name: str) -> ValueError:
    remedy = other_units(size, name)
    return ValueError(f"{name} has numbers up to {size:.2g}, and floats do not hold their squares; {remedy}")


def other_units(size: float, name: str) -> str:
    """Return the advice to give numbers as large or as small as this in units in which they are near 1."""
    return f"give it in other units, such as {name} * {10.0 ** -np.floor(np.log10(size)):.0e}."


def check_seconds(value: Any, name: str) -> float:
    """Return a number of seconds above 0, perhaps without end."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0:
        raise ValueError(f"{name}={value!r} must be a number of seconds above 0, such as 120.")
    return float(value)


def check_nodes(nodes: Any, graph: Graph, name: str) -> np.ndarray:
    """Return a mask (n,) of nodes, given as a mask in their order, as one by id, or as a list of ids."""
    mask = as_flags(align(nodes, graph.nodes, name) if isinstance(nodes, pd.Series) else nodes, name)
    if mask.dtype == bool:
        if mask.shape != (graph.n_nodes,):
            raise ValueError(
                f"{name} has shape {mask.shape} but graph has {graph.n_nodes} nodes; give one flag for each."
            )
        return mask
    at = pd.Index(graph.nodes, tupleize_cols=False).get_indexer(pd.Index(list(nodes), tupleize_cols=False))
    if (at < 0).any():
        which = show(list(nodes)[int((at < 0).argmax())])
        raise ValueError(f"{name} names {which}, which is no node of the graph; give ids, or a flag for each node.")
    chosen = np.zeros(graph.n_nodes, bool)
    chosen[at] = True
    return chosen


def check_validation(validation: Any, graph: Graph, labelled: np.ndarray) -> np.ndarray:
    """Return the mask (n,) of validation labels, given as one or as ids of nodes, that leaves enough to learn from."""
    chosen = check_nodes(validation, graph, "validation")
    if not (chosen & labelled).any() or (chosen & ~labelled).any():
        count = int((chosen & ~labelled).sum())
        found = f"{count} nodes whose label is unknown" if count else "no node"
        raise ValueError(
            f"validation has {found}; y has to hold the labels of validation nodes too, np.where(train | validation, "
            "y, np.nan): none of them is learned from, but the correction knows them."
        )
    if (labelled & ~chosen).sum() < MIN_LABELS:
        raise ValueError(f"validation leaves {(labelled & ~chosen).sum()} labels to learn from; choose fewer nodes.")
    return chosen


def check_together(graph: Any, X: Any, **labels: Any) -> list[Any]:
    """Return features and labels, each in the order of the graph's nodes; refuse those that contradict each other."""
    return align_together(check_graph(graph).nodes, {"X": X, **labels}, unknown=tuple(labels))


def check_features(
    X: Any, graph: Graph, *, optional: bool = False, like: Like | None = None, as_is: bool = False
) -> tuple[Any, np.ndarray | None]:
    """Check a table of features.

    Parameters
    ----------
    X : array_like of shape (n, d), sparse matrix or None
        Finite numbers, one row for each node: a DataFrame is matched by id, as ``residua.graph.alignment`` has it. The
        geometry of a GeoDataFrame is no feature.
    graph : Graph
        The graph.
    optional : bool, default False
        Whether X may be None.
    like : (int, ndarray) tuple, optional
        Number and names of the columns that a fitted model expects.
    as_is : bool, default False
        Whether a base takes the table as it is: text, dates, missing values, a sparse matrix.

    Returns
    -------
    features : ndarray of shape (n, d), DataFrame or sparse matrix
        No columns where X is None.
    names : ndarray of shape (d,) or None
        The column names of a DataFrame.
    """
    if X is None:
        if not optional:
            raise ValueError(
                "X is None; this base needs features (n, d), one row for each node, or, where X is left out or names "
                "nodes, a graph that carries them: graph.with_features(X)."
            )
        return np.empty((graph.n_nodes, 0)), None
    refuse_unset_index(X, graph, "X")
    by_id, X = has_ids(X), align(X, graph.nodes, "X")
    X = _without_geometry(X) if isinstance(X, pd.DataFrame) else X
    names = _column_names(X) if isinstance(X, pd.DataFrame) else None
    table = _as_given(X) if as_is else _as_numbers(X, graph.nodes)
    if table.ndim != 2 or table.shape[0] != graph.n_nodes:
        raise ValueError(
            f"X has shape {table.shape} but graph has {graph.n_nodes} nodes; give one row for each node, "
            "ordered like graph.nodes or indexed by id."
        )
    if isinstance(table, np.ndarray) and table.dtype == float:
        _check_finite(table, graph, by_id, names, missing=as_is)
    width, expected = like or (table.shape[1], None)
    if table.shape[1] != width:
        raise ValueError(f"X has {table.shape[1]} columns but the model was fitted on {width}; give the same features.")
    if names is not None and expected is not None and not np.array_equal(names, expected):
        raise ValueError(
            f"X has columns {list(names)} but the model was fitted on {list(expected)}; reorder them to match."
        )
    if as_is and expected is not None and isinstance(table, np.ndarray):
        table = pd.DataFrame(table, columns=expected)
    return table, names


def _without_geometry(X: pd.DataFrame) -> pd.DataFrame:
    """Return a GeoDataFrame without its geometry, which is no feature; any other table as it is."""
    shapes = [str(kind) == "geometry" for kind in X.dtypes]
    return pd.DataFrame(X.loc[:, ~np.array(shapes)]) if any(shapes) else X


def _column_names(X: pd.DataFrame) -> np.ndarray:
    if not X.columns.is_unique:
        twice = list(X.columns[X.columns.duplicated()].unique())
        raise ValueError(f"X has more than one column named {', '.join(map(repr, twice))}; give each its own name.")
    return np.array(X.columns, dtype=object)


def _as_numbers(X: Any, nodes: np.ndarray) -> np.ndarray:
    if isinstance(X, pd.DataFrame):
        text = [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]
        ids = next((c for c in text if X[c].isin(nodes).all()), None)
        if ids is not None:
            raise ValueError(
                f"X has the ids of the nodes in column {ids!r}; make them its index: X.set_index({ids!r})."
            )
        if text:
            raise ValueError(f"X has columns that are not numbers: {text}; encode or drop them.")
    return as_floats(X, "X", "encode text columns as numbers first")


def _as_given(X: Any) -> Any:
    """Return a DataFrame as it is, a sparse matrix by rows, else an array: of numbers where it holds numbers."""
    if sp.issparse(X):
        return sp.csr_array(X)
    if isinstance(X, pd.DataFrame):
        return in_rows(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUS" and X.ndim == 2:
        return X.copy()
    return np.ascontiguousarray(as_floats(X, "X", "encode text columns as numbers first"))


def _check_finite(X: np.ndarray, graph: Graph, by_id: bool, names: np.ndarray | None, missing: bool) -> None:
    """Refuse infinite numbers, and missing ones unless they may be ``missing``."""
    wrong = np.isinf(X) if missing else ~np.isfinite(X)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        which, where = column if names is None else names[column], show(graph.nodes[row]) if by_id else row
        raise ValueError(f"X has {X[row, column]} in row {where}, column {which}; fill or drop such values first.")


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
    if getattr(model, "targets_", None) is not None:
        names = list(model.targets_)
        raise ValueError(
            f"this {type(model).__name__} was fitted to the targets {names}; ask the model of one of them, "
            f"model.targets_[{names[0]!r}]."
        )
    if not hasattr(model, "field_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet; call fit(X, y, graph=graph) first.")


def printable(text: object) -> str:
    """Return text that a file has a part in, without characters that would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))


def one_line(what: object, length: int = 200) -> str:
    """Return the same, kept short and on one line."""
    text = printable(" ".join(str(what).split())) or type(what).__name__
    return text if len(text) <= length else text[: length - 3] + "..."
