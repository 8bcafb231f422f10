"""Bases on row blocks: the linear ones of one machine, and any regressor that learns from dask collections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd

from residua.backends.dask.exchange import Gang
from residua.backends.dask.vectors import Vector, from_numpy
from residua.bases import linear
from residua.bases.base import Base, Outcome, Task
from residua.bases.registry import BASES, LINEAR, listed, make_base
from residua.bases.scikit import seeded
from residua.validation import check_choice, check_count


class LinearBase:
    """A mean of no column ("zero"), a constant ("mean"), a constant and the features ("linear"), or "splines" of them.

    Parameters
    ----------
    name : str
        Which of them.

    Attributes
    ----------
    local : residua.bases.linear.LinearBase
        The base of one machine, once it is fitted.
    """

    def __init__(self, name: str = "linear"):
        if name in BASES and name not in LINEAR:
            raise ValueError(
                f"base={name!r} is for one machine; on a cluster use {listed(LINEAR)}, or a regressor that learns from "
                "dask arrays, such as xgboost.dask.DaskXGBRegressor."
            )
        check_choice(name, LINEAR, "base")
        self.name, self.local = name, cast(linear.LinearBase, make_base(name))

    @property
    def coefficients(self) -> np.ndarray:
        """Those of standardised features."""
        return self.local.coefficients

    def fit(self, X: Vector | None, y: Vector) -> LinearBase:
        """Fit by ordinary least squares on the labelled nodes, y (n,) NaN where unknown."""
        if X is None and BASES[self.name].features:
            raise ValueError(f'X is None; base "{self.name}" needs features, base "mean" does not.')
        name, X = self.name, no_features(y) if X is None else X

        def member(gang: Gang, X: np.ndarray, y: np.ndarray) -> tuple[linear.LinearBase, dict]:
            graph: Any = SimpleNamespace(rows=gang)  # least squares ask for no edge
            base = cast(linear.LinearBase, make_base(name))
            base.fit(Task(graph, X, y, ~np.isnan(y), folds=2, random_state=0), None)
            return base, {}

        self.local, _ = y.cluster.gang(member, X.parts, y.parts)
        return self

    def predict(self, X: Vector | None, like: Vector) -> Vector:
        """Return predictions (n,) for every node; ``like`` is any column of the graph."""
        X = no_features(like) if X is None else X
        return X.map(lambda X, base: base.design(X) @ base.coefficients, base=self.local)


def no_features(like: Vector) -> Vector:
    """Return features (n, 0)."""
    return like.map(lambda part: np.empty((len(part), 0)))


class DaskRegressor:
    """A regressor such as ``xgboost.dask.DaskXGBRegressor`` or ``lightgbm.dask.DaskLGBMRegressor`` as a base.

    It is fitted to all labels for prediction, and to folds of them for the residuals, since those of a flexible base at
    its own training labels shrink to nothing.

    Parameters
    ----------
    estimator : object
        Has ``fit(X, y)`` and ``predict(X)`` on dask arrays; it is not changed.
    folds : int
        Of the cross-fitting.
    random_state : int
        Which node is in which fold, and the random states of the estimator that are not set.
    """

    def __init__(self, estimator: Any, folds: int = 5, random_state: int = 0):
        if not all(callable(getattr(estimator, name, None)) for name in ("fit", "predict")):
            raise TypeError(f"estimator is {type(estimator).__name__}; it needs fit(X, y), predict(X) on dask arrays.")
        check_count(folds, "folds", 2)
        self.estimator, self.folds, self.random_state = estimator, folds, random_state
        self.name = type(estimator).__name__

    def fit(self, X: Vector, y: Vector, columns: int) -> Vector:
        """Learn from the labelled nodes; return their out-of-fold residuals (n,), NaN elsewhere."""
        starts = np.cumsum(y.sizes) - y.sizes
        fold = y.map(_folds, starts, folds=self.folds, seed=self.random_state)
        rng = np.random.default_rng(self.random_state)
        found = []
        for k in range(self.folds):
            fresh, others = seeded(self.estimator, rng), fold.map(lambda fold, k: (fold >= 0) & (fold != k), k=k)
            fitted = self._fitted(fresh, X, y, columns, others)
            found.append(_predicted(fitted, _rows(X, fold.map(lambda fold, k: fold == k, k=k)), columns))
        self.estimator_ = self._fitted(seeded(self.estimator, rng), X, y, columns, fold.map(lambda fold: fold >= 0))
        return y.map(_out_of_fold, fold, *found)

    def _fitted(self, fresh: Any, X: Vector, y: Vector, columns: int, mask: Vector) -> Any:
        if hasattr(self.estimator, "client") and hasattr(fresh, "client"):  # which a clone forgets
            fresh.client = self.estimator.client
        return fresh.fit(_rows(X, mask).to_dask(columns), _rows(y, mask).to_dask())

    def predict(self, X: Vector, columns: int) -> Vector:
        """Return predictions (n,) for every node."""
        return _predicted(self.estimator_, X, columns)


class FittedElsewhere(Base):
    """What one block has of a base that was fitted before, by all workers: its residuals and predictions (n,)."""

    name = "elsewhere"

    def __init__(self, residual: np.ndarray, predicted: np.ndarray):
        self.residual, self.predicted = residual, predicted

    def _fit(self, task: Task, correlation: Any) -> Outcome:
        left = self.residual[task.labelled]
        return Outcome(left, left)

    def predict(self, graph: Any, X: np.ndarray) -> np.ndarray:
        """Return predictions (n,), as they were made."""
        return self.predicted


def _rows(values: Vector, mask: Vector) -> Vector:
    sizes = np.array(mask.partials(np.sum))
    return values.map(lambda part, mask: np.ascontiguousarray(part[mask]), mask, sizes=sizes)


def _predicted(estimator: Any, X: Vector, columns: int) -> Vector:
    """Return predictions as a Vector, whatever collection they come in."""
    found, filled = estimator.predict(X.to_dask(columns)), X.sizes > 0
    if hasattr(found, "to_dask_array"):  # a dask Series
        found = found.to_dask_array(lengths=X.sizes[filled].tolist())
    if not hasattr(found, "to_delayed"):
        return from_numpy(X.cluster, np.asarray(found, float).ravel(), X.sizes)
    pieces = found.rechunk((tuple(X.sizes[filled].tolist()),)).to_delayed()
    futures = iter(X.cluster.client.compute(list(pieces)))
    parts = [next(futures) if there else X.cluster.run(np.zeros, 0, block=b) for b, there in enumerate(filled)]
    return Vector(X.cluster, parts, X.sizes)


def _folds(y: np.ndarray, start: int, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each row, by a hash of its place: the same however the graph is cut; -1 where y is unknown."""
    place = np.arange(start, start + len(y), dtype=np.uint64)
    fold = pd.util.hash_array(place + np.uint64(seed << 40)) % np.uint64(folds)
    return np.where(np.isnan(y), -1, fold.astype(int))


def _out_of_fold(y: np.ndarray, fold: np.ndarray, *found: np.ndarray) -> np.ndarray:
    """Return residuals, given the predictions at the rows of each fold."""
    out = np.full(len(y), np.nan)
    for k, predicted in enumerate(found):
        out[fold == k] = y[fold == k] - np.asarray(predicted, float).ravel()
    return out
