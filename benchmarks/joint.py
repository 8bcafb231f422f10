"""Training together with the correlation against correcting afterwards: accuracy, intervals and CPU seconds.

    python -m benchmarks.joint [--data election,twitch] [--methods "trees;trees, post hoc"] [--again "trees"]

60 % of the labels are known, half of the others are predicted and scored: R2, coverage of predictive and conformal 90 %
intervals, negative log-likelihood and CRPS of labels in units of their standard deviation, CPU seconds of fit, means,
standard deviations and intervals, on one thread. Features are the plain ones. Settings were chosen on seeds from 100
on; these are others. Every score is kept in docs/results/joint.jsonl, and what is there is not run again unless
``--again`` names its method; the page joint.md is written from it. GPBoost runs where it is installed (make peers) and
nodes have places. RESIDUA_DATA has to name the folder of the data files.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.bases import DATA
from benchmarks.peers import joint_trees
from benchmarks.peers.record import installed
from benchmarks.peers.scores import located
from benchmarks.records import FOLDER, table
from residua import GraphRegressor, metrics
from residua.datasets import Dataset
from residua.reproduction.provenance import footer, provenance
from residua.reproduction.splits import random_split

SETS = ("election", "unemployment", "income", "education", "elect80", "anaheim", "chicago", "twitch")
SEEDS = tuple(range(41, 51))
REGRESSORS = {
    "boosting": HistGradientBoostingRegressor(),
    "extra trees": ExtraTreesRegressor(min_samples_leaf=2),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(15)),
    "SVR": make_pipeline(StandardScaler(), SVR()),
}
TREES, POST_HOC, GPBOOST = "trees", "trees, post hoc", "GPBoost, tuned"
BASES = {
    TREES: ("trees", "joint"),
    POST_HOC: ("trees", "post-hoc"),
    "linear": ("linear", "joint"),
    **{f"{name}, joint": (base, "joint") for name, base in REGRESSORS.items()},
    **{f"{name}, post hoc": (base, "post-hoc") for name, base in REGRESSORS.items()},
}
SHOWN = (TREES, POST_HOC, GPBOOST)
SCORES = ("R2", "predictive 90 %", "conformal 90 %", "NLL", "CRPS", "CPU s")
FORMS = (".4f", ".3f", ".3f", ".3f", ".3f", ".2f")
COVERAGE = 0.9
RECORDS, PAGE = FOLDER / "joint.jsonl", FOLDER / "joint.md"
HEAD = """# Joint trees

`base="trees"` grows trees through the likelihood of the correlation. Beside them: the same trees by squared error, the
correlation afterwards (post hoc), and GPBoost, whose trees are boosted together with a Gaussian process over
coordinates, on the six data sets whose nodes have places. Settings of GPBoost's trees are chosen for each data set by
cross-validation on a split that is not scored, the number of trees on each split; settings of residua's are the same
for all data. Means over random splits that had no part in any choice, the same for both columns; 60 % of the labels
are known, 20 % scored. On the maps of counties those without a place are left out for all. NLL and CRPS are of labels
in units of their standard deviation. CPU seconds of one thread: the fit with its folds, predictions and intervals;
GPBoost's without the search of settings.
"""


@cache
def loaded(name: str) -> Dataset:
    """Return a data set, of a map the part that has places."""
    data = DATA[name]()
    return located(data) if "longitude" in data.nodes else data


def score(method: str, name: str, seed: int) -> list[float]:
    """Return the ``SCORES`` of one method on one split."""
    data = loaded(name)
    if method == GPBOOST:
        return joint_trees.score(name, data, seed)
    base, training = BASES[method]
    split = random_split(data.graph.n_nodes, seed)
    begin = time.process_time()
    model = GraphRegressor(base, training=training, random_state=seed).fit(
        data.X, split.known(data.y), graph=data.graph
    )
    mean, std = (column[split.test] for column in model.predict(return_std=True))
    lower, upper = (end[split.test] for end in model.predict_interval(coverage=COVERAGE))
    seconds, truth = time.process_time() - begin, data.y[split.test]
    unit = float(np.std(truth))
    told = [end[split.test] for end in model.predict_interval(coverage=COVERAGE, method="predictive")]
    # The density that the model says, with its tails.
    nll = -float(np.mean(model.field_.spread.log_density((truth - mean) / std) - np.log(std / unit)))
    crps = metrics.gaussian_crps(truth / unit, mean / unit, std / unit)
    return [
        metrics.r2(truth, mean),
        metrics.coverage(truth, *told),
        metrics.coverage(truth, lower, upper),
        nll,
        crps,
        seconds,
    ]


@dataclass(frozen=True)
class Found:
    """Scores by method, data set and seed."""

    scores: dict[tuple[str, str, int], list[float]]

    def seeds(self, name: str, *methods: str) -> list[int]:
        """Return the seeds on which all of these methods have run."""
        every = sorted({seed for _, data, seed in self.scores if data == name})
        return [seed for seed in every if all((method, name, seed) in self.scores for method in methods)]

    def of(self, method: str, name: str, seeds: list[int]) -> np.ndarray:
        """Return the (splits, scores) of a method on a data set."""
        return np.array([self.scores[method, name, seed] for seed in seeds], float).reshape(len(seeds), len(SCORES))


def read(path: Path = RECORDS) -> Found:
    """Return what was recorded."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = map(json.loads, lines)
    return Found({(r["method"], r["data"], r["seed"]): [np.nan if v is None else v for v in r["scores"]] for r in rows})


