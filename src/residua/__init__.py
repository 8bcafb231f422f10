"""Predict numbers on the nodes of a graph: any regressor, plus what its neighbours' residuals still tell."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

import residua.moved  # noqa: F401

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent, unless the caller asks

# Loaded on first use, so that ``import residua`` and ``residua --help`` are quick.
_NAMES = {
    "residua.best_average": ("best",),
    "residua.average": ("Average",),
    "residua.bases.neighbours": ("NeighbourFeatures",),
    "residua.bases.networks.settings": ("Network",),
    "residua.estimator": ("GraphRegressor",),
    "residua.field": ("CorrelationFit", "fit_correlation", "propagate"),
    "residua.field.fitted": ("FittedField",),
    "residua.graph": ("Graph",),
    "residua.io.model_file": ("ModelFileError", "load"),
    "residua.linalg": ("Cholesky", "Eigen", "Lanczos", "NotConverged"),
    "residua.pyg": ("from_pyg",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("datasets", "distributed", "metrics", "model_selection", "nn", "plot")

_EXTRA = {"Network", "distributed", "nn"}  # need the extras gnn and dask

__all__ = sorted({*_HOME, *_MODULES} - _EXTRA)

if TYPE_CHECKING:
    from residua import datasets as datasets
    from residua import distributed as distributed
    from residua import metrics as metrics
    from residua import model_selection as model_selection
    from residua import nn as nn
    from residua import plot as plot
    from residua.average import Average as Average
    from residua.bases.neighbours import NeighbourFeatures as NeighbourFeatures
    from residua.bases.networks.settings import Network as Network
    from residua.best_average import best as best
    from residua.estimator import GraphRegressor as GraphRegressor
    from residua.field import CorrelationFit as CorrelationFit
    from residua.field import fit_correlation as fit_correlation
    from residua.field import propagate as propagate
    from residua.field.fitted import FittedField as FittedField
    from residua.graph import Graph as Graph
    from residua.io.model_file import ModelFileError as ModelFileError
    from residua.io.model_file import load as load
    from residua.linalg import Cholesky as Cholesky
    from residua.linalg import Eigen as Eigen
    from residua.linalg import Lanczos as Lanczos
    from residua.linalg import NotConverged as NotConverged
    from residua.pyg import from_pyg as from_pyg


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"residua.{name}")
    raise AttributeError(f"module 'residua' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
