"""From two Parquet data sets to predictions of every node, on a cluster.

    prediction at U = base + E[r_U | r_L],    r = y - base

What ``residua fit`` and ``residua predict`` do on one machine, for bases that a cluster can fit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from distributed import Client

from residua.backends.dask.base import DaskRegressor, LinearBase, features_of_block
from residua.backends.dask.graph import DistributedGraph
from residua.backends.dask.model import (
    Found,
    check_labels,
    check_strategy,
    from_cluster,
    neighbour_features,
    without_rows,
)
from residua.backends.dask.output import check_folder, write_parquet
from residua.backends.dask.vectors import Vector
from residua.bases.base import Base, Outcome, Task
from residua.bases.registry import BASES
from residua.field import Conditional, CorrelationFit, Correlator
from residua.field.prediction import Prediction
from residua.intervals import conformal_quantile
from residua.linalg import Lanczos
from residua.validation import check_count, check_share


@dataclass(frozen=True)
class DistributedFit:
    """What was learned, and what it says of every node.

    Attributes
    ----------
    graph : DistributedGraph
        As it was read.
    base : LinearBase or DaskRegressor
        As it was fitted.
    correlation : CorrelationFit
        Of the residuals.
    beta : float
        Overall precision.
    labelled : int
        Labels that it was learned from.
    features : list of str
        Columns that the base looked at.
    width : float
        Of the interval, in standard deviations.
    r2 : float
        At the labels, leave-one-out.
    predictions : dict of str to Vector
        prediction, std, lower, upper, base, correction.
    """

    graph: DistributedGraph = field(repr=False)
    base: LinearBase | DaskRegressor = field(repr=False)
    correlation: CorrelationFit
    beta: float
    labelled: int
    features: list[str]
    width: float
    r2: float
    predictions: dict[str, Vector] = field(repr=False)

    @property
    def alpha(self) -> float:
        return self.correlation.alpha["edge"]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a row for each node, with its id, as a folder of Parquet files."""
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
    client : distributed.Client
        Connected to a scheduler.
    edges, nodes : path or dask DataFrame
        Parquet data sets that every worker can read.
    target : str
        Column of ``nodes`` to predict, empty where unknown.
    features : sequence of str or None
        Columns of ``nodes`` to predict from; by default all columns of numbers.
    output : path or None
        Folder for the predictions, on a file system that all share.
    base : str or object
        "linear", "mean", "zero", or a regressor that learns from dask arrays.
    hops : int
        Average the features over neighbours this far, and add degrees.
    id, source, target_node, weight : str
        Columns of the tables.
    skip_unknown : bool
        Leave out edges to nodes that are not in ``nodes``.
    coverage : float
        Share of nodes that lower to upper should cover.
    draws, logdet, random_state : int, Lanczos, int
        Of variances and log-determinants.
    blocks : int or None
        Row blocks; by default one for each worker.

    Returns
    -------
    DistributedFit
    """
    if output is not None:
        check_folder(output)
    check_share(coverage, "coverage")
    check_count(draws, "draws", 2)
    check_count(hops, "hops", 0)
    strategy = check_strategy(logdet, random_state)
    tables: dict[str, Any] = {"source": source, "target": target_node, "weight": weight, "id": id}
    graph = DistributedGraph.from_parquet(client, edges, nodes, **tables, blocks=blocks, skip_unknown=skip_unknown)
    with graph.cluster.guarded():
        blind = isinstance(base, str) and base in BASES and not BASES[base].features
        names = [] if blind else _feature_names(graph, target, id, features)
        y = graph.vector(target)
        X, columns = _features(client, graph, names, hops)
        regressor: Any
        if isinstance(base, str):
            regressor, residual, predicted = LinearBase("mean" if base == "linear" and X is None else base), None, None
        else:
            regressor, residual, predicted = _cross_fitted(X, columns, y, base, random_state)
        shared = {"base": getattr(regressor, "local", None), "target": target, "strategy": strategy}
        value, predictions = graph.gang(_fit, y, X, residual, predicted, **shared, coverage=coverage, draws=draws)
        local, found, width, r2 = value
        if local is not None:
            regressor.local = local
        found = from_cluster(found, graph, y if residual is None else residual, X, local)
        result = DistributedFit(graph, regressor, found, found.beta, found.n_labelled, names, width, r2, predictions)
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
    """Return features (n, d) and d; empty cells are refused, since filling them is a choice."""
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


def _cross_fitted(
    X: Vector | None, columns: int, y: Vector, base: Any, random_state: int
) -> tuple[DaskRegressor, Vector, Vector]:
    """Fit a regressor on dask arrays; return it, its out-of-fold residuals and its predictions."""
    if X is None:
        raise ValueError("nodes has no column of numbers to predict from; give features, or use base='mean'.")
    given = base if isinstance(base, DaskRegressor) else DaskRegressor(base, random_state=random_state)
    return given, given.fit(X, y, columns), given.predict(X, columns)


class OutOfFold(Base):
    """A base that was fitted elsewhere: its out-of-fold residuals and its predictions at the rows of a block."""

    name = "regressor"

    def __init__(self, residual: np.ndarray, predicted: np.ndarray):
        self.residual, self.predicted = residual, predicted

    def _fit(self, task: Task, correlation: Any) -> Outcome[Any]:
        left = self.residual[task.labelled]
        return Outcome(left, left)

    def predict(self, graph: Any, X: np.ndarray) -> np.ndarray:
        return self.predicted


def _fit(
    graph: Any,
    y: np.ndarray,
    X: np.ndarray | None,
    residual: np.ndarray | None,
    predicted: np.ndarray | None,
    base: Base | None,
    target: str,
    **settings: Any,
) -> Found:
    """Fit a linear base together with the correlation, or the correlation of what another base left, and predict."""
    labelled = check_labels(graph, y, f"nodes, column {target!r}")
    strategy = settings["strategy"]
    task = Task(graph, features_of_block(X, y), y, labelled, folds=2, random_state=strategy.random_state)
    local = base or OutOfFold(cast(np.ndarray, residual), cast(np.ndarray, predicted))
    outcome = local.fit(task, Correlator(graph, labelled, strategy))
    (width, r2), columns = _predictions(task, local, outcome, **settings)
    return (base, without_rows(cast(CorrelationFit, outcome.correlation)), width, r2), columns


def _predictions(
    task: Task, base: Base, outcome: Outcome[Any], strategy: Lanczos, coverage: float, draws: int
) -> tuple[tuple[float, float], dict[str, np.ndarray]]:
    """Return the width of the interval, R2 at labels left out, and columns for every node."""
    y, known, rows = task.y, task.labelled, task.graph.rows
    fit = cast(CorrelationFit, outcome.correlation)
    given: dict[str, Any] = {"draws": draws, "random_state": strategy.random_state, "design": base.design(task.X)}
    conditional = Conditional(task.graph, known, fit.alpha, fit.beta, **given)
    residual = np.full(len(y), np.nan)
    residual[known] = outcome.residual
    n, total, squares = rows.sum(np.array([known.sum(), y[known].sum(), (outcome.base_out_of_fold_error**2).sum()]))
    predicted = base.predict(task.graph, task.X)
    found = Prediction(task.graph, y, predicted, residual, conditional, squares / n)
    width = conformal_quantile(found.scores, coverage, rows)
    left, spread = rows.sum(np.array([(found.leave_one_out.error**2).sum(), ((y[known] - total / n) ** 2).sum()]))
    mean, margin = found.mean, width * found.std
    columns = {"prediction": mean, "std": found.std, "lower": mean - margin, "upper": mean + margin}
    r2 = float(1 - left / max(spread, np.finfo(float).tiny))
    return (width, r2), {**columns, "base": predicted, "correction": mean - predicted}


def _count_empty(X: np.ndarray) -> np.ndarray:
    return np.isnan(X).sum(axis=0)
