"""From two Parquet data sets to predictions of every node, on a cluster.

    prediction at U = base + E[r_U | r_L],    r = y - base

What ``residua fit`` and ``residua predict`` do on one machine, for bases that a cluster can fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from distributed import Client

from residua.atomic import PathLike
from residua.backends.dask import model
from residua.backends.dask.base import DaskRegressor, FittedElsewhere, LinearBase, no_features
from residua.backends.dask.graph import DistributedGraph
from residua.backends.dask.model import Found
from residua.backends.dask.output import check_folder, write_parquet
from residua.backends.dask.vectors import Vector
from residua.bases.base import Base, Task
from residua.bases.registry import BASES, LINEAR
from residua.diagnosis import r2_of_errors
from residua.field import CorrelationFit, Correlator
from residua.field.fitted import FittedField
from residua.intervals import jackknife_quantile
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

    def write(self, path: PathLike) -> None:
        """Write a row for each node, with its id, as a folder of Parquet files."""
        write_parquet({"id": self.graph.ids, **self.predictions}, path)


def fit(
    client: Client,
    *,
    edges: Any,
    nodes: Any,
    target: str,
    features: Sequence[str] | None = None,
    output: PathLike | None = None,
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
        "linear", "splines", "mean", "zero", or a regressor that learns from dask arrays.
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
    strategy = model.check_strategy(logdet, random_state)
    names: Any = {"id": id, "source": source, "target": target_node, "weight": weight}
    graph = DistributedGraph.from_parquet(client, edges, nodes, **names, blocks=blocks, skip_unknown=skip_unknown)
    with graph.cluster.guarded():
        blind = isinstance(base, str) and base in BASES and not BASES[base].features
        chosen = [] if blind else _feature_names(graph, target, id, features)
        y = graph.vector(target)
        X, columns = _features(client, graph, chosen, hops)
        given: Any
        elsewhere = []  # residuals and predictions of a base that is not fitted with the correlation
        if isinstance(base, str):
            given = LinearBase("mean" if base in LINEAR and not blind and not columns else base)
        elif columns:
            given = base if isinstance(base, DaskRegressor) else DaskRegressor(base, random_state=random_state)
            elsewhere = [given.fit(X, y, columns), given.predict(X, columns)]
        else:
            raise ValueError("nodes has no column of numbers to predict from; give features, or use base='mean'.")
        member = _member(None if elsewhere else given.local, target, strategy, coverage, draws)
        (local, found, width, r2), predictions = graph.gang(member, y, X, *elsewhere)
        if local is not None:
            given.local = local
        observed = model.ObservedOnCluster(found.source, graph, elsewhere[0] if elsewhere else y, X, local)
        found = replace(found, source=observed)
        result = DistributedFit(graph, given, found, found.beta, found.n_labelled, chosen, width, r2, predictions)
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


def _features(client: Client, graph: DistributedGraph, names: list[str], hops: int) -> tuple[Vector, int]:
    """Return features (n, d) and d; empty cells are refused, since filling them is a choice."""
    if not names:
        return no_features(graph.ids), 0
    X = graph.columns(names)
    empty = X.total(lambda X: np.isnan(X).sum(axis=0))
    if empty.any():
        worst = int(np.argmax(empty))
        raise ValueError(
            f"nodes, column {names[worst]!r} has {empty[worst]} empty cells; fill them, or leave it out of features."
        )
    if not hops:
        return X, len(names)
    return model.neighbour_features(client, X, graph, hops=hops), len(names) * (hops + 1) + 2


def _member(base: Base | None, target: str, strategy: Lanczos, coverage: float, draws: int) -> Callable[..., Found]:
    """Return what a member does: fit a linear base with the correlation, or that of what another left, and predict."""

    def member(graph: Any, y: np.ndarray, X: np.ndarray, *elsewhere: np.ndarray) -> Found:
        labelled = model.check_labels(graph, y, f"nodes, column {target!r}")
        correlator = Correlator(graph, labelled, strategy)
        own = FittedElsewhere(*elsewhere) if base is None else base
        seed = strategy.random_state
        outcome = own.fit(Task(graph, X, y, labelled, folds=2, random_state=seed), correlator)
        fit = cast(CorrelationFit, outcome.correlation)
        learned = fit.alpha, fit.alpha_stderr, fit.beta
        found = FittedField(graph, X, y, own, outcome, *learned, random_state=seed, draws=draws).prediction
        width = jackknife_quantile(found.scores, coverage, graph.rows)
        r2 = r2_of_errors(y[labelled], found.out_of_sample_error, graph.rows)
        return (base, model.without_rows(fit), width, r2), found.columns(width)

    return member
