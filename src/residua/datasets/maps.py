"""Small maps that textbooks of spatial statistics use, with their shapes; they ship with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from residua.datasets.base import Dataset
from residua.graph import Graph

PACKAGED = "Packaged with libpysal 4.14.1 under the BSD 3-clause licence (copyright PySAL Developers), data as is. "
SOURCES = {
    "columbus": PACKAGED + "L. Anselin, Spatial Econometrics, Kluwer, 1988, table 12.1.",
    "sids": PACKAGED + "N. Cressie, Statistics for Spatial Data, Wiley, 1993, pp. 386-389.",
    "baltimore": PACKAGED + "R. A. Dubin, Spatial autocorrelation and neighborhood quality, Regional Science and Urban "
    "Economics 22, 1992.",
}
UNCHANGED = "No value was dropped, filled or scaled; coordinates are rounded to 5 digits."


def load_columbus() -> Dataset:
    """Load crime in 49 neighbourhoods of Columbus, Ohio, 1980; joined where they share a point (queen).

    The label is residential burglaries and vehicle thefts per 1,000 households; features are household income and
    housing value, in thousand dollars. ``nodes`` has open space, the share of housing without plumbing and the distance
    to the centre.

    Returns
    -------
    Dataset
        X of shape (49, 2), y of shape (49,).

    Examples
    --------
    >>> load_columbus()
    Dataset('columbus': 49 nodes, 118 edges, 2 features)
    """
    table = _read("columbus")
    return _dataset("columbus", table, "crime", ["income", "house_value"], (UNCHANGED,))


def load_sids(year: int = 1974) -> Dataset:
    """Load sudden infant deaths in the 100 counties of North Carolina; joined where they share a point (queen).

    Label and feature are Freeman-Tukey transforms of a rate per 1,000 births, ``sqrt(1000 / b) (sqrt(k) + sqrt(k +
    1))`` for k of b births, whose spread depends little on the rate: of sudden infant deaths, and of nonwhite births.
    ``nodes`` has the counts, from July 1974 to June 1978 and from July 1979 to June 1984. Nodes are five-digit FIPS
    text.

    Parameters
    ----------
    year : {1974, 1979}
        The first year of the counts.

    Returns
    -------
    Dataset
        X of shape (100, 1), y of shape (100,).

    Examples
    --------
    >>> load_sids()
    Dataset('sids': 100 nodes, 245 edges, 1 features)
    """
    if year not in (1974, 1979):
        raise ValueError(f"year={year!r} is unknown; use 1974 or 1979.")
    table = _read("sids")
    births = table[f"births_{year}"]
    for column, counts in (("deaths", f"deaths_{year}"), ("nonwhite", f"nonwhite_{year}")):
        table[column] = np.sqrt(1000 / births) * (np.sqrt(table[counts]) + np.sqrt(table[counts] + 1))
    notes = (
        UNCHANGED,
        "Label and feature are Freeman-Tukey transforms of rates per 1,000 births; counts are in nodes.",
    )
    return _dataset("sids", table, "deaths", ["nonwhite"], notes)


def load_baltimore() -> Dataset:
    """Load prices of 211 houses in Baltimore, 1978; each joined to its four nearest.

    The label is the price in thousand dollars. Features are rooms, baths, patio, fireplace, air conditioning, garage,
    age, lot (hundred square feet), floor (hundred square feet), detached, and whether it is in the county.

    Returns
    -------
    Dataset
        X of shape (211, 11), y of shape (211,).

    Examples
    --------
    >>> load_baltimore()
    Dataset('baltimore': 211 nodes, 513 edges, 11 features)
    """
    table = _read("baltimore")
    notes = (UNCHANGED, "An edge joins two houses where one is among the four nearest of the other.")
    return _dataset("baltimore", table, "price", [name for name in table.columns if name != "price"], notes)


def _path(name: str, file: str) -> Path:
    return Path(str(files("residua.datasets") / "data" / "maps" / name / file))


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(_path(name, "nodes.csv"), dtype={"id": str}).set_index("id")


def _dataset(name: str, table: pd.DataFrame, target: str, features: list[str], notes: tuple[str, ...]) -> Dataset:
    edges = pd.read_csv(_path(name, "edges.csv"), dtype=str)
    return Dataset(
        graph=Graph.from_pandas(edges, nodes=table.index),
        X=table[features],
        y=table[target].to_numpy(dtype="float64", copy=True),
        nodes=table.drop(columns=[*features, target]),
        name=name,
        notes=notes,
        source=SOURCES[name],
        target=target,
        places=_path(name, "places.geojson"),
    )
