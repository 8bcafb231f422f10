"""What known residuals say of unknown ones, on row blocks.

    mean at U: alpha (I - alpha S_UU)^-1 S_UL r_L        variance: Rao-Blackwellised over exact draws

As ``residua.field.conditional`` without a factor. Draws are taken a few columns at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from distributed import Client

from residua.backends.dask.blocks import Block
from residua.backends.dask.cg import solve
from residua.backends.dask.graph import DistributedGraph
from residua.backends.dask.likelihood import EDGE, as_distributed, check_labels
from residua.backends.dask.noise import precision_noise
from residua.backends.dask.vectors import Vector, chosen, column, flat, gram, known, spread, times
from residua.field import CorrelationFit
from residua.validation import check_count

# Draws at a time: the five vectors of a solve, a double for each, stay below two gigabytes in a block.
NUMBERS, MOST_COLUMNS = 50_000_000, 64


@dataclass(frozen=True)
class Predicted:
    """Mean and variance of every node, as Vectors: the known value and 0 at labelled nodes."""

    mean: Vector
    variance: Vector
    variance_stderr: Vector  # of the Monte-Carlo mean over draws


class DistributedConditional:
    """The distribution of unknown residuals given known ones.

    Parameters
    ----------
    graph : the graph
    residual : (n,) residuals, NaN where unknown
    alpha, beta : strength of the correlation, 1 for label propagation; overall precision
    design : (n, d) columns of a mean whose coefficients were fitted with this correlation, or None
    draws, random_state : of the variances
    """

    def __init__(
        self,
        graph: DistributedGraph,
        residual: Vector,
        alpha: float,
        beta: float = 1.0,
        *,
        design: Vector | None = None,
        draws: int = 64,
        random_state: int = 0,
    ):
        if not -1 < alpha <= 1:
            raise ValueError(f"alpha={alpha} is outside (-1, 1]; the precision matrix would not be positive definite.")
        self.graph, self.residual, self.alpha, self.beta = graph, residual, float(alpha), float(beta)
        self.labelled = labelled = residual.map(known)
        self.draws, self.random_state = draws, random_state
        self.improper = alpha == 1
        self.U = labelled.map(np.logical_not)
        if self.improper:
            self.U = self.U.map(np.logical_and, graph.components.reached(labelled))
        self.S_UU = graph.S.submatrix(self.U)
        self.design = None if design is None else self._unit_columns(design)

    def _unit_columns(self, design: Vector) -> Vector:
        size = np.sqrt(design.total(_squares_at, self.labelled))
        return design.map(times(1 / np.where(size > 0, size, 1.0)))

    def extend(self, R: Vector) -> Vector:
        """Columns (n, k), known at L, with U filled by the conditional mean; 0 where nothing is known."""
        full = R.map(_only, self.labelled)
        if not self.S_UU.n:
            return full
        pull = self.graph.S.product(full).map(chosen, self.U, sizes=self.S_UU.sizes).map(times(self.alpha))
        return full.map(_filled, solve(self.S_UU, self.alpha, pull).X, self.U)

    @cached_property
    def _known(self) -> Vector:
        """[r, Z] carried on to U together, in one solve."""
        r = self.residual.map(column)
        return self.extend(r if self.design is None else r.map(_beside, self.design))

    @cached_property
    def _pulled(self) -> Vector:
        """G times [r, Z], both carried on to U."""
        return self._known.map(_shifted, self.graph.S.product(self._known), self._alphas)

    def mean(self) -> Vector:
        """(n,) the residuals where known, and their conditional mean elsewhere; 0 where none reaches."""
        return self._known.map(flat)

    def _drawn(self, first: int, count: int) -> Vector:
        """(n, count) draws of the deviation from the mean for beta = 1, zero at L."""
        cluster, blocks = self.graph.cluster, self.graph.S.blocks
        given = (self.alpha, self.random_state, first, count)
        parts = [cluster.run(precision_noise, block, *given, block=b) for b, block in enumerate(blocks)]
        noise = Vector(cluster, parts, self.graph.S.sizes).map(chosen, self.U, sizes=self.S_UU.sizes)
        return solve(self.S_UU, self.alpha, noise).X.map(spread, self.U)

    @cached_property
    def moments(self) -> Vector:
        """(n, 2): sums over draws of the square, and its square, of each node's mean given its neighbours.

        At a labelled node the square is that of ``(G x)_i``, what the draws take of its precision.
        """
        total = None
        width = int(np.clip(NUMBERS // max(self.graph.S.sizes.max(), 1), 4, MOST_COLUMNS))
        for first in range(0, self.draws, width):
            X = self._drawn(first, min(width, self.draws - first))
            squares = X.map(_squares_given, self.graph.S.product(X), self.diagonal, self.labelled, self._alphas)
            total = squares if total is None else total.map(np.add, squares)
        assert total is not None
        return total

    @property
    def _alphas(self) -> list[float]:
        return [self.alpha] * len(self.labelled.parts)

    @cached_property
    def diagonal(self) -> Vector:
        """Of G = I - alpha S."""
        parts = self.graph.cluster.each(_diagonal, self.graph.S.blocks, self._alphas)
        return Vector(self.graph.cluster, parts, self.graph.S.sizes)

    def variance(self) -> tuple[Vector, Vector]:
        """(n,) variances, 0 at labelled nodes (and, for alpha = 1, where no label reaches), and their errors."""
        given = [(self.draws, self.beta)] * len(self.labelled.parts)
        value = self.moments.map(_variance, self.diagonal, self.U, given)
        error = self.moments.map(_variance_error, self.U, given)
        if self.design is not None:
            value = value.map(_plus_lever, self._lever, [self._theta_root] * len(given))
        return value, error

    def leave_one_out(self) -> tuple[Vector, Vector]:
        """Errors and variances at L, NaN elsewhere; a variance is infinite where nothing else speaks of a label."""
        floor = 0.0 if self.improper else 1 - abs(self.alpha)
        given = [(self.draws, self.beta, floor)] * len(self.labelled.parts)
        precision = self.moments.map(_schur_diagonal, self.diagonal, self.labelled, given)
        if self.design is not None:
            precision = precision.map(_minus_leverage, self._products, [(self._theta_root, self.beta)] * len(given))
        error = self._pulled.map(_left_out_error, self.residual, precision)
        return error, precision.map(_left_out_variance, [self.beta] * len(given))

    @cached_property
    def _lever(self) -> Vector:
        assert self.design is not None
        return self.design.map(_lever, self._known, self.labelled)

    @cached_property
    def _products(self) -> Vector:
        """Gbar Z at L, zero elsewhere."""
        return self._pulled.map(_design_part, self.labelled)

    @cached_property
    def _theta_root(self) -> np.ndarray:
        """Rows B with B'B the covariance of the coefficients."""
        assert self.design is not None
        values, vectors = np.linalg.eigh(self.design.total(gram, self._products))
        keep = values > 1e-12 * values.max(initial=0)
        return (vectors[:, keep] / np.sqrt(values[keep] * self.beta)).T


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
    """Mean and variance of every node given the known residuals.

    Parameters
    ----------
    client : a connected ``distributed.Client``
    residual : as in ``fit_correlation``; NaN where unknown
    graph : a ``DistributedGraph`` or a ``Graph``
    alpha : strength of the correlation, or a ``CorrelationFit``, which has beta too
    beta : overall precision
    base : (n,) predictions of a base, added to the mean
    draws : exact draws that the variances are averaged over
    random_state : seed of the draws
    """
    graph = as_distributed(client, graph)
    check_count(draws, "draws", 2)
    if isinstance(alpha, CorrelationFit):
        beta = alpha.beta if beta is None else beta
        alpha = alpha.alpha[EDGE[0]]
    with graph.cluster.guarded():
        r = graph.vector(residual, "residual")
        check_labels(r, "residual", 1)
        conditional = DistributedConditional(
            graph, r, alpha, 1.0 if beta is None else beta, draws=draws, random_state=random_state
        )
        mean = conditional.mean() if base is None else conditional.mean().map(np.add, base)
        return Predicted(mean, *conditional.variance())


