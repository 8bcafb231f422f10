"""Graphs and tables that people have: maps with alpha near 1, wide tables, several edge types, few labels.

A process for each case, one thread; CPU seconds of a second ``fit``, when every kernel is compiled or loaded.
"""

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import residua
from benchmarks.common import watts_strogatz

DATA = Path(os.environ.get("RESIDUA_DATA") or Path(__file__).parents[2] / "shared" / "data")  # else beside this tree
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Case(NamedTuple):
    """What a model is fitted to: a graph, features (n, d) and labels (n,), NaN where unknown."""

    graph: residua.Graph
    X: np.ndarray
    y: np.ndarray


def nearest(places: np.ndarray, k: int = 5) -> residua.Graph:
    """Join each place (n, 2) to its k nearest."""
    from scipy.spatial import cKDTree

    _, near = cKDTree(places).query(places, k + 1)
    pairs = np.sort(np.column_stack([np.repeat(np.arange(len(places)), k), near[:, 1:].ravel()]), axis=1)
    return joined(*np.unique(pairs, axis=0).T, len(places))


def joined(source: np.ndarray, target: np.ndarray, n: int, kind: np.ndarray | None = None) -> residua.Graph:
    """Nodes 0 to n-1, joined in pairs."""
    return residua.Graph.from_edges(source, target, type=kind, nodes=np.arange(n))


def hidden(y: np.ndarray, share: float = 0.4, seed: int = 0) -> np.ndarray:
    """Labels y with a share of them unknown."""
    return np.where(np.random.default_rng(seed).random(len(y)) < share, np.nan, y)


def smooth(places: np.ndarray, rng: np.random.Generator, waves: int = 60, roughest: float = 40.0) -> np.ndarray:
    """A random smooth function of places (n, 2) in the unit square, of variance 1."""
    frequency = rng.standard_normal((2, waves)) * rng.uniform(2.0, roughest, waves)
    return np.cos(places @ frequency + rng.uniform(0, 2 * np.pi, waves)).sum(axis=1) * np.sqrt(2 / waves)


def california() -> Case:
    """California housing where a data folder or scikit-learn has it, else a look-alike of 20,640 places."""
    folder = DATA / "california"
    if folder.is_dir():
        nodes, edges = (np.loadtxt(folder / f"{name}.csv", delimiter=",", skiprows=1) for name in ("nodes", "edges"))
        return Case(joined(*edges.T.astype(int), len(nodes)), nodes[:, 1:-1], hidden(nodes[:, -1]))
    try:
        from sklearn.datasets import fetch_california_housing

        data = fetch_california_housing(download_if_missing=False)
        places = data.data[:, 6:] + 1e-4 * np.random.default_rng(0).standard_normal((len(data.data), 2))
        return Case(nearest(places), data.data[:, :6], hidden(data.target))
    except OSError:
        rng = np.random.default_rng(0)
        towns = rng.random((400, 2))
        places = towns[rng.integers(0, 400, 20_640)] + 0.02 * rng.standard_normal((20_640, 2))
        X = rng.standard_normal((20_640, 6))
        return Case(nearest(places), X, hidden(X[:, 0] + 2 * smooth(places, rng) + 0.4 * rng.standard_normal(20_640)))


def wide(features: int, n: int = 100_000) -> Case:
    """Nearest neighbours, a smooth field and noise, and so many features."""
    rng = np.random.default_rng(1)
    places, X = rng.random((n, 2)), rng.standard_normal((n, features))
    y = X @ rng.standard_normal(features) + smooth(places, rng) + 0.5 * rng.standard_normal(n)
    return Case(nearest(places), X, hidden(y))


def counties() -> Case:
    """Turnout of 3,107 counties, whose edges are dealt to two types at random."""
    data = residua.datasets.load_elect80()
    return Case(dealt(data.graph, 2), data.X.to_numpy(), hidden(data.y))


def dealt(graph: residua.Graph, types: int, seed: int = 0) -> residua.Graph:
    """The same edges, dealt to so many types at random."""
    upper = np.array(np.nonzero(np.triu(graph.operators["edge"].to_scipy().toarray())))
    kind = np.random.default_rng(seed).integers(0, types, upper.shape[1])
    return joined(*upper, graph.n_nodes, kind)


def path() -> Case:
    """A path of 100,000 nodes with three labels."""
    n = 100_000
    y = np.full(n, np.nan)
    y[[0, n // 2, n - 1]] = 0.0, 1.0, 3.0
    return Case(joined(np.arange(n - 1), np.arange(1, n), n), np.empty((n, 0)), y)


def many_types(types: int = 50) -> Case:
    """300 nodes whose edges are dealt to so many types."""
    rng = np.random.default_rng(2)
    graph = dealt(residua.Graph.from_edges(*watts_strogatz(300)), types)
    X = rng.standard_normal((300, 3))
    return Case(graph, X, hidden(X[:, 0] + rng.standard_normal(300)))


def many_features() -> Case:
    """1,000 features and 1,990 labels on 2,000 nodes."""
    rng = np.random.default_rng(3)
    n, d = 2_000, 1_000
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) / 30 + rng.standard_normal(n)
    y[::200] = np.nan
    return Case(joined(*watts_strogatz(n), n), X, y)


CASES: dict[str, tuple[Callable[[], Case], float]] = {  # and the CPU seconds that a fit may take
    "California housing, 6 features": (california, 1.5),
    "100,000 nodes, 10 features": (lambda: wide(10), 1.5),
    "100,000 nodes, 40 features": (lambda: wide(40), 4.0),
    "100,000 nodes, 100 features": (lambda: wide(100), 10.0),
    "counties in two edge types": (counties, 2.0),
    "path of 100,000 nodes, 3 labels": (path, 3.0),
    "300 nodes, 50 edge types": (many_types, 3.0),
    "1,000 features, 1,990 labels": (many_features, 3.0),
}


def measure(name: str) -> str:
    """Fit one case; its CPU seconds, alphas and how they were computed, in a line."""
    warnings.simplefilter("ignore")
    case = CASES[name][0]()
    _fit(case)
    start = time.process_time()
    fit = _fit(case)
    seconds = time.process_time() - start
    alphas = list(fit.alpha.values())[:3]
    return f"{seconds:.2f}\talpha {', '.join(f'{a:.5g}' for a in alphas)}; {'; '.join(fit.methods.values())}"


def _fit(case: Case) -> residua.CorrelationFit:
    base = "linear" if case.X.shape[1] else "mean"
    return residua.GraphRegressor(base=base).fit(case.X, case.y, graph=case.graph).correlation_


def run(names: list[str] | None = None, console: Console | None = None) -> None:
    console = console or Console()
    table = Table("CPU seconds of fit, one thread", "took", "may take", "how")
    for name in names or CASES:
        command = [sys.executable, "-m", "benchmarks.people", "--case", name]
        told = subprocess.run(
            command, env=os.environ | dict.fromkeys(THREADS, "1"), capture_output=True, text=True, check=True
        )
        seconds, how = told.stdout.strip().split("\t")
        table.add_row(name, seconds, f"{CASES[name][1]:g}", how)
    console.rule("people's graphs")
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=list(CASES), help="only this one, in this process")
    chosen = parser.parse_args().case
    print(measure(chosen)) if chosen else run()
