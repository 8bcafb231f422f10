"""Twitch streamers and their mutual friendships.

    B = U diag(s) V',   x_i = U_8' b_i

B (3,170 x 34,118) binary features of the streamers of six countries, not centred; b_i the column of streamer i.
Each column of U has the sign that makes its sum positive.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from residua.datasets.base import Dataset
from residua.graph import Graph
from residua.reproduction.datasets.files import data_folder, find_file, reading
from residua.reproduction.datasets.scaling import standardise
from residua.validation import check_choice

COUNTRIES = ("DE", "ENGB", "ES", "FR", "PTBR", "RU")
N_FEATURES = 3170
N_COMPONENTS = 8
KINDS = ("edges.csv", "features.json", "target.csv")
FILES = tuple(f"twitch/{country}/musae_{country}_{kind}" for country in COUNTRIES for kind in KINDS)
SOURCE = (
    "B. Rozemberczki, C. Allen, R. Sarkar, Multi-scale attributed node embedding, 2019; "
    "github.com/benedekrozemberczki/MUSAE, also at SNAP (musae-twitch). Collected in May 2018."
)


def load_twitch(country: str = "PTBR") -> Dataset:
    """Load the streamers of a country, their friendships and how often they are watched.

    Nodes are streamers, numbered as in the files; edges are mutual friendships. The label is log(views + 1),
    standardised. The features are 8 components of 3,170 binary ones (games, places, habits), by a singular value
    decomposition of all six countries without centring. The files are not packaged: see ``docs/data.md``.

    Parameters
    ----------
    country : {"DE", "ENGB", "ES", "FR", "PTBR", "RU"}
        The paper predicts PTBR.

    Returns
    -------
    Dataset
        X of shape (n, 8), for PTBR (1912, 8); ``nodes`` has days, mature, views and partner.

    Examples
    --------
    >>> load_twitch()  # doctest: +SKIP
    Dataset('twitch-PTBR': 1,912 nodes, 31,299 edges, 8 features)
    """
    check_choice(country, COUNTRIES, "country")
    with reading(data_folder() / "twitch"):
        return _load(country)


def _load(country: str) -> Dataset:
    features = {name: _read_features(_file(name, "features.json")) for name in COUNTRIES}
    components = _components(sp.vstack(list(features.values()), format="csr"))
    nodes, repeated = _read_target(_file(country, "target.csv"), features[country].shape[0])
    label = pd.DataFrame({"views": np.log(nodes["views"].to_numpy() + 1.0)})
    source, target = _read_edges(_file(country, "edges.csv"))
    names = [f"component_{k + 1}" for k in range(N_COMPONENTS)]
    return Dataset(
        graph=Graph.from_edges(source, target, nodes=nodes.index),
        X=pd.DataFrame(features[country] @ components, index=nodes.index, columns=names),
        y=standardise(label)["views"].to_numpy(copy=True),
        nodes=nodes,
        name=f"twitch-{country}",
        notes=_notes(label["views"], repeated),
        source=SOURCE,
    )


def _file(country: str, kind: str) -> Path:
    return find_file(f"twitch/{country}/musae_{country}_{kind}")


def _read_features(path: Path) -> sp.csr_array:
    """Read the features, (n, 3170) of 0 and 1; a feature listed twice for a node counts once."""
    with reading(path):
        lists = {int(node): sorted(set(numbers)) for node, numbers in json.loads(path.read_text("utf-8")).items()}
        if sorted(lists) != list(range(len(lists))):
            raise ValueError("its nodes are not numbered 0 .. n-1")
        counts = [len(lists[node]) for node in range(len(lists))]
        columns = np.concatenate([np.asarray(lists[node], dtype="int64") for node in range(len(lists))])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        matrix = sp.csr_array((np.ones(len(columns)), columns, indptr), shape=(len(lists), N_FEATURES))
        matrix.check_format()
        return matrix


def _components(rows: sp.csr_array) -> np.ndarray:
    """(3170, 8) leading singular vectors of all streamers' features, the strongest first."""
    start = np.ones(min(rows.shape))
    _, strength, vectors = svds(rows, k=N_COMPONENTS, v0=start, return_singular_vectors="vh")
    vectors = vectors[np.argsort(-strength)].T
    return vectors * np.sign(vectors.sum(axis=0))


def _read_target(path: Path, n: int) -> tuple[pd.DataFrame, int]:
    """Read what is known of each streamer, by number; and how many rows were repeats."""
    with reading(path):
        table = pd.read_csv(path, usecols=["days", "mature", "views", "partner", "new_id"])
        kept = table.drop_duplicates("new_id").set_index("new_id").sort_index().rename_axis("streamer")
        if list(kept.index) != list(range(n)):
            raise ValueError(f"it does not have one row for each of {n} nodes")
        return kept, len(table) - len(kept)


def _read_edges(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with reading(path):
        table = pd.read_csv(path, dtype="int64")
        return table["from"].to_numpy(), table["to"].to_numpy()


def _notes(label: pd.Series, repeated: int) -> tuple[str, ...]:
    repeats = (f"{repeated} streamers are listed twice; the first row counts.",) if repeated else ()
    return (
        "The features are components of an uncentred singular value decomposition over six countries, each with "
        "the sign that makes its sum positive; they are not standardised.",
        "A feature listed twice for a streamer counts once.",
        f"The label log(views + 1) is standardised: its mean was {label.mean():.6g}, its n-1 standard deviation "
        f"{label.std():.6g}.",
        *repeats,
        "Numbers are float64; the authors store 32-bit floats.",
    )
