"""Sexual contacts between people, Colorado Springs Project 90 (ICPSR 22140), from one's own copy of the files.

The terms of use forbid passing the files on, so nothing is packaged or downloaded. ``simulate_contacts`` generates
people and ties of the same shape, and both pass through ``assemble``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from residua.datasets.base import Dataset
from residua.graph import Graph
from residua.reproduction.datasets.files import DataFileError, reading
from residua.reproduction.datasets.scaling import standardise

PEOPLE = "DS0001/22140-0001-Data.tsv"
TIES = "DS0002/22140-0002-Data.tsv"
RACES = (1, 2, 3, 4, 5)
SEXUAL = 3  # TIETYPE
SOURCE = (
    "M. Morris, R. Rothenberg, HIV Transmission Network Metastudy Project, ICPSR 22140, study 1 (Colorado Springs "
    "Project 90). The terms of use forbid redistribution."
)


def load_contacts(path: str | os.PathLike[str]) -> Dataset:
    """Load the sexual contact network from one's own download of ICPSR 22140.

    Nodes are the people in the largest connected part of study 1 whose sex is known, named by their RID; edges are
    ties of type 3. The label is 1 - 2 SEX, so +1 or -1. The features are race, one column for each of five codes, and
    behaviour (BEHAV), filled with its mean where it is missing and standardised.

    Parameters
    ----------
    path : str or path-like
        The unpacked folder, with ``DS0001/22140-0001-Data.tsv`` and ``DS0002/22140-0002-Data.tsv``.

    Returns
    -------
    Dataset
        X of shape (n, 6), n = 1,888 in the paper; ``nodes`` has sex, race and behav as in the file.

    Examples
    --------
    >>> load_contacts("ICPSR_22140")  # doctest: +SKIP
    Dataset('contacts': 1,888 nodes, 2,096 edges, 6 features)
    """
    folder = _unpacked(Path(path).expanduser())
    with reading(folder):
        return _load(folder)


def _load(folder: Path) -> Dataset:
    people = _read(folder / PEOPLE, ["STUDYNUM", "RID", "SEX", "RACE", "BEHAV"])
    ties = _read(folder / TIES, ["STUDYNUM", "ID1", "ID2", "TIETYPE"])
    people = people[people["STUDYNUM"] == 1]
    known = people[people["SEX"].isin([0, 1])]
    if known["RID"].isna().any() or known["RID"].duplicated().any():
        raise DataFileError(
            f"{folder / PEOPLE} is malformed: RID is missing or repeated in study 1; get the file anew."
        )
    known = known.astype({"RID": "int64"}).set_index("RID").sort_index()
    ties = ties[(ties["STUDYNUM"] == 1) & (ties["TIETYPE"] == SEXUAL)]
    inside = ties["ID1"].isin(known.index) & ties["ID2"].isin(known.index) & (ties["ID1"] != ties["ID2"])
    if not inside.any():
        raise DataFileError(
            f"{folder / TIES} has no tie of type {SEXUAL} between people of study 1 whose sex is known."
        )
    notes = (
        f"Of {len(people):,} people of study 1, {len(people) - len(known):,} of unknown sex were dropped.",
        f"Of {len(ties):,} sexual ties, {len(ties) - inside.sum():,} with oneself or people not kept were dropped.",
    )
    return assemble(known, ties[inside].astype({"ID1": "int64", "ID2": "int64"}), "contacts", notes, SOURCE)


def _unpacked(path: Path) -> Path:
    """The folder with the files: the one named, or ICPSR_22140 in it."""
    for folder in (path, path / "ICPSR_22140"):
        if (folder / PEOPLE).is_file() and (folder / TIES).is_file():
            return folder
    missing = next(name for name in (PEOPLE, TIES) if not (path / name).is_file())
    raise FileNotFoundError(
        f"{path / missing} not found. ICPSR requires your own copy: download study 22140 (data sets DS0001 and DS0002, "
        "delimited) from www.icpsr.umich.edu, unpack it and pass its folder; see docs/data.md. "
        "simulate_contacts() gives generated data of the same shape."
    )


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a file as numbers, NaN where a cell is none."""
    with reading(path):
        table = pd.read_csv(path, sep="\t", dtype=str, encoding="latin-1")
        table.columns = table.columns.str.strip().str.upper()
        missing = [name for name in columns if name not in table.columns]
        if missing:
            raise ValueError(f"it lacks the columns {', '.join(missing)}")
        return table[list(columns)].apply(pd.to_numeric, errors="coerce")


def assemble(people: pd.DataFrame, ties: pd.DataFrame, name: str, notes: tuple[str, ...], source: str) -> Dataset:
    """Return the largest connected part of people (SEX, RACE, BEHAV by id) and ties (ID1, ID2)."""
    pairs = pd.DataFrame(np.sort(ties[["ID1", "ID2"]].to_numpy(), axis=1)).drop_duplicates()
    everyone = Graph.from_edges(pairs[0], pairs[1])
    largest = everyone.nodes[everyone.components == np.bincount(everyone.components).argmax()]
    kept = people.loc[largest].rename_axis("person")
    pairs = pairs[pairs[0].isin(largest)]
    graph = Graph.from_edges(pairs[0], pairs[1], nodes=kept.index)
    behaviour = kept["BEHAV"].where(kept["BEHAV"] >= 0)
    X = pd.DataFrame({f"race_{code}": (kept["RACE"] == code).astype("float64") for code in RACES})
    filled = behaviour.fillna(behaviour.mean()).to_frame("behaviour")
    return Dataset(
        graph=graph,
        X=X.join(standardise(filled)),
        y=1.0 - 2.0 * kept["SEX"].to_numpy(dtype="float64"),
        nodes=kept[["SEX", "RACE", "BEHAV"]].rename(columns=str.lower),
        name=name,
        notes=(
            *notes,
            f"Of {everyone.n_nodes:,} people with a tie, the largest connected part keeps {len(kept):,}.",
            f"behaviour is missing for {behaviour.isna().sum():,} people, who get the mean of the others; "
            "then it is standardised.",
            f"{(~kept['RACE'].isin(RACES)).sum():,} people have no race among the five codes: zeros in all columns.",
        ),
        source=source,
    )
