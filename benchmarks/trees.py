"""One tree on 48,000 rows and ten columns, by our kernel and by scikit-learn's public interface; or a whole fit.

    python -m benchmarks.trees [--nodes 100000]

``--nodes`` fits base "trees" on a small world of that many nodes (degree 10, ten features, 60 % of the labels known),
and tells CPU seconds of fit and of means, rounds, R2 at the unknown labels, and the peak of memory.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from benchmarks.common import best_of_each, correlated_residuals, peak_gigabytes, watts_strogatz
from residua import Graph, GraphRegressor
from residua.bases.trees.bins import Bins
from residua.bases.trees.kernels import find_leaves, grow

ROWS, COLUMNS, LEAVES, LEAST = 48_000, 10, 8, 10


def whole_fit(nodes: int) -> None:
    """Fit joint trees, and print what it took."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*watts_strogatz(nodes))
    X = rng.standard_normal((nodes, COLUMNS))
    shared = correlated_residuals(graph, 0.95, 1.0, 1.0)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + shared
    known = rng.random(nodes) < 0.6
    begin = time.process_time()
    model = GraphRegressor("trees").fit(X, np.where(known, y, np.nan), graph=graph)
    fitted = time.process_time()
    mean = model.predict()
    predicted = time.process_time()
    r2 = 1 - np.mean((y - mean)[~known] ** 2) / np.var(y[~known])
    rounds = [int(part["round"].max()) for _, part in model.history_.groupby("linear")]
    seconds = f"{fitted - begin:.1f} CPU s to fit, {predicted - fitted:.1f} for means"
    print(f"{nodes:,} nodes: {seconds}, rounds {rounds}, R2 {r2:.3f}, peak {peak_gigabytes():.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int)
    nodes = parser.parse_args().nodes
    if nodes is not None:
        whole_fit(1_000)  # compiles
        whole_fit(nodes)
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    g = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + rng.standard_normal(ROWS)
    codes = Bins.of(X).codes(X)
    binned = codes.astype(np.float32)
    one = {"max_leaf_nodes": LEAVES, "min_samples_leaf": LEAST}
    boosting = HistGradientBoostingRegressor(learning_rate=1.0, max_iter=1, early_stopping=False, **one)
    tree, leaf = DecisionTreeRegressor(**one), np.empty(ROWS, np.int64)

    def ours() -> None:
        settings = np.arange(COLUMNS), np.zeros(COLUMNS, bool), LEAVES, float(LEAST), 1.0
        find_leaves(codes, *grow(codes, np.arange(ROWS), g, *settings), leaf)

    works = {
        "our kernel": ours,
        "HistGradientBoostingRegressor, one iteration": lambda: boosting.fit(binned, g).predict(binned),
        "DecisionTreeRegressor on codes": lambda: tree.fit(binned, g).apply(binned),
    }
    for work in works.values():
        work()
    for name, seconds in zip(works, best_of_each(*works.values(), rounds=3), strict=True):
        print(f"{name}: {1000 * seconds:.1f} ms")


if __name__ == "__main__":
    main()
