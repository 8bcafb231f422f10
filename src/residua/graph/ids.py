"""Ids of nodes and their positions 0 .. n-1, without a Python loop over rows.

Integers within a narrow range are looked up in a table, which takes a fraction of the time to hash them; all other ids
are hashed by pandas. Two ids are the same where Python says so of their values, and never by way of a rounded number:
columns of different kinds meet as Python objects, so that 5 and 5.0 are one id, but 2**53 and 2**53 + 1 are two.
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
    values = list(values) if pd.api.types.is_list_like(values) and _listed(values) else values
    ids = _inferred(as_column(values, name, "of ids").reset_index(drop=True), values)
    row = first(ids.isna())
    if row is not None:
        raise ValueError(f"{name} is missing ({ids.iloc[row]}) at row {row}; drop the row or fill in the id.")
    if isinstance(ids.dtype, pd.CategoricalDtype):
        return as_ids(ids.astype(ids.cat.categories.dtype), name)
    row = first(rounded(ids))
    if row is not None:
        raise ValueError(
            f"{name} has {show(ids.iloc[row])} at row {row}, a float that stands for more than one whole number; "
            "read ids as integers (in pandas dtype 'Int64', where some are missing) or as text."
        )
    if not len(ids) or not pd.api.types.is_integer_dtype(ids.dtype):
        return ids
    return ids.astype(np.int64 if ids.max() <= np.iinfo(np.int64).max else object)


def _inferred(ids: pd.Series, values: Any) -> pd.Series:
    """Return objects of one kind as that kind; of several, as Python objects, each as exact as it was given."""
    if isinstance(ids.dtype, pd.ArrowDtype):
        ids = ids.astype(object)
    found = ids.infer_objects()
    if _listed(values) and found.dtype.kind in "fc":  # pandas reads [2**53 + 1, 0.5] as floats
        ids = pd.Series(values, dtype=object)
    own = {"f": float | np.floating, "c": complex | np.complexfloating}.get(found.dtype.kind, object)
    types = _types(ids)
    if (found.dtype != object and all(issubclass(type, own) for type in types)) or found.isna().any():
        return found
    if any(issubclass(type, np.generic) for type in types):  # numpy rounds integers that it compares with floats
        plain = (value.item() if isinstance(value, np.number | np.bool_) else value for value in ids)
        return pd.Series(np.fromiter(plain, object, len(ids)), dtype=object)
    return ids


def _types(ids: pd.Series) -> set[type]:
    """Return the types of Python objects; none for a column of another dtype."""
    return set(map(type, ids.to_numpy())) if ids.dtype == object else set()


def rounded(ids: pd.Series) -> Any:
    """Return where ids are floats so large that not every whole number is one."""
    if pd.api.types.is_float_dtype(ids.dtype):
        return ids.abs() >= 2.0 ** (np.finfo(getattr(ids.dtype, "numpy_dtype", ids.dtype)).nmant + 1)
    return [isinstance(value, float) and abs(value) >= 2**53 for value in ids] if float in _types(ids) else False


def alike(named: dict[str, pd.Series]) -> list[pd.Series]:
    """Return columns of ids, by their names in messages, as one dtype in which only ids that are equal are the same."""
    columns = list(named.values())
    if any(ids.dtype == np.int64 for ids in columns):
        columns = [_as_whole(ids) for ids in columns]
    if len({ids.dtype for ids in columns}) > 1:
        columns = [ids.astype(object) for ids in columns]
    if any(bool in _types(ids) for ids in columns):
        _check_truths(dict(zip(named, columns, strict=True)))
    return columns


def _as_whole(ids: pd.Series) -> pd.Series:
    """Return floats that are all whole numbers, and exact, as int64; other ids as they are."""
    whole = len(ids) and pd.api.types.is_float_dtype(ids.dtype) and (ids == np.floor(ids)).all()
    return ids.astype(np.int64) if whole else ids


def _check_truths(named: dict[str, pd.Series]) -> None:
    """Refuse True beside 1 and False beside 0, which Python takes for the same."""
    places: dict[Any, dict[bool, str]] = {0: {}, 1: {}}  # where 0 or 1 stands, by whether it is a bool
    for name, ids in named.items():
        for row, value in ids[ids.isin([0, 1])].items():
            places[value].setdefault(isinstance(value, bool), f"{name} has {show(value)} at row {row}")
    for place in places.values():
        if len(place) == 2:
            raise ValueError(f"{place[True]} but {place[False]}, which Python takes for equal; give ids of one kind.")


def _check_text(source: pd.Series, target: pd.Series) -> None:
    """Refuse numbers at one end of the edges that are written as text at the other: they would be two nodes."""
    ends = {"source": source, "target": target}
    numbers = [name for name, ids in ends.items() if ids.dtype == np.int64]
    text = [name for name, ids in ends.items() if _types(ids) == {str} or pd.api.types.is_string_dtype(ids.dtype)]
    if len(numbers) != 1 or len(text) != 1:
        return
    row = first(ends[text[0]].isin(ends[numbers[0]].drop_duplicates().astype(str)))
    if row is not None:
        written = ends[text[0]].iloc[row]
        raise ValueError(
            f"{text[0]} has {show(written)} at row {row} but {numbers[0]} has the number {written}; give ids of one "
            "kind, or list all of both kinds in nodes."
        )


def as_column(values: Any, name: str, contents: str) -> pd.Series:
    """Return values as pandas reads them into one column: tuples stay tuples, and 1 beside "a" stays a number."""
    if not pd.api.types.is_list_like(values):
        raise TypeError(f"{name} is {values!r}; it must be an array or a list {contents}.")
    if _listed(values):
        return pd.Series(list(values))
    if isinstance(values, np.ma.MaskedArray):  # what is masked is missing
        hidden, values = np.ma.getmaskarray(values), values.data
        if hidden.any():
            values = values.astype(object)
            values[hidden] = None
    column = values if isinstance(values, pd.Series | pd.Index) else np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}; it must have one dimension.")
    return pd.Series(column, copy=False)


def _listed(values: Any) -> bool:
    """Return whether values come one by one, and not as an array."""
    return not hasattr(values, "__array__")


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
    source, target = as_ids(source, "source"), as_ids(target, "target")
    check_length("target", target, len(source))
    given = {"source": source, "target": target}
    if nodes is None:
        _check_text(source, target)
    else:
        given["nodes"] = as_nodes(nodes)
    columns = alike(given)
    ends, known = (columns[0], columns[1]), None if nodes is None else columns[2]
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
        check_known(ends, found, known)
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
        check_known(ends, (source, target), known)
    return node_array(pd.Series(unique) if known is None else known), source, target


def find_ids(lookup: pd.Index, wanted: pd.Series) -> np.ndarray:
    """Return the positions (k,) of ids in an index of nodes, int64 or object; -1 where an id is none of them."""
    if wanted.dtype != lookup.dtype and not pd.api.types.is_string_dtype(wanted.dtype):
        known, wanted = alike({"nodes": pd.Series(lookup), "ids": wanted})
        lookup = lookup if known.dtype == lookup.dtype else pd.Index(known, dtype=object, tupleize_cols=False)
    return lookup.get_indexer(pd.Index(wanted, dtype=wanted.dtype, tupleize_cols=False))


def check_known(ends: Ends, found: Iterable[np.ndarray], known: pd.Series) -> None:
    """Refuse rows that name an unknown node."""
    for name, ids, position in zip(("source", "target"), ends, found, strict=True):
        row = first((position < 0) | (position >= len(known)))
        if row is not None:
            unknown = ids.iloc[row]
            near = known[known.astype(str) == str(unknown)]
            remedy = f"there is {show(near.iloc[0])}: give ids of one kind" if len(near) else "add it to nodes"
            raise ValueError(f"{name} names node {show(unknown)} at row {row}, not in nodes; {remedy}.")


def check_length(name: str, values: Any, rows: int) -> None:
    """Refuse a column that is not as long as ``source``."""
    if len(values) != rows:
        raise ValueError(f"{name} has {len(values)} entries but source has {rows}; give one per row.")
