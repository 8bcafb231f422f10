"""GraphRegressor: a base regressor and the correlation of what it leaves over.

    prediction at U = base + correction,   correction = conditional mean of the residuals given those at L

The scikit-learn estimator of this package. It reads like the method: check, fit the base, fit the correlation,
condition on what is known.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone

from residua.bases.registry import find_base
from residua.by_id import whole_noise, whole_tables, with_noise
from residua.diagnosis import Diagnosis, diagnose
from residua.field import CorrelationFit, Correlator
from residua.field.fitted import FittedField
from residua.field.leave_block_out import LeaveBlockOut, leave_block_out
from residua.field.protocols import FittedBase, Leftover
from residua.fitting import Data, check_parameters, features_as_given, field_attribute, fine_tuned, learn
from residua.graph import Graph
from residua.graph.regions import Missing
from residua.interval_predictor import IntervalPredictor
from residua.linalg import Strategy
from residua.summary import Summary, summarise
from residua.targets import noise_by_target, seeds, target_columns
from residua.validation import (
    check_count,
    check_features,
    check_fitted,
    check_graph,
    check_seconds,
    check_together,
)


def _set_recipe(model: GraphRegressor, recipe: Any) -> None:
    model.field_ = replace(model.field_, recipe=recipe)


class GraphRegressor(IntervalPredictor, RegressorMixin, BaseEstimator):
    """Predict numbers on the nodes of a graph.

    Parameters
    ----------
    base : str, regressor, torch.nn.Module or Network
        What explains a node from its features: "zero", "mean", "linear", "splines", "trees", "mlp", "hops", "gcn",
        "sage", "sage-gcn", "sage-max", "sage-pool", a scikit-learn regressor, a torch module or a ``Network``. The
        default, "hops", is as good as any single one over the data sets of the paper; it is a network and needs the
        extra ``gnn``. The command line has another default, "linear", which needs no PyTorch, tells its coefficients
        and is fitted in a second; "hops" predicts better. Neither depends on what is installed. A linear base is fitted
        together with the correlation by generalised least squares, and so is "splines", a smooth curve of each feature;
        "trees" are boosted, and networks trained, through the likelihood; a scikit-learn regressor is refitted to what
        neighbours leave to explain, cross-fitted. A torch module is called as ``module(x, edge_index)``, with
        ``edge_weight`` and ``edge_attr`` where its ``forward`` takes them.
    correlation : "learned", "propagate" or None
        Learned strength and sign of the residuals' correlation; label propagation of them (alpha = 1); or none.
    training : "joint", "post-hoc" or "paper"
        Together with the correlation (networks and trees through the likelihood, a scikit-learn regressor by
        backfitting); by squared error, the correlation afterwards; or, networks only, by the mini-batches of the paper.
    ensemble : int
        Networks only: how many networks are averaged.
    logdet : "auto", Eigen, Cholesky or Lanczos
        How log-determinants are computed; "auto" is exact where that is cheap.
    folds : int
        Folds of the cross-fitting of a scikit-learn base.
    random_state : int
        Seed of everything random.
    checkpoint : path, optional
        Networks only: a file in which training is kept every few seconds. A ``fit`` that was killed goes on from it
        and ends at the same numbers; remove the file when it is no longer needed.
    device : "cpu", "cuda", "mps" or "auto"
        Networks only: where they are trained and asked; "auto" is a GPU where torch finds one. Features move with the
        network, in single precision where the device has no other; the graph stays on the CPU. A fitted model rests on
        the CPU and predicts there where the device is not.
    field : "normalised", "laplacian" or "auto"
        Precision of the residuals: ``beta (I - sum_t alpha_t S_t)``, S the adjacency normalised by degrees; or
        ``beta_0 (I + a (D - A))``, which smooths along edges of one type and does not expect larger residuals of nodes
        with many neighbours. "auto" fits both, and takes the one with the higher leave-one-out log score.
    spread : "learned" or "constant"
        Standard deviations and tails of errors. "learned" from leave-one-out errors, after the mean, which does not
        change: larger where features, degree, the prediction itself and errors of the labels around a node say so, with
        Student's tails; constant where the labels are few or do not support it. "constant" takes the field at its word:
        what differs between nodes is only where labels are, and tails are Gaussian.

    Attributes
    ----------
    field_ : FittedField
        All that the fit knows, in one immutable value; the attributes below read it.
    alpha_, alpha_stderr_ : dict of float
        Correlation along the edges of each type, and its standard error; of a Laplacian field, the share of its
        neighbours' mean that a node of the highest degree takes.
    beta_ : float
        Precision of the residuals given all neighbours (of a Laplacian field, at a node of the highest degree),
        corrected for the coefficients of a linear base.
    base_ : Base
        Fitted base.
    correlation_ : CorrelationFit
        Fit of alpha and beta, None unless learned.
    graph_, X_, y_ : Graph, array, array
        Training graph, features (n, d) and labels (n,), NaN where unknown.
    outcome_ : Outcome
        What the base leaves over at the labelled nodes.
    history_ : DataFrame
        How a training that stops early went: step or round, error at the labels that it is stopped on, alpha; not kept
        in model files.
    n_features_in_, feature_names_in_ : int, array of str
        Number and names of the features, as in scikit-learn.
    targets_ : dict of GraphRegressor or None
        After a fit of several targets: the fitted model of each, by name; the attributes above are then dicts by
        target, but for graph_ and X_, which are shared, and y_, which has a column for each.
    recipe_ : Recipe
        How the tables of the fit were read; there only where it was set, as ``residua fit`` does.

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

    # scikit-learn's metadata routing: the graph goes to ``fit``, and a fitted model has it.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"graph": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"graph": False, "known": False}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"graph": False}

    targets_: dict[Hashable, GraphRegressor] | None = None

    def __init__(
        self,
        base: Any = "hops",
        correlation: str | None = "learned",
        training: str = "joint",
        ensemble: int = 1,
        logdet: str | Strategy = "auto",
        folds: int = 5,
        random_state: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        device: Any = "cpu",
        field: str = "normalised",
        spread: str = "constant",
    ):
        self.base = base
        self.correlation = correlation
        self.training = training
        self.ensemble = ensemble
        self.logdet = logdet
        self.folds = folds
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.device = device
        self.field = field
        self.spread = spread

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        graph: Graph | None = None,
        sample_weight: Any = None,
        noise_variance: Any = None,
        validation: Any = None,
        verbose: bool = False,
        time_budget: float = float("inf"),
    ) -> GraphRegressor:
        """Learn from the known labels.

        Parameters
        ----------
        X : (n, d) array, DataFrame, tensor or ids of nodes (k,)
            Features of every node in the order of ``graph.nodes``; None for bases "zero" and "mean". A DataFrame whose
            index has the ids of the nodes is matched by id, in any order; the default index 0, 1, 2, .. is positions.
            Numbers without missing values; a scikit-learn regressor or pipeline gets the table as it is (a DataFrame
            with text, categories, dates, a sparse matrix), and "trees" take missing values, text and categories.
            The geometry of a GeoDataFrame is no feature. Tensors may be on any device. Or the ids of the nodes that y
            is of, where the graph carries the features (``graph.with_features``).
        y : (n,) array, Series or tensor, or (n, k) array or DataFrame
            Labels, NaN where unknown; a Series is matched as X is. Where X names nodes: their labels (k,), and those of
            all other nodes are unknown. Several columns are several targets, each with a base and a correlation of its
            own.
        graph : Graph
            The graph, of n nodes.
        sample_weight : (n,) array, Series or dict by id, optional
            Weights w of the labels, positive: each has independent noise of variance sigma^2 / w, sigma^2 learned.
        noise_variance : float, (n,) array, Series or dict by id, or "learned", optional
            Variance of the noise of each label, in the units of y squared, where it is known: 0 for a label without.
            Or "learned": one number for all labels, or for one of weight 1. Predictions are then of the value beneath
            the noise, also where there is a label. Needs ``correlation="learned"``, ``spread="constant"``, and a linear
            base or a scikit-learn regressor trained "post-hoc".
        validation : (n,) array of bool, or ids of nodes, optional
            Labelled nodes that a training which stops early is stopped on, and that it does not learn from: "trees" and
            networks. By default they are drawn at random.
        verbose : bool
            Print how such a training goes.
        time_budget : float
            CPU seconds, by default without end, after which such a training, or the rounds of a scikit-learn regressor,
            ends with the best so far.

        Returns
        -------
        GraphRegressor
            This model, fitted; one whose fit fails stays as it was.
        """
        graph = check_graph(graph)
        base, deadline = check_parameters(self), time.process_time() + check_seconds(time_budget, "time_budget")
        weight, noise = (
            whole_noise(graph, X, values, name)
            for values, name in ((sample_weight, "sample_weight"), (noise_variance, "noise_variance"))
        )
        X, y = whole_tables(graph, X, y)
        X, y = check_together(graph, X, y=y)
        X, names = check_features(X, graph, optional=not find_base(self.base).features, as_is=base.takes_tables)
        columns = target_columns(y)
        shared: dict[bytes, Correlator] = {}
        if columns is None:
            data = Data(graph, X, y, names, "y", validation, verbose, deadline, weight, noise)
            found = learn(self, base, data, shared)
            self.__dict__.pop("targets_", None)
            self.field_ = found
            return self
        if self.checkpoint is not None:
            raise ValueError("checkpoint is one file, and y has several targets; fit each by itself, or leave it out.")
        targets = {}
        weights = noise_by_target(weight, list(columns), "sample_weight")
        noises = noise_by_target(noise, list(columns), "noise_variance")
        for (name, column), *noisy in zip(columns.items(), weights, noises, strict=True):
            targets[name] = clone(self)
            data = Data(graph, X, column, names, f"y[{name!r}]", validation, verbose, deadline, *noisy)
            targets[name].field_ = learn(self, check_parameters(self), data, shared)
        self.__dict__.pop("field_", None)
        self.targets_ = targets
        return self

    @property
    def _field(self) -> FittedField:
        check_fitted(self)
        return self.field_

    alpha_: dict[str, float] = field_attribute("alpha")
    alpha_stderr_: dict[str, float] = field_attribute("alpha_stderr")
    beta_: float = field_attribute("beta")
    base_: FittedBase = field_attribute("base")
    correlation_: CorrelationFit | None = field_attribute("correlation")
    graph_: Graph = field_attribute("graph")
    X_: np.ndarray = field_attribute("X")
    y_: np.ndarray = field_attribute("y")
    outcome_: Leftover = field_attribute("outcome")

    @property
    def history_(self) -> pd.DataFrame:
        """How the training went, one row a step; no rows for a base that is fitted in one go, or from a model file."""
        return pd.DataFrame(list(self._field.outcome.history))

    n_features_in_: int = field_attribute("n_features")
    feature_names_in_: np.ndarray = field_attribute("feature_names", "X of the fit had no names of columns.")

    recipe_: Any = field_attribute("recipe", "this model was not fitted on tables.").setter(_set_recipe)

    def _moments(self, X: Any, y: Any, graph: Graph | None, left_out: bool, std: bool) -> tuple[np.ndarray, Any]:
        found = self._field.given(X, y, graph)
        # Deviations first: draws take the most memory, and need not find the means there.
        deviation = (found.left_out_std if left_out else found.std.copy()) if std else None
        return found.left_out_mean if left_out else found.mean.copy(), deviation

    def _columns(self, X: Any, y: Any, graph: Graph | None, width: float) -> dict[str, np.ndarray]:
        found = self._field.given(X, y, graph)
        return {**found.columns(width), "known": found.known, "leave_one_out": found.left_out}

    def _labels_on(self, graph: Graph) -> np.ndarray:
        return self._field.y if graph is self._field.graph else self._field.labels_on(graph)

    def _mean_with_features(self, X: Any, y: Any) -> np.ndarray:
        return self._field.with_features(X, y).mean

    def _learned_noise(self) -> float | None:
        return self._field.learned_noise

    def _scores(self) -> np.ndarray:
        return self._field.prediction.scores

    def _blocks(self, missing: Missing | None) -> LeaveBlockOut | None:
        return self._field.left_out_blocks if missing is None else leave_block_out(self._field, missing)

    @property
    def _first_field(self) -> FittedField:
        return self._field

    def refitted(self, y: np.ndarray) -> GraphRegressor:
        """Return a model of the same settings, fitted to labels y (n,) of the training graph."""
        again = clone(self).set_params(checkpoint=None)
        return again.fit(features_as_given(self._field), y, graph=self.graph_)

    def _predictive_width(self, coverage: float) -> float:
        return self._field.spread.width(coverage)

    def sample(
        self,
        n_samples: int = 1,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        random_state: int | None = None,
        noise_variance: Any = None,
    ) -> np.ndarray:
        """Draw all labels jointly given the known ones, which are returned as known; values where labels have noise.

        Parameters
        ----------
        n_samples : int
            Number of draws.
        X, y, graph : array, array, Graph
            Other data, as in ``predict``.
        random_state : int, optional
            Seed; by default that of the fit.
        noise_variance : float, (n,) array, Series or dict by id, optional
            Of the labels in y, as in ``predict``.

        Returns
        -------
        (n_samples, n) array
            Draws in the order of the graph's nodes; of k targets (n_samples, n, k), independent of each other.
        """
        check_count(n_samples, "n_samples", 1)
        if self.targets_ is not None:
            first = next(iter(self.targets_.values())).field_.random_state if random_state is None else random_state
            each = zip(self._each(y, noise_variance), seeds(first), strict=False)
            drawn = [one.sample(n_samples, X, own, graph=graph, random_state=seed) for (one, own), seed in each]
            return np.stack(drawn, axis=-1)
        field = self._field
        rng = np.random.default_rng([field.random_state if random_state is None else random_state, 1])
        return field.given(X, with_noise(y, noise_variance), graph).sample(n_samples, rng)

    def fine_tune(
        self, X: Any, y: Any, *, graph: Graph | None = None, steps: int = 500, learning_rate: float = 5e-4
    ) -> GraphRegressor:
        """Return a copy of this model whose networks have gone on learning from the labels of another graph.

        The training is the paper's: squared error in batches of 5 % of the labels. alpha and beta stay as they were
        learned. To condition on the labels of another graph without any training, use ``predict``.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features of the other graph.
        y : (n,) array
            Its known labels, NaN where unknown.
        graph : Graph
            The other graph.
        steps : int
            Steps of Adam.
        learning_rate : float
            Learning rate of Adam.
        """
        tuned = clone(self)
        tuned.field_ = fine_tuned(self, self._field, X, y, graph, steps, learning_rate)
        return tuned

    def diagnose(self) -> Diagnosis:
        """Return how much the neighbours help: leave-one-out accuracy, residual correlation before and after."""
        return diagnose(self._field)

    def summary(self, coverage: float = 0.95) -> Summary:
        """Return coefficients in the units of the data, alpha, their errors, tests and intervals, and the fit's AIC.

        Parameters
        ----------
        coverage : float
            Of the intervals, between 0 and 1.

        Returns
        -------
        Summary
            Prints as a table, as ``print(model)`` does; shows as HTML in a notebook.
        """
        return summarise(self._field, coverage)

    def __str__(self) -> str:
        if self.targets_ is not None:
            return "\n\n".join([repr(self), *(f"{name}: {one.summary()}" for name, one in self.targets_.items())])
        return f"{self!r}\n{self.summary()}" if hasattr(self, "field_") else repr(self)

    def _html_repr(self) -> str:
        """Return what a notebook shows."""
        from residua.views.notebook import model_html

        return model_html(self)
