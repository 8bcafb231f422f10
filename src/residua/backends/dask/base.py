"""Bases on row blocks: least squares by normal equations, and any regressor that learns from dask collections.

theta = (Z'Z)^-1 Z'y,    Z = [1, (x - centre) / spread] at labelled nodes
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from residua.backends.dask.vectors import Vector, chosen, count_known, from_numpy, known
from residua.validation import check_choice, check_count


class LinearBase:
    """``y = Z theta``: no column ("zero"), a constant ("mean"), or a constant and the features ("linear").

    Parameters
    ----------
    name : which of them

    Attributes
    ----------
    coefficients : theta, of standardised features
    """

    def __init__(self, name: str = "linear"):
        check_choice(name, ("zero", "mean", "linear"), "base")
        self.name = name
        self.coefficients = np.empty(0)
        self.centre = self.spread = np.empty(0)

    def standardise(self, X: Vector | None, y: Vector) -> LinearBase:
        """Learn centre and spread of the features at labelled nodes; enough to ask for the design."""
        if self.name == "linear":
            if X is None:
                raise ValueError('X is None; base "linear" needs features, base "mean" does not.')
            count = float(y.total(count_known))
            self.centre = X.total(_sum_known, y) / count
            spread = np.sqrt(X.total(_squares_known, y, [self.centre] * len(y.parts)) / count)
            self.spread = np.where(spread > 1e-12 * np.abs(self.centre), spread, 1.0)
        return self

    def design(self, X: Vector | None, y: Vector) -> Vector | None:
        """Columns Z (n, d); None for base "zero"."""
        if self.name == "zero":
            return None
        if self.name == "mean" or X is None:
            return y.map(_ones)
        return X.map(_design, [(self.centre, self.spread)] * len(X.parts))

    def fit(self, X: Vector | None, y: Vector) -> LinearBase:
        """Ordinary least squares on the labelled nodes, y (n,) NaN where unknown."""
        Z = self.standardise(X, y).design(X, y)
        if Z is not None:
            products = Z.total(_normal_equations, y)
            self.coefficients = np.linalg.pinv(products[:, :-1], rcond=1e-13, hermitian=True) @ products[:, -1]
        return self

    def predict(self, X: Vector | None, like: Vector) -> Vector:
        """(n,) for every node; ``like`` is any column of the graph."""
        Z = self.design(X, like)
        return like.map(np.zeros_like) if Z is None else Z.map(_times, [self.coefficients] * len(Z.parts))


class DaskRegressor:
    """A regressor such as ``xgboost.dask.DaskXGBRegressor`` or ``lightgbm.dask.DaskLGBMRegressor`` as a base.

    It is fitted to all labels for prediction, and to folds of them for the residuals, since those of a flexible base at
    its own training labels shrink to nothing.

    Parameters
    ----------
    estimator : has ``fit(X, y)`` and ``predict(X)`` on dask arrays; it is not changed
    folds : of the cross-fitting
    random_state : which node is in which fold
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
        """Learn from the labelled nodes; their out-of-fold residuals (n,), NaN elsewhere."""
        starts = np.cumsum(y.sizes) - y.sizes
        given = [(int(start), self.folds, self.random_state) for start in starts]
        fold = y.map(_folds, given)
        residual = y.map(_unknown)
        for k in range(self.folds):
            train = fold.map(_other_folds, y, [k] * len(starts))
            test = fold.map(_this_fold, y, [k] * len(starts))
            fitted = self._fitted(X, y, columns, train)
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
        """(n,) for every node."""
        return _predicted(self.estimator_, X, columns)


def _rows(values: Vector, mask: Vector) -> Vector:
    return values.map(chosen, mask, sizes=np.array(mask.partials(np.sum)))


def _predicted(estimator: Any, X: Vector, columns: int) -> Vector:
    """Predictions as a Vector, whatever collection they come in."""
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


def _sum_known(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return X[~np.isnan(y)].sum(axis=0)


def _squares_known(X: np.ndarray, y: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return ((X[~np.isnan(y)] - centre) ** 2).sum(axis=0)


def _ones(y: np.ndarray) -> np.ndarray:
    return np.ones((len(y), 1))


def _design(X: np.ndarray, scales: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), (X - scales[0]) / scales[1]])


def _normal_equations(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    there = ~np.isnan(y)
    return Z[there].T @ np.column_stack([Z[there], y[there]])


def _times(Z: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    return Z @ coefficients


def _folds(y: np.ndarray, given: tuple[int, int, int]) -> np.ndarray:
    """Fold of each row, by a hash of its place: the same however the graph is cut."""
    start, folds, seed = given
    place = np.arange(start, start + len(y), dtype=np.uint64)
    return (pd.util.hash_array(place + np.uint64(seed << 40)) % np.uint64(folds)).astype(int)


def _other_folds(fold: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    return ~np.isnan(y) & (fold != k)


def _this_fold(fold: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    return ~np.isnan(y) & (fold == k)


def _unknown(y: np.ndarray) -> np.ndarray:
    return np.full(len(y), np.nan)


def _put(residual: np.ndarray, y: np.ndarray, mask: np.ndarray, found: np.ndarray) -> np.ndarray:
    out = residual.copy()
    out[mask] = y[mask] - np.asarray(found, float).ravel()
    return out
