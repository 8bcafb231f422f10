"""The paper's ten data sets under short names, one more beside them, and how predictions of each are scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from residua import metrics
from residua.datasets import (
    Dataset,
    load_county,
    load_elect80,
    load_transport,
    load_twitch,
    simulate_contacts,
    simulate_ising,
)
from residua.reproduction.julia import Julia
from residua.reproduction.metropolis import authors_ising
from residua.reproduction.registry import Options, chosen
from residua.reproduction.splits import Split, random_split

COUPLING = {"ising+": 0.35, "ising-": -0.35}
COUNTY = ("income", "education", "unemployment", "election")
CITIES = ("anaheim", "chicago")
SETS = (*COUPLING, *COUNTY, *CITIES, "twitch", "contacts-simulated")
ELEVEN = (*SETS, "elect80")  # a map of counties of 1980, of a paper on spatial autoregression
SIGNS = (*COUPLING, "contacts-simulated")  # scored by the share of right signs, the others by R2
GENERATED = SIGNS  # these need no files
ROUNDING = (
    1e-9  # what is nearer to zero is zero, and counts as positive: LP has such ties, and scores as in the logs so
)


def asked(options: Options, among: tuple[str, ...] = SETS) -> tuple[str, ...]:
    """The data sets that a table is to have; a smoke test, those that need no files."""
    return GENERATED if options.quick and options.datasets is None else chosen(options.datasets, among, "datasets")


def load(name: str, seed: int, quick: bool = False) -> Dataset:
    """Load a data set of ``ELEVEN``; Ising with spins of our own, new for every seed: ``draw`` has the authors'."""
    return simulate_ising(_side(quick), COUPLING[name], random_state=seed) if name in COUPLING else _fixed(name)


def draw(name: str, seed: int, quick: bool = False) -> tuple[Dataset, Split]:
    """Load a data set and its split: for seeds 1 to 10 the authors' own, nodes and spins."""
    random = Julia(seed)
    data = authors_ising(random, _side(quick), COUPLING[name]) if name in COUPLING else _fixed(name)
    return data, random_split(len(data.y), random)


def _side(quick: bool) -> int:
    return 10 if quick else 35


@lru_cache(maxsize=2)
def _fixed(name: str) -> Dataset:
    makers: dict[str, Callable[[], Dataset]] = {
        **{target: lambda: load_county(name) for target in COUNTY},
        **{city: lambda: load_transport(name) for city in CITIES},
        "twitch": load_twitch,
        "contacts-simulated": simulate_contacts,
        "elect80": load_elect80,
    }
    return makers[name]()


@contextmanager
def no_word_of_islands() -> Iterator[None]:
    """Silence the warning that a few counties have no neighbour, hence no label to propagate from."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*components have no label")
        yield


def score(name: str, y: np.ndarray, prediction: np.ndarray) -> float:
    """Score predictions by the metric of a data set: R2, or the share of right signs."""
    if name in SIGNS:
        return metrics.sign_accuracy(y, prediction + ROUNDING)
    return metrics.r2(y, prediction)
