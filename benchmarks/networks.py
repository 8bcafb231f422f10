"""Networks at a million nodes: a GNN in full batches, and the base "hops" in mini-batches.

    python -m benchmarks.networks [nodes]

The GNN averages its input over neighbours once, since that does not change in training; "hops" averages features
over 0, 1 and 2 hops once and then looks at single rows, so its memory is that of a batch. Each runs in a process of
its own, so that memory is its own. Truth: a curved function of a node's features and of its neighbours' mean, and
noise; 60 % of the nodes are labelled, the score is of the others.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

import residua
from benchmarks import records
from benchmarks.common import peak_gigabytes, watts_strogatz
from residua.metrics import r2
from residua.reproduction.provenance import footer

NAME = "gnn-million"
FEATURES, NOISE, LABELLED = 8, 0.3, 0.6
EPOCHS = {"sage": (2, 40), "hops": (1, 6)}  # a short and a long training: their difference is free of the set-up
WIDTHS = (64, 32)


def draw(n: int) -> tuple[residua.Graph, np.ndarray, np.ndarray, np.ndarray]:
    """Graph, features, truth, and labels with NaN where unknown."""
    rng = np.random.default_rng(0)
    graph = residua.Graph.from_edges(*watts_strogatz(n), nodes=np.arange(n))
    X = rng.standard_normal((n, FEATURES))
    around = residua.NeighbourFeatures(hops=1, degree=False).fit_transform(X, graph=graph)[:, FEATURES:]
    truth = np.tanh(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 2 * np.sin(2 * around[:, 3]) + 3 * around[:, 4]
    seen = truth + NOISE * rng.standard_normal(n)
    return graph, X, truth, np.where(rng.random(n) < LABELLED, seen, np.nan)


def fit(kind: str, epochs: int, graph: residua.Graph, X: np.ndarray, _: np.ndarray, y: np.ndarray) -> Any:
    base = residua.Network(kind, widths=WIDTHS, epochs=epochs)
    return residua.GraphRegressor(base, correlation=None).fit(X, y, graph=graph)


def measure(kind: str, n: int) -> dict:
    """Seconds an epoch, peak memory and score of one kind."""
    fit(kind, 1, *draw(2_000))  # load and compile, outside the clock
    graph, X, truth, y = draw(n)
    unknown, seconds = np.isnan(y), []
    before = peak_gigabytes()
    for epochs in EPOCHS[kind]:
        start = time.perf_counter(), time.process_time()
        model = fit(kind, epochs, graph, X, truth, y)
        seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, used = np.diff(seconds, axis=0)[0] / np.diff(EPOCHS[kind])[0]
    return {
        "kind": kind,
        "epochs": EPOCHS[kind][1],
        "seconds_an_epoch": wall,
        "processor_seconds_an_epoch": used,
        "seconds": seconds[-1][0],
        "gigabytes_of_data": before,
        "peak": peak_gigabytes(),
        "r2": r2(truth[unknown], model.predict()[unknown]),
        "load": os.getloadavg()[1],
    }


def run(n: int) -> None:
    results = []
    for kind in EPOCHS:
        command = [sys.executable, "-m", "benchmarks.networks", kind, str(n)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    about = records.about(f"python -m benchmarks.networks {n}")
    record = {"about": about, "nodes": n, "results": results}
    records.write(NAME, record, report(record))
    print(report(record))


def report(record: dict) -> str:
    shown = {"seconds_an_epoch": 2, "processor_seconds_an_epoch": 2, "seconds": 1, "r2": 3}
    shown |= {"gigabytes_of_data": 1, "peak": 1, "load": 1}
    rows = [
        [found["kind"], str(found["epochs"]), *(f"{found[name]:.{digits}f}" for name, digits in shown.items())]
        for found in record["results"]
    ]
    header = ["base", "epochs", "seconds an epoch", "processor seconds an epoch", "whole fit (s)", "R2"]
    header += ["memory before the fit (GB)", "peak memory (GB)", "load"]
    return (
        f"# Networks at {record['nodes']:,} nodes\n\nWatts-Strogatz, mean degree 10, {FEATURES} features, widths "
        f'{WIDTHS}. "sage" in full batches, its first average over neighbours computed once; "hops" in mini-batches. '
        "A load above the number of threads says that other programs shared the processors.\n\n"
        f"{records.table(header, rows)}\n{footer(record['about'])}\n"
    )


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in EPOCHS:
        warnings.simplefilter("ignore", UserWarning)
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        run(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
