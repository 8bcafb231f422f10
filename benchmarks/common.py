"""Graphs and clocks shared by the benchmarks."""

import gc
import resource
import time
from collections.abc import Callable

import numpy as np

import residua
from residua.gaussian.precision import unit_precision
from residua.numerics import Solver
from residua.numerics.sampling import precision_noise


def watts_strogatz(n: int, degree: int = 10, rewired: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a ring of n nodes, each joined to its nearest ``degree``, a share of the far ends drawn anew."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(n), degree // 2)
    target = (source + np.tile(np.arange(1, degree // 2 + 1), n)) % n
    moved = rng.random(len(target)) < rewired
    target[moved] = rng.integers(0, n, moved.sum())
    keep = source != target
    source, target = source[keep], target[keep]
    _, first = np.unique(np.minimum(source, target) * n + np.maximum(source, target), return_index=True)
    return source[first], target[first]


def correlated_residuals(graph: residua.Graph, alpha: float, beta: float, labelled: float, seed: int = 0) -> np.ndarray:
    """A draw from the model, NaN where unlabelled."""
    rng = np.random.default_rng(seed)
    precision = unit_precision(list(graph.operators.values()), np.array([alpha]))
    noise = precision_noise(precision, 1, rng)
    residual = Solver().solve(precision, noise).X[:, 0] / np.sqrt(beta)
    residual[rng.random(graph.n_nodes) >= labelled] = np.nan
    return residual


def best_seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_gigabytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def warm_up() -> None:
    """Compile (or load) every kernel once, outside the clock."""
    graph = residua.Graph.from_edges(*watts_strogatz(5_000))
    residual = correlated_residuals(graph, 0.9, 1.0, 0.6)
    residua.fit_correlation(residual, graph, logdet=residua.Lanczos())
    predict_mean(residual, graph, 0.9)


def predict_mean(residual: np.ndarray, graph: residua.Graph, alpha: float) -> np.ndarray:
    """The conditional mean at every node."""
    from residua.gaussian import Conditional

    return Conditional(graph, ~np.isnan(residual), alpha).extend(residual)
