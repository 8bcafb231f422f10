"""Graphs and clocks shared by the benchmarks."""

import resource
from collections.abc import Callable

import numpy as np

import residua
from residua.reproduction.figures import small_world
from residua.reproduction.figures.clock import best_seconds
from residua.reproduction.figures.small_world import watts_strogatz_edges as watts_strogatz

__all__ = [
    "best_of_each",
    "best_seconds",
    "correlated_residuals",
    "peak_gigabytes",
    "predict_mean",
    "warm_up",
    "watts_strogatz",
]


def best_of_each(*works: Callable[[], object], rounds: int = 7) -> list[float]:
    """Least seconds of each work, done in turn, so that whatever else the machine does meets them all."""
    seconds = [[best_seconds(work, repeats=1) for work in works] for _ in range(rounds)]
    return [min(column) for column in zip(*seconds, strict=True)]


def correlated_residuals(graph: residua.Graph, alpha: float, beta: float, labelled: float, seed: int = 0) -> np.ndarray:
    """A draw from the model, NaN where unlabelled."""
    return small_world.correlated_residuals(graph, alpha, labelled, seed) / np.sqrt(beta)


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
    from residua.field import Conditional

    return Conditional(graph, ~np.isnan(residual), alpha).conditional_mean(residual)
