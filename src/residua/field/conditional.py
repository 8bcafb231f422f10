"""What known residuals say of unknown ones.

    r_U | r_L ~ N( -G_UU^-1 G_UL r_L,  G_UU^-1 / beta )      (paper, Eq. 9)

G = I - sum_t alpha_t S_t. Labels seen through noise are not known exactly: their nodes are among U too, on the scaled
operator of ``residua.field.noise``. Variances are exact (selected inverse of a sparse factor) where that is cheap, else
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
from residua.field.noise import Channel
from residua.field.precision import check_alpha, unit_precision
from residua.graph.interface import GraphLike
from residua.linalg import Estimate, Shifted, Solver
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
    noise : ndarray of shape (n,) or None
        Variances of the noise of the labels, at L; None for labels without noise.
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
        noise: np.ndarray | None = None,
    ):
        self.graph, self.labelled, self.beta, self.rows = graph, labelled, float(beta), graph.rows
        self.alpha = check_alpha(alpha, graph, limit=True)
        self.solver = Solver()
        self._settings: dict[str, Any] = {"draws": draws, "random_state": random_state, "exact": exact}
        self.improper = bool((self.alpha == 1).all())
        self.unreached = ~graph.reached(labelled)
        self.G = unit_precision(list(graph.operators.values()), self.alpha)
        self.L = np.flatnonzero(labelled)
        self.noise = None if noise is None else np.where(labelled, noise, np.nan)
        gain = None if noise is None else 1 / (1 + self.beta * noise[self.L])
        self.channel = Channel(gain, self.L, graph.n_nodes)
        hidden = self.channel.hidden(labelled)
        self.U = in_order(graph, hidden & ~self.unreached if self.improper else hidden)
        self.n_hidden = int(self.rows.sum(len(self.U)))
        self.G_UU = self.G.submatrix(self.U)
        if (scale := self.channel.scale(self.U)) is not None:
            self.G_UU = Shifted(self.G_UU.S.scaled(scale), self.G_UU.alpha)
        self.draws = Draws(self.G_UU, self.solver, draws, random_state, np.abs(self.alpha).max())
        self.exact_forced = exact is not None
        if isinstance(design, np.ndarray):
            design = Design(design) if design.shape[1] else None
        self.coefficients = None if design is None else Coefficients(self, design)

    def given(self, labelled: np.ndarray, noise: np.ndarray | None = None, **settings: Any) -> Conditional:
        """Return the same distribution, given residuals at other nodes (n,) bool, with ``noise`` (n,) there.

        Further ``settings`` replace its own.
        """
        alpha = dict(zip(self.graph.edge_types, self.alpha, strict=True))
        design = self.coefficients.given if self.coefficients else None
        settings = self._settings | settings
        return Conditional(self.graph, labelled, alpha, self.beta, design=design, noise=noise, **settings)

    @cached_property
    def exact(self) -> bool:
        """Whether variances come from a factor."""
        if self._settings["exact"] is not None:
            return bool(self._settings["exact"])
        return factor_seconds(self.G_UU.S, EXACT_SECONDS) <= EXACT_SECONDS

    def conditional_mean(self, R: np.ndarray) -> np.ndarray:
        """Return columns (n,) or (n, k), known at L, with their conditional mean at U; 0 where nothing is known."""
        full = np.where(self.labelled[:, None], R.reshape(len(R), -1), 0.0)
        full[self.L] = self.channel.seen(full[self.L])
        pull = self.channel.pull(self.G, full, self.U)
        return self.channel.add(full, self.solver.solve(self.G_UU, pull).X, self.U).reshape(R.shape)

    def pulled(self, R: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """Return ``Gbar R`` (|L|, ..) of columns R (n, ..), known at L, whose conditional mean may be given."""
        mean = self.conditional_mean(R) if mean is None else mean
        return self.channel.pulled(R[self.L], mean, self.G @ mean)

    def quadratic_form(self, r: np.ndarray) -> float:
        """Return ``r_L' Gbar r_L`` of residuals r (n,), known at L."""
        full = self.conditional_mean(r)[:, None]
        noisy = self.channel.misfit(r[self.L, None], full, self.rows)[0, 0]
        return float(self.rows.inner(full, self.G @ full)[0] + noisy)

    def mean_of(self, r: np.ndarray) -> np.ndarray:
        """Return the part (n,) of r (n,), known at L, that the design explains, by generalised least squares."""
        return self.coefficients.mean_of(r) if self.coefficients else np.zeros(self.graph.n_nodes)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return (count, n) joint draws of the deviation from the mean, 0 at nodes known exactly."""
        out = np.zeros((count, self.graph.n_nodes))
        drawn = self.channel.scaled(draw(self.G_UU, self.solver, count, rng), self.U)
        out[:, self.U] = drawn.T / np.sqrt(self.beta)
        return out + self.coefficients.sample(count, rng) if self.coefficients else out

    def variance(self) -> Estimate:
        """Return (n,) variances, 0 at nodes known exactly (and, for alpha = 1, where no label reaches)."""
        value, error = np.zeros(self.graph.n_nodes), np.zeros(self.graph.n_nodes)
        if self.n_hidden:
            part = self.hidden_variance
            value[self.U] = part.value / self.beta
            error[self.U] = part.stderr / self.beta
        if self.coefficients:
            value += self.coefficients.variance
        return Estimate(value, error)

    @property
    def hidden_variance(self) -> Estimate:
        """Variances (|U|,) at the nodes not known exactly, for beta = 1, of the coefficients as they are."""
        if self.exact:
            part = Estimate(self.factor(identity_minus(self.G_UU)).inverse.diagonal())
        else:
            part = inverse_diagonal(self.draws.precision, self.draws)
        scale = self.channel.scale(self.U)
        return part if scale is None else Estimate(scale**2 * part.value, scale**2 * part.stderr)

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
            return self.pulled(full)

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
