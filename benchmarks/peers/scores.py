"""What predictions with standard deviations are worth at test nodes, and the maps they are made for."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtri

from benchmarks.peers.record import Cell
from residua import Graph, metrics
from residua.datasets import Dataset, load_county, load_elect80

COVERAGE = 0.9


def scores(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """R2, NLL and CRPS, and how often a normal interval of 90 % holds."""
    width = ndtri((1 + COVERAGE) / 2) * std
    return {
        "R2": metrics.r2(y, mean),
        "NLL": metrics.gaussian_nll(y, mean, std),
        "CRPS": metrics.gaussian_crps(y, mean, std),
        "90 % holds": metrics.coverage(y, mean - width, mean + width),
    }


def averaged(found: Iterable[dict[str, float]]) -> dict[str, Cell]:
    """The mean of each column over splits; of seconds the median."""
    found = list(found)
    middle = {column: np.median if column == "seconds" else np.mean for column in found[0]}
    return {column: float(middle[column]([row[column] for row in found])) for column in found[0]}


def maps(targets: tuple[str, ...] = ("election", "income")) -> list[Dataset]:
    """The packaged county map and, where RESIDUA_DATA names their folder, two of the paper's."""
    found = [load_elect80()]
    if os.environ.get("RESIDUA_DATA"):
        found += [located(load_county(target)) for target in targets]
    return found


def located(data: Dataset) -> Dataset:
    """The part of a map whose nodes have coordinates."""
    here = data.nodes["longitude"].notna().to_numpy()
    A = data.graph.adjacency()[here][:, here]
    graph = Graph.from_scipy(A, nodes=data.graph.nodes[here])
    return Dataset(graph, data.X[here], data.y[here], data.nodes[here], data.name, data.notes, data.source)


def standardised(values: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1 at the training nodes, which alone are looked at."""
    return (values - values[train].mean(axis=0)) / values[train].std(axis=0)
