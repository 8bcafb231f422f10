"""All that a fit knows: the graph and its labels, the fitted base, what it leaves over, and the field's alpha and beta.

y = base(X) + r,    r ~ N(0, Gamma^-1),    Gamma = beta (I - sum_t alpha_t S_t)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from residua.by_id import features_of, labels_alone, labels_by_id, with_labels
from residua.caller import warn
from residua.features import own_copy, same_features
from residua.field.coefficients import Design
from residua.field.conditional import Conditional
from residua.field.correlation import CorrelationFit
from residua.field.kinds import LAPLACIAN, NORMALISED, carried_over, field_graph, highest_degree, smoothing
from residua.field.later_labels import read_labels
from residua.field.leave_block_out import LeaveBlockOut, leave_block_out
from residua.field.prediction import Prediction
from residua.field.protocols import FittedBase, Leftover
from residua.field.spread import Spread, fit_spread
from residua.graph import Graph
from residua.graph.graph import read_only, same_graph
from residua.graph.growth import features_of_grown, merely_numbered, positions_within, shared_nodes
from residua.graph.regions import seen_missing
from residua.linalg.workspace import Workspace, cached_property
from residua.validation import check_features, check_graph, check_together

MAPPINGS = ("alpha", "alpha_stderr", "log_scores")
OWN_GRAPH = (
    "graph is that of the fit, which has its labels; leave graph out (y= by itself has labels that came later), or for "
    "other data give X, y and another graph."
)


@dataclass(frozen=True, eq=False, repr=False)
class FittedField(Workspace):
    """All that a fit knows, in one immutable value; ``GraphRegressor.field_`` of a fitted model.

    Predictions, intervals, averages, reports, plots, tables and files read it. What is computed from it when asked
    (``prediction`` and the factors behind it) is left behind by pickles and copies, which answer the same.

    Parameters
    ----------
    graph : Graph
        Training graph of n nodes.
    X : (n, d) array, DataFrame or sparse matrix
        Features, an array read-only; d = 0 for a base without features.
    y : (n,) array
        Labels, read-only, NaN where unknown.
    base : Base
        Fitted base.
    outcome : Outcome
        What the base leaves over at the labelled nodes.
    alpha : dict of float
        Correlation along the edges of each type; 1 for propagation, 0 for none.
    alpha_stderr : dict of float
        Standard errors of alpha.
    beta : float
        Precision of the residuals, corrected for the coefficients of a linear base.
    feature_names : (d,) array of str, optional
        Columns of the DataFrame that X was.
    random_state : int
        Seed of draws where variances are estimated.
    recipe : Recipe, optional
        How X and y were read from tables, None if they were not.
    draws : int
        Samples for variances where no factor is affordable.
    error_scale : float
        Errors at unlabelled nodes relative to those at labels that networks did not learn from: larger by what early
        stopping hides, smaller by what an average of networks spares.
    kind : {"normalised", "laplacian"}
        Which field: ``beta (I - sum_t alpha_t S_t)``, or ``beta_0 (I + a (D - A))``, of which alpha and beta are those
        of a node of the highest degree.
    log_scores : dict of float
        Where kinds of fields were tried: the leave-one-out log score a label of each.
    noise : (n,) array, optional
        Variances of the noise of the labels, NaN where there is none; None for labels without noise.
    spread_setting : "learned", "constant" or Spread
        Scale and tails of errors: learned from those of labels left out when asked for, those of the field, or given.

    Examples
    --------
    >>> import residua
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    >>> model.field_
    FittedField(base linear, 3107 of 3107 nodes labelled, alpha {'edge': 0.9973}, beta 311.2)
    >>> error = model.field_.prediction.leave_one_out.error
    """

    graph: Graph
    X: Any
    y: np.ndarray
    base: FittedBase
    outcome: Leftover
    alpha: Mapping[str, float]
    alpha_stderr: Mapping[str, float]
    beta: float
    feature_names: np.ndarray | None = None
    random_state: int = 0
    recipe: Any = None
    draws: int = 64
    error_scale: float = 1.0
    kind: str = NORMALISED
    log_scores: Mapping[str, float] = field(default_factory=dict)
    spread_setting: str | Spread = "constant"
    noise: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", own_copy(self.X))
        object.__setattr__(self, "y", read_only(self.y))
        if self.noise is not None:
            object.__setattr__(self, "noise", read_only(self.noise))
        for name in MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {name: dict(getattr(self, name)) for name in MAPPINGS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        alpha = {name: round(value, 4) for name, value in self.alpha.items()}
        labelled = f"{self.labelled.sum()} of {self.graph.n_nodes} nodes labelled"
        kind = "" if self.kind == NORMALISED else f"{self.kind}, "
        return f"FittedField(base {self.base.name}, {kind}{labelled}, alpha {alpha}, beta {self.beta:.4g})"

    @property
    def labelled(self) -> np.ndarray:
        """(n,) bool: nodes with a known label."""
        return ~np.isnan(self.y)

    @property
    def correlation(self) -> CorrelationFit | None:
        """Fit of alpha and beta, None unless they were learned here."""
        return self.outcome.correlation

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @property
    def field_graph(self) -> Graph:
        """The training graph as the field sees it: its normalised adjacency is S."""
        return field_graph(self.graph, self.kind)

    @property
    def smoothing(self) -> float | None:
        """The a of the Laplacian field; None of the normalised one."""
        if self.kind != LAPLACIAN:
            return None
        return smoothing(next(iter(self.alpha.values())), highest_degree(self.graph))

    @property
    def propagated(self) -> bool:
        """Whether the residuals are propagated: every alpha is 1."""
        return all(value == 1 for value in self.alpha.values())

    @property
    def in_sample(self) -> bool:
        """Whether every label had part in the training of a network."""
        return self.outcome.out_of_sample is not None and not self.outcome.out_of_sample.any()

    @property
    def marginal_variance(self) -> float:
        """Variance of a residual about which no label says anything."""
        known = np.isfinite(self.outcome.base_out_of_fold_error)
        errors = self.outcome.base_out_of_fold_error[known], self.outcome.residual
        sums = self.graph.rows.sum(np.array([(len(error), error @ error) for error in errors]))
        count, squares = sums[0] if sums[0, 0] else sums[1]
        return float(squares / count)

    @cached_property
    def spread(self) -> Spread:
        """Scale and tails of errors, learned from those of labels left out; constant where they are few."""
        if isinstance(self.spread_setting, Spread):
            return self.spread_setting
        learn = self.spread_setting == "learned" and not self.in_sample
        return fit_spread(self.prediction.spread_scores, self.random_state) if learn else Spread()

    @property
    def known_spread(self) -> str | Spread:
        """The spread where it was learned already, else its setting."""
        return self.spread if self.spread_setting == "learned" and self.computed("spread") else self.spread_setting

    @property
    def uncorrected(self) -> np.ndarray:
        """(|L|,) errors of the base without any correlation: out of fold where all are known, else its residuals."""
        error = self.outcome.base_out_of_fold_error
        return error if np.isfinite(error).all() else self.outcome.residual

    @cached_property
    def prediction(self) -> Prediction:
        """What the field says of the training graph."""
        residual = np.full(self.graph.n_nodes, np.nan)
        residual[self.labelled] = self.outcome.residual
        found = self._predicted(self.graph, self.X, self.y, self._design(self.X), self.noise)
        members, unseen, scale = self.outcome.members, self.outcome.out_of_sample, self.error_scale
        return replace(found, residual=residual, members=members, out_of_sample=unseen, error_scale=scale)

    @cached_property
    def left_out_blocks(self) -> LeaveBlockOut | None:
        """Labels as predicted without their block, where regions are missing and labels have no noise; else None."""
        missing = seen_missing(self.graph, self.labelled) if self.noise is None else None
        return None if missing is None else leave_block_out(self, missing)

    def _design(self, X: np.ndarray) -> Design | None:
        """Return the linear mean that was fitted with the correlation, at features X; None where there is none."""
        # Coefficients fitted without the correlation are taken as they are.
        return None if self.propagated else design_of(self.base, X)

    def given(self, X: Any = None, y: Any = None, graph: Graph | None = None) -> Prediction:
        """Return what the field says of the training graph, with further labels or other features, or of another graph.

        Parameters
        ----------
        X, y, graph : array, array, Graph
            As in ``GraphRegressor.predict``.
        """
        if graph is self.graph and y is not None:
            raise ValueError(OWN_GRAPH)
        if graph is None or graph is self.graph:
            return self.with_features(X, y)
        found, features = self.on(graph, X, y), features_of(X, graph)
        # A copy of the graph is another object: without a label, those of the fit would be left out unsaid.
        copied = y is None and self._within(graph) is None and same_graph(graph, self.graph)
        if copied and same_features(self.check_alike(graph, features)[1], self.X):
            raise ValueError(OWN_GRAPH)
        return found

    def condition_on(self, y: Any) -> Prediction:
        """Return what the field says of the training graph given further labels.

        Parameters
        ----------
        y : (n,) array, Series or dict
            Labels that came after the fit, NaN elsewhere; they replace those of the fit at the same nodes.
        """
        y, noise = self._labels(y, self.graph)
        members = None if self.outcome.members is None else self.base.predict_members(self.graph, self.X)
        return self.prediction.condition_on(y, members, noise)

    def _labels(self, given: Any, graph: Graph) -> tuple[np.ndarray, np.ndarray | None]:
        """Return checked labels (n,) of a graph, NaN where unknown, and the variances of their noise, if any."""
        own = None if self.noise is None else self.noise[self.labelled]
        return read_labels(given, graph, own, self.learned_noise is not None)

    @property
    def learned_noise(self) -> float | None:
        """Variance of the noise of a label of weight 1, None where it was not learned."""
        return None if self.correlation is None else self.correlation.noise_variance

    def with_features(self, X: Any, y: Any = None) -> Prediction:
        """Return what the field says of the training graph, were its features others than those of the fit.

        Parameters
        ----------
        X : (n, d) array, DataFrame or None
            Features in place of those of the fit; None for these.
        y : (n,) array, optional
            Labels that came after the fit, as in ``condition_on``.
        """
        given = y
        if X is not None:
            X, y = check_together(self.graph, X, y=labels_by_id(labels_alone(y), self.graph))
            given = with_labels(given, y)
        if X is None or same_features(X := self.check_alike(self.graph, X)[1], self.X):
            return self.prediction if y is None else self.condition_on(given)
        own = self.prediction
        found = self._predicted(self.graph, X, self.y, noise=self.noise)
        # Residuals at labels stay those of the fit, out of fold where it has such, but for what X changes in the base:
        # features that the base does not use change nothing.
        seen = self._members(np.arange(self.graph.n_nodes), self.graph, X)
        found = replace(found, residual=own.residual - (found.base - own.base), **seen)
        if y is None:
            return found
        y, noise = self._labels(given, self.graph)
        return found.condition_on(y, noise=noise)

    def on(self, graph: Graph, X: Any = None, y: Any = None) -> Prediction:
        """Return what the field says of another graph.

        Parameters
        ----------
        graph : Graph
            The other graph, of m nodes and the same edge types, or some of them. One that has every node and edge of
            the training graph is that graph, grown: the labels of the fit are known there, by id.
        X : (m, d) array or DataFrame, optional
            Features as those of the fit. On the training graph, grown, a DataFrame may have the rows of new nodes only.
        y : (m,) array, optional
            Known labels, NaN where unknown.
        """
        given = y
        X, y = features_of(X, check_graph(graph)), labels_by_id(labels_alone(y), graph)
        at = self._within(graph, warned=y is None)
        if at is not None:
            X = features_of_grown(X, self.X, self.feature_names, at, graph)
        X, y = check_together(graph, X, y=y)
        graph, X = self.check_alike(graph, X)
        y, noise = self._labels(with_labels(given, y), graph)
        if at is None:
            return self._predicted(graph, X, y, noise=noise)
        members = None if self.outcome.members is None else self.base.predict_members(graph, X)
        return self._on_grown(graph, X, at).condition_on(y, members, noise)

    def labels_on(self, graph: Graph) -> np.ndarray:
        """Return the labels (m,) of the fit at the nodes of another graph, NaN where there is none.

        A graph that has every node and every edge of the training graph is that graph, grown, and the labels of the fit
        are known there. Ids that are merely 0, 1, 2, .. are no evidence; there only a graph that ``with_nodes`` made
        counts.
        """
        labels, at = np.full(graph.n_nodes, np.nan), self._within(graph)
        if at is not None:
            labels[at] = self.y
        return labels

    def _within(self, graph: Graph, warned: bool = False) -> np.ndarray | None:
        """Return where the training nodes are in a graph that is the training graph, grown; None in any other."""
        numbered = merely_numbered(self.graph) and merely_numbered(graph)
        if numbered and not graph.grown:
            return None
        at = positions_within(self.graph, graph)
        if at is None and warned:
            shared = shared_nodes(self.graph, graph)[self.labelled] >= 0
            if shared.any():
                warn(
                    f"graph has {shared.sum():,} of the {len(shared):,} labelled nodes of the fit, but not all nodes "
                    "and edges of its graph, so it counts as another graph and these labels are not used; pass y= with "
                    "those that hold, or y={} if none does."
                )
        return at

    def _on_grown(self, graph: Graph, X: np.ndarray, at: np.ndarray) -> Prediction:
        """Return what the labels of the fit say of the training graph, grown, whose old nodes are at ``at`` now."""
        own = self.prediction
        y = np.full(graph.n_nodes, np.nan)
        y[at] = self.y
        noise = None
        if self.noise is not None:
            noise = np.full(graph.n_nodes, np.nan)
            noise[at] = self.noise
        found = self._predicted(graph, X, y, self._design(X), noise)
        # Residuals at labels stay those of the fit, out of fold where it has such, but for what new nodes change.
        residual = np.full(graph.n_nodes, np.nan)
        residual[at] = own.residual - (found.base[at] - own.base)
        return replace(found, residual=residual, **self._members(at, graph, X))

    def _members(self, at: np.ndarray, graph: Graph, X: Any) -> dict[str, Any]:
        """Return residuals of networks at labels, which they saw and how far errors are off, where the base moves."""
        members, unseen = self.prediction.members, self.prediction.out_of_sample
        if members is not None and unseen is not None:
            moved = self.base.predict_members(graph, X)[:, at] - self.base.predict_members(self.graph, self.X)
            moved = moved if len(moved) == len(members) else moved.mean(axis=0, keepdims=True)
            order = np.argsort(at[self.labelled])
            members, unseen = (members - moved[:, self.labelled])[:, order], unseen[:, order]
        return {"members": members, "out_of_sample": unseen, "error_scale": self.error_scale}

    def check_alike(self, graph: Any, X: Any) -> tuple[Graph, Any]:
        """Return another graph and its features as the base takes them, if both are like those of the fit."""
        graph = check_graph(graph)
        if not set(graph.edge_types) <= set(self.alpha):
            raise ValueError(
                f"graph has edge types {list(graph.edge_types)} but the model learned {list(self.alpha)}; "
                "name the edge types alike."
            )
        like, none = (self.n_features, self.feature_names), self.n_features == 0
        return graph, check_features(X, graph, optional=none, like=like, as_is=self.base.takes_tables)[0]

    def _predicted(
        self, graph: Graph, X: Any, y: np.ndarray, design: Design | None = None, noise: np.ndarray | None = None
    ) -> Prediction:
        base = self.base.predict(graph, X)
        alpha, beta = self.alpha_and_beta_on(graph)
        drawn: Any = {"draws": self.draws, "random_state": self.random_state}
        drawn |= {"design": design, "noise": noise}
        conditional = Conditional(field_graph(graph, self.kind), ~np.isnan(y), alpha, beta, **drawn)
        spread: Any = {"features": X, "spread_of": partial(getattr, self, "spread")}
        return Prediction(graph, y, base, y - base, conditional, self.marginal_variance, **spread)

    def alpha_and_beta_on(self, graph: Graph) -> tuple[dict[str, float], float]:
        """Return alpha and beta of the field on another graph: what is learned of a Laplacian is beta_0 and a."""
        alpha = {name: self.alpha[name] for name in graph.edge_types}
        if self.kind == NORMALISED or graph is self.graph:
            return alpha, self.beta
        ((name, value),) = alpha.items()
        there, beta = carried_over(value, self.beta, highest_degree(self.graph), highest_degree(graph))
        return {name: there}, beta


def design_of(base: FittedBase, X: np.ndarray) -> Design | None:
    """Return the mean that a base has at features X (n, d), where it is linear in its coefficients; else None."""
    one = base.design(X[:1])
    if one is None or not one.shape[1]:
        return None
    columns: Any = partial(base.design, X)
    return Design(columns, base.prior_variance, base.coefficients)