def _squares_at(design: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    return (design[labelled] ** 2).sum(axis=0)


def _only(R: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    return np.where(labelled[:, None], R, 0.0)


def _filled(full: np.ndarray, X: np.ndarray, U: np.ndarray) -> np.ndarray:
    out = full.copy()
    out[U] = X
    return out


def _shifted(full: np.ndarray, product: np.ndarray, alpha: float) -> np.ndarray:
    return full - alpha * product


def _diagonal(block: Block, alpha: float) -> np.ndarray:
    return 1 - alpha * block.S.diagonal()[: block.rows]


def _squares_given(
    X: np.ndarray, product: np.ndarray, diagonal: np.ndarray, labelled: np.ndarray, alpha: float
) -> np.ndarray:
    GX = X - alpha * product
    squares = np.where(labelled[:, None], GX, GX / diagonal[:, None] - X) ** 2
    return np.column_stack([squares.sum(axis=1), (squares**2).sum(axis=1)])


def _variance(moments: np.ndarray, diagonal: np.ndarray, U: np.ndarray, given: tuple[int, float]) -> np.ndarray:
    draws, beta = given
    return np.where(U, (1 / diagonal + moments[:, 0] / draws) / beta, 0.0)


def _variance_error(moments: np.ndarray, U: np.ndarray, given: tuple[int, float]) -> np.ndarray:
    draws, beta = given
    spread_of = np.maximum(moments[:, 1] - moments[:, 0] ** 2 / draws, 0) / (draws - 1)
    return np.where(U, np.sqrt(spread_of / draws) / beta, 0.0)


def _beside(r: np.ndarray, design: np.ndarray) -> np.ndarray:
    return np.column_stack([r, design])


def _design_part(pulled: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    return _only(pulled[:, 1:], labelled)


def _lever(design: np.ndarray, extended: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    return np.where(labelled[:, None], 0.0, design - extended[:, 1:])


def _plus_lever(variance: np.ndarray, lever: np.ndarray, root: np.ndarray) -> np.ndarray:
    return variance + ((lever @ root.T) ** 2).sum(axis=1)


def _schur_diagonal(
    moments: np.ndarray, diagonal: np.ndarray, labelled: np.ndarray, given: tuple[int, float, float]
) -> np.ndarray:
    draws, _, floor = given
    return np.where(labelled, np.maximum(diagonal - moments[:, 0] / draws, floor), np.nan)


def _minus_leverage(precision: np.ndarray, products: np.ndarray, given: tuple[np.ndarray, float]) -> np.ndarray:
    root, beta = given
    return precision - beta * ((products @ root.T) ** 2).sum(axis=1)


def _left_out_error(pull: np.ndarray, r: np.ndarray, precision: np.ndarray) -> np.ndarray:
    lone = precision <= 1e-9  # the only label of its component: nothing else speaks of it
    return np.where(lone, r, pull[:, 0] / np.where(lone, 1, precision))


def _left_out_variance(precision: np.ndarray, beta: float) -> np.ndarray:
    lone = precision <= 1e-9
    return np.where(lone, np.inf, 1 / (beta * np.where(lone, 1, precision)))
