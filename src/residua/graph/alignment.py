"""Rows of tables in the order of a graph's nodes: a pandas table by the ids in its index, all else as it is.

One rule for every table that has a row for each node. An index of the graph's ids is matched whatever its order; an
index that nobody set (0, 1, 2, ..) is positions, and so are the rows of arrays. Whatever could mean two things is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import Any

import numpy as np
import pandas as pd

from residua.graph.ids import alike, as_ids, show

NODES = "graph.nodes"
EXAMPLES = 3


def align(table: Any, nodes: np.ndarray, name: str, *, unknown: bool = False, called: str = NODES) -> Any:
    """Return a table with its rows in the order of the nodes.

    Parameters
    ----------
    table : DataFrame, Series, array_like or None
        A pandas table is matched by the ids in its index; the rows of all else are in order already.
    nodes : ndarray of shape (n,)
        Ids, int64 or object.
    name : str
        What errors call the table.
    unknown : bool, default False
        Whether NaN stands for an unknown value, so that rows may be added.
    called : str, default "graph.nodes"
        What errors call the nodes.

    Returns
    -------
    DataFrame, Series, array_like or None
        As it was given, or a reordered copy.
    """
    order = _order(table, nodes, name, unknown, called)
    return table if order is None else table.iloc[order]


def align_together(nodes: np.ndarray, tables: Mapping[str, Any], unknown: tuple[str, ...] = ()) -> list[Any]:
    """Return several tables, each in the order of the nodes, unless they contradict each other.

    Parameters
    ----------
    nodes : ndarray of shape (n,)
        Ids, int64 or object.
    tables : mapping of str to DataFrame, Series, array_like or None
        Tables that belong together, by the names that errors call them.
    unknown : tuple of str
        Those in which NaN stands for an unknown value.

    Returns
    -------
    list
        As ``align`` returns each. Where one is matched by ids in another order than that of the nodes, one without ids
        is refused: its rows could follow either.
    """
    orders = {name: _order(table, nodes, name, name in unknown, NODES) for name, table in tables.items()}
    moved = next((name for name, order in orders.items() if order is not None), None)
    bare = next((name for name, table in tables.items() if _has_rows_only(table, len(nodes))), None)
    if moved is not None and bare is not None:
        pandas = isinstance(tables[bare], pd.DataFrame | pd.Series)
        kind = "Series" if np.ndim(tables[bare]) == 1 else "DataFrame"
        same = f"{bare}.set_axis({moved}.index)" if pandas else f"pd.{kind}({bare}, index={moved}.index)"
        raise ValueError(
            f"{moved} is indexed by ids in another order than {NODES}, and {bare} has no ids: what do its rows follow? "
            f"Pass {same} if those of {moved}; if those of {NODES}, pass {moved}.loc[{NODES}]."
        )
    return [table if orders[name] is None else table.iloc[orders[name]] for name, table in tables.items()]


def has_ids(table: Any) -> bool:
    """Return whether a table has an index that someone set: not an array, and not numbered 0, 1, 2, .. by default."""
    if not isinstance(table, pd.DataFrame | pd.Series):
        return False
    index = table.index
    return not (isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None)


def refuse_unset_index(table: Any, graph: Any, name: str) -> None:
    """Refuse a pandas table whose index nobody set, where nobody set the order of the graph's nodes either."""
    bare = isinstance(table, pd.DataFrame | pd.Series) and not has_ids(table)
    if bare and graph.nodes_found and len(table) == len(graph.nodes):
        columns: Any = table.columns if isinstance(table, pd.DataFrame) else ()
        ids = next((c for c in columns if table[c].isin(graph.nodes).all()), None)
        if ids is not None:
            raise ValueError(
                f"{name} has the ids of the nodes in column {ids!r}; make them its index: {name}.set_index({ids!r})."
            )
        raise ValueError(
            f"{name} has the default index 0, 1, 2, .., and the graph's ids are in the order in which the edges name "
            f"them ({_shown(graph.nodes)}): say what its rows follow. Set the ids as its index, or build the graph "
            f"with nodes=ids in the order of its rows; {name}.set_axis(graph.nodes) if its rows follow graph.nodes."
        )


