"""What a base is handed to fit itself together with the correlation: a fit of residuals, or a training loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from residua.by_id import labels_by_id
from residua.caller import warn
from residua.field.bartlett import bartlett_factor
from residua.field.correlation import CorrelationFit, crowded, maximise_likelihood
from residua.field.fold_fields import FoldFields
from residua.field.kinds import LAPLACIAN, NORMALISED, check_field, field_graph, highest_degree
from residua.field.likelihood import Likelihood
from residua.field.noise import Noise
from residua.field.noise_level import fit_with_noise
from residua.field.observed import Observed
from residua.field.profile import Profile
from residua.field.search import search
from residua.field.training_loss import Objective, PaperObjective, training_likelihood
from residua.graph.interface import GraphLike
from residua.linalg import Ratio, Strategy
from residua.linalg.workspace import cached_property
from residua.validation import check_count, check_known_values, check_noise


class Correlator:
    """Fits the correlation of whatever is left over at the labelled nodes of a graph.

    Parameters
    ----------
    graph : GraphLike
        The graph.
    labelled : ndarray of bool, shape (n,)
        Which nodes have a label.
    logdet : "auto" or Strategy
        How log-determinants are computed.
    random_state : int
        Seed of the probes.
    field : {"normalised", "laplacian"}
        Which precision the correlation has.
    noise : Noise or None
        What is known of the noise of the labels; None for labels without.
    """

    def __init__(
        self,
        graph: GraphLike,
        labelled: np.ndarray,
        logdet: str | Strategy = "auto",
        random_state: int = 0,
        field: str = NORMALISED,
        noise: Noise | None = None,
    ):
        self.graph, self.labelled, self.noise = field_graph(graph, field), labelled, noise
        self.highest_degree = highest_degree(graph) if field == LAPLACIAN else None
        self.logdet, self.random_state = logdet, random_state
        self.likelihood = Likelihood(self.graph, labelled, logdet, random_state=random_state)
        self._rough_ratio: Ratio | None = None  # with the probes that rough answers took

    def __repr__(self) -> str:
        return f"Correlator({self.logdet!r}, {self.random_state})"

    def __call__(
        self,
        y: np.ndarray,
        design: np.ndarray | None = None,
        start: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> CorrelationFit:
        """Fit alpha, beta and the coefficients of a linear mean to y (|L|,).

        Parameters
        ----------
        y : ndarray of shape (|L|,)
            Labels or residuals.
        design : ndarray of shape (|L|, d) or None
            Columns of the mean.
        start : ndarray of shape (p,) or None
            arctanh of an alpha near which to look.
        groups : ndarray of int, shape (d,), or None
            Groups of coefficients that share a prior variance, which is learned too; 0 for coefficients without a
            prior.
        """
        types, level = self.graph.edge_types, None
        if self.noise is not None:
            given = y, self.noise, design, groups
            found, profile, level = fit_with_noise(self.likelihood, *given, types, self.random_state)
        else:
            profile = Profile(self.likelihood, y, design, groups=groups)
            free = design if design is None or groups is None else design[:, groups == 0]
            bartlett = bartlett_factor(profile, free, self.random_state)
            found, profile = maximise_likelihood(profile, types, start, bartlett)
        if found.note and not profile.doubted:
            warn(found.note)
        if crowded(profile):
            warn(
                f"{profile.p} edge types are more than {profile.n} labels can tell apart: an alpha by itself means "
                "little; join types, or give ten labels for each."
            )
        effort, steps = profile.ratio.effort, profile.quadratic_form.steps
        strategy = getattr(profile.ratio, "strategy", self.likelihood.strategy)  # a fit may have gone over to factors
        seen = Observed(self.graph, self.labelled, y, design, strategy, effort, steps, groups=groups)
        if level is not None:
            seen = replace(seen, noise=level.noise, t=level.t)
        vars(seen)["profile"] = profile if level is None else level
        return replace(found, source=seen, highest_degree=self.highest_degree)

    def objective(self, labelled: np.ndarray) -> Objective:
        """Return a training loss on the residuals at ``labelled``, a part of the labelled nodes."""
        return Objective(self.graph, labelled, self.logdet, self.random_state)

    def paper_objective(self, lbfgs: bool = False) -> PaperObjective:
        """Return the paper's own updates on all labelled nodes."""
        return PaperObjective(self.graph, self.labelled, self.logdet, self.random_state, lbfgs)

    def fold_fields(self, known: np.ndarray) -> FoldFields:
        """Return the fields of models that know the labels ``known`` (n, k) each, alpha 0 to begin with."""
        return FoldFields(self.graph, known)

    @cached_property
    def _training_likelihood(self) -> Likelihood:
        return training_likelihood(self.graph, self.labelled, self.logdet, self.random_state)

    def rough_alpha(self, r: np.ndarray) -> np.ndarray:
        """Return the likeliest alpha (edge types,) of residuals r (|L|,) around a level, to a third of its error."""
        # The level goes with alpha: near 1, that of generalised least squares may be far from the mean.
        profile = Profile(self._training_likelihood, r, np.ones((len(r), 1)), self._rough_ratio)
        a, profile = search(profile, rough=True)
        self._rough_ratio = profile.ratio
        return np.tanh(a)

    def at(self, y: np.ndarray, a: np.ndarray, beta: float) -> CorrelationFit:
        """Return the fit of y (|L|,) at alpha = tanh(a) and beta as a training left them: no optimum, so no errors."""
        omega = self.likelihood.omega(y, np.tanh(a), beta)
        unknown = dict.fromkeys(self.graph.edge_types, np.nan)
        return CorrelationFit(
            alpha=dict(zip(self.graph.edge_types, map(float, np.tanh(a)), strict=True)),
            alpha_stderr=unknown,
            beta=beta,
            beta_stderr=np.nan,
            log_likelihood=-omega.value / 2,
            restricted_log_likelihood=-omega.value / 2,
            log_likelihood_mc_error=omega.stderr / 2,
            p_value=np.nan,
            n_labelled=self.likelihood.n_labelled,
            alpha_mc_error=dict.fromkeys(self.graph.edge_types, 0.0),
            methods={"alpha, beta": "as training left them", "log-determinant": self.likelihood.ratio.method},
            highest_degree=self.highest_degree,
        )


