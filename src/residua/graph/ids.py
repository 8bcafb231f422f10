"""Ids of nodes and their positions 0 .. n-1, without a Python loop over rows.

Integers within a narrow range are looked up in a table, which takes a fraction of the time to hash them; all other ids
are hashed by pandas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

Ends = tuple[pd.Series, pd.Series]
Positions = tuple[np.ndarray, np.ndarray, np.ndarray]  # nodes, source, target


def first(flags: Any) -> int | None:
    """Return the position of the first True; None if there is none."""
    flags = np.asarray(flags)
    return int(flags.argmax()) if flags.any() else None


def show(value: Any) -> str:
    """Return an id as its user wrote it: 3, not np.int64(3)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def as_ids(values: Any, name: str) -> pd.Series:
    """Return ids as a Series: int64 where all are integers, else any hashable."""
    ids = as_column(values, name, "of ids").reset_index(drop=True).infer_objects()
    row = first(ids.isna())
    if row is not None:
        raise ValueError(f"{name} is missing ({ids.iloc[row]}) at row {row}; drop the row or fill in the id.")
    if isinstance(ids.dtype, pd.CategoricalDtype):
        ids = ids.astype(ids.cat.categories.dtype)
    if not len(ids) or not pd.api.types.is_integer_dtype(ids.dtype):
        return ids
    return ids.astype(np.int64 if ids.max() <= np.iinfo(np.int64).max else object)


def as_column(values: Any, name: str, contents: str) -> pd.Series:
    """Return values as pandas reads them into one column: tuples stay tuples, and 1 beside "a" stays a number."""
    if not pd.api.types.is_list_like(values):
        raise TypeError(f"{name} is {values!r}; it must be an array or a list {contents}.")
    if not hasattr(values, "__array__"):
        return pd.Series(list(values))
    column = values if isinstance(values, pd.Series | pd.Index) else np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}; it must have one dimension.")
    return pd.Series(column, copy=False)


def as_nodes(values: Any) -> pd.Series:
    """Return ids that name every node once."""
    ids = as_ids(values, "nodes")
    codes, _ = factorize(ids, "nodes")  # Series.duplicated takes what cannot be hashed
    row = first(codes != np.arange(len(codes)))
    if row is not None:
        raise ValueError(f"nodes lists {show(ids.iloc[row])} again at position {row}; name every node once.")
    return ids


def node_array(ids: pd.Series) -> np.ndarray:
    """Return our own copy of the ids, int64 or object."""
    return ids.to_numpy(np.int64 if ids.dtype == np.int64 else object, copy=True)


def factorize(ids: pd.Series, name: str, sort: bool = False) -> tuple[np.ndarray, Any]:
    """Return a code for each id, and the id of each code."""
    try:
        return pd.factorize(ids, sort=sort)
    except TypeError as error:
        raise TypeError(f"{name} has an id that cannot be hashed ({error}); use tuples instead of lists.") from None


def positions(source: Any, target: Any, nodes: Any = None) -> Positions:
    """Return the nodes in their order, and the positions of the source and of the target of each row."""
    ends = (as_ids(source, "source"), as_ids(target, "target"))
    check_length("target", ends[1], len(ends[0]))
    known = None if nodes is None else as_nodes(nodes)
    if all(len(ids) and ids.dtype == np.int64 for ids in [*ends, known] if ids is not None):
        named = [ids.to_numpy() for ids in (ends if known is None else (known,))]
        low = min(int(ids.min()) for ids in named)
        span = max(int(ids.max()) for ids in named) - low + 1
        if span <= 4 * sum(map(len, named)) + 1024:
            return tabulated_positions(ends, known, low, span)
    return hashed_positions(ends, known)


def tabulated_positions(ends: Ends, known: pd.Series | None, low: int, span: int) -> Positions:
    """Find the positions of integers by a table over their range."""
    numbers = [ids.to_numpy() for ids in ends]
    nodes = occurring(numbers, low, span) if known is None else node_array(known)
    found = numbers
    if not np.array_equal(nodes, np.arange(span)):
        table = np.full(span, -1)
        table[nodes - low] = np.arange(len(nodes))
        found = [np.where((a >= low) & (a < low + span), table.take(a - low, mode="clip"), -1) for a in numbers]
    if known is not None:
        check_known(ends, found, len(nodes))
    return nodes, found[0], found[1]


def occurring(numbers: list[np.ndarray], low: int, span: int) -> np.ndarray:
    """Return the integers that occur, ascending."""
    seen = np.zeros(span, bool)
    for a in numbers:
        seen[a - low if low else a] = True
    return np.flatnonzero(seen) + low


def hashed_positions(ends: Ends, known: pd.Series | None) -> Positions:
    """Find the positions of any ids: known nodes in their order, else integers sorted, others as they appear."""
    count = len(ends[0])
    row_by_row = np.arange(2 * count).reshape(2, count).T.ravel()  # source before target
    rows = pd.concat(ends, ignore_index=True).take(row_by_row)
    together = rows if known is None else pd.concat((known, rows), ignore_index=True)
    ascending = known is None and together.dtype == np.int64
    codes, unique = factorize(together, "source or target", sort=ascending)
    source, target = codes[len(codes) - 2 * count :].reshape(count, 2).T
    if known is not None:
        check_known(ends, (source, target), len(known))
    return node_array(pd.Series(unique) if known is None else known), source, target


def check_known(ends: Ends, found: Iterable[np.ndarray], n: int) -> None:
    """Refuse rows that name an unknown node."""
    for name, ids, position in zip(("source", "target"), ends, found, strict=True):
        row = first((position < 0) | (position >= n))
        if row is not None:
            unknown = show(ids.iloc[row])
            raise ValueError(f"{name} names node {unknown} at row {row}, not in nodes; add it to nodes.")


def check_length(name: str, values: Any, rows: int) -> None:
    """Refuse a column that is not as long as ``source``."""
    if len(values) != rows:
        raise ValueError(f"{name} has {len(values)} entries but source has {rows}; give one per row.")
