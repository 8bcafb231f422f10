"""Hostile data sets: small files in the formats of the paper's data, damaged, past the checksums that stop them."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

from residua.datasets import Dataset, load_contacts, load_county, load_transport, load_twitch
from residua.reproduction.datasets import files
from residua.reproduction.datasets.twitch import COUNTRIES
from soak.mutations import damaged, damaged_json
from soak.verdicts import Budget, Judge, nothing_runs, until

N = 14
Files = dict[str, bytes]


def county(rng: np.random.Generator) -> Files:
    """Counties in a row, each of them its own neighbour too."""
    fips = [f"{1001 + 2 * k:05d}" for k in range(N)]
    rows = []
    for k, code in enumerate(fips):
        for j, other in enumerate(o for o in (k - 1, k, k + 1) if 0 <= o < N):
            head = f'"County {k}, AL"\t{code}' if j == 0 else "\t"
            rows.append(f'{head}\t"County {other}, AL"\t{fips[other]}')
    names = {
        "income": [f"MedianIncome{y}" for y in (2012, 2016)],
        "population": [f"R_{what}_{y}" for what in ("NET_MIG", "birth", "death") for y in (2012, 2016)],
        "education": [f"BachelorRate{y}" for y in (2012, 2016)],
        "unemployment": [f"Unemployment_rate_{y}" for y in (2012, 2016)],
        "election": [f"{party}_{y}" for party in ("dem", "gop") for y in (2012, 2016)],
    }
    found = {"election/adjacency.txt": "\n".join(rows).encode("latin-1")}
    for name, columns in names.items():
        key = "fips_code" if name == "election" else "FIPS"
        lines = [",".join([key, *columns])]
        lines += [",".join([str(int(code)), *map(str, rng.integers(1, 999, len(columns)))]) for code in fips]
        found[f"election/{name}.csv"] = "\n".join(lines).encode()
    return found


def transport(rng: np.random.Generator) -> Files:
    """A ring of roads with some across; Chicago's junctions below 388 are zones."""
    ends = [(k + 388, (k + step) % N + 388) for k in range(N) for step in (1, 4)]
    net = ["<NUMBER OF NODES> 14", "<END OF METADATA>", "~ init term capacity length time b power speed toll type ;"]
    net += [
        f"\t{a}\t{b}\t{rng.integers(900, 9000)}\t{rng.random():.3f}\t{rng.random():.3f}\t0.15\t4\t50\t0\t1\t;"
        for a, b in ends
    ]
    flow = [
        "From \tTo \tVolume \tCost",
        *(f"{a} \t{b} \t{rng.random() * 5000:.2f} \t{rng.random():.3f}" for a, b in ends),
    ]
    place = ["node\tX\tY\t;", *(f"{k + 388}\t{rng.integers(1000)}\t{rng.integers(1000)}\t;" for k in range(N))]
    parts = {"net": net, "flow": flow, "node": place}
    found = {f"transportation/Anaheim/Anaheim_{kind}.tntp": parts[kind] for kind in ("net", "flow")}
    found |= {f"transportation/ChicagoSketch/ChicagoSketch_{kind}.tntp": parts[kind] for kind in parts}
    return {name: "\n".join(lines).encode() for name, lines in found.items()}


def twitch(rng: np.random.Generator) -> Files:
    """Six countries of streamers, numbered from 0 in each."""
    found = {}
    for country in COUNTRIES:
        features = {str(k): sorted(rng.choice(3170, 6, replace=False).tolist()) for k in range(N)}
        edges = "\n".join(["from,to", *(f"{k},{(k + 1) % N}" for k in range(N))])
        rows = [f"{k},{rng.integers(3000)},False,{rng.integers(9999)},True,{k}" for k in range(N)]
        target = "\n".join(["id,days,mature,views,partner,new_id", *rows])
        contents = {"features.json": json.dumps(features), "edges.csv": edges, "target.csv": target}
        found |= {f"twitch/{country}/musae_{country}_{kind}": text.encode() for kind, text in contents.items()}
    return found


def contacts(rng: np.random.Generator) -> Files:
    people = [
        "STUDYNUM\tRID\tSEX\tRACE\tBEHAV",
        *(f"1\t{k}\t{k % 2}\t{1 + k % 5}\t{rng.integers(-1, 3)}" for k in range(N)),
    ]
    ties = ["STUDYNUM\tID1\tID2\tTIETYPE", *(f"1\t{k}\t{(k + 1) % N}\t3" for k in range(N))]
    return {
        "DS0001/22140-0001-Data.tsv": "\n".join(people).encode(),
        "DS0002/22140-0002-Data.tsv": "\n".join(ties).encode(),
    }


SETS: dict[str, tuple[Callable[[np.random.Generator], Files], Callable[[Path], Dataset], str]] = {
    "county": (county, lambda _: load_county("election"), "election/"),
    "anaheim": (transport, lambda _: load_transport("anaheim"), "transportation/Anaheim"),
    "chicago": (transport, lambda _: load_transport("chicago"), "transportation/Chicago"),
    "twitch": (twitch, lambda _: load_twitch(), "twitch/PTBR"),
    "contacts": (contacts, load_contacts, "DS000"),
}


@contextmanager
def past_the_checksums(folder: Path) -> Iterator[None]:
    """Every file of a folder counts as the listed one."""
    with (
        mock.patch.dict(os.environ, RESIDUA_DATA=str(folder)),
        mock.patch.object(files, "is_intact", return_value=True),
    ):
        yield


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Load data sets of which one file is damaged; numbers that come of it are finite or missing."""
    judge = Judge()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        good = {key: make(np.random.default_rng(0)) for key, (make, _, _) in SETS.items()}
        for contents in good.values():
            for file, data in contents.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(data)
        with past_the_checksums(folder):
            for _, load, _ in SETS.values():
                load(folder)
            for k in until(budget):
                _try(judge, folder, good, np.random.default_rng([random_state, k]), list(SETS)[k % len(SETS)])
    return dict(judge.counts)


def _try(judge: Judge, folder: Path, good: dict[str, Files], rng: np.random.Generator, key: str) -> None:
    _, load, prefix = SETS[key]
    own = [file for file in good[key] if file.startswith(prefix)]
    file = own[rng.integers(len(own))]
    change = damaged_json if file.endswith(".json") and rng.random() < 0.6 else damaged
    data = change(good[key][file], rng)
    (folder / file).write_bytes(data)
    judge.judge(data, lambda: _use(load, folder), str(folder))
    (folder / file).write_bytes(good[key][file])


def _use(load: Callable[[Path], Dataset], folder: Path) -> None:
    with nothing_runs():
        data = load(folder)
    assert np.isfinite(data.X.to_numpy(float)).all(), "X is not finite"
    assert np.isfinite(data.y).all(), "y is not finite"
