"""Bases on row blocks: the linear ones of one machine, and any regressor that learns from dask collections."""

from __future__ import annotations

import copy
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from residua.backends.dask.exchange import Gang
from residua.backends.dask.vectors import Vector, chosen, from_numpy, known
from residua.bases import linear
from residua.bases.base import Task
from residua.bases.registry import LINEAR
from residua.validation import check_choice, check_count


class LinearBase:
    """A mean of no column ("zero"), a constant ("mean"), or a constant and the features ("linear").

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
        check_choice(name, LINEAR, "base")
        self.name, self.local = name, linear.LinearBase(name)

    @property
    def coefficients(self) -> np.ndarray:
        """Those of standardised features."""
        return self.local.coefficients

    def fit(self, X: Vector | None, y: Vector) -> LinearBase:
        """Fit by ordinary least squares on the labelled nodes, y (n,) NaN where unknown."""
        if X is None and self.name == "linear":
            raise ValueError('X is None; base "linear" needs features, base "mean" does not.')
        self.local, _ = y.cluster.gang(partial(_least_squares, self.local), _parts(X, y), y.parts)
        return self

    def predict(self, X: Vector | None, like: Vector) -> Vector:
        """Return predictions (n,) for every node; ``like`` is any column of the graph."""
        return like.map(_linear, _parts(X, like), [self.local] * len(like.parts))


def _parts(X: Vector | None, like: Vector) -> list[Any]:
    return [None] * len(like.parts) if X is None else X.parts


def features_of_block(X: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    """Return X (rows, d), with d = 0 where there are no features."""
    return np.empty((len(y), 0)) if X is None else X


def _least_squares(base: linear.LinearBase, gang: Gang, X: np.ndarray | None, y: np.ndarray) -> tuple[Any, dict]:
    graph: Any = SimpleNamespace(rows=gang)  # least squares ask for no edge
    base.fit(Task(graph, features_of_block(X, y), y, ~np.isnan(y), folds=2, random_state=0), None)
    return base, {}


def _linear(y: np.ndarray, X: np.ndarray | None, base: linear.LinearBase) -> np.ndarray:
    X = features_of_block(X, y)
    return base.design(X) @ base.coefficients


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
        Which node is in which fold.
    """

    def __init__(self, estimator: Any, folds: int = 5, random_state: int = 0):
        if not all(callable(getattr(estimator, name, None)) for name in ("fit", "predict")):
            raise TypeError(
                f"estimator is {type(estimator).__name__}; it needs fit(X, y) and predict(X) on dask arrays."
            )
        check_count(folds, "folds", 2)
        self.estimator, self.folds, self.random_state = estimator, folds, random_state
        self.name = type(estimator).__name__

    def fit(self, X: Vector, y: Vector, columns: int) -> Vector:
        """Learn from the labelled nodes; return their out-of-fold residuals (n,), NaN elsewhere."""
        starts = np.cumsum(y.sizes) - y.sizes
        given = [(int(start), self.folds, self.random_state) for start in starts]
        fold = y.map(_folds, given)
        residual = y.map(np.full_like, [np.nan] * len(starts))
        for k in range(self.folds):
            test = fold.map(np.equal, [k] * len(starts))
            fitted = self._fitted(X, y, columns, fold.map(_other_folds, [k] * len(starts)))
            found = _predicted(fitted, _rows(X, test), columns)
            residual = residual.map(_put, y, test, found)
        self.estimator_ = self._fitted(X, y, columns, y.map(known))
        return residual

    def _fitted(self, X: Vector, y: Vector, columns: int, mask: Vector) -> Any:
        fresh = clone(self.estimator) if hasattr(self.estimator, "get_params") else copy.deepcopy(self.estimator)
        for name in ("client",):  # a clone forgets the client that it was given
            if hasattr(self.estimator, name) and hasattr(fresh, name):
                setattr(fresh, name, getattr(self.estimator, name))
        return fresh.fit(_rows(X, mask).to_dask(columns), _rows(y, mask).to_dask())

    def predict(self, X: Vector, columns: int) -> Vector:
        """Return predictions (n,) for every node."""
        return _predicted(self.estimator_, X, columns)


def _rows(values: Vector, mask: Vector) -> Vector:
    return values.map(chosen, mask, sizes=np.array(mask.partials(np.sum)))


def _predicted(estimator: Any, X: Vector, columns: int) -> Vector:
    """Return predictions as a Vector, whatever collection they come in."""
    found = estimator.predict(X.to_dask(columns))
    if hasattr(found, "to_dask_array"):  # a dask Series
        found = found.to_dask_array(lengths=X.sizes[X.sizes > 0].tolist())
    if not hasattr(found, "to_delayed"):
        return from_numpy(X.cluster, np.asarray(found, float).ravel(), X.sizes)
    filled = X.sizes > 0
    pieces = iter(found.rechunk((tuple(int(size) for size in X.sizes[filled]),)).to_delayed())
    futures = iter(X.cluster.client.compute(list(pieces)))
    parts = [next(futures) if there else X.cluster.run(np.zeros, 0, block=b) for b, there in enumerate(filled)]
    return Vector(X.cluster, parts, X.sizes)


def _folds(y: np.ndarray, given: tuple[int, int, int]) -> np.ndarray:
    """Return the fold of each label, by a hash of its place: the same however the graph is cut; -1 without a label."""
    start, folds, seed = given
    place = np.arange(start, start + len(y), dtype=np.uint64)
    fold = pd.util.hash_array(place + np.uint64(seed << 40)) % np.uint64(folds)
    return np.where(np.isnan(y), -1, fold.astype(int))


def _other_folds(fold: np.ndarray, k: int) -> np.ndarray:
    return (fold >= 0) & (fold != k)


def _put(residual: np.ndarray, y: np.ndarray, mask: np.ndarray, found: np.ndarray) -> np.ndarray:
    out = residual.copy()
    out[mask] = y[mask] - np.asarray(found, float).ravel()
    return out
