"""What each feature adds to the mean, for a base that is linear in its coefficients: lines, or the curves of splines.

    effect_j(x) = (z_j(x) - mean of z_j over labelled nodes)' theta_j,    variance  dz' Cov(theta) dz

z_j the columns that the base makes of feature j. Effects and the level of the labelled nodes add up to the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from residua.bases.linear import LinearBase
from residua.bases.registry import BASES, find_base, listed
from residua.summary import coefficient_covariance
from residua.validation import check_fitted

if TYPE_CHECKING:
    from residua.estimator import GraphRegressor
    from residua.field.fitted import FittedField

POINTS = 120


@dataclass(frozen=True)
class Effect:
    """What one feature adds to the mean.

    Parameters
    ----------
    name : str
        Of the feature.
    x : (k,) array
        Values of the feature, from the least to the largest at a labelled node.
    value : (k,) array
        What is added, relative to the mean over labelled nodes.
    std : (k,) array
        Its standard deviation; NaN where coefficients were not fitted with the correlation (propagation).
    ticks : array
        Percentiles of the feature at labelled nodes.
    """

    name: str
    x: np.ndarray
    value: np.ndarray
    std: np.ndarray
    ticks: np.ndarray


def effects(model: GraphRegressor, features: str | int | Sequence[str | int] | None = None) -> list[Effect]:
    """Return the effect of each feature.

    Parameters
    ----------
    model : GraphRegressor
        Fitted, with base "splines" or "linear".
    features : str, int or sequence of them, optional
        Names or positions of features; by default all.

    Examples
    --------
    >>> import residua
    >>> from residua.views.effects import effects
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("splines").fit(data.X, data.y, graph=data.graph)
    >>> [effect.name for effect in effects(model)]
    ['college', 'homeownership', 'income']
    """
    check_fitted(model)
    field = model.field_
    base = field.base
    if not isinstance(base, LinearBase) or not find_base(base.name).features:
        able = tuple(name for name, entry in BASES.items() if entry.kind == "linear" and entry.features)
        raise ValueError(f'base "{base.name}" has no effect of each feature by itself; fit a model of {listed(able)}.')
    names = [f"feature {j}" for j in range(field.n_features)]
    if field.feature_names is not None:
        names = [str(name) for name in field.feature_names]
    if isinstance(features, str | int):
        features = [features]
    chosen = range(len(names)) if features is None else [_position(feature, names) for feature in features]
    covariance = coefficient_covariance(field)
    middle = base.design(field.X[field.labelled]).mean(axis=0)
    return [_effect(field, base, covariance, middle, j, names[j]) for j in chosen]


def _effect(
    field: FittedField, base: LinearBase, covariance: np.ndarray, middle: np.ndarray, j: int, name: str
) -> Effect:
    known = field.X[field.labelled, j]
    x = np.linspace(known.min(), known.max(), POINTS)
    X = np.tile(base.centre, (len(x), 1))
    X[:, j] = x
    own = base.features == j
    moved = (base.design(X) - middle)[:, own]
    variance = np.einsum("ij,jk,ik->i", moved, covariance[np.ix_(own, own)], moved)
    ticks = np.quantile(known, np.linspace(0, 1, 101))
    return Effect(name, x, moved @ base.coefficients[own], np.sqrt(np.maximum(variance, 0)), ticks)


def _position(feature: str | int, names: list[str]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if not isinstance(feature, str) and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(f"features has {feature!r}, which the model does not have; its features are {', '.join(names)}.")
