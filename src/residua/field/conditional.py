"""What known residuals say of unknown ones.

    r_U | r_L ~ N( -G_UU^-1 G_UL r_L,  G_UU^-1 / beta )      (paper, Eq. 9)

G = I - sum_t alpha_t S_t. Variances are exact (selected inverse of a sparse factor) where that is cheap, else
Rao-Blackwellised over exact draws. alpha = 1 is label propagation: components without a label then have no finite
answer and keep mean 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from residua.field.coefficients import Coefficients, Design
from residua.field.draws import Draws, draw
from residua.field.leave_one_out import EXACT_SECONDS, LeaveOneOut, leave_one_out, schur_diagonal
from residua.field.likelihood import in_order
from residua.field.precision import check_alpha, unit_precision
from residua.graph.interface import GraphLike
from residua.linalg import Estimate, Solver
from residua.linalg.factor import Factor, factor_seconds, identity_minus
from residua.linalg.lanczos import function_times
from residua.linalg.sampling import inverse_diagonal
from residua.linalg.workspace import Workspace, cached_property


class Conditional(Workspace):
    """The distribution of unknown residuals given known ones.

    Parameters
    ----------
    graph : GraphLike
        The graph.
    labelled : ndarray of bool, shape (n,)
        Which nodes have a label.
    alpha : float or mapping of str to float
        One number, or one for each edge type; 1 for label propagation.
    beta : float
        Overall precision.
    design : ndarray of shape (n, d), Design or None
        Columns of a mean whose coefficients were fitted with this correlation; their uncertainty is added. A ``Design``
        where coefficients have a prior, or columns are to be computed when they are needed.
    draws : int
        Samples for variances where no factor is affordable.
    random_state : int
        Seed of those samples.
    exact : bool or None
        Force the way variances are computed; by default exact where cheap.
    """

    def __init__(
        self,
        graph: GraphLike,
        labelled: np.ndarray,
        alpha: float | Mapping[str, float],
        beta: float = 1.0,
        *,
        design: np.ndarray | Design | None = None,
        draws: int = 64,
        random_state: int = 0,
        exact: bool | None = None,
    ):
        self.graph, self.labelled, self.beta, self.rows = graph, labelled, float(beta), graph.rows
        self.alpha = check_alpha(alpha, graph, limit=True)
        self.solver = Solver()
        self._settings: dict[str, Any] = {"draws": draws, "random_state": random_state, "exact": exact}
        self.improper = bool((self.alpha == 1).all())
        self.unreached = ~graph.reached(labelled)
        self.G = unit_precision(list(graph.operators.values()), self.alpha)
        self.L = np.flatnonzero(labelled)
        self.U = in_order(graph, ~labelled & ~self.unreached if self.improper else ~labelled)
        self.n_unlabelled = int(self.rows.sum(len(self.U)))
        self.G_UU = self.G.submatrix(self.U)
        self.draws = Draws(self.G_UU, self.solver, draws, random_state, np.abs(self.alpha).max())
        self.exact_forced = exact is not None
        if isinstance(design, np.ndarray):
            design = Design(design) if design.shape[1] else None
        self.coefficients = None if design is None else Coefficients(self, design)

    def given(self, labelled: np.ndarray, **settings: Any) -> Conditional:
        """Return the same distribution, given residuals at other nodes (n,) bool; ``settings`` replace its own."""
        alpha = dict(zip(self.graph.edge_types, self.alpha, strict=True))
        design = self.coefficients.given if self.coefficients else None
        return Conditional(self.graph, labelled, alpha, self.beta, design=design, **(self._settings | settings))

    @cached_property
    def exact(self) -> bool:
        """Whether variances come from a factor."""
        if self._settings["exact"] is not None:
            return bool(self._settings["exact"])
        return factor_seconds(self.G_UU.S, EXACT_SECONDS) <= EXACT_SECONDS

    def conditional_mean(self, R: np.ndarray) -> np.ndarray:
        """Return columns (n,) or (n, k), known at L, with their conditional mean at U; 0 where nothing is known."""
        full = np.where(self.labelled[:, None], R.reshape(len(R), -1), 0.0)
        pull = -(self.G @ full)[self.U]
        full[self.U] = self.solver.solve(self.G_UU, pull).X
        return full.reshape(R.shape)

    def quadratic_form(self, r: np.ndarray) -> float:
        """Return ``r_L' Gbar r_L`` of residuals r (n,), known at L."""
        full = self.conditional_mean(r)[:, None]
        return float(self.rows.inner(full, self.G @ full)[0])

    def mean_of(self, r: np.ndarray) -> np.ndarray:
        """Return the part (n,) of r (n,), known at L, that the design explains, by generalised least squares."""
        return self.coefficients.mean_of(r) if self.coefficients else np.zeros(self.graph.n_nodes)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return (count, n) joint draws of the deviation from the mean, 0 at labelled nodes."""
        out = np.zeros((count, self.graph.n_nodes))
        out[:, self.U] = draw(self.G_UU, self.solver, count, rng).T / np.sqrt(self.beta)
        return out + self.coefficients.sample(count, rng) if self.coefficients else out

    def variance(self) -> Estimate:
        """Return (n,) variances, 0 at labelled nodes (and, for alpha = 1, where no label reaches)."""
        value, error = np.zeros(self.graph.n_nodes), np.zeros(self.graph.n_nodes)
        if self.n_unlabelled:
            if self.exact:
                part = Estimate(self.factor(identity_minus(self.G_UU)).inverse.diagonal())
            else:
                part = inverse_diagonal(self.draws.precision, self.draws)
            value[self.U] = part.value / self.beta
            error[self.U] = part.stderr / self.beta
        if self.coefficients:
            value += self.coefficients.variance
        return Estimate(value, error)

    def leave_one_out(self, r: np.ndarray) -> LeaveOneOut:
        """Return errors and variances at L for residuals r (n,), known at L."""
        return leave_one_out(self, r)

    @cached_property
    def schur_diagonal(self) -> np.ndarray:
        """diag(Gbar) at L: what the others leave of the precision of each label."""
        return schur_diagonal(self)

    def decorrelated(self, r: np.ndarray) -> np.ndarray:
        """Return ``(beta Gbar)^1/2 r_L``: independent with variance 1 if the model is right."""

        def product(v: np.ndarray) -> np.ndarray:
            full = np.zeros(self.graph.n_nodes)
            full[self.L] = v
            return (self.G @ self.conditional_mean(full))[self.L]

        root = function_times(product, lambda x: np.sqrt(np.maximum(x, 0)), r[self.L], self.rows)
        return np.sqrt(self.beta) * root

    def factor(self, A: sp.csc_array, cholmod: bool | None = None) -> Factor:
        """Return the sparse factor of A, a matrix with the pattern of G_UU or more."""
        try:
            return Factor(A, cholmod)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"variances are not defined for alpha={self.alpha.tolist()}: weights to the labels vanish beside the "
                'other weights of some nodes; drop edges of negligible weight, or use correlation="learned".'
            ) from None
