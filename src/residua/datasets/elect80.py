"""Turnout in the 1980 US presidential election: 3,107 counties, joined where they touch."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from residua.datasets.base import Dataset
from residua.graph import Graph

COORDINATES = ["longitude", "latitude"]
SOURCE = (
    "CC0. spData (Debian package r-cran-spdata 2.2.1), objects elect80 and e80_queen; originally R. K. Pace "
    "and R. Barry, Quick computation of spatial autoregressive estimators, Geographical Analysis 29, 1997."
)


def load_elect80() -> Dataset:
    """Load turnout in the 1980 US presidential election; it ships with the package.

    Nodes are 3,107 counties of the contiguous states, named by five-digit FIPS text; 9,063 edges join those
    that touch. The label is turnout, votes cast per eligible voter. The features are college and
    homeownership (per eligible voter) and income (thousand dollars per head); ``nodes`` has longitude and
    latitude in degrees.

    Returns
    -------
    Dataset
        X of shape (3107, 3), y of shape (3107,), no value missing.

    Examples
    --------
    >>> data = load_elect80()
    >>> data.X.loc["06037"].round(2).to_dict()  # Los Angeles
    {'college': 0.57, 'homeownership': 0.24, 'income': 11.4}
    >>> round(float(data.y.mean()), 3)
    0.573
    """
    table = _read("nodes.csv").set_index("fips")
    return Dataset(
        graph=Graph.from_pandas(_read("edges.csv"), source="source", target="target", nodes=table.index),
        X=table[["college", "homeownership", "income"]],
        y=table["turnout"].to_numpy(dtype="float64", copy=True),
        nodes=table[COORDINATES],
        name="elect80",
        notes=(
            "No value was dropped, filled or scaled.",
            "Four island counties touch no other: 25007, 25019, 36085, 53055.",
            "Turnout above 1 stays as published: 08053.",
        ),
        source=SOURCE,
        target="turnout",
    )


def _read(name: str) -> pd.DataFrame:
    """Read one packaged table; ids stay text, for FIPS codes begin with zeros."""
    path = files("residua.datasets") / "data" / "elect80" / name
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"fips": str, "source": str, "target": str})
