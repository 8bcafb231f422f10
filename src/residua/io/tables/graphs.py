"""A node table and an edge table as a graph, features and labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import NoReturn

import numpy as np
import pandas as pd

from residua.atomic import PathLike
from residua.graph import Graph
from residua.io.tables.columns import NUMBERS, Table, and_more, as_text, short
from residua.io.tables.duplicates import RULES, EdgeRows, Rows, merge
from residua.io.tables.maps import edge_table, is_way
from residua.io.tables.numerals import Notation
from residua.io.tables.recipe import Recipe, learn_features
from residua.validation import check_choice

FEW_IDS = 20  # too few to tell codes by their lengths


@dataclass(frozen=True)
class Columns:
    """Which columns are what, as far as the user has said; None stands for the default.

    Parameters
    ----------
    target : str
        Column of the node table with the labels, empty where unknown.
    id : str, optional
        Column of the node table with the ids; "id", or else the first.
    features, categorical, exclude : tuple of str
        Columns of the node table to use, to read as text, and to leave out.
    source, to : str, optional
        Columns of the edge table with the ends of an edge; "source" and "target", or else the first two.
    weight, edge_type, length : str, optional
        Columns of the edge table; of lengths, the weight is one over the length.
    missing : tuple of str
        Words that stand for an empty cell.
    thousands, decimal : str
        The mark between thousands, empty for none, and the decimal mark.
    units : bool
        Whether a unit or a currency may stand beside a number.
    skip_unknown : bool
        Leave out edges to nodes that are not in the node table.
    duplicates : {"error", "first", "sum", "mean", "max"}
        What rows become that list one edge.
    coordinates : {"map", "features"}
        What positions of nodes are for: the map alone, or features as well.
    as_is : bool
        Leave features as they are, empty cells and text too, for a base that takes them.
    """

    target: str
    id: str | None = None
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    source: str | None = None
    to: str | None = None
    weight: str | None = None
    edge_type: str | None = None
    length: str | None = None
    missing: tuple[str, ...] = ()
    thousands: str = ""
    decimal: str = "."
    units: bool = False
    skip_unknown: bool = False
    duplicates: str = "error"
    coordinates: str = "map"
    as_is: bool = False


@dataclass(frozen=True)
class NodeData:
    """What two tables say, and what was done about it."""

    graph: Graph
    X: pd.DataFrame | None  # None: no features
    y: np.ndarray  # NaN where unknown
    recipe: Recipe
    filled: dict[str, int]  # empty cells of each feature column
    left_out: dict[str, str]  # columns of the node table that are not used, and why
    edge_columns_left: list[str]
    notes: list[str]
    rows: EdgeRows
    neighbours: str | None = None  # on a map, the words that stand for an edge table

    @property
    def features(self) -> pd.DataFrame | None:
        """X with the ids as its index, as a fit wants it: its own numbers could be taken for ids."""
        return None if self.X is None else self.X.set_axis(self.graph.nodes)


def read_tables(nodes: PathLike, edges: PathLike, columns: Columns) -> NodeData:
    """Read both files, and learn how to encode the features."""
    node_table = Table.read(nodes, Notation(columns.missing, columns.thousands, columns.decimal, columns.units))
    edges_table = edge_table(edges, node_table, _named(node_table, columns.id, "--id", "id", 0))
    recipe = _names(node_table, edges_table, columns)
    y = node_table.numbers(recipe.target, "; an empty cell is a node whose label is unknown")
    check_choice(columns.coordinates, ("map", "features"), "--coordinates")
    recipe, left_out = learn_features(recipe, node_table, columns)
    return _read(node_table, edges_table, recipe, y, columns.skip_unknown, left_out)


def read_again(
    nodes: PathLike, edges: PathLike, recipe: Recipe, skip_unknown: bool = False, duplicates: str | None = None
) -> NodeData:
    """Read other files as those of a fit were read; labels in the target column, if it is there, are known."""
    node_table = Table.read(nodes, recipe.notation)
    edges_table = edge_table(edges, node_table, node_table.need(recipe.id, "the id column of the model"))
    for column in (recipe.source, recipe.to, recipe.weight, recipe.edge_type, recipe.length):
        if column is not None:
            edges_table.need(column, "a column of the model's edges")
    recipe = recipe if duplicates is None else replace(recipe, duplicates=duplicates)
    there = recipe.target in node_table.columns
    y = node_table.numbers(recipe.target, settled=True) if there else np.full(len(node_table.frame), np.nan)
    return _read(node_table, edges_table, recipe, y, skip_unknown, {})


def read_labels(path: PathLike, graph: Graph, recipe: Recipe) -> np.ndarray:
    """Read labels (n,) of some nodes of a graph, from a table with an id and a target column; NaN elsewhere."""
    table = Table.read(path, recipe.notation)
    ids, nodes = _unique_alike(table, table.need(recipe.id, "the id column of the model"), graph)
    labels = table.numbers(table.need(recipe.target, "the target of the model"), settled=True)
    if np.isnan(labels).all():
        raise ValueError(f"{path} has no label: every cell of column {recipe.target!r} is empty; fill some in.")
    at = nodes.get_indexer(ids)
    known = f"is none of the {graph.n_nodes:,} nodes of the model"
    remedy = "leave it out, or for other nodes give --nodes and --edges."
    table.refuse(at < 0, recipe.id, lambda row: f"node {short(ids[row])}{and_more(at < 0)} {known}; {remedy}")
    y = np.full(graph.n_nodes, np.nan)
    y[at] = labels
    return y


def rows_like(path: PathLike, graph: Graph, recipe: Recipe | None, numbers: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a node table with its rows in the order of a graph's nodes.

    Columns of numbers come as such, and others as text; those named in ``numbers`` have to be numbers.
    """
    nodes = Table.read(path, recipe.notation if recipe else None)
    id_column = nodes.need(recipe.id, "the id column of the model") if recipe else _named(nodes, None, "--id", "id", 0)
    ids, wanted = _unique_alike(nodes, id_column, graph)
    rows = ids.get_indexer(wanted)
    if (rows < 0).any():
        absent = graph.nodes[rows < 0]
        raise ValueError(
            f"{path} lacks {len(absent):,} of the {graph.n_nodes:,} nodes of the model, such as {short(absent[0])}; "
            "give the node table of the fit."
        )
    for column in numbers:
        nodes.need(column, "--x and --y")
    columns = [column for column in nodes.columns if column.strip()]
    table = {c: nodes.numbers(c) if c in numbers or nodes.kind(c) == NUMBERS else nodes.text(c) for c in columns}
    return pd.DataFrame(table).iloc[rows].set_axis(graph.nodes)


