"""GraphRegressor: a base regressor and the correlation of what it leaves over.

    prediction at U = base + correction,   correction = conditional mean of the residuals given those at L

The scikit-learn estimator of this package. It reads like the method: check, fit the base, fit the correlation,
condition on what is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin

from residua import metrics
from residua.diagnosis import Diagnosis, diagnose
from residua.gaussian import Conditional, CorrelationFit, LeaveOneOut, Likelihood
from residua.gaussian.fit import fit_profile
from residua.gaussian.propagate import warn_unreached
from residua.graph import Graph
from residua.numerics import Strategy
from residua.regressors.base import Base, Outcome, Task, make_base
from residua.validation import (
    check_choice,
    check_features,
    check_fitted,
    check_graph,
    check_known_values,
    check_share,
    check_values,
)


@dataclass(frozen=True)
class Situation:
    """A graph with its known labels, ready to be predicted."""

    graph: Graph
    y: np.ndarray  # (n,), NaN where unknown
    base: np.ndarray  # (n,) base prediction
    residual: np.ndarray  # (n,), NaN where unknown
    conditional: Conditional

    @property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.y)


class GraphRegressor(RegressorMixin, BaseEstimator):
    """Predict numbers on the nodes of a graph.

    Parameters
    ----------
    base : "zero", "mean", "linear", or any scikit-learn regressor
        What explains a node from its features. A linear base is fitted together with the correlation by generalised
        least squares; a scikit-learn regressor is cross-fitted and its out-of-fold residuals are correlated.
    correlation : "learned", "propagate" or None
        Learned strength and sign of the residuals' correlation; label propagation of them (alpha = 1); or none.
    logdet : "auto", ``Eigen()``, ``Cholesky()`` or ``Lanczos(...)``
        How log-determinants are computed; "auto" is exact where that is cheap.
    folds : int
        Folds of the cross-fitting of a scikit-learn base.
    random_state : int
        Seed of everything random.

    Attributes
    ----------
    alpha_, alpha_stderr_ : dict by edge type
    beta_ : float, precision of the residuals, corrected for the coefficients of a linear base
    base_ : the fitted base
    correlation_ : the ``CorrelationFit``, None unless learned
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np, residua
    >>> data = residua.datasets.load_elect80()
    >>> y = data.y.copy()
    >>> y[::3] = np.nan
    >>> model = residua.GraphRegressor(base="linear").fit(data.X, y, graph=data.graph)
    >>> mean, std = model.predict(return_std=True)
    >>> bool(model.score(data.X, data.y) > 0.6), model.alpha_["edge"] > 0.9
    (True, True)
    """

    def __init__(self, base="linear", correlation="learned", logdet="auto", folds=5, random_state=0):
        self.base = base
        self.correlation = correlation
        self.logdet = logdet
        self.folds = folds
        self.random_state = random_state

    def fit(self, X, y, *, graph: Graph | None = None) -> GraphRegressor:
        """Learn from the known labels.

        Parameters
        ----------
        X : (n, d) features of every node in the order of ``graph.nodes``; None for bases "zero" and "mean"
        y : (n,) labels, NaN where unknown
        graph : the graph
        """
        graph = check_graph(graph)
        check_choice(self.correlation, ("learned", "propagate", None), "correlation")
        y, labelled = check_known_values(y, graph, "y")
        base = make_base(self.base)
        X, names = check_features(X, graph, optional=self.base in ("zero", "mean"))
        likelihood = self._likelihood(graph, labelled) if self.correlation == "learned" else None
        correlate = partial(fit_profile, likelihood, edge_types=graph.edge_types) if likelihood else None
        task = Task(graph, X, y, labelled, self.folds, self.random_state)
        outcome = base.fit(task, (lambda r, Z: correlate(r, design=Z)) if correlate else None)
        self._store(graph, X, names, y, base, outcome)
        if correlate:
            self._store_correlation(outcome.correlation or correlate(outcome.residual))
        else:
            self._store_fixed(1.0 if self.correlation == "propagate" else 0.0)
        return self

    def _likelihood(self, graph: Graph, labelled: np.ndarray) -> Likelihood:
        if not isinstance(self.logdet, str | Strategy):
            raise ValueError(f'logdet={self.logdet!r} is unknown; use "auto", Eigen(), Cholesky() or Lanczos().')
        return Likelihood(graph, labelled, self.logdet, random_state=self.random_state)

    def _store(self, graph: Graph, X, names, y, base: Base, outcome: Outcome) -> None:
        self.graph_, self.X_, self.y_, self.base_, self.outcome_ = graph, X, y, base, outcome
        self.n_features_in_ = X.shape[1]
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.__dict__.pop("_fitted", None)
        self.__dict__.pop("_left_out", None)

    def _store_correlation(self, fit: CorrelationFit) -> None:
        self.correlation_: CorrelationFit | None = fit
        self.alpha_, self.alpha_stderr_ = fit.alpha, fit.alpha_stderr
        # Fitted coefficients use up degrees of freedom, as in least squares.
        self.beta_ = fit.beta * max(1 - len(fit.coefficients) / fit.n_labelled, 1 / fit.n_labelled)

    def _store_fixed(self, alpha: float) -> None:
        """alpha is given, 0 or 1; beta is the residuals' precision under it."""
        self.correlation_ = None
        self.alpha_ = dict.fromkeys(self.graph_.edge_types, alpha)
        self.alpha_stderr_ = dict.fromkeys(self.graph_.edge_types, 0.0)
        self.beta_ = 1.0
        situation = self._situation(self.graph_, self.X_, self.y_, self._own_residual())
        full = situation.conditional.extend(situation.residual)
        q = float(full @ (situation.conditional.G @ full))
        used = len(np.unique(self.graph_.components[situation.known])) if alpha else self._columns()
        if q <= 1e-13 * max(float(self.outcome_.residual @ self.outcome_.residual), np.finfo(float).tiny):
            raise ValueError(
                f"base={self.base_.name} leaves no residual at the {situation.known.sum()} labels "
                "(a constant y, or more features than labels); there is nothing to learn."
            )
        self.beta_ = max(situation.known.sum() - used, 1) / q

    def _columns(self) -> int:
        Z = self.base_.design(self.X_)
        return 0 if Z is None else Z.shape[1]

    def _own_residual(self) -> np.ndarray:
        residual = np.full(self.graph_.n_nodes, np.nan)
        residual[~np.isnan(self.y_)] = self.outcome_.residual
        return residual

    def _situation(self, graph: Graph, X, y, residual=None) -> Situation:
        base = self.base_.predict(graph, X)
        residual = y - base if residual is None else residual
        # A mean fitted by propagation's own least squares is not one fitted under alpha = 1.
        design = None if self.correlation == "propagate" or graph is not self.graph_ else self.base_.design(X)
        conditional = Conditional(
            graph, ~np.isnan(y), dict(self.alpha_), self.beta_, design=design, random_state=self.random_state
        )
        return Situation(graph, y, base, residual, conditional)

    @property
    def _own(self) -> Situation:
        """The training graph; kept, since variances and leave-one-out share its solves."""
        if "_fitted" not in self.__dict__:
            self._fitted = self._situation(self.graph_, self.X_, self.y_, self._own_residual())
        return self._fitted

    def _resolve(self, X, y, graph: Graph | None) -> Situation:
        check_fitted(self)
        if graph is None and X is None and y is None:
            return self._own
        if graph is None or graph is self.graph_:
            raise ValueError(
                "predict() without arguments answers for the training graph; for other data give X, y and graph=."
            )
        graph = check_graph(graph)
        if set(graph.edge_types) != set(self.alpha_):
            raise ValueError(
                f"graph has edge types {list(graph.edge_types)} but the model learned {list(self.alpha_)}; "
                "name the edge types alike."
            )
        names = getattr(self, "feature_names_in_", None)
        X, _ = check_features(X, graph, optional=self.n_features_in_ == 0, like=(self.n_features_in_, names))
        y = np.full(graph.n_nodes, np.nan) if y is None else check_values(y, graph, "y")
        return self._situation(graph, X, y)

    def predict(self, X=None, y=None, *, graph: Graph | None = None, return_std: bool = False, known: str = "label"):
        """Predict every node of the training graph, or of another graph given its features and few known labels.

        Parameters
        ----------
        X, y, graph : another graph, its features (n, d) and its known labels (n,), NaN or None where there are none
        return_std : also return standard deviations
        known : "label" returns known labels as they are, with std 0; "predict" gives leave-one-out predictions there

        Returns
        -------
        (n,) predictions in the order of the graph's nodes, and (n,) standard deviations if asked.
        """
        check_choice(known, ("label", "predict"), "known")
        situation = self._resolve(X, y, graph)
        mean = self._mean(situation)
        if known == "predict":
            mean[situation.known] = situation.y[situation.known] - self._leave_one_out(situation).error
        if not return_std:
            return mean
        std = self._std(situation)
        if known == "predict":
            std[situation.known] = np.sqrt(self._leave_one_out(situation).variance)
        return mean, std

    def _mean(self, situation: Situation) -> np.ndarray:
        filled = situation.conditional.extend(situation.residual)
        if situation.conditional.improper and situation.conditional.unreached.any():
            warn_unreached(situation.graph, situation.conditional.unreached, "they get the base prediction")
        return np.where(situation.known, situation.y, situation.base + filled)

    def _std(self, situation: Situation) -> np.ndarray:
        variance = np.array(situation.conditional.variance().value)
        if situation.conditional.improper:
            variance[situation.conditional.unreached] = self._marginal_variance()
        return np.sqrt(variance)

    def _marginal_variance(self) -> float:
        """Of a residual about which no label says anything."""
        return float(np.mean(self.outcome_.alone**2))

    def _leave_one_out(self, situation: Situation) -> LeaveOneOut:
        if situation is self._own and "_left_out" in self.__dict__:
            return self._left_out
        found = situation.conditional.leave_one_out(situation.residual)
        lone = ~np.isfinite(found.variance)
        found = replace(found, variance=np.where(lone, self._marginal_variance(), found.variance))
        if situation is self._own:
            self._left_out = found
        return found

    def predict_interval(
        self, X=None, y=None, *, graph: Graph | None = None, coverage: float = 0.9, method: str = "conformal"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of an interval for every node; both are the label at labelled nodes.

        ``method="conformal"`` widens the Gaussian interval until it covers the training labels left out one by one,
        so its coverage does not rest on normality; ``"gaussian"`` takes the model at its word.
        """
        check_choice(method, ("conformal", "gaussian"), "method")
        check_share(coverage, "coverage")
        mean, std = self.predict(X, y, graph=graph, return_std=True)
        width = norm.ppf((1 + coverage) / 2) if method == "gaussian" else self._conformal_quantile(coverage)
        return mean - width * std, mean + width * std

    def _conformal_quantile(self, coverage: float) -> float:
        left_out = self._leave_one_out(self._own)
        scores = np.sort(np.abs(left_out.error) / np.sqrt(left_out.variance))
        rank = int(np.ceil((len(scores) + 1) * coverage))
        # With few labels no finite width has the guarantee: fall back to the widest seen or the Gaussian's.
        return float(scores[rank - 1]) if rank <= len(scores) else max(scores[-1], norm.ppf((1 + coverage) / 2))

    def sample(self, n_samples: int = 1, X=None, y=None, *, graph: Graph | None = None, random_state: int | None = None):
        """(n_samples, n) joint draws of all labels given the known ones, which are returned as known."""
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples} is below 1.")
        situation = self._resolve(X, y, graph)
        rng = np.random.default_rng([self.random_state if random_state is None else random_state, 1])
        draws = self._mean(situation) + situation.conditional.sample(n_samples, rng)
        if situation.conditional.improper:
            alone = situation.conditional.unreached
            draws[:, alone] += np.sqrt(self._marginal_variance()) * rng.standard_normal((n_samples, alone.sum()))
        return draws

    def score(self, X, y, *, known=None, graph: Graph | None = None) -> float:
        """R2 at nodes whose label was unknown to the model.

        Parameters
        ----------
        X : features; None, or those of the fit, for the training graph
        y : (n,) true labels, NaN where unknown; nodes that were labelled in ``fit`` (or in ``known``) do not count
        known : (n,) labels of another graph to condition on
        graph : another graph
        """
        check_fitted(self)
        other = graph is not None and graph is not self.graph_
        situation = self._resolve(X, known, graph) if other else self._own
        truth = check_values(y, situation.graph, "y")
        held_out = ~np.isnan(truth) & ~situation.known
        if held_out.sum() < 2:
            raise ValueError(
                f"y has {held_out.sum()} labels that the model has not seen; at least 2 are needed to score. "
                "Mask some labels as NaN in fit, or see diagnose() for leave-one-out accuracy."
            )
        return metrics.r2(truth[held_out], self._mean(situation)[held_out])

    def diagnose(self) -> Diagnosis:
        """How much the neighbours help: leave-one-out accuracy and residual correlation before and after."""
        check_fitted(self)
        left_out = self._leave_one_out(self._own)
        alpha = self.correlation_.interval() if self.correlation_ else {t: (a, a) for t, a in self.alpha_.items()}
        return diagnose(
            graph=self.graph_,
            y=self.y_,
            base_error=self.outcome_.alone,
            corrected_error=left_out.error,
            corrected_variance=left_out.variance,
            alpha=self.alpha_,
            alpha_interval=alpha,
            correlation=self.correlation,
            p_value=self.correlation_.p_value if self.correlation_ else None,
        )

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, whole or not at all; ``residua.load`` reads it."""
        from residua.persistence import save

        check_fitted(self)
        save(self, path)
