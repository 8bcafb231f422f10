"""One tree on 48,000 rows and ten columns, by our kernel and by scikit-learn's public interface.

python -m benchmarks.trees
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from benchmarks.common import best_of_each
from residua.bases.trees.bins import Bins
from residua.bases.trees.kernels import find_leaves, grow

ROWS, COLUMNS, LEAVES, LEAST = 48_000, 10, 8, 10


def main() -> None:
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