def fit_correlation(
    residual: Any,
    graph: Any,
    *,
    sample_weight: Any = None,
    noise_variance: Any = None,
    field: str = NORMALISED,
    logdet: str | Strategy = "auto",
    random_state: int = 0,
) -> CorrelationFit:
    """Learn how strongly, and with which sign, residuals are shared along edges.

    Parameters
    ----------
    residual : array_like of shape (n,)
        Residuals in the order of ``graph.nodes``, or a Series by id; NaN where unknown.
    graph : Graph
        The graph.
    sample_weight, noise_variance : array_like of shape (n,), Series or dict by id, optional
        Noise of the residuals, as in ``GraphRegressor.fit``: weights, or variances, which may be one number or
        "learned".
    field : {"normalised", "laplacian"}
        Which precision they have, ``beta (I - sum_t alpha_t S_t)`` or ``beta_0 (I + a (D - A))``, as in
        ``GraphRegressor``.
    logdet : "auto" or Strategy
        "auto" (exact where cheap), ``Eigen()``, ``Cholesky()`` or ``Lanczos(probes, steps)``.
    random_state : int
        Seed of the random probes, where they are used.

    Returns
    -------
    CorrelationFit

    Examples
    --------
    >>> import numpy as np, residua
    >>> ring = residua.Graph.from_edges(np.arange(50), (np.arange(50) + 1) % 50)
    >>> fit = residua.fit_correlation(np.sin(np.arange(50) / 4), ring)
    >>> fit.alpha["edge"] > 0.9, fit.p_value < 1e-6
    (True, True)
    """
    values, labelled = check_known_values(residual, graph, "residual")
    check_count(random_state, "random_state", 0)
    check_field(field)
    given = labels_by_id(sample_weight, graph, "sample_weight"), labels_by_id(noise_variance, graph, "noise_variance")
    found = check_noise(*given, graph, labelled)
    noise = Noise(found[0][labelled], found[1]) if found is not None and np.nanmax(found[0]) > 0 else None
    return Correlator(graph, labelled, logdet, random_state, field, noise)(values[labelled])
