"""The likelihood of residuals on row blocks, maximised in this process by the same code as on one machine.

    Q(alpha) = R'R - alpha R'S_LL R - alpha^2 B'(I - alpha S_UU)^-1 B,    B = S_UL R

R residuals and design at L. What depends on alpha are the numbers of a few hundred quadrature nodes; they come here
once, and the search for alpha moves nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from distributed import Client

from residua.backends.dask.cg import solve
from residua.backends.dask.graph import DistributedGraph
from residua.backends.dask.lanczos import BlockRun
from residua.backends.dask.matrix import BlockMatrix
from residua.backends.dask.ratio import DistributedRatio
from residua.backends.dask.vectors import Vector, chosen, count_known, gram, known
from residua.field.likelihood import QuadraticForm
from residua.field.profile import TINY, CorrelationFit, Profile
from residua.graph import Graph
from residua.linalg import Lanczos
from residua.linalg.lanczos import BlockQuadrature
from residua.validation import MIN_LABELS, check_count

EDGE = ("edge",)


class DistributedLikelihood:
    """The likelihood of one labelling of a distributed graph.

    Parameters
    ----------
    graph : the graph
    labelled : mask of the labelled nodes
    strategy : probes, steps and seed of the log-determinants
    """

    def __init__(self, graph: DistributedGraph, labelled: Vector, strategy: Lanczos):
        self.graph, self.labelled, self.strategy = graph, labelled, strategy
        reached = graph.components.reached(labelled)
        self.S, self.components, inside = graph.S, graph.components, labelled
        if int(reached.total(np.sum)) < graph.n_nodes:
            self.S = graph.S.submatrix(reached)
            self.components = graph.components.restricted(reached, self.S.sizes)
            inside = labelled.map(chosen, reached, sizes=self.S.sizes)
        self.U = reached.map(_without, labelled)
        self.U_inside = inside.map(np.logical_not)
        self.terms = [self.S]

    @cached_property
    def S_UU(self) -> BlockMatrix | None:
        found = self.graph.S.submatrix(self.U)
        return found if found.n else None

    @cached_property
    def ratio(self) -> DistributedRatio:
        U = None if self.S_UU is None else self.U_inside
        return DistributedRatio(self.strategy, self.S, self.components, self.S_UU, U)


class DistributedForm(QuadraticForm):
    """Q for every alpha of columns R (n, k), zero at unlabelled nodes."""

    MAX_SIZE = 1500

    def __init__(self, likelihood: DistributedLikelihood, R: Vector):
        S, S_UU = likelihood.graph.S, likelihood.S_UU
        self.run, self.S_UU = None, S_UU
        SR = S.product(R)
        self.constant, self.linear = R.total(gram, R), R.total(gram, SR)
        self.rule: BlockQuadrature | None = BlockQuadrature(np.zeros(0), np.zeros((0, len(self.constant))))
        if S_UU is not None:
            self.B = SR.map(chosen, likelihood.U, sizes=S_UU.sizes)
            self.run = BlockRun(S_UU, self.B)
            self.rule = self.run.more_steps(12)

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        if self.rule is not None or self.S_UU is None:
            return super().__call__(alpha)
        a = float(alpha[0])
        X = solve(self.S_UU, a, self.B).X
        return self.constant - a * self.linear - a * a * self.B.total(gram, X)

    def forget(self) -> None:
        """Nothing is kept from one alpha to the next."""


class DistributedProfile(Profile):
    """Omega as a function of alpha alone, for labels y (n,), NaN where unknown, and a design (n, d) or None."""

    def __init__(self, likelihood: DistributedLikelihood, y: Vector, design: Vector | None = None):
        self.likelihood: Any = likelihood
        columns = y.map(_columns, [None] * len(y.parts) if design is None else design)
        square = columns.total(gram, columns)
        self.n, self.p = int(y.total(count_known)), 1
        norms = np.sqrt(np.diag(square)[1:])
        self.units = np.where(norms > TINY, norms, 1.0)
        inverse = np.linalg.pinv(square[1:, 1:] / np.outer(self.units, self.units), rcond=1e-10, hermitian=True)
        self.offset = inverse @ (square[1:, 0] / self.units)
        change = self.offset / self.units
        rest = columns.map(_rest, [change] * len(y.parts))
        self.size = float(np.sqrt(rest.total(_sum_squares) / self.n))
        if self.size <= 1e-13 * max(y.partials(_largest)):
            self._refuse(self.n, len(norms))
        R = columns.map(_scaled, rest, [(self.size, self.units)] * len(y.parts))
        self.form = DistributedForm(likelihood, R)
        self._heights, self._rough = {}, False

    def optimise(self, start: np.ndarray | None = None, rough: bool = False) -> np.ndarray:
        """The best a, to rounding: where the slope of Omega is zero."""
        return super().optimise(start, rough)


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
    client : a connected ``distributed.Client``
    residual : a column of the node table, an array in the order of the nodes, or a ``Vector``; NaN where unknown
    graph : a ``DistributedGraph``; a ``Graph`` is dealt out first
    logdet : ``Lanczos(probes, steps)``; by default as many as alpha needs
    random_state : seed of the probes; the same as on one machine
    """
    graph = as_distributed(client, graph)
    check_count(random_state, "random_state", 0)
    with graph.cluster.guarded():
        y = graph.vector(residual, "residual")
        return fit_design(graph, y, None, check_strategy(logdet, random_state), "residual")


