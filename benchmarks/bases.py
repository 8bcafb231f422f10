"""Which base is the best default: test R2 and seconds of each, over the data sets, with a learned correlation.

    python -m benchmarks.bases [--seeds 3] [--data election,anaheim] [--bases "hops;sage"]

60 % of the labels are known; the rest is predicted and scored. RESIDUA_DATA has to name the folder of the data files.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from residua import GraphRegressor, NeighbourFeatures, Network
from residua.datasets import Dataset, load_county, load_elect80, load_transport, load_twitch
from residua.reproduction.splits import random_split

DATA: dict[str, Callable[[], Dataset]] = {
    "elect80": load_elect80,
    **{t: lambda t=t: load_county(t) for t in ("income", "education", "unemployment", "election")},
    "anaheim": lambda: load_transport("anaheim"),
    "chicago": lambda: load_transport("chicago"),
    "twitch": load_twitch,
}
# A base, whether it sees the neighbours' features as columns, and how many members are averaged.
BASES = {
    "linear": ("linear", False, 1),
    "linear on hops": ("linear", True, 1),
    "boosted trees on hops": (HistGradientBoostingRegressor(), True, 1),
    "mlp": ("mlp", False, 1),
    "sage": ("sage", False, 1),
    "sage 64-32": (Network("sage", widths=(64, 32)), False, 1),
    "hops": ("hops", False, 1),
    "hops 64-32": (Network("hops", widths=(64, 32)), False, 1),
    "hops 64-32, 5 members": (Network("hops", widths=(64, 32)), False, 5),
}


def score(name: str, data: Dataset, seed: int) -> tuple[float, float]:
    """Test R2, and seconds to fit and predict."""
    base, surroundings, ensemble = BASES[name]
    X = NeighbourFeatures().fit_transform(data.X, graph=data.graph) if surroundings else data.X
    split = random_split(data.graph.n_nodes, seed)
    begin = time.perf_counter()
    model = GraphRegressor(base, ensemble=ensemble, random_state=seed).fit(X, split.known(data.y), graph=data.graph)
    truth = np.full_like(data.y, np.nan)
    truth[split.test] = data.y[split.test]
    return model.score(X, truth), time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--bases", default=";".join(BASES), help="separated by semicolons")
    arguments = parser.parse_args()
    sets = arguments.data.split(",")
    print("| base | " + " | ".join(sets) + " | mean | seconds |\n|" + "---|" * (len(sets) + 3))
    loaded = {name: DATA[name]() for name in sets}
    for base in arguments.bases.split(";"):
        found = np.array([[score(base, loaded[d], seed) for seed in range(arguments.seeds)] for d in sets])
        means, seconds = found[..., 0].mean(axis=1), found[..., 1].mean()
        print(f"| {base} | " + " | ".join(f"{m:.3f}" for m in means) + f" | {means.mean():.3f} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
