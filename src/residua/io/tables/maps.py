"""A map as a node table, neighbours on it as an edge table, and predictions back on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import scipy.sparse as sp

from residua.caller import warn
from residua.graph import Graph
from residua.graph.spatial_weights import WAYS, name_islands
from residua.io.tables.columns import Table, as_text, short
from residua.maps import KINDS, is_map, read_map

PathLike = str | os.PathLike[str]


def is_way(edges: PathLike) -> bool:
    """Return whether what stands in the place of an edge table says how places of a map are neighbours."""
    return str(edges).partition(",")[0].partition(":")[0] in WAYS and not Path(edges).exists()


def read_way(text: str) -> dict[str, Any]:
    """Return the arguments of ``Graph.from_geopandas`` that words such as ``knn:6`` or ``queen,nearest`` stand for."""
    first, _, islands = text.partition(",")
    how, _, number = first.partition(":")
    found: dict[str, Any] = {"how": how, "islands": islands or "warn"}
    if islands not in ("", "nearest", "keep") or (number and how not in ("knn", "distance")):
        raise ValueError(_unknown(text))
    if number:
        name, read = ("k", int) if how == "knn" else ("distance", float)
        try:
            found[name] = read(number)
        except ValueError:
            raise ValueError(f"edges {text!r}: {number!r} is no number; write {how}:4.") from None
    return found


def _unknown(text: str) -> str:
    return (
        f"edges {text!r} is unknown; give an edge table or, for a map, queen, rook, knn:4 or distance:5000, with "
        ",nearest behind it to join islands to their nearest place, or ,keep to leave them without a note."
    )


def edge_table(edges: PathLike, nodes: Table, id_column: str) -> Table:
    """Return the edge table of a file, or the neighbours on the map that the node table came from."""
    if not is_way(edges):
        if is_map(nodes.path) and not Path(edges).exists():
            raise ValueError(_unknown(str(edges)))
        return Table.read(edges, nodes.notation)
    if not is_map(nodes.path):
        raise ValueError(f"edges {str(edges)!r} needs a map, and {nodes.path} is none; give {KINDS}, or an edge table.")
    places = read_map(nodes.path).geometry
    ids = nodes.ids(id_column)
    twice = ids.duplicated()
    if twice.any():
        raise ValueError(f"{nodes.path} has id {short(ids[twice].iloc[0])} more than once; name the id column: --id.")
    A = sp.triu(_neighbours(places.set_axis(ids.to_numpy()), str(edges)).adjacency()).tocoo()
    frame = pd.DataFrame({"source": ids.to_numpy()[A.row], "target": ids.to_numpy()[A.col]})
    return Table(Path(str(edges)), frame, None, nodes.notation)


def _neighbours(places: Any, words: str) -> Graph:
    """Return the graph of a map; a warning of islands has the words of the command line, not those of Python."""
    way = read_way(words)
    if way["islands"] != "warn":
        return Graph.from_geopandas(places, **way)
    graph = Graph.from_geopandas(places, **way | {"islands": "keep"})
    islands = graph.nodes[graph.degree == 0]
    if len(islands):
        warn(name_islands(islands, f"{words},nearest", f"{words},keep"))
    return graph


def on_map(table: pd.DataFrame, polygons: PathLike, id_column: str) -> Any:
    """Return predictions, whose first column has the ids, with the geometry of a map file; a GeoDataFrame."""
    places = read_map(polygons)
    if id_column not in places.columns:
        names = [name for name in places.columns if name != places.geometry.name]
        raise ValueError(f"{polygons} has no column {id_column!r} with the ids; its columns are {names}.")
    wanted, there = as_text(table.iloc[:, 0]), as_text(places[id_column])
    if there.duplicated().any():
        raise ValueError(
            f"{polygons} has id {short(there[there.duplicated()].iloc[0])} more than once; keep one of each."
        )
    rows = pd.Index(there).get_indexer(pd.Index(wanted))
    if (rows < 0).any():
        absent = wanted[rows < 0]
        raise ValueError(f"{polygons} lacks {len(absent):,} of {len(table):,} nodes, such as {short(absent.iloc[0])}.")
    return type(places)(table.reset_index(drop=True), geometry=places.geometry.iloc[rows].to_numpy(), crs=places.crs)
