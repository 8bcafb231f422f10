"""Which base is the best default: test R2 and seconds of each, over the data sets, with a learned correlation.

    python -m benchmarks.bases [--seeds 3] [--data election,anaheim] [--bases "hops;sage"] [--details]

60 % of the labels are known; the rest is predicted and scored. RESIDUA_DATA has to name the folder of the data files.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from residua import GraphRegressor, NeighbourFeatures, Network, metrics
from residua.datasets import Dataset, load_county, load_elect80, load_transport, load_twitch
from residua.reproduction.splits import only, random_split

DATA: dict[str, Callable[[], Dataset]] = {
    "elect80": load_elect80,
    **{t: lambda t=t: load_county(t) for t in ("income", "education", "unemployment", "election")},
    "anaheim": lambda: load_transport("anaheim"),
    "chicago": lambda: load_transport("chicago"),
    "twitch": load_twitch,
}
# A base, what it sees of the features ("plain"; with averages over "hops"; as the columns of "splines"), and how many
# members are averaged.
BASES = {
    "linear": ("linear", "plain", 1),
    "linear on hops": ("linear", "hops", 1),
    "linear on columns of splines": ("linear", "splines", 1),
    "splines": ("splines", "plain", 1),
    "splines on hops": ("splines", "hops", 1),
    "trees": ("trees", "plain", 1),
    "boosted trees on hops": (HistGradientBoostingRegressor(), "hops", 1),
    "mlp": ("mlp", "plain", 1),
    "sage": ("sage", "plain", 1),
    "sage 64-32": (Network("sage", widths=(64, 32)), "plain", 1),
    "hops": ("hops", "plain", 1),
    "hops 64-32": (Network("hops", widths=(64, 32)), "plain", 1),
    "hops 64-32, 5 members": (Network("hops", widths=(64, 32)), "plain", 5),
}
COVERAGE = 0.9


class Score(NamedTuple):
    """One base on one split."""

    r2: float
    nll: float  # Gaussian
    gaussian: float  # share that 90 % intervals cover
    conformal: float
    fit_seconds: float  # of CPU
    seconds: float  # to fit and predict


def features(kind: str, data: Dataset, y: np.ndarray) -> Any:
    """The features that a base sees."""
    if kind == "hops":
        return NeighbourFeatures().fit_transform(data.X, graph=data.graph)
    if kind == "splines":  # without their prior
        model = GraphRegressor("splines", correlation=None).fit(data.X, y, graph=data.graph)
        return model.base_.design(model.X_)[:, 1:]
    return data.X


def score(name: str, data: Dataset, seed: int) -> Score:
    """Test scores of a base on one split."""
    base, kind, ensemble = BASES[name]
    split = random_split(data.graph.n_nodes, seed)
    known, truth = split.known(data.y), only(data.y, split.test)
    X = features(kind, data, known)
    begin, cpu = time.perf_counter(), time.process_time()
    model = GraphRegressor(base, ensemble=ensemble, random_state=seed).fit(X, known, graph=data.graph)
    fitted, mean = time.process_time() - cpu, model.predict()
    seconds = time.perf_counter() - begin
    std = model.predict(return_std=True)[1]
    covered = [
        metrics.coverage(truth, *model.predict_interval(coverage=COVERAGE, method=how))
        for how in ("gaussian", "conformal")
    ]
    there = ~np.isnan(truth)
    nll = metrics.gaussian_nll(truth[there], mean[there], std[there])
    return Score(metrics.r2(truth, mean), nll, *covered, fitted, seconds)


def summary(base: str, found: np.ndarray) -> str:
    """A row of R2 on each data set; found (sets, seeds, scores)."""
    means, seconds = found[..., 0].mean(axis=1), found[..., -1].mean()
    return f"| {base} | " + " | ".join(f"{m:.3f}" for m in means) + f" | {means.mean():.3f} | {seconds:.1f} |"


def details(base: str, sets: list[str], found: np.ndarray) -> str:
    """A row for each data set."""
    rows = []
    for name, scores in zip(sets, found, strict=True):
        r2, nll, gaussian, conformal, fit_seconds, _ = scores.mean(axis=0)
        covered = f"{100 * gaussian:.1f} | {100 * conformal:.1f}"
        rows.append(f"| {name} | {base} | {r2:.3f} | {nll:.3f} | {covered} | {fit_seconds:.2f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--bases", default=";".join(BASES), help="separated by semicolons")
    parser.add_argument("--details", action="store_true", help="NLL, coverage and CPU seconds of each data set too")
    arguments = parser.parse_args()
    sets, bases = arguments.data.split(","), arguments.bases.split(";")
    loaded = {name: DATA[name]() for name in sets}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    score(bases[0], loaded[sets[0]], seeds[0])  # compiled code is loaded outside the clock
    found = {}
    print("| base | " + " | ".join(sets) + " | mean | seconds |\n|" + "---|" * (len(sets) + 3))
    for base in bases:
        found[base] = np.array([[score(base, loaded[d], seed) for seed in seeds] for d in sets])
        print(summary(base, found[base]), flush=True)
    if arguments.details:
        print("\n| data | base | R2 | NLL | Gaussian 90 % | conformal 90 % | CPU s to fit |\n|" + "---|" * 7)
        for k, name in enumerate(sets):
            print("\n".join(details(base, [name], found[base][k : k + 1]) for base in bases))


if __name__ == "__main__":
    main()
