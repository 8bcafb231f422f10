"""The average of fitted models.

    mean = sum_k w_k m_k,    variance = sum_jk w_j w_k R_jk s_j s_k

m, s predictions and standard deviations of the models, w weights, R the correlation of their errors at labels that
were left out: models that err together gain little, models that err apart gain much.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from residua.estimator import GraphRegressor
from residua.graph import Graph
from residua.prediction import conformal_quantile, score_unseen
from residua.validation import check_choice, check_fitted, check_share, check_values

FEW = 20  # labels left out by all models; with fewer their errors are taken to be the same


class Average:
    """Several fitted models as one: usually better than each of them if they are about equally good.

    Parameters
    ----------
    models : fitted ``GraphRegressor``s of the same labels on the same graph, of any kinds
    weights : one number a model, made to add up to 1; equal by default. Give a model that is clearly worse less

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

    def __init__(self, models: Sequence[GraphRegressor], weights: Any = None):
        self.models = list(models)
        if not self.models:
            raise ValueError("models is empty; give at least one fitted model.")
        for model in self.models:
            check_fitted(model)
        first = self.models[0]
        for k, model in enumerate(self.models):
            if not (_same_graph(model.graph_, first.graph_) and np.array_equal(model.y_, first.y_, equal_nan=True)):
                raise ValueError(f"models[{k}] was fitted on another graph or other labels than models[0].")
        self.weights = _checked_weights(weights, len(self.models))

    @cached_property
    def correlation_(self) -> np.ndarray:
        """(K, K) correlation of the models' standardised errors at labels that all of them left out."""
        scores = self._scores
        if scores.shape[1] < FEW:
            return np.ones((len(self.models),) * 2)
        return np.corrcoef(scores).reshape((len(self.models),) * 2)

    @cached_property
    def _left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Errors and standard deviations (K, labels) at the labels that all models left out."""
        own = [model._own for model in self.models]
        unseen = np.logical_and.reduce([p.out_of_sample_labels for p in own])
        if any(p.out_of_sample is not None and not p.out_of_sample.any() for p in own):
            self._warn("a model was trained on every label, so errors are told too small")
        elif unseen.sum() < FEW:
            self._warn(
                f"the models left only {unseen.sum()} labels out in common, so their errors are taken to be the same "
                "and intervals to be Gaussian; give all networks one random_state, or ensemble=4 or more"
            )
        error = np.stack([p.left_out.error[unseen] for p in own])
        return error, np.sqrt(np.stack([p.left_out.variance[unseen] for p in own]))

    @staticmethod
    def _warn(what: str) -> None:
        warnings.warn(f"Average: {what}.", UserWarning, stacklevel=2)

    @property
    def _scores(self) -> np.ndarray:
        error, std = self._left_out
        return error / std

    def _combined(self, stds: np.ndarray) -> np.ndarray:
        weighted = self.weights[:, None] * stds
        return np.sqrt(np.maximum(np.einsum("ki,kl,li->i", weighted, self.correlation_, weighted), 0.0))

    def predict(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        return_std: bool = False,
        known: str = "label",
    ) -> Any:
        """As ``GraphRegressor.predict``, averaged."""
        parts = [m.predict(X, y, graph=graph, return_std=return_std, known=known) for m in self.models]
        if not return_std:
            return self.weights @ np.stack(parts)
        means, stds = (np.stack(part) for part in zip(*parts, strict=True))
        return self.weights @ means, self._combined(stds)

    def predict_interval(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        coverage: float = 0.9,
        method: str = "conformal",
    ) -> tuple[np.ndarray, np.ndarray]:
        """As ``GraphRegressor.predict_interval``, around the average."""
        check_choice(method, ("conformal", "gaussian"), "method")
        check_share(coverage, "coverage")
        mean, std = self.predict(X, y, graph=graph, return_std=True)
        width = ndtri((1 + coverage) / 2)
        error, spread = self._left_out
        if method == "conformal" and error.shape[1] >= FEW:
            width = conformal_quantile(np.abs(self.weights @ error) / self._combined(spread), coverage)
        return mean - width * std, mean + width * std

    def score(self, X: Any, y: Any, *, known: Any = None, graph: Graph | None = None) -> float:
        """R2 at nodes whose label was unknown to the models; arguments as in ``GraphRegressor.score``."""
        first = self.models[0]
        own = graph is None or graph is first.graph_
        graph = first.graph_ if graph is None else graph
        mean = self.predict(y=known) if own else self.predict(X, known, graph=graph)
        unseen = np.isnan(first.y_) if own else np.ones(len(mean), bool)
        if known is not None:
            unseen &= np.isnan(check_values(known, graph, "known"))
        return score_unseen(check_values(y, graph, "y"), mean, unseen)

    def save(self, path: Any) -> None:
        """Write the average and its models to one file, whole or not at all; ``residua.load`` reads it."""
        from residua.io.model_file import save

        save(self, path)

    def __repr__(self) -> str:
        return f"Average([{', '.join(m.base_.name for m in self.models)}])"


def _same_graph(a: Graph, b: Graph) -> bool:
    if a is b:
        return True
    if not np.array_equal(a.nodes, b.nodes) or a.edge_types != b.edge_types:
        return False
    ours, theirs = a.arrays(), b.arrays()
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _checked_weights(weights: Any, count: int) -> np.ndarray:
    if weights is None:
        return np.full(count, 1 / count)
    values = np.asarray(weights, float)
    if values.shape != (count,) or not (values >= 0).all() or not 0 < values.sum() < np.inf:
        raise ValueError(f"weights={weights!r} must be {count} numbers, none negative, not all zero: one a model.")
    return values / values.sum()