def refuse_other_index(table: Any, name: str) -> None:
    """Refuse tables of other libraries that have an index too, as dask's: their rows would be taken as they come."""
    index = getattr(table, "index", None)  # of a list it is a method
    if index is not None and not callable(index) and not isinstance(table, pd.DataFrame | pd.Series):
        kind = f"{type(table).__module__.partition('.')[0]} {type(table).__name__}"
        remedy = f"{name}.compute()" if hasattr(table, "compute") else "it as a pandas table"
        raise TypeError(f"{name} is a {kind}; give {remedy}, whose rows are matched by the ids in its index.")


def _has_rows_only(table: Any, n: int) -> bool:
    """Return whether a table has n rows and no ids; what has another length is refused later, for that."""
    if not isinstance(table, Sized) or isinstance(table, Mapping):
        return False
    rows = table.shape[:1] if hasattr(table, "shape") else (len(table),)  # a sparse matrix has no len
    return rows == (n,) and not has_ids(table)


def check_one_index(tables: Mapping[str, Any]) -> None:
    """Refuse pandas tables that belong together, row by row, but are indexed by different ids or in another order."""
    indexed = [(name, table.index) for name, table in tables.items() if has_ids(table)]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if not index.equals(expected):
            raise ValueError(
                f"{name} is not indexed like {first}; order both alike, such as {name}.loc[{first}.index], or pass "
                f"{name}.to_numpy() if its rows follow those of {first}."
            )


def _order(table: Any, nodes: np.ndarray, name: str, unknown: bool, called: str) -> np.ndarray | None:
    """Return the row of each node; None where rows are in order already, or where a wrong shape is refused later."""
    refuse_other_index(table, name)
    if not isinstance(table, pd.DataFrame | pd.Series) or not len(table):
        return None
    if not has_ids(table):
        if len(table) == len(nodes):
            _check_default_index(nodes, name, called)
        return None
    index = table.index.to_flat_index() if isinstance(table.index, pd.MultiIndex) else table.index
    if index.dtype == nodes.dtype == np.int64 and np.array_equal(index, nodes):
        return None
    ids = as_ids(index, f"the index of {name}")
    found = _positions(ids, nodes, name, called)
    if np.array_equal(found, np.arange(len(nodes))):
        return None
    if len(found) != len(nodes) or (found < 0).any() or (np.bincount(found) > 1).any():
        raise ValueError(_Mismatch(name, called, ids, nodes, found, unknown).message)
    order = np.empty_like(found)
    order[found] = np.arange(len(found))
    return order


def _positions(ids: pd.Series, nodes: np.ndarray, name: str, called: str) -> np.ndarray:
    """Return the position of each id among the nodes, -1 where it is none; the same ids are those of an edge list."""
    wanted, given = alike({called: pd.Series(nodes, dtype=nodes.dtype), f"the index of {name}": ids})
    if len(given) == len(wanted) and np.array_equal(given, wanted):
        return np.arange(len(nodes))
    lookup = pd.Index(wanted, dtype=wanted.dtype, tupleize_cols=False)
    return lookup.get_indexer(pd.Index(given, dtype=given.dtype, tupleize_cols=False))


def _kind(ids: np.ndarray) -> str:
    return "integer" if ids.dtype == np.int64 else pd.api.types.infer_dtype(ids, skipna=False)


def _check_default_index(nodes: np.ndarray, name: str, called: str) -> None:
    """Refuse rows numbered by default where the ids themselves are numbers in another order."""
    numbers, text = nodes, isinstance(nodes[0], str)
    if text:  # "0", "1", .. are the rows' numbers too; other text is not
        if not nodes[0].isdecimal() or _kind(nodes) != "string":
            return
        numbers = pd.to_numeric(pd.Series(nodes), errors="coerce").to_numpy()
    elif _kind(nodes) not in ("integer", "floating", "mixed-integer-float"):
        return
    if (numbers[1:] < numbers[:-1]).any():
        same = np.array_equal(np.sort(numbers), np.arange(len(nodes)))
        if text and not same:
            return
        chosen, other = f"{name}.loc[{called}] if they are ids", "set the ids as its index if they follow those"
        raise ValueError(
            f"{name} has the default index 0, 1, 2, .., and the graph's ids are numbers in another order "
            f"({_shown(nodes)}): say which its rows follow. Pass {name}.set_axis({called}) if they follow {called}; "
            f"{chosen if same and not text else other}."
        )


