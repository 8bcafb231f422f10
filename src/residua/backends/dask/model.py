"""The model of one machine, run on the rows of each block: what a member of a gang does, and how it is asked to.

Nothing here is mathematics: members call ``residua.field`` and ``residua.bases`` on a ``BlockGraph``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from distributed import Client

from residua.backends.dask.graph import DistributedGraph
from residua.backends.dask.matrix import BlockGraph
from residua.backends.dask.vectors import Vector
from residua.bases.base import Base
from residua.bases.neighbours import neighbour_features as features_of
from residua.caller import warn
from residua.field import Conditional, CorrelationFit, Correlator
from residua.field.observed import Observed
from residua.field.propagation import fill
from residua.graph import Graph
from residua.linalg import Lanczos
from residua.validation import MIN_LABELS, check_count, check_digits

Found = tuple[Any, dict[str, Any]]  # of a member: a small value, and columns at its rows


@dataclass(frozen=True)
class Predicted:
    """Mean and variance of every node: the known value and 0 at labelled nodes.

    Attributes
    ----------
    mean, variance : Vector
        Of the node's number.
    variance_stderr : Vector
        Of the Monte-Carlo mean over draws.
    """

    mean: Vector
    variance: Vector
    variance_stderr: Vector


def fit_correlation(
    client: Client,
    residual: Any,
    graph: DistributedGraph | Graph,
    *,
    logdet: Lanczos | None = None,
    random_state: int = 0,
) -> CorrelationFit:
    """Learn how strongly, and with which sign, residuals are shared along edges, on a cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    residual : str, array_like or Vector
        A column of the node table, or numbers in the order of the nodes; NaN where unknown.
    graph : DistributedGraph or Graph
        A ``Graph`` is dealt out first.
    logdet : Lanczos or None
        Probes and steps; by default as many as alpha needs.
    random_state : int
        Seed of the probes; the same as on one machine.

    Returns
    -------
    CorrelationFit
    """
    graph = as_distributed(client, graph)
    check_count(random_state, "random_state", 0)
    strategy = check_strategy(logdet, random_state)

    def member(graph: BlockGraph, y: np.ndarray) -> Found:
        labelled = check_labels(graph, y, "residual")
        return without_rows(Correlator(graph, labelled, strategy)(y[labelled])), {}

    y = graph.vector(residual, "residual")
    found, _ = graph.gang(member, y)
    return replace(found, source=ObservedOnCluster(found.source, graph, y))


def without_rows(fit: CorrelationFit) -> CorrelationFit:
    """Return a fit whose source keeps what its likelihood took, and no rows: those stay where they are."""
    rows: dict[str, Any] = dict.fromkeys(("graph", "labelled", "y", "design"))
    return replace(fit, source=replace(cast(Observed, fit.source), **rows))


@dataclass(frozen=True)
class ObservedOnCluster:
    """Labels on a cluster whose likelihood can be asked again, by a gang.

    Attributes
    ----------
    seen : Observed
        What the fit took, without rows.
    graph : DistributedGraph
        The graph.
    y : Vector
        Labels or residuals, NaN where unknown.
    X : Vector or None
        Features of a linear base that was fitted with the correlation.
    base : residua.bases.linear.LinearBase or None
        That base.
    """

    seen: Observed = field(repr=False)
    graph: DistributedGraph
    y: Vector
    X: Vector | None = None
    base: Base | None = None

    def interval(self, a: np.ndarray, t: int, drop: float) -> tuple[float, float]:
        return self._ask("interval", a, t, drop)

    def restricted_log_likelihood(self, a: np.ndarray) -> float:
        return self._ask("restricted_log_likelihood", a)

    def _ask(self, question: str, *given: Any) -> Any:
        seen, base = self.seen, self.base

        def member(graph: BlockGraph, y: np.ndarray, *X: np.ndarray) -> Found:
            labelled = ~np.isnan(y)
            design = None if base is None else base.design(X[0][labelled])
            here = replace(seen, graph=graph, labelled=labelled, y=y[labelled], design=design)
            return getattr(here, question)(*given), {}

        return self.graph.gang(member, self.y, *([] if self.X is None else [self.X]))[0]


def predict(
    client: Client,
    residual: Any,
    graph: Any,
    alpha: float | CorrelationFit,
    beta: float | None = None,
    *,
    base: Vector | None = None,
    draws: int = 64,
    random_state: int = 0,
) -> Predicted:
    """Return mean and variance of every node given the known residuals.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    residual : str, array_like or Vector
        As in ``fit_correlation``; NaN where unknown.
    graph : DistributedGraph or Graph
        A ``Graph`` is dealt out first.
    alpha : float or CorrelationFit
        Strength of the correlation, or a fit, which has beta too.
    beta : float or None
        Overall precision.
    base : Vector or None
        (n,) predictions of a base, added to the mean.
    draws : int
        Exact draws that the variances are averaged over.
    random_state : int
        Seed of the draws.
    """
    graph = as_distributed(client, graph)
    check_count(draws, "draws", 2)
    if isinstance(alpha, CorrelationFit):
        beta = alpha.beta if beta is None else beta
        alpha = alpha.alpha["edge"]
    precision = 1.0 if beta is None else beta

    def member(graph: BlockGraph, r: np.ndarray, *base: np.ndarray) -> Found:
        labelled = check_labels(graph, r, "residual", 1)
        conditional = Conditional(graph, labelled, alpha, precision, draws=draws, random_state=random_state)
        variance = conditional.variance()
        mean = sum(base, conditional.conditional_mean(r))
        return None, {"mean": mean, "variance": variance.value, "variance_stderr": variance.stderr}

    _, found = graph.gang(member, graph.vector(residual, "residual"), *([] if base is None else [base]))
    return Predicted(**found)


def propagate(client: Client, values: Any, graph: Any, *, fallback: float | None = None) -> Vector:
    """Fill unknown nodes from known ones by label propagation.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    values : str, array_like or Vector
        A column of the node table, or numbers in the order of the nodes; NaN where unknown.
    graph : DistributedGraph or Graph
        A ``Graph`` is dealt out first.
    fallback : float or None
        Number for nodes that no known value reaches; by default the mean of the known values.
    """
    graph = as_distributed(client, graph)

    def member(graph: BlockGraph, values: np.ndarray) -> Found:
        filled, unreached = fill(values, check_labels(graph, values, "values", 1), graph, fallback)
        count, number = graph.rows.count(unreached), graph.rows.max(np.max(filled[unreached], initial=-np.inf))
        if count:
            warn(f"{count} nodes are in components without a label; they get {number:.4g}.")
        return None, {"filled": filled}

    return graph.gang(member, graph.vector(values))[1]["filled"]


def neighbour_features(client: Client, X: Any, graph: Any, *, hops: int = 2, degree: bool = True) -> Vector:
    """Return features of every node and of its surroundings, as ``residua.NeighbourFeatures``.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    X : list of str, array_like or Vector
        (n, d) columns: names of columns of the node table, or numbers.
    graph : DistributedGraph or Graph
        A ``Graph`` is dealt out first.
    hops : int
        How far to look; 0 keeps only the features.
    degree : bool
        Add the logarithm of the degree and its neighbour average.
    """
    graph = as_distributed(client, graph)
    check_count(hops, "hops", 0)

    def member(graph: Any, X: np.ndarray) -> Found:
        return None, {"features": features_of(graph, X.reshape(len(X), -1), hops, degree)}

    names = isinstance(X, list | tuple) and all(isinstance(name, str) for name in X)
    given = graph.columns(X) if names else graph.vector(X, "X")
    return graph.gang(member, given)[1]["features"]


def check_labels(graph: BlockGraph, y: np.ndarray, name: str, least: int = MIN_LABELS) -> np.ndarray:
    """Return the mask of known values, of which there are enough in all blocks."""
    labelled = ~np.isnan(y)
    count = graph.rows.count(labelled)
    if count < least:
        raise ValueError(f"{name} has {count} known values; at least {least} are needed.")
    check_digits(y[labelled], name, graph.rows)
    return labelled


def check_strategy(logdet: Any, random_state: int) -> Lanczos:
    if logdet is None:
        return Lanczos(random_state=random_state)
    if not isinstance(logdet, Lanczos) or logdet.dtype != np.float64:
        raise ValueError(f"logdet={logdet!r} needs the whole matrix, or float32; on a cluster use Lanczos().")
    return logdet


def as_distributed(client: Client, graph: Any) -> DistributedGraph:
    if isinstance(graph, DistributedGraph):
        return graph
    if isinstance(graph, Graph):
        return DistributedGraph.from_graph(client, graph)
    raise TypeError(f"graph is {type(graph).__name__}; use DistributedGraph.from_parquet(client, edges, nodes).")
