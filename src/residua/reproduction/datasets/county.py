"""Statistics of US counties in 2012 and 2016 on the map of counties: the paper's election data.

    A_ij = 1 where counties touch,  A_ii = 2,  D = diag(A 1),  S_ii = 2 / D_ii

Every county lists itself as a neighbour. The authors' library puts 2 on the diagonal for such a self-loop.
"""

from __future__ import annotations

from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd

from residua.datasets.base import Dataset
from residua.datasets.elect80 import COORDINATES, load_elect80
from residua.graph import Graph
from residua.reproduction.datasets.files import data_folder, find_file, reading
from residua.reproduction.datasets.scaling import finite, standardise
from residua.validation import check_choice

TARGETS = ("income", "migration", "birth", "death", "education", "unemployment", "election")
YEARS = (2012, 2016)
FILES = tuple(
    f"election/{name}"
    for name in ("adjacency.txt", "education.csv", "election.csv", "income.csv", "population.csv", "unemployment.csv")
)
# Column of each table for one year.
COLUMNS = {
    "income": ("income.csv", "MedianIncome{}"),
    "migration": ("population.csv", "R_NET_MIG_{}"),
    "birth": ("population.csv", "R_birth_{}"),
    "death": ("population.csv", "R_death_{}"),
    "education": ("education.csv", "BachelorRate{}"),
    "unemployment": ("unemployment.csv", "Unemployment_rate_{}"),
    "dem": ("election.csv", "dem_{}"),
    "gop": ("election.csv", "gop_{}"),
}
SOURCE = (
    "US Census Bureau county adjacency file (public domain); USDA Economic Research Service county-level data sets; "
    "presidential results collected at github.com/tonmcg; as gathered in "
    "github.com/000Justin000/gnn-residual-correlation."
)


def load_county(target: str, year: int = 2012, self_loops: bool = True) -> Dataset:
    """Load one of seven statistics of 3,234 US counties, with the other six as features.

    Nodes are counties and their equivalents, named by five-digit FIPS text in ascending order. The statistics are
    ``income`` (median of households), ``migration``, ``birth`` and ``death`` (rates), ``education`` (share of adults
    with a bachelor's degree), ``unemployment`` (rate) and ``election``, the margin (gop - dem) / (gop + dem) in the
    presidential election. Missing numbers are filled with the mean of their column. All but the margin are
    standardised. The files are not packaged: see ``docs/data.md``.

    Parameters
    ----------
    target : str
        Which statistic is the label.
    year : {2012, 2016}
        Of the statistics.
    self_loops : bool
        Join every county to itself with weight 2, as the paper's authors do (12,717 edges), or not (9,483).

    Returns
    -------
    Dataset
        X of shape (3234, 6); ``nodes`` has county, state, longitude and latitude, the latter two NaN outside the
        contiguous states.

    Examples
    --------
    >>> load_county("election")  # doctest: +SKIP
    Dataset('county-election-2012': 3,234 nodes, 12,717 edges, 6 features)
    """
    check_choice(target, TARGETS, "target")
    if not isinstance(year, Integral) or year not in YEARS:
        raise ValueError(f"year={year!r} is unknown; use one of {', '.join(map(str, YEARS))}.")
    with reading(data_folder() / "election"):
        return _load(target, year, self_loops)


def _load(target: str, year: int, self_loops: bool) -> Dataset:
    names, source, other = _read_adjacency(find_file("election/adjacency.txt"))
    raw = pd.DataFrame({name: _read_column(name, year) for name in COLUMNS}, index=names.index)
    table = _statistics(raw)
    scaled = standardise(table).assign(election=table["election"])
    graph = Graph.from_edges(
        source, other, weight=np.where(source == other, 2.0, 1.0), nodes=names.index, self_loops=self_loops
    )
    return Dataset(
        graph=graph,
        X=scaled.drop(columns=target),
        y=scaled[target].to_numpy(copy=True),
        nodes=names.join(load_elect80().nodes[COORDINATES]),
        name=f"county-{target}-{year}",
        notes=_notes(raw, table[target], self_loops),
        source=SOURCE,
    )


def _statistics(raw: pd.DataFrame) -> pd.DataFrame:
    """Read the seven statistics. Votes are filled before the margin is taken, as the authors do."""
    filled = raw.fillna(raw.mean())
    dem, gop = filled.pop("dem"), filled.pop("gop")
    with np.errstate(all="ignore"):  # what overflows is refused
        return finite(filled.assign(election=(gop - dem) / (gop + dem)))


def _read_adjacency(path: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Read name and state of each county by ascending FIPS; both ends of every row."""
    with reading(path):
        columns = ["county", "fips", "neighbour", "other"]
        rows = pd.read_csv(path, sep="\t", header=None, names=columns, dtype=str, encoding="latin-1")
        source, other = rows["fips"].ffill(), rows["other"]
        if source.isna().any() or other.isna().any():
            raise ValueError("a row has no FIPS code")
        # One heading lacks its name, but every county is a neighbour of itself.
        texts = rows.drop_duplicates("other").set_index("other")["neighbour"].sort_index()
        # The ñ of Doña Ana lost the first of its two bytes in UTF-8.
        parts = texts.str.replace("±", "ñ").str.rsplit(", ", n=1, expand=True)
        names = pd.DataFrame({"county": parts[0], "state": parts[1]}).rename_axis("fips")
    return names, source.to_numpy(dtype=object), other.to_numpy(dtype=object)


def _read_column(name: str, year: int) -> pd.Series:
    """Read one column by five-digit FIPS text, NaN where the cell is empty."""
    file, column = COLUMNS[name]
    path = find_file(f"election/{file}")
    fips = "fips_code" if file == "election.csv" else "FIPS"
    with reading(path):
        table = pd.read_csv(path, usecols=[fips, column.format(year)], thousands=",", encoding="utf-8")
        values = table.set_index(table[fips].map("{:05d}".format))[column.format(year)]
        return values.astype("float64")


def _notes(raw: pd.DataFrame, label: pd.Series, self_loops: bool) -> tuple[str, ...]:
    missing = raw.isna().sum().drop("dem").rename({"gop": "votes"})
    filled = ", ".join(f"{name} {count}" for name, count in missing.items())
    loops = "are kept with weight 2, so that S_ii = 2 / D_ii" if self_loops else "were dropped"
    unit = (
        "The label, the margin, is not standardised."
        if label.name == "election"
        else f"The label is standardised: its mean was {label.mean():.6g}, its standard deviation {label.std():.6g}."
    )
    return (
        f"Filled with the mean of the column, in counties: {filled}.",
        "Missing votes are filled as counts before the margin is taken, so those counties share one margin.",
        "All statistics but the election margin are standardised after filling, with the n-1 standard deviation.",
        unit,
        f"The file lists every county as its own neighbour; these 3,234 self-loops {loops}.",
        "Numbers are float64; the authors store 32-bit floats.",
        "Longitude and latitude come from elect80 and are missing outside the contiguous states.",
    )
