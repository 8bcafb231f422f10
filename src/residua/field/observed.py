"""What a correlation was learned from: its likelihood can be asked again by an interval, in any process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from residua.field.alpha_interval import profile_interval
from residua.field.likelihood import Likelihood
from residua.field.noise import Noise
from residua.field.noise_level import NoiseLevel
from residua.field.profile import Profile
from residua.graph.interface import GraphLike
from residua.linalg import Strategy
from residua.linalg.workspace import Workspace, cached_property


@dataclass(frozen=True)
class Observed(Workspace):
    """Labels or residuals of a graph, and the effort that their likelihood took: it can be asked again at any time.

    Attributes
    ----------
    graph : GraphLike
        The graph.
    labelled : ndarray of bool, shape (n,)
        Which nodes have a label.
    y : ndarray of shape (|L|,)
        Labels or residuals at the labelled nodes.
    design : ndarray of shape (|L|, d) or None
        Columns of a linear mean fitted with the correlation.
    strategy : Strategy
        How log-determinants are computed.
    effort : tuple of int
        Probes and steps of the log-determinants.
    krylov_steps : int
        Steps of the quadratic form; -1 where each alpha costs a solve.
    restricted : bool
        Whether the likelihood is the restricted one; that of model files of version 0.1 is plain.
    groups : ndarray of int, shape (d,), or None
        Groups of coefficients that share a prior variance, 0 for coefficients without a prior.
    noise : Noise or None
        What was known of the labels' noise; None for labels without.
    t : float
        log(beta sigma^2), how strong that noise is beside the field.
    """

    graph: GraphLike
    labelled: np.ndarray
    y: np.ndarray
    design: np.ndarray | None
    strategy: Strategy
    effort: tuple[int, ...]
    krylov_steps: int
    restricted: bool = True
    groups: np.ndarray | None = None
    noise: Noise | None = None
    t: float = 0.0

    @cached_property
    def profile(self) -> Profile | NoiseLevel:
        """The profile likelihood, as the fit left it."""
        likelihood = Likelihood(self.graph, self.labelled, self.strategy)
        if self.noise is not None:
            level = NoiseLevel(likelihood, self.y, self.noise, self.design, self.groups, self.t)
            level.effort, level.steps = self.effort, self.krylov_steps
            return level
        ratio = likelihood.ratio.with_effort(self.effort)
        profile = Profile(likelihood, self.y, self.design, ratio, self.restricted, self.groups)
        profile.quadratic_form.with_steps(self.krylov_steps)
        return profile

    def interval(self, a: np.ndarray, t: int, drop: float) -> tuple[float, float]:
        return profile_interval(self.profile, a, t, drop)

    def restricted_log_likelihood(self, a: np.ndarray) -> float:
        return self.profile.restricted_log_likelihood(a)