class _Mismatch:
    """What to say of an index that does not name every node once."""

    def __init__(self, name: str, called: str, ids: pd.Series, nodes: np.ndarray, found: np.ndarray, unknown: bool):
        self.name, self.called, self.ids, self.nodes, self.unknown = name, called, ids, nodes, unknown
        self.foreign = ids[found < 0].drop_duplicates().to_numpy(object)
        self.absent = nodes[np.bincount(found[found >= 0], minlength=len(nodes)) == 0]
        self.again = ids[ids.duplicated()].drop_duplicates().to_numpy(object)

    @property
    def message(self) -> str:
        in_order = ""
        if len(self.ids) == len(self.nodes):
            in_order = f" If its rows follow {self.called}, pass {self.name}.set_axis({self.called})."
        return f"{self.name} {self._problem()}.{in_order}"

    def _problem(self) -> str:
        name, called, foreign, absent = self.name, self.called, self.foreign, self.absent
        if len(self.again):
            rows = f"several rows for {_count(self.again, 'id')}: {_shown(self.again)}"
            return f"has {rows}; keep one for each, such as {name}[~{name}.index.duplicated()]"
        if len(absent) == len(self.nodes):
            whose = f"is indexed by {_shown(foreign)}, none of them an id of the graph ({_shown(self.nodes)})"
            return f"{whose}; {self._converted() or 'set the ids of the nodes as its index' + self._numbered()}"
        if not len(absent):
            return f"has {_count(foreign, 'id')} that the graph has not: {_shown(foreign)}; pass {name}.loc[{called}]"
        lacks = f"no row for {_count(absent, 'node')} of the graph: {_shown(absent)}"
        if len(foreign):
            lacks = f"{_count(foreign, 'id')} that the graph has not, {_shown(foreign)}, and {lacks}; correct the ids"
        else:
            lacks += "" if self.unknown else "; add rows for them, or leave them out of the graph"
        joint = ", or " if len(foreign) else "; "
        return f"has {lacks}" + (f"{joint}pass {name}.reindex({called}), unknown there" if self.unknown else "")

    def _numbered(self) -> str:
        """Return a further remedy where nodes were only numbered, as of a matrix without ids."""
        counted = self.called == NODES and len(self.ids) == len(self.nodes) and not len(self.again)
        counted = counted and np.array_equal(self.nodes, np.arange(len(self.nodes)))
        if not counted:
            return ""
        return f", or build the graph with nodes={self.name}.index, on a map by from_geopandas(gdf.set_index(column))"

    def _converted(self) -> str | None:
        """Return the remedy for ids that are of another type and else the same, None where they are not."""
        if _kind(self.ids.to_numpy()) not in ("string", "integer"):
            return None
        index, width = pd.Index(self.ids), len(str(self.nodes[0]))
        remedies: dict[str, Callable[[], pd.Index]] = {
            "astype('int64')": lambda: index.astype("int64"),
            "astype(float).astype('int64')": lambda: _whole(index),
            "astype(str)": lambda: index.astype(str),
            f"astype(str).str.zfill({width})": lambda: index.astype(str).str.zfill(width),
        }
        for text, convert in remedies.items():
            try:
                found = _positions(as_ids(convert(), "ids"), self.nodes, self.name, self.called)
            except (TypeError, ValueError, OverflowError):
                continue
            if (found >= 0).all():
                return f"they differ in type: pass {self.name}.set_axis({self.name}.index.{text})"
        return None


def _whole(index: pd.Index) -> pd.Index:
    """Return ids that were written as decimal numbers, "7.0", as whole ones."""
    numbers = index.astype(float)
    if not (numbers == np.floor(numbers)).all() or (np.abs(numbers) >= 2**53).any():
        raise ValueError("not whole")
    return numbers.astype("int64")


def _shown(ids: np.ndarray) -> str:
    return ", ".join(show(value) for value in ids[:EXAMPLES]) + (", .." if len(ids) > EXAMPLES else "")


def _count(ids: np.ndarray, what: str) -> str:
    return f"{len(ids):,} {what}{'s' if len(ids) > 1 else ''}"
