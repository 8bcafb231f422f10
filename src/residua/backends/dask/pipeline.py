"""From two Parquet data sets to predictions of every node, on a cluster.

    prediction at U = base + E[r_U | r_L],    r = y - base

What ``residua fit`` and ``residua predict`` do on one machine, for bases that a cluster can fit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Client
from scipy.special import ndtri

from residua.backends.dask.base import DaskRegressor, LinearBase
from residua.backends.dask.conditional import DistributedConditional
from residua.backends.dask.features import neighbour_features
from residua.backends.dask.graph import DistributedGraph
from residua.backends.dask.likelihood import EDGE, check_labels, check_strategy, fit_design
from residua.backends.dask.output import check_folder, write_parquet
from residua.backends.dask.quantile import kth_smallest
from residua.backends.dask.vectors import Vector, count_known
from residua.field import CorrelationFit
from residua.linalg import Lanczos
from residua.validation import check_count, check_share


@dataclass(frozen=True)
class DistributedFit:
    """What was learned, and what it says of every node.

    ``predictions`` are Vectors by name: prediction, std, lower, upper, base, correction.
    """

    graph: DistributedGraph = field(repr=False)
    base: LinearBase | DaskRegressor = field(repr=False)
    correlation: CorrelationFit
    beta: float  # corrected for the coefficients of a linear base
    labelled: int
    features: list[str]
    width: float  # of the interval, in standard deviations
    r2: float  # at labels left out one by one
    predictions: dict[str, Vector] = field(repr=False)

    @property
    def alpha(self) -> float:
        return self.correlation.alpha[EDGE[0]]

    def write(self, path: str | os.PathLike[str]) -> None:
        """A row for each node, with its id, as a folder of Parquet files."""
        with self.graph.cluster.guarded():
            write_parquet({"id": self.graph.ids, **self.predictions}, path)


def fit(
    client: Client,
    *,
    edges: Any,
    nodes: Any,
    target: str,
    features: Sequence[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    base: str | Any = "linear",
    hops: int = 0,
    id: str = "id",
    source: str = "source",
    target_node: str = "target",
    weight: str | None = None,
    skip_unknown: bool = False,
    coverage: float = 0.9,
    draws: int = 64,
    logdet: Lanczos | None = None,
    random_state: int = 0,
    blocks: int | None = None,
) -> DistributedFit:
    """Learn from a node table and an edge table, and predict every node.

    Parameters
    ----------
    client : a connected ``distributed.Client``
    edges, nodes : Parquet data sets that every worker can read, or dask DataFrames
    target : column of ``nodes`` to predict, empty where unknown
    features : columns of ``nodes`` to predict from; by default all columns of numbers
    output : folder for the predictions, on a file system that all share
    base : "linear", "mean", "zero", or a regressor that learns from dask arrays
    hops : average the features over neighbours this far, and add degrees
    id, source, target_node, weight : columns of the tables
    skip_unknown : leave out edges to nodes that are not in ``nodes``
    coverage : share of nodes that lower and upper should hold
    draws, logdet, random_state : of variances and log-determinants
    blocks : row blocks; by default one for each worker
    """
    if output is not None:
        check_folder(output)
    check_share(coverage, "coverage")
    check_count(draws, "draws", 2)
    check_count(hops, "hops", 0)
    strategy = check_strategy(logdet, random_state)
    graph = DistributedGraph.from_parquet(
        client,
        edges,
        nodes,
        source=source,
        target=target_node,
        weight=weight,
        id=id,
        blocks=blocks,
        skip_unknown=skip_unknown,
    )
    with graph.cluster.guarded():
        names = [] if base in ("mean", "zero") else _feature_names(graph, target, id, features)
        y = graph.vector(target)
        check_labels(y, f"nodes, column {target!r}")
        X, width = _features(client, graph, names, hops)
        regressor, residual, predicted, design, found = _fit_base(graph, X, width, y, base, strategy)
        free = len(found.coefficients)
        beta = found.beta * max(1 - free / found.n_labelled, 1 / found.n_labelled)
        conditional = DistributedConditional(
            graph, residual, found.alpha[EDGE[0]], beta, design=design, draws=draws, random_state=random_state
        )
        predictions, quantile, r2 = _predictions(conditional, y, predicted, coverage)
        result = DistributedFit(graph, regressor, found, beta, found.n_labelled, names, quantile, r2, predictions)
    if output is not None:
        result.write(output)
    return result


def _feature_names(graph: DistributedGraph, target: str, id: str, features: Sequence[str] | None) -> list[str]:
    assert graph.table is not None
    if features is not None:
        wrong = [name for name in features if name in (target, id)]
        if wrong:
            raise ValueError(f"features names {wrong[0]!r}, which is the id or the target; leave it out.")
        return list(features)
    return [name for name in graph.table.number_columns() if name != target]


def _features(client: Client, graph: DistributedGraph, names: list[str], hops: int) -> tuple[Vector | None, int]:
    """Features (n, d) and d; empty cells are refused, since filling them is a choice."""
    if not names:
        return None, 0
    X = graph.columns(names)
    empty = X.total(_count_empty)
    if empty.any():
        worst = int(np.argmax(empty))
        raise ValueError(
            f"nodes, column {names[worst]!r} has {int(empty[worst])} empty cells; fill them first, or leave the column "
            "out of features."
        )
    if not hops:
        return X, len(names)
    return neighbour_features(client, X, graph, hops=hops), len(names) * (hops + 1) + 2


def _fit_base(
    graph: DistributedGraph, X: Vector | None, width: int, y: Vector, base: Any, strategy: Lanczos
) -> tuple[Any, Vector, Vector, Vector | None, CorrelationFit]:
    """The base, its residuals and predictions, its design if it is linear, and the correlation."""
    if isinstance(base, str):
        linear = LinearBase("mean" if base == "linear" and X is None else base).standardise(X, y)
        design = linear.design(X, y)
        found = fit_design(graph, y, design, strategy)
        linear.coefficients = found.coefficients
        predicted = linear.predict(X, y)
        return linear, y.map(np.subtract, predicted), predicted, design, found
    if X is None:
        raise ValueError("nodes has no column of numbers to predict from; give features, or use base='mean'.")
    given = base if isinstance(base, DaskRegressor) else DaskRegressor(base, random_state=strategy.random_state)
    residual = given.fit(X, y, width)
    found = fit_design(graph, residual, None, strategy)
    return given, residual, given.predict(X, width), None, found


def _predictions(
    conditional: DistributedConditional, y: Vector, base: Vector, coverage: float
) -> tuple[dict[str, Vector], float, float]:
    """Columns for every node, the width of the interval, and R2 at labels left out."""
    mean = base.map(_corrected, conditional.mean(), y)
    std = conditional.variance()[0].map(np.sqrt)
    error, variance = conditional.leave_one_out()
    scores = error.map(_score, variance)
    count = int(scores.total(count_known))
    width = _conformal(scores, count, coverage)
    total = y.total(_power_sums)
    r2 = 1 - float(error.total(_sum_squares)) / max(float(total[2] - total[1] ** 2 / total[0]), np.finfo(float).tiny)
    ends = {name: mean.map(_moved, std, [sign * width] * len(y.parts)) for name, sign in (("lower", -1), ("upper", 1))}
    correction = mean.map(np.subtract, base)
    return {"prediction": mean, "std": std, **ends, "base": base, "correction": correction}, width, r2


def _conformal(scores: Vector, count: int, coverage: float) -> float:
    """The width that covers this share of labels, as ``residua.intervals.conformal_quantile``."""
    rank = int(np.ceil((count + 1) * coverage))
    widest = kth_smallest(scores, min(rank, count))
    return widest if rank <= count else max(widest, float(ndtri((1 + coverage) / 2)))


def _count_empty(X: np.ndarray) -> np.ndarray:
    return np.isnan(X).sum(axis=0)


def _corrected(base: np.ndarray, extended: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(y), base + extended, y)


def _score(error: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Absolute errors in standard deviations; of a label that nothing else speaks of, none."""
    return np.where(np.isfinite(variance), np.abs(error) / np.sqrt(variance), np.nan)


def _power_sums(y: np.ndarray) -> np.ndarray:
    there = y[~np.isnan(y)]
    return np.array([len(there), there.sum(), there @ there])


def _sum_squares(error: np.ndarray) -> float:
    return float(np.nansum(error**2))


def _moved(mean: np.ndarray, std: np.ndarray, by: float) -> np.ndarray:
    return mean + by * std