def columns_like(path: PathLike, wanted: np.ndarray, recipe: Recipe, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return columns of a node table as they are written, with their rows in the order of the ids that are wanted."""
    nodes = Table.read(path, recipe.notation)
    ids, listed = _alike(nodes.ids(nodes.need(recipe.id, "the id column of the model")), pd.Series(wanted))
    _check_unique(nodes, recipe.id, ids)
    rows = pd.Index(ids).get_indexer(pd.Index(listed))
    if (rows < 0).any():
        raise ValueError(
            f"{path} lacks node {short(listed.iloc[np.argmax(rows < 0)])}{and_more(rows < 0)} of the model."
        )
    return {name: nodes.frame[nodes.need(name, "--keep")].to_numpy()[rows] for name in names}


def _read(nodes: Table, edges: Table, recipe: Recipe, y: np.ndarray, skip: bool, left_out: dict[str, str]) -> NodeData:
    graph, notes, rows = _graph(nodes, edges, recipe, skip)
    X, filled, more = recipe.encode(nodes)
    used = {recipe.source, recipe.to, recipe.weight, recipe.edge_type, recipe.length}
    unused = [c for c in edges.columns if c not in used]
    words = str(edges.path) if is_way(edges.path) else None
    return NodeData(graph, X, y, recipe, filled, left_out, unused, notes + more, rows, words)


def _names(nodes: Table, edges: Table, columns: Columns) -> Recipe:
    """The columns that were named, else those that are usual."""
    id_column = _named(nodes, columns.id, "--id", "id", 0)
    target = nodes.need(columns.target, "--target")
    if id_column == target:
        raise ValueError(f"{nodes.path}: {target!r} is the target and cannot be the id too; name the id column: --id.")
    if len(edges.columns) < 2:
        raise ValueError(f"{edges.path} has one column, {edges.columns[0]!r}; an edge has two ends: source and target.")
    source = _named(edges, columns.source, "--source", "source", 0)
    to = _named(edges, columns.to, "--target-node", "target", 1)
    if source == to:
        raise ValueError(f"{edges.path}: {source!r} cannot be both ends of an edge; give --source and --target-node.")
    if columns.weight is not None and columns.length is not None:
        raise ValueError("--weight and --length are both given; a length makes a weight, 1 / length: leave one out.")
    for column, option in (
        (columns.weight, "--weight"),
        (columns.edge_type, "--edge-type"),
        (columns.length, "--length"),
    ):
        if column is not None:
            edges.need(column, option)
    rest = asdict(nodes.notation) | {"duplicates": columns.duplicates}
    found = Recipe(id_column, target, source, to, columns.weight, columns.edge_type, **rest)
    return replace(found, length=columns.length, as_is=columns.as_is)


def named_column(table: Table, given: str | None) -> str:
    """Return the id column: the one that was given, else "id", else the first."""
    return _named(table, given, "--id", "id", 0)


def _named(table: Table, given: str | None, option: str, usual: str, place: int) -> str:
    """Return the column that was given, else the one with the usual name, else the one at its usual place."""
    if given is not None:
        return table.need(given, option)
    return usual if usual in table.columns else table.columns[place]


def _graph(nodes: Table, edges: Table, recipe: Recipe, skip_unknown: bool) -> tuple[Graph, list[str], EdgeRows]:
    check_choice(recipe.duplicates, RULES, "--duplicates")
    ids, *ends = _alike(nodes.ids(recipe.id), edges.ids(recipe.source), edges.ids(recipe.to))
    _check_unique(nodes, recipe.id, ids)
    known = [end.isin(ids).to_numpy() for end in ends]
    if not skip_unknown:
        for column, end, there in zip((recipe.source, recipe.to), ends, known, strict=True):
            _check_known(nodes, ids, edges, column, end, ~there)
    kept = np.logical_and(*known)
    if not kept.any():
        raise ValueError(f"{edges.path} has no edge between nodes of {nodes.path}; do both use the same ids?")
    weight = np.ones(len(kept)) if recipe.weight is None else _weights(edges, recipe.weight)
    if recipe.length is not None:
        weight = 1 / _lengths(edges, recipe.length)
    types = None if recipe.edge_type is None else _types(edges, recipe.edge_type)
    codes, names = (np.zeros(len(kept), int), None) if types is None else pd.factorize(types)
    counted = np.flatnonzero(kept & (weight > 0))
    lookup = pd.Index(ids)
    i, j = (lookup.get_indexer(end.iloc[counted]) for end in ends)
    refuse = partial(_refuse_again, edges, ends, weight)
    found, repeated, both = merge(Rows(i, j, weight[counted], codes[counted], counted), recipe.duplicates, refuse)
    plain = recipe.weight is None and (found.weight == 1).all()
    kind = None if names is None else pd.Series(names).iloc[found.type]
    listed = ids.to_numpy()
    try:
        graph = Graph.from_edges(
            listed[found.i],
            listed[found.j],
            None if plain or recipe.length is not None else found.weight,
            None if kind is None else kind.to_numpy(),
            nodes=ids,
            length=None if recipe.length is None else 1 / found.weight,
        )
    except ValueError as error:
        raise ValueError(f"{edges.path}: {error}") from None
    zero, unknown, loops = int((kept & (weight == 0)).sum()), int((~kept).sum()), int((found.i == found.j).sum())
    rows = EdgeRows(len(kept), len(found.i), loops, repeated, both, zero, unknown)
    skipped = f"{unknown:,} edges to nodes that are not in {nodes.path} are left out."
    notes = [f"{edges.path}: {skipped}"] if unknown else []
    return graph, notes + lost_zeros(nodes.path, recipe.id, ids), rows


def lost_zeros(path: PathLike, column: str, ids: pd.Series) -> list[str]:
    """Return a note where ids look like codes whose leading zeros were lost: whole numbers of k and k + 1 digits."""
    text = as_text(ids)
    if len(text) < FEW_IDS or not text.str.fullmatch(r"[1-9]\d*").all():
        return []
    lengths, numbers = sorted(set(text.str.len())), text.astype(float)
    counted = numbers.max() - numbers.min() < 2 * len(text)  # 1, 2, 3, .. are no codes
    if counted or len(lengths) != 2 or lengths[0] < 3 or lengths[1] != lengths[0] + 1:
        return []
    short_one = text[text.str.len() == lengths[0]].iloc[0]
    return [
        f"{path} column {column!r}: ids have {lengths[0]} or {lengths[1]} digits; were leading zeros lost, as "
        f"spreadsheets lose them? Then write {short_one.zfill(lengths[1])} in both tables."
    ]


def _refuse_again(edges: Table, ends: list[pd.Series], weight: np.ndarray, one: int, other: int, more: str) -> NoReturn:
    """Refuse an edge that two rows list, naming both."""
    u, v = (short(end.iloc[one]) for end in ends)
    again = ends[0].iloc[one] == ends[0].iloc[other]
    how = "again" if again else f"the other way round, with weight {weight[other]:g} in place of {weight[one]:g}"
    rest = "" if more == "0" else f" ({more} more edges are listed so)"
    raise ValueError(
        f"{edges.path} {edges.place(other)}: the edge {u} - {v} of {edges.place(one)} is listed {how}{rest}; keep one "
        "line for each edge, or say what several become: --duplicates sum, mean, max or first."
    )


def _alike(*columns: pd.Series) -> list[pd.Series]:
    """Return ids of one kind: numbers where all are, else text."""
    whole = all(column.dtype == np.int64 for column in columns)
    return [column if whole else as_text(column) for column in columns]


def _unique_alike(table: Table, column: str, graph: Graph) -> tuple[pd.Index, pd.Index]:
    """The ids of a table, each there once, and those of a graph that was read before."""
    ids, nodes = _alike(table.ids(column), pd.Series(graph.nodes))
    _check_unique(table, column, ids, "give every node one line.")
    return pd.Index(ids), pd.Index(nodes)


def _check_unique(
    nodes: Table, column: str, ids: pd.Series, remedy: str = "give every node one line, or name the id column: --id."
) -> None:
    again = ids.duplicated().to_numpy()

    def problem(row: int) -> str:
        before = nodes.place(int(np.argmax((ids == ids.iloc[row]).to_numpy())))
        more = f" ({again.sum():,} ids are repeated)" if again.sum() > 1 else ""
        return f"id {short(ids.iloc[row])} was there before, in {before}{more}; {remedy}"

    nodes.refuse(again, column, problem)


def _check_known(nodes: Table, ids: pd.Series, edges: Table, column: str, end: pd.Series, unknown: np.ndarray) -> None:
    def problem(row: int) -> str:
        node, written = end.iloc[row], as_text(ids)
        same = ids[written.str.strip().str.lstrip("0") == str(node).strip().lstrip("0")]
        near = f" (there is {short(same.iloc[0])}: mind zeros and spaces)" if len(same) else ""
        if not near and (written == str(node).removesuffix(".0")).any():
            near = f" (there is {str(node).removesuffix('.0')}: ids were written as decimal numbers here)"
        rest = int(unknown.sum()) - 1
        more = f", nor are those of {rest:,} more {'lines' if rest > 1 else 'line'}" if rest else ""
        remedy = "add a line for it there, or leave such edges out: --skip-unknown."
        return f"node {short(node)} is not in {nodes.path}{near}{more}; {remedy}"

    edges.refuse(unknown, column, problem)


def _weights(edges: Table, column: str) -> np.ndarray:
    weights = edges.numbers(column)
    wrong, remedy = ~(weights >= 0), "give a number that is not negative."
    edges.refuse(wrong, column, lambda row: f"the weight is {weights[row]:g}; {remedy}".replace("nan", "empty"))
    return weights


def _lengths(edges: Table, column: str) -> np.ndarray:
    lengths = edges.numbers(column)
    wrong, remedy = ~(lengths > 0), "give a number above 0, or merge nodes at the same place."
    edges.refuse(wrong, column, lambda row: f"the length is {lengths[row]:g}; {remedy}".replace("nan", "empty"))
    return lengths


def _types(edges: Table, column: str) -> pd.Series:
    types = edges.text(column)
    edges.refuse(types.isna(), column, lambda row: "the edge type is empty; fill it in.")
    return types
