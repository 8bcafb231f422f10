"""An edge table from where nodes are: the nearest of each, all within a distance, or areas that touch."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import scipy.sparse as sp

from residua.atomic import PathLike
from residua.graph import Graph
from residua.graph.spatial_weights import near_points
from residua.io.tables.columns import Table, as_text, short
from residua.io.tables.coordinates import as_positions, find_positions
from residua.maps import read_map

METRES = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}


def read_distance(text: str) -> tuple[float, str]:
    """Return a distance in metres and its unit, "10km"; without a unit as it is, in the units of x and y."""
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].lower() not in ("", *METRES) or found[1].count(".") > 1 or not float(found[1]) > 0:
        raise ValueError(
            f"--within {text!r} is no distance; write 10km, 500m, 3mi, or a number in the units of x and y."
        )
    unit = found[2].lower()
    return float(found[1]) * METRES.get(unit, 1.0), unit


def near_edges(
    nodes: Table, id_column: str, columns: tuple[str, str] | None, nearest: int | None, within: float | None
) -> tuple[pd.DataFrame, str]:
    """Return edges between nodes that are near each other, source, target, distance, and what distances are in.

    Parameters
    ----------
    nodes : Table
        The node table.
    id_column : str
        Its ids.
    columns : tuple of str, optional
        Its columns eastward and northward; by default those that are recognised.
    nearest : int, optional
        How many neighbours each node has at least.
    within : float, optional
        How far neighbours are at most, in metres where the columns are degrees, else in their units.
    """
    pair = columns or find_positions(nodes, (id_column,))
    if len(pair) != 2:
        raise ValueError(
            f"{nodes.path} has no columns with positions (longitude and latitude, or x and y); name them: --x, --y."
        )
    table = pd.DataFrame({column: nodes.numbers(nodes.need(column, "--x and --y")) for column in pair})
    nodes.refuse(table.isna().any(axis=1), pair[0], lambda row: "the position is empty; fill it in, or drop the line.")
    placed = as_positions(table, (pair[0], pair[1]))
    degrees = isinstance(placed, pd.DataFrame)
    points = placed.to_numpy(float) if isinstance(placed, pd.DataFrame) else placed
    ids = checked_ids(nodes, id_column)
    if within is None:
        low, high, apart = near_points(points, "knn", nearest or 1, None, degrees)
    else:
        low, high, apart = near_points(points, "distance", 0, within, degrees)
    at = low.astype(int), high.astype(int)
    frame = pd.DataFrame({"source": ids[at[0]], "target": ids[at[1]], "distance": np.round(apart, 3 if degrees else 9)})
    return frame, "metres" if degrees else f"the units of {pair[0]} and {pair[1]}"


def touching_edges(nodes: Table, id_column: str, polygons: PathLike, how: str) -> pd.DataFrame:
    """Return edges between nodes whose areas on a map touch: "queen" (they share a point) or "rook" (an edge)."""
    places = read_map(polygons)
    if id_column not in places.columns:
        names = [name for name in places.columns if name != places.geometry.name]
        raise ValueError(f"{polygons} has no column {id_column!r} with the ids; its columns are {names}.")
    ids, there = checked_ids(nodes, id_column), as_text(places[id_column])
    rows = pd.Index(there).get_indexer(pd.Index(as_text(pd.Series(ids))))
    if (rows < 0).any():
        raise ValueError(f"{polygons} lacks {(rows < 0).sum():,} nodes, such as {short(ids[np.argmax(rows < 0)])}.")
    graph = Graph.from_geopandas(places.geometry.iloc[rows].set_axis(np.arange(len(ids))), how, islands="keep")
    A = sp.triu(graph.adjacency()).tocoo()
    return pd.DataFrame({"source": ids[A.row], "target": ids[A.col]})


def checked_ids(nodes: Table, id_column: str) -> np.ndarray:
    """Return the ids of a node table, each of which is there once."""
    ids = nodes.ids(id_column)
    nodes.refuse(ids.duplicated(), id_column, lambda row: f"id {short(ids.iloc[row])} was there before; keep one line.")
    return ids.to_numpy()
