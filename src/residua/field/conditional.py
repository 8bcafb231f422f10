"""What known residuals say of unknown ones, and of each other.

    r_U | r_L ~ N( -G_UU^-1 G_UL r_L,  G_UU^-1 / beta ),    Gbar = G_LL - G_LU G_UU^-1 G_UL      (paper, Eq. 9)
    leave-one-out at i in L:  error (P y)_i / P_ii,  variance 1 / (beta P_ii),
    P = Gbar - Gbar Z (Z' Gbar Z)^-1 Z' Gbar

G = I - sum_t alpha_t S_t, Z design of a linear mean fitted with the correlation (else P = Gbar). Variances are exact
(selected inverse of a sparse factor) where that is cheap, else Rao-Blackwellised over exact draws.
alpha = 1 is label propagation: components without a label then have no finite answer and keep mean 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from residua.field.likelihood import in_order, reached_nodes
from residua.field.precision import check_alpha, unit_precision
from residua.graph import Graph
from residua.linalg import Shifted, Solver, Sparse
from residua.linalg.factor import Factor, factor_seconds, identity_minus, pair_sums
from residua.linalg.lanczos import function_times
from residua.linalg.logdet.exact import Estimate
from residua.linalg.sampling import inverse_diagonal, precision_noise

# One factorisation and its selected inverse, which takes about four times as long.
EXACT_SECONDS = 0.5
MAX_PAIRS = 2e7
# Draws are kept up to this many numbers; beyond, they are made anew, so many at a time.
KEPT_NUMBERS, TILE_NUMBERS = 16_000_000, 32_000_000
SINGLE_ALPHA = 0.99  # up to which single precision leaves errors below those of sampling


@dataclass(frozen=True)
class LeaveOneOut:
    """Each label as predicted from all the others."""

    error: np.ndarray  # (|L|,) label minus its prediction
    variance: np.ndarray  # (|L|,)


class Conditional:
    """The distribution of unknown residuals given known ones.

    Parameters
    ----------
    graph : the graph
    labelled : (n,) bool
    alpha : one number, or a dict by edge type; 1 for label propagation
    beta : overall precision
    design : (n, d) columns of a mean whose coefficients were fitted with this correlation; their uncertainty is added
    draws : samples for variances where no factor is affordable
    random_state : seed of those samples
    exact : True or False to force the way variances are computed; by default exact where cheap
    """

    def __init__(
        self,
        graph: Graph,
        labelled: np.ndarray,
        alpha: float | dict[str, float],
        beta: float = 1.0,
        *,
        design: np.ndarray | None = None,
        solver: Solver | None = None,
        draws: int = 64,
        random_state: int = 0,
        exact: bool | None = None,
    ):
        self.graph, self.labelled, self.beta = graph, labelled, float(beta)
        self.alpha = check_alpha(alpha, graph, limit=True)
        self.solver, self.draws, self.random_state = solver or Solver(), draws, random_state
        self.improper = bool((self.alpha == 1).all())
        self.unreached = ~reached_nodes(graph, labelled)
        self.G = unit_precision(list(graph.operators.values()), self.alpha)
        self.L = np.flatnonzero(labelled)
        self.U = in_order(graph, ~labelled & ~self.unreached if self.improper else ~labelled)
        self.G_UU = self.G.submatrix(self.U)
        self.design = np.empty((graph.n_nodes, 0)) if design is None else _unit_columns(design, labelled)
        self._exact = exact

    def at(self, labelled: np.ndarray) -> Conditional:
        """The same distribution, given residuals at other nodes (n,) bool."""
        return Conditional(
            self.graph,
            labelled,
            dict(zip(self.graph.edge_types, self.alpha, strict=True)),
            self.beta,
            design=self.design,
            solver=self.solver,
            draws=self.draws,
            random_state=self.random_state,
            exact=self._exact,
        )

    @cached_property
    def exact(self) -> bool:
        """Whether variances come from a factor."""
        if self._exact is not None:
            return self._exact
        return factor_seconds(self.G_UU.S, EXACT_SECONDS) <= EXACT_SECONDS

    @property
    def method(self) -> str:
        how = "exact: selected inverse of a sparse factor"
        return how if self.exact else f"estimated: Rao-Blackwellised over {self.draws} exact draws"

    def extend(self, R: np.ndarray) -> np.ndarray:
        """Columns (n,) or (n, k), known at L, with U filled by the conditional mean; 0 where nothing is known."""
        full = np.where(self.labelled[:, None], R.reshape(len(R), -1), 0.0)
        pull = -(self.G @ full)[self.U]
        full[self.U] = self.solver.solve(self.G_UU, pull).X
        return full.reshape(R.shape)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, n) joint draws of the deviation from the mean, 0 at labelled nodes."""
        out = np.zeros((count, self.graph.n_nodes))
        out[:, self.U] = self._draws(count, rng).T / np.sqrt(self.beta)
        if self.design.shape[1]:
            theta = rng.standard_normal((count, len(self._theta_root))) @ self._theta_root
            out += theta @ self._theta_lever.T
        return out

    def _draws(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return self.solver.solve(self.G_UU, precision_noise(self.G_UU, count, rng)).X

    @cached_property
    def _fixed_draws(self) -> np.ndarray:
        return self._draws(self.draws, np.random.default_rng(self.random_state))

    @cached_property
    def _rough(self) -> bool:
        """Whether draws are too many numbers to keep: some at a time, and where alpha allows it in single precision."""
        return self.draws * len(self.U) > KEPT_NUMBERS

    @cached_property
    def _rough_G_UU(self) -> Shifted:
        single = self._rough and np.abs(self.alpha).max() <= SINGLE_ALPHA
        return Shifted(self.G_UU.S.astype(np.float32), self.G_UU.alpha) if single else self.G_UU

    def _tiles(self) -> Iterator[np.ndarray]:
        """The draws, as many columns at a time as memory allows; the same each time."""
        if not self._rough:
            yield self._fixed_draws
            return
        rng, width = np.random.default_rng(self.random_state), max(8, TILE_NUMBERS // len(self.U))
        # Sampling error is a tenth of a variance or so: far more than this tolerance leaves.
        solver = replace(self.solver, cg=replace(self.solver.cg, tol=max(self.solver.cg.tol, 1e-6)))
        for first in range(0, self.draws, width):
            noise = precision_noise(self._rough_G_UU, min(width, self.draws - first), rng)
            yield solver.solve(self._rough_G_UU, noise).X

    def variance(self) -> Estimate:
        """(n,) variances, 0 at labelled nodes (and, for alpha = 1, where no label reaches)."""
        value, error = np.zeros(self.graph.n_nodes), np.zeros(self.graph.n_nodes)
        if len(self.U):
            draws = self._tiles() if self._rough else self._fixed_draws
            sampled = None if self.exact else inverse_diagonal(self._rough_G_UU, draws)
            part = sampled or Estimate(self._factor.inverse.diagonal())
            value[self.U] = part.value / self.beta
            error[self.U] = part.stderr / self.beta
        if self.design.shape[1]:
            value += ((self._theta_lever @ self._theta_root.T) ** 2).sum(axis=1)
        return Estimate(value, error)

    def leave_one_out(self, r: np.ndarray) -> LeaveOneOut:
        """Errors and variances at L for residuals r (n,), known at L."""
        full = self.extend(r)
        precision = self._schur_diagonal - self._design_leverage
        lone = precision <= 1e-9  # the only label of its component: nothing else speaks of it
        error = np.where(lone, r[self.L], (self.G @ full)[self.L] / np.where(lone, 1, precision))
        variance = np.where(lone, np.inf, 1 / (self.beta * np.where(lone, 1, precision)))
        return LeaveOneOut(error, variance)

    def decorrelated(self, r: np.ndarray) -> np.ndarray:
        """``(beta Gbar)^1/2 r_L``: independent with variance 1 if the model is right."""

        def product(v: np.ndarray) -> np.ndarray:
            full = np.zeros(self.graph.n_nodes)
            full[self.L] = v
            return (self.G @ self.extend(full))[self.L]

        return np.sqrt(self.beta) * function_times(product, lambda x: np.sqrt(np.maximum(x, 0)), r[self.L])

    @cached_property
    def _factor(self) -> Factor:
        return self._factored(identity_minus(self.G_UU))

    def _factored(self, A: sp.csc_array, cholmod: bool | None = None) -> Factor:
        try:
            return Factor(A, cholmod)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"variances are not defined for alpha={self.alpha.tolist()}: weights to the labels vanish beside the "
                'other weights of some nodes; drop edges of negligible weight, or use correlation="learned".'
            ) from None

    @cached_property
    def _schur_diagonal(self) -> np.ndarray:
        """diag(Gbar) at L: what the others leave of the precision of each label."""
        own = self.G.diagonal()[self.L]
        if not len(self.U):
            return own
        taken = self._schur_exact() if self.exact else None
        taken = self._schur_sampled() if taken is None else taken
        floor = 0.0 if self.improper else 1 - np.abs(self.alpha).max()  # the smallest eigenvalue of G
        return np.maximum(own - taken, floor)

    def _schur_sampled(self) -> np.ndarray:
        G = Shifted(self.G.S.astype(self._rough_G_UU.dtype.type), self.G.alpha)
        total = np.zeros(len(self.L))
        for X in self._tiles():
            full = np.zeros((self.graph.n_nodes, X.shape[1]), G.dtype)
            full[self.U] = X
            total += ((G @ full)[self.L] ** 2).sum(axis=1)
        return total / self.draws

    def _schur_exact(self) -> np.ndarray | None:
        """diag(G_LU G_UU^-1 G_UL), from the selected inverse on all pairs of U with a common labelled neighbour.

        None where labelled hubs make those pairs too many.
        """
        rows = self.G.alpha * self.G.S.to_scipy()[self.L][:, self.U]
        if (np.diff(rows.indptr).astype(float) ** 2).sum() > MAX_PAIRS:
            return None
        room = identity_minus(self.G_UU, abs(rows).T @ abs(rows))
        pattern = Sparse(room.indptr, room.indices, None, np.ones(len(self.U)))
        if self._exact is None and factor_seconds(pattern, EXACT_SECONDS) > EXACT_SECONDS:
            return None
        return pair_sums(rows, self._factored(room, cholmod=False).inverse)

    @cached_property
    def _theta_lever(self) -> np.ndarray:
        """(n, d): how far a change of each coefficient moves the prediction; 0 at L."""
        return self.design - np.where(self.labelled[:, None], self.design, self.extend(self.design))

    @cached_property
    def _design_products(self) -> np.ndarray:
        """Gbar Z, shape (|L|, d)."""
        return (self.G @ (self.design - self._theta_lever))[self.L]

    @cached_property
    def _theta_root(self) -> np.ndarray:
        """Rows B with B'B the covariance of the coefficients."""
        values, vectors = np.linalg.eigh(self.design[self.L].T @ self._design_products)
        keep = values > 1e-12 * values.max(initial=0)
        return (vectors[:, keep] / np.sqrt(values[keep] * self.beta)).T

    def mean_of(self, r: np.ndarray) -> np.ndarray:
        """(n,) part of r (n,), known at L, that the design explains, by generalised least squares."""
        if not self.design.shape[1]:
            return np.zeros(self.graph.n_nodes)
        root = self._theta_root
        theta: np.ndarray = self.beta * root.T @ (root @ (self._design_products.T @ r[self.L]))
        return self.design @ theta

    @cached_property
    def _design_leverage(self) -> np.ndarray:
        """diag(Gbar Z (Z' Gbar Z)^-1 Z' Gbar)."""
        if not self.design.shape[1]:
            return np.zeros(len(self.L))
        return self.beta * ((self._design_products @ self._theta_root.T) ** 2).sum(axis=1)


def _unit_columns(design: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Columns of unit size at the labelled nodes: what they span counts, not their units."""
    size = np.linalg.norm(design[labelled], axis=0)
    return design / np.where(size > 0, size, 1.0)