def fit_design(
    graph: DistributedGraph, y: Vector, design: Vector | None, strategy: Lanczos, name: str = "y"
) -> CorrelationFit:
    """Fit alpha, beta and the coefficients of ``design`` (n, d) to y (n,), NaN where unknown."""
    labelled = check_labels(y, name)
    profile = DistributedProfile(DistributedLikelihood(graph, labelled, strategy), y, design)
    return profile.result(profile.optimise(), EDGE)


def check_labels(y: Vector, name: str, least: int = MIN_LABELS) -> Vector:
    """The mask of known values, of which there are enough."""
    labelled = y.map(known)
    count = int(labelled.total(np.sum))
    if count < least:
        raise ValueError(f"{name} has {count} known values; at least {least} are needed.")
    return labelled


def check_strategy(logdet: Any, random_state: int) -> Lanczos:
    if logdet is None:
        return Lanczos(random_state=random_state)
    if not isinstance(logdet, Lanczos) or logdet.dtype != np.float64:
        raise ValueError(
            f"logdet={logdet!r} needs the whole matrix, or float32; on a cluster use Lanczos(probes, steps)."
        )
    return logdet


def as_distributed(client: Client, graph: Any) -> DistributedGraph:
    if isinstance(graph, DistributedGraph):
        return graph
    if isinstance(graph, Graph):
        return DistributedGraph.from_graph(client, graph)
    raise TypeError(
        f"graph is {type(graph).__name__}; build one by DistributedGraph.from_parquet(client, edges, nodes)."
    )


def _without(reached: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    return reached & ~labelled


def _columns(y: np.ndarray, design: np.ndarray | None) -> np.ndarray:
    """[y, Z], zero at unlabelled nodes."""
    there = ~np.isnan(y)
    Z = np.empty((len(y), 0)) if design is None else design
    return np.where(there[:, None], np.column_stack([y, Z]), 0.0)


def _rest(columns: np.ndarray, change: np.ndarray) -> np.ndarray:
    return columns[:, 0] - columns[:, 1:] @ change


def _scaled(columns: np.ndarray, rest: np.ndarray, sizes: tuple[float, np.ndarray]) -> np.ndarray:
    return np.column_stack([rest / sizes[0], columns[:, 1:] / sizes[1]])


def _sum_squares(values: np.ndarray) -> float:
    return float(values @ values)


def _largest(y: np.ndarray) -> float:
    return float(np.nanmax(np.abs(y), initial=0))