def collected(methods: Iterable[str], sets: Iterable[str], seeds: Iterable[int], path: Path = RECORDS) -> Found:
    """Run what there is no record of, and return all records."""
    have, sets, seeds = set(read(path).scores), tuple(sets), tuple(seeds)
    for method in methods:
        for name in sets:
            todo = [seed for seed in seeds if (method, name, seed) not in have]
            if method == GPBOOST and (not installed("gpboost") or joint_trees.places(loaded(name)) is None):
                continue
            if todo and method != GPBOOST:
                score(method, name, todo[0])  # compiles what it needs
            for seed in todo:
                scores = [None if np.isnan(v) else round(float(v), 6) for v in score(method, name, seed)]
                row = {"method": method, "data": name, "seed": seed, "scores": scores}
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    return read(path)


def write_page(found: Found, path: Path = PAGE) -> None:
    """Write the tables of means: joint trees and each of the other two, on the same splits."""
    parts = [HEAD]
    for other in (POST_HOC, GPBOOST):
        parts += [f"## Beside {other}\n", beside(found, other)]
    about = provenance("python -m benchmarks.joint") | {"threads": 1}
    path.write_text("\n".join([*parts, footer(about)]) + "\n", encoding="utf-8")


def beside(found: Found, other: str) -> str:
    """Return the table of joint trees and another method: means of each data set, and of all."""
    head, rows, means = ["", "splits", "R2 above it"], [], []
    for score in SCORES:
        head += [f"{score}, joint", f"{score}, other"]
    for name in SETS:
        seeds = found.seeds(name, TREES, other)
        if not seeds:
            continue
        ours, theirs = (found.of(method, name, seeds) for method in (TREES, other))
        means.append(np.stack([ours.mean(axis=0), theirs.mean(axis=0)]))
        above = int((ours[:, 0] > theirs[:, 0]).sum())
        rows.append([name, str(len(seeds)), f"{above} of {len(seeds)}", *_cells(means[-1])])
    if rows:
        rows.append(["mean", "", "", *_cells(np.mean(means, axis=0))])
    return table(head, rows)


def _cells(means: np.ndarray) -> list[str]:
    """Return the means (2, scores) side by side."""
    pairs = zip(means.T, FORMS, strict=True)
    return ["" if np.isnan(value) else f"{value:{form}}" for pair, form in pairs for value in pair]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, nargs=2, default=(SEEDS[0], SEEDS[-1]), help="the first and the last")
    parser.add_argument("--methods", default=";".join(SHOWN), help=f"with semicolons, of {[*BASES, GPBOOST]}")
    parser.add_argument("--again", default="", help="methods whose records are dropped first, with semicolons")
    arguments = parser.parse_args()
    if arguments.again and RECORDS.exists():
        lines = RECORDS.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["method"] not in arguments.again.split(";")]
        RECORDS.write_text("".join(kept), encoding="utf-8")
    seeds = range(arguments.seeds[0], arguments.seeds[1] + 1)
    write_page(collected(arguments.methods.split(";"), arguments.data.split(","), seeds))


if __name__ == "__main__":
    main()
