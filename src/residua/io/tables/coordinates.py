"""Columns with the positions of nodes: longitude and latitude, or x and y, by their names and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from residua.io.tables.columns import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from residua.io.tables.columns import Table

DEGREES = (("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"), ("long", "lat"))
PLANE = (("x", "y"), ("easting", "northing"), ("x_coord", "y_coord"))


def find_positions(nodes: Table, taken: Collection[str]) -> tuple[str, ...]:
    """Return the columns with the position of a node, eastward and northward; none where there are none.

    Parameters
    ----------
    nodes : Table
        The node table.
    taken : collection of str
        Columns that are something else.
    """
    named = {column.strip().lower(): column for column in nodes.columns if column not in taken}
    for pair in (*DEGREES, *PLANE):
        if not all(name in named and nodes.kind(named[name]) == NUMBERS for name in pair):
            continue
        east, north = (nodes.notation.parse(nodes.cells(named[name])) for name in pair)
        on_earth = np.nanmax(abs(east)) <= 360 and np.nanmax(abs(north)) <= 90
        if pair in PLANE or on_earth:
            return named[pair[0]], named[pair[1]]
    return ()


def as_positions(table: pd.DataFrame, columns: tuple[str, str]) -> pd.DataFrame | np.ndarray:
    """Return positions (n, 2) of the rows of a table: longitude and latitude by these names, or else plain numbers."""
    if tuple(column.strip().lower() for column in columns) in DEGREES:
        return table[list(columns)].set_axis(["longitude", "latitude"], axis=1)
    return table[list(columns)].to_numpy(float)
