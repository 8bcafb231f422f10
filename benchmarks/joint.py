"""Training together with the correlation against correcting afterwards: accuracy, intervals and CPU seconds.

    python -m benchmarks.joint [--first-seed 41] [--seeds 10] [--data election] [--bases "trees;trees, post hoc"]

60 % of the labels are known, half of the others are predicted and scored: R2, coverage of Gaussian and jackknife 90 %
intervals, negative log-likelihood and CRPS of labels in units of their standard deviation, CPU seconds of fit, means,
standard deviations and intervals. Features are the plain ones. Settings were chosen on seeds from 100 on.
RESIDUA_DATA has to name the folder of the data files.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.bases import DATA
from residua import GraphRegressor, metrics
from residua.datasets import Dataset
from residua.intervals import gaussian_width
from residua.reproduction.splits import random_split

SETS = ("election", "unemployment", "income", "education", "elect80", "anaheim", "chicago", "twitch")
REGRESSORS = {
    "boosting": HistGradientBoostingRegressor(),
    "extra trees": ExtraTreesRegressor(min_samples_leaf=2),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(15)),
    "SVR": make_pipeline(StandardScaler(), SVR()),
}
BASES = {
    "linear": ("linear", "joint"),
    "trees": ("trees", "joint"),
    "trees, post hoc": ("trees", "post-hoc"),
    **{f"{name}, joint": (base, "joint") for name, base in REGRESSORS.items()},
    **{f"{name}, post hoc": (base, "post-hoc") for name, base in REGRESSORS.items()},
}
SCORES = ("R2", "Gaussian 90 %", "jackknife 90 %", "NLL", "CRPS", "CPU s")
COVERAGE = 0.9


def score(name: str, data: Dataset, seed: int) -> list[float]:
    """Return the ``SCORES`` of one base on one split."""
    base, training = BASES[name]
    split = random_split(data.graph.n_nodes, seed)
    begin = time.process_time()
    model = GraphRegressor(base, training=training, random_state=seed).fit(
        data.X, split.known(data.y), graph=data.graph
    )
    mean, std = (column[split.test] for column in model.predict(return_std=True))
    lower, upper = (end[split.test] for end in model.predict_interval(coverage=COVERAGE))
    seconds, truth = time.process_time() - begin, data.y[split.test]
    unit, margin = float(np.std(truth)), gaussian_width(COVERAGE) * std
    gaussian = metrics.coverage(truth, mean - margin, mean + margin)
    nll = metrics.gaussian_nll(truth / unit, mean / unit, std / unit)
    crps = metrics.gaussian_crps(truth / unit, mean / unit, std / unit)
    return [metrics.r2(truth, mean), gaussian, metrics.coverage(truth, lower, upper), nll, crps, seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-seed", type=int, default=41)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--bases", default="trees;trees, post hoc", help=f"separated by semicolons, of {list(BASES)}")
    arguments = parser.parse_args()
    sets, seeds = arguments.data.split(","), range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    loaded = {name: DATA[name]() for name in sets}
    for base in arguments.bases.split(";"):
        score(base, loaded[sets[0]], seeds[0])  # compiles what it needs
        found = np.array([[score(base, loaded[name], seed) for seed in seeds] for name in sets])
        means = found.mean(axis=1)
        print(
            f"\n{base}, seeds {seeds[0]} to {seeds[-1]}\n\n| | {' | '.join(SCORES)} |\n|" + "---|" * (len(SCORES) + 1)
        )
        for name, row in zip((*sets, "mean"), (*means, means.mean(axis=0)), strict=True):
            print(
                f"| {name} | {row[0]:.4f} | {row[1]:.3f} | {row[2]:.3f} | {row[3]:.3f} | {row[4]:.3f} | {row[5]:.2f} |"
            )


if __name__ == "__main__":
    main()
