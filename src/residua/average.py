"""The average of fitted models.

    mean = sum_k w_k m_k,    variance = sum_jk w_j w_k R_jk s_j s_k

m, s predictions and standard deviations of the models, w weights, R the correlation of their errors at labels that
were left out: models that err together gain little, models that err apart gain much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from residua.arrays import as_floats
from residua.by_id import features_of
from residua.caller import warn
from residua.encoding import Encoding
from residua.estimator import GraphRegressor
from residua.field.fitted import FittedField
from residua.field.leave_block_out import LeaveBlockOut, draw_blocks, leave_block_out
from residua.field.prediction import Prediction
from residua.field.spread import Spread, fit_tails
from residua.graph import Graph
from residua.graph.graph import same_graph
from residua.graph.regions import Missing, seen_missing
from residua.interval_predictor import IntervalPredictor
from residua.linalg.workspace import Workspace, cached_property
from residua.validation import check_fitted

FEW = 20  # labels left out by all models; with fewer their errors are taken to be the same


COVERAGE = 0.9


class Scores(NamedTuple):
    """What an average is worth at labels that all its models left out.

    Parameters
    ----------
    n_labels : int
        How many these are.
    r2 : float
        Of the average.
    r2_of_models : tuple of float
        Of each model.
    coverage : float
        Share that predictive intervals of ``COVERAGE`` cover.
    """

    n_labels: int
    r2: float
    r2_of_models: tuple[float, ...]
    coverage: float


class Average(IntervalPredictor, Workspace):
    """Several fitted models as one: usually better than each of them if they are about equally good.

    Parameters
    ----------
    models : sequence of GraphRegressor
        Fitted models of the same labels on the same graph, of any kinds.
    weights : sequence of float, optional
        One number a model, made to add up to 1; equal by default. Give a model that is clearly worse less.
    encodings : sequence of Encoding or None, optional
        For each model how the features that the average is asked with become those that the model was fitted on; None
        for one that takes them as they are, as all do by default.

    Examples
    --------
    >>> import numpy as np, residua
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> data = residua.datasets.load_elect80()
    >>> y = data.y.copy()
    >>> y[::3] = np.nan
    >>> bases = ("linear", HistGradientBoostingRegressor())
    >>> models = [residua.GraphRegressor(base).fit(data.X, y, graph=data.graph) for base in bases]
    >>> mean, std = residua.Average(models).predict(return_std=True)
    """

    recipe_: Any  # how the tables of the fit were read; there only where it was set, as ``residua fit`` does

    def __init__(
        self,
        models: Sequence[GraphRegressor],
        weights: Any = None,
        encodings: Sequence[Encoding | None] | None = None,
    ):
        self.models = list(models)
        if not self.models:
            raise ValueError("models is empty; give at least one fitted model.")
        first = self.models[0]
        for k, model in enumerate(self.models):
            check_fitted(model)
            if not (same_graph(model.graph_, first.graph_) and np.array_equal(model.y_, first.y_, equal_nan=True)):
                raise ValueError(f"models[{k}] was fitted on another graph or other labels than models[0].")
            if (model.field_.noise is None) != (first.field_.noise is None):
                raise ValueError(f"only one of models[0] and models[{k}] knows of noise: they do not predict the same.")
        self.graph_, self.y_ = first.graph_, first.y_
        self.weights = _checked_weights(weights, len(self.models))
        self.encodings = [None] * len(self.models) if encodings is None else list(encodings)
        for model, encoding in zip(self.models, self.encodings, strict=True):
            if encoding is not None and list(_names(model)) != encoding.feature_names:
                raise ValueError("encodings has one that does not make the features its model was fitted on.")

    @cached_property
    def correlation_(self) -> np.ndarray:
        """(K, K) correlation of the models' standardised errors at labels that all of them left out."""
        error, std = self._left_out
        shape = (len(self.models),) * 2
        return np.ones(shape) if error.shape[1] < FEW else np.corrcoef(error / std).reshape(shape)

    @cached_property
    def _left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Errors and standard deviations (K, labels) at the labels that all models left out."""
        fields = [model.field_ for model in self.models]
        unseen = np.logical_and.reduce([field.prediction.out_of_sample_labels for field in fields])
        if any(field.in_sample for field in fields):
            warn("Average: a model was trained on every label, so errors are shown too small.")
        elif unseen.sum() < FEW:
            warn(
                f"Average: the models left only {unseen.sum()} labels out in common, so their errors are taken to be "
                "the same and intervals to be Gaussian; give all networks one random_state, or ensemble=4 or more."
            )
        found = [field.prediction for field in fields]
        error = np.stack([f.expected_error[unseen] for f in found])
        return error, np.sqrt([f.leave_one_out.variance[unseen] for f in found])

    def out_of_sample_scores(self) -> Scores:
        """Return R2 of the average and of each model at labels that all of them left out, each without itself."""
        error, std = self._left_out
        field = self.models[0].field_
        unseen = np.logical_and.reduce([model.field_.prediction.out_of_sample_labels for model in self.models])
        y = field.y[field.labelled][unseen]
        mean, total = self.weights @ error, float(np.sum((y - y.mean()) ** 2)) if len(y) else 0.0
        r2 = [1 - float(one @ one) / total if total else float("nan") for one in (mean, *error)]
        covered = np.abs(mean) <= self._predictive_width(COVERAGE) * self._combined(std)
        return Scores(len(y), r2[0], tuple(r2[1:]), float(np.mean(covered)) if len(y) else float("nan"))

    def _combined(self, stds: np.ndarray) -> np.ndarray:
        weighted = self.weights[:, None] * stds
        return np.sqrt(np.maximum(np.einsum("ki,kl,li->i", weighted, self.correlation_, weighted), 0.0))

    def _moments(self, X: Any, y: Any, graph: Graph | None, left_out: bool, std: bool) -> tuple[np.ndarray, Any]:
        known = "predict" if left_out else "label"
        asked = self._each_with(X, graph)
        parts = [model.predict(own, y, graph=there, return_std=std, known=known) for model, own, there in asked]
        if not std:
            return self.weights @ np.stack(parts), None
        means, stds = (np.stack(part) for part in zip(*parts, strict=True))
        return self.weights @ means, self._combined(stds)

    def _columns(self, X: Any, y: Any, graph: Graph | None, width: float) -> dict[str, np.ndarray]:
        return self._joined([m.field_.given(own, y, there) for m, own, there in self._each_with(X, graph)], width)

    def columns_on(self, graph: Graph, X: Any, y: Any, width: float) -> dict[str, np.ndarray]:
        """Return the columns of ``predict_frame`` on another graph, whose labels y are known there, by position."""
        asked = self._each_with(X, graph)
        return self._joined([m.field_.on(graph if there is None else there, own, y) for m, own, there in asked], width)

    def _joined(self, found: list[Prediction], width: float) -> dict[str, np.ndarray]:
        mean, base, left_out = (
            self.weights @ np.stack([getattr(one, name) for one in found]) for name in ("mean", "base", "left_out")
        )
        std = self._combined(np.stack([one.std for one in found]))
        ends = {"lower": mean - width * std, "upper": mean + width * std}
        parts = {"base": base, "correction": mean - base, "known": found[0].known, "leave_one_out": left_out}
        return {"prediction": mean, "std": std, **ends, **parts}

    def _labels_on(self, graph: Graph) -> np.ndarray:
        return self.y_ if graph is self.graph_ else self.models[0].field_.labels_on(graph)

    def _mean_with_features(self, X: Any, y: Any) -> np.ndarray:
        asked = self._each_with(X, None)
        return self.weights @ np.stack([model.field_.with_features(own, y).mean for model, own, _ in asked])

    def _each_with(self, X: Any, graph: Graph | None) -> list[tuple[GraphRegressor, Any, Graph | None]]:
        """Return each model with the features and the graph to ask it with."""
        self._check_columns(X)
        if not any(self.encodings) or (X is None and graph is None):
            return [(model, X, graph) for model in self.models]
        there = self.graph_ if graph is None else graph
        X, carried = features_of(X, there), there.features is not None
        graph = there.with_features(None) if graph is not None and carried else graph
        own = [X if encoding is None or X is None else encoding.transform(X) for encoding in self.encodings]
        return [(model, table, graph) for model, table in zip(self.models, own, strict=True)]

    def _check_columns(self, X: Any) -> None:
        """Refuse features that cannot be those of all models: an array would go to each in the same order."""
        plain = [model for model, encoding in zip(self.models, self.encodings, strict=True) if encoding is None]
        names = [model.field_.feature_names for model in plain]
        named = list(dict.fromkeys(tuple(columns) for columns in names if columns is not None))
        widths = [model.n_features_in_ for model in plain]
        if X is None or (len(set(widths)) <= 1 and len(named) <= 1):
            return
        found = f"{', '.join(map(str, widths))} columns"
        if len(set(widths)) == 1:
            found = " and ".join(str(list(columns)) for columns in named[:2])
        raise ValueError(
            f"the models were fitted on different features ({found}), so X cannot be those of all; pass X=None for "
            "their own, or ask each model by itself."
        )

    def _learned_noise(self) -> float | None:
        learned = [model.field_.learned_noise for model in self.models]
        return None if None in learned else float(self.weights @ np.array(learned))

    def _scores(self) -> np.ndarray | None:
        error, std = self._left_out
        return None if error.shape[1] < FEW else np.abs(self.weights @ error) / self._combined(std)

    def _blocks(self, missing: Missing | None) -> LeaveBlockOut | None:
        return self._own_blocks if missing is None else self._combined_blocks(missing)

    @cached_property
    def _own_blocks(self) -> LeaveBlockOut | None:
        missing = seen_missing(self.graph_, ~np.isnan(self.y_))
        return None if missing is None else self._combined_blocks(missing)

    def _combined_blocks(self, missing: Missing) -> LeaveBlockOut:
        """Return errors of the average at labels of blocks that all models have left out."""
        fields = [model.field_ for model in self.models]
        blocks = draw_blocks(fields[0], missing)
        found = [leave_block_out(field, missing, blocks) for field in fields]
        std = self._combined(np.sqrt(np.stack([one.variance for one in found])))
        return replace(
            found[0],
            error=self.weights @ np.stack([one.error for one in found]),
            variance=std**2,
            unseen=np.logical_and.reduce([one.unseen for one in found]),
            seconds=sum(one.seconds for one in found),
        )

    @property
    def _first_field(self) -> FittedField:
        return self.models[0].field_

    def refitted(self, y: np.ndarray) -> Average:
        """Return the average of models of the same settings, fitted to labels y (n,) of the training graph."""
        return Average([model.refitted(y) for model in self.models], self.weights, self.encodings)

    def _predictive_width(self, coverage: float) -> float:
        return self.tails_.width(coverage)

    @cached_property
    def tails_(self) -> Spread:
        """Tails of the average's errors, as those at labels that all models left out tell; else the longest of them."""
        spreads, scores = [model.field_.spread for model in self.models], self._scores()
        if all(spread.gaussian for spread in spreads):
            return Spread()
        longest = min(spreads, key=lambda spread: spread.df)
        return Spread(df=longest.df) if scores is None else fit_tails(scores, longest.df)

    def __repr__(self) -> str:
        return f"Average([{', '.join(m.base_.name for m in self.models)}])"


def _names(model: GraphRegressor) -> Any:
    names = model.field_.feature_names
    return () if names is None else names


def _checked_weights(weights: Any, count: int) -> np.ndarray:
    values = as_floats(np.ones(count) if weights is None else weights, "weights")
    if values.shape != (count,) or not (values >= 0).all() or not 0 < values.sum() < np.inf:
        raise ValueError(f"weights={weights!r} must be {count} numbers, none negative, not all zero: one a model.")
    return values / values.sum()
