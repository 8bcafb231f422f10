"""GraphRegressor: a base regressor and the correlation of what it leaves over.

    prediction at U = base + correction,   correction = conditional mean of the residuals given those at L

The scikit-learn estimator of this package. It reads like the method: check, fit the base, fit the correlation,
condition on what is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin, clone

from residua.bases.base import Base, Outcome, Task
from residua.bases.registry import find_base, make_base
from residua.diagnosis import Diagnosis, diagnose
from residua.field import Conditional, CorrelationFit
from residua.field.training_loss import Correlator
from residua.graph import Graph
from residua.prediction import Prediction, conformal_quantile, score_unseen
from residua.validation import (
    check_choice,
    check_count,
    check_features,
    check_fitted,
    check_graph,
    check_known_values,
    check_share,
    check_values,
)


class GraphRegressor(RegressorMixin, BaseEstimator):
    """Predict numbers on the nodes of a graph.

    Parameters
    ----------
    base : "zero", "mean", "linear", "trees", "mlp", "hops", "gcn", "sage", "sage-gcn", "sage-max", "sage-pool", \
            a scikit-learn regressor, a torch module or a ``Network``
        What explains a node from its features. The default, "hops", is as good as any single one over the data sets of
        the paper; it is a network and needs ``residua[gnn]``, "linear" does not. A linear base is fitted together with
        the correlation by generalised least squares; "trees" (scikit-learn's boosted trees) or a scikit-learn
        regressor is cross-fitted and its out-of-fold residuals are correlated; a network is trained through the
        likelihood. A torch module is called as ``module(x, edge_index)``.
    correlation : "learned", "propagate" or None
        Learned strength and sign of the residuals' correlation; label propagation of them (alpha = 1); or none.
    training : "joint", "post-hoc" or "paper"
        Networks only: through the likelihood; by squared error, the correlation afterwards; or by the mini-batches of
        the paper.
    ensemble : int
        Networks only: how many networks are averaged.
    logdet : "auto", ``Eigen()``, ``Cholesky()`` or ``Lanczos(...)``
        How log-determinants are computed; "auto" is exact where that is cheap.
    folds : int
        Folds of the cross-fitting of a scikit-learn base.
    random_state : int
        Seed of everything random.
    checkpoint : path or None
        Networks only: a file in which training is kept every few seconds. A ``fit`` that was killed goes on from it
        and ends at the same numbers; remove the file when it is no longer needed.

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

    def __init__(
        self,
        base="hops",
        correlation="learned",
        training="joint",
        ensemble=1,
        logdet="auto",
        folds=5,
        random_state=0,
        checkpoint=None,
    ):
        self.base = base
        self.correlation = correlation
        self.training = training
        self.ensemble = ensemble
        self.logdet = logdet
        self.folds = folds
        self.random_state = random_state
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, *, graph: Graph | None = None) -> GraphRegressor:
        """Learn from the known labels.

        Parameters
        ----------
        X : (n, d) features of every node in the order of ``graph.nodes``; None for bases "zero" and "mean"
        y : (n,) labels, NaN where unknown
        graph : the graph
        """
        graph = check_graph(graph)
        check_choice(self.correlation, ("learned", "propagate", None), "correlation")
        check_count(self.folds, "folds", 2)
        check_count(self.random_state, "random_state", 0)
        y, labelled = check_known_values(y, graph, "y")
        check_choice(self.training, ("joint", "post-hoc", "paper"), "training")
        check_count(self.ensemble, "ensemble", 1)
        base = make_base(self.base, self.training, self.ensemble)
        X, names = check_features(X, graph, optional=not find_base(self.base).features)
        correlate = None
        if self.correlation == "learned":
            correlate = Correlator(graph, labelled, self.logdet, self.random_state)
        task = Task(graph, X, y, labelled, self.folds, self.random_state, self.checkpoint)
        outcome = base.fit(task, correlate)
        fit = outcome.correlation
        if fit is not None:
            # Fitted coefficients use up degrees of freedom, as in least squares.
            beta = fit.beta * max(1 - len(fit.coefficients) / fit.n_labelled, 1 / fit.n_labelled)
            alpha, stderr = fit.alpha, fit.alpha_stderr
        else:
            alpha = dict.fromkeys(graph.edge_types, 1.0 if self.correlation else 0.0)
            stderr = dict.fromkeys(graph.edge_types, 0.0)
            beta = _precision_of(outcome.residual, graph, labelled, alpha, base.design(X))
        return self._store(graph, X, names, y, base, outcome, fit, alpha, stderr, beta)

    def _store(
        self,
        graph: Graph,
        X: np.ndarray,
        names: np.ndarray | None,
        y: np.ndarray,
        base: Base,
        outcome: Outcome,
        fit: CorrelationFit | None,
        alpha: dict[str, float],
        stderr: dict[str, float],
        beta: float,
    ) -> GraphRegressor:
        """All that was learned, at once: a fit that fails leaves the model as it was."""
        self.graph_, self.X_, self.y_, self.base_, self.outcome_ = graph, X, y, base, outcome
        self.correlation_, self.alpha_, self.alpha_stderr_, self.beta_ = fit, alpha, stderr, beta
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self._own_prediction: Prediction | None = None
        return self

    def _own_residual(self) -> np.ndarray:
        residual = np.full(self.graph_.n_nodes, np.nan)
        residual[~np.isnan(self.y_)] = self.outcome_.residual
        return residual

    def _predicted(self, graph: Graph, X: np.ndarray, y: np.ndarray, residual: np.ndarray | None = None) -> Prediction:
        base = self.base_.predict(graph, X)
        # Coefficients fitted without the correlation, or on another graph, are taken as they are.
        fitted_here = graph is self.graph_ and self.correlation != "propagate"
        conditional = Conditional(
            graph,
            ~np.isnan(y),
            {t: self.alpha_[t] for t in graph.edge_types},
            self.beta_,
            design=self.base_.design(X) if fitted_here else None,
            random_state=self.random_state,
        )
        own = residual is not None
        return Prediction(
            graph,
            y,
            base,
            y - base if residual is None else residual,
            conditional,
            self._marginal_variance(),
            self.outcome_.members if own else None,
            self.outcome_.out_of_sample if own else None,
        )

    def _marginal_variance(self) -> float:
        """Of a residual about which no label says anything."""
        error = self.outcome_.base_out_of_fold_error[np.isfinite(self.outcome_.base_out_of_fold_error)]
        return float(np.mean((error if len(error) else self.outcome_.residual) ** 2))

    @property
    def _own(self) -> Prediction:
        """The training graph."""
        if self._own_prediction is None:
            self._own_prediction = self._predicted(self.graph_, self.X_, self.y_, self._own_residual())
        return self._own_prediction

    def _resolve(self, X: Any, y: Any, graph: Graph | None) -> Prediction:
        check_fitted(self)
        if graph is self.graph_ or (graph is None and X is not None):
            raise ValueError(
                "predict() answers for the training graph with the X of the fit; leave X and graph out (y= alone has "
                "labels that came later), or for other data give X, y and graph=."
            )
        if graph is not None:
            return self._predicted(*self._check_other(X, y, graph))
        if y is None:
            return self._own
        each = None if self.outcome_.members is None else self.base_.predict_members(self.graph_, self.X_)
        return self._own.told(check_values(y, self.graph_, "y"), each)

    def _check_other(self, X: Any, y: Any, graph: Any) -> tuple[Graph, np.ndarray, np.ndarray]:
        """Another graph that is like the one of the fit."""
        graph = check_graph(graph)
        if not set(graph.edge_types) <= set(self.alpha_):
            raise ValueError(
                f"graph has edge types {list(graph.edge_types)} but the model learned {list(self.alpha_)}; "
                "name the edge types alike."
            )
        names = getattr(self, "feature_names_in_", None)
        X, _ = check_features(X, graph, optional=self.n_features_in_ == 0, like=(self.n_features_in_, names))
        return graph, X, np.full(graph.n_nodes, np.nan) if y is None else check_values(y, graph, "y")

    def fine_tune(
        self, X: Any, y: Any, *, graph: Graph | None = None, steps: int = 500, learning_rate: float = 5e-4
    ) -> GraphRegressor:
        """A copy of this model whose networks have gone on learning from the labels of another graph.

        The training is the paper's: squared error in batches of 5 % of the labels. alpha and beta stay as they were
        learned. To condition on the labels of another graph without any training, use ``predict``.

        Parameters
        ----------
        X, y, graph : the other graph, its features (n, d) and its known labels (n,), NaN where unknown
        steps, learning_rate : of Adam
        """
        check_fitted(self)
        check_count(steps, "steps", 1)
        graph, X, _ = self._check_other(X, None, graph)
        y, labelled = check_known_values(y, graph, "y")
        base = self.base_.fine_tuned(Task(graph, X, y, labelled, self.folds, self.random_state), steps, learning_rate)
        residuals = (y - base.predict_members(graph, X))[:, labelled]
        unknown = np.full(labelled.sum(), np.nan)
        alpha, stderr = ({t: v[t] for t in graph.edge_types} for v in (self.alpha_, self.alpha_stderr_))
        outcome: Outcome[CorrelationFit] = Outcome(
            residuals.mean(axis=0), unknown, members=residuals, out_of_sample=np.zeros(residuals.shape, bool)
        )
        names = getattr(self, "feature_names_in_", None)
        return clone(self)._store(graph, X, names, y, base, outcome, None, alpha, stderr, self.beta_)

    def predict(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        return_std: bool = False,
        known: str = "label",
    ) -> Any:
        """Predict every node of the training graph, or of another graph given its features and few known labels.

        Parameters
        ----------
        X, y, graph : another graph, its features (n, d) and its known labels (n,), NaN or None where there are none.
            ``y`` alone: labels of the training graph that came to be known since the fit, NaN elsewhere. They are
            conditioned on beside those of the fit, which they replace at the same nodes, and are not kept. Only a base
            "linear" or "mean" follows them (with correlation="propagate" none does); nothing else is fitted anew
        return_std : also return standard deviations
        known : "label" returns known labels as they are, with std 0; "predict" gives leave-one-out predictions there

        Returns
        -------
        (n,) predictions in the order of the graph's nodes, and (n,) standard deviations if asked.
        """
        check_choice(known, ("label", "predict"), "known")
        found = self._resolve(X, y, graph)
        mean = found.mean.copy()
        if known == "predict":
            mean[found.known] -= found.left_out.error
        if not return_std:
            return mean
        std = found.std.copy()
        if known == "predict":
            std[found.known] = np.sqrt(found.left_out.variance)
        return mean, std

    def predict_interval(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        coverage: float = 0.9,
        method: str = "conformal",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of an interval for every node; both are the label at labelled nodes.

        ``method="conformal"`` widens the Gaussian interval until it covers the training labels left out one by one,
        so its coverage does not rest on normality; ``"gaussian"`` takes the model at its word.
        """
        check_choice(method, ("conformal", "gaussian"), "method")
        check_share(coverage, "coverage")
        mean, std = self.predict(X, y, graph=graph, return_std=True)
        width = ndtri((1 + coverage) / 2) if method == "gaussian" else self._conformal_quantile(coverage)
        return mean - width * std, mean + width * std

    def _conformal_quantile(self, coverage: float) -> float:
        left_out, unseen = self._own.left_out, self._own.out_of_sample_labels
        return conformal_quantile(np.abs(left_out.error[unseen]) / np.sqrt(left_out.variance[unseen]), coverage)

    def sample(
        self,
        n_samples: int = 1,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        random_state: int | None = None,
    ) -> np.ndarray:
        """(n_samples, n) joint draws of all labels given the known ones, which are returned as known."""
        check_count(n_samples, "n_samples", 1)
        rng = np.random.default_rng([self.random_state if random_state is None else random_state, 1])
        return self._resolve(X, y, graph).sample(n_samples, rng)

    def score(self, X: Any, y: Any, *, known: Any = None, graph: Graph | None = None) -> float:
        """R2 at nodes whose label was unknown to the model.

        Parameters
        ----------
        X : features; None, or those of the fit, for the training graph
        y : (n,) true labels, NaN where unknown; nodes that were labelled in ``fit`` (or in ``known``) do not count
        known : (n,) labels to condition on: of another graph, or those of the training graph that came after the fit
        graph : another graph
        """
        check_fitted(self)
        other = graph is not None and graph is not self.graph_
        found = self._resolve(X, known, graph) if other else self._resolve(None, known, None)
        truth = check_values(y, found.graph, "y")
        return score_unseen(truth, found.mean, ~found.known)

    def diagnose(self) -> Diagnosis:
        """How much the neighbours help: leave-one-out accuracy and residual correlation before and after."""
        check_fitted(self)
        left_out, unseen = self._own.left_out, self.outcome_.out_of_sample
        alpha = self.correlation_.interval() if self.correlation_ else {t: (a, a) for t, a in self.alpha_.items()}
        return diagnose(
            graph=self.graph_,
            y=self.y_,
            residual=self.outcome_.residual,
            base_error=self.outcome_.base_out_of_fold_error,
            corrected_error=np.where(self._own.out_of_sample_labels, left_out.error, np.nan),
            corrected_variance=left_out.variance,
            decorrelated=self._own.conditional.decorrelated(self._own.residual),
            alpha=self.alpha_,
            alpha_interval=alpha,
            correlation=self.correlation,
            p_value=self.correlation_.p_value if self.correlation_ else None,
            in_sample=unseen is not None and not unseen.any(),
        )

    def _html_repr(self) -> str:
        """What a notebook shows."""
        from residua.views.notebook import model_html

        return model_html(self)

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, whole or not at all; ``residua.load`` reads it."""
        from residua.io.model_file import save

        check_fitted(self)
        save(self, path)


def _precision_of(
    residual: np.ndarray, graph: Graph, labelled: np.ndarray, alpha: dict[str, float], design: np.ndarray | None
) -> float:
    """Beta of residuals (|L|,) under a given alpha, 0 or 1."""
    conditional = Conditional(graph, labelled, alpha)
    full = np.full(graph.n_nodes, np.nan)
    full[labelled] = residual
    full = conditional.extend(full)
    q = float(full @ (conditional.G @ full))
    if q <= 1e-13 * max(float(residual @ residual), np.finfo(float).tiny):
        raise ValueError(
            f"the base leaves no residual at the {len(residual)} labels (a constant y, as many features as labels, or, "
            "with propagation, one label in each component); "
            "there is nothing to learn."
        )
    # Propagation leaves one free level on each component, a linear mean its coefficients.
    free = 0 if design is None else design.shape[1]
    if conditional.improper:
        free = len(np.unique(graph.components[labelled]))
    return max(len(residual) - free, 1) / q
