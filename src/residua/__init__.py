"""Predict numbers on the nodes of a graph: any regressor, plus what its neighbours' residuals still tell."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Loaded on first use, so that ``import residua`` and ``residua --help`` are quick.
_HOME = {
    "Average": "residua.average",
    "Cholesky": "residua.numerics",
    "CorrelationFit": "residua.gaussian",
    "Eigen": "residua.numerics",
    "Graph": "residua.graph",
    "GraphRegressor": "residua.estimator",
    "Lanczos": "residua.numerics",
    "ModelFileError": "residua.persistence",
    "NeighbourFeatures": "residua.regressors.neighbours",
    "Network": "residua.regressors.network_base",
    "NotConverged": "residua.numerics",
    "fit_correlation": "residua.gaussian",
    "load": "residua.persistence",
    "propagate": "residua.gaussian",
}
_MODULES = ("datasets", "distributed", "metrics", "plot")

_EXTRA = {"Network", "distributed"}  # need the extras residua[gnn] and residua[dask]

__all__ = sorted({*_HOME, *_MODULES} - _EXTRA)

if TYPE_CHECKING:
    from residua import datasets as datasets
    from residua import distributed as distributed
    from residua import metrics as metrics
    from residua import plot as plot
    from residua.average import Average as Average
    from residua.estimator import GraphRegressor as GraphRegressor
    from residua.gaussian import CorrelationFit as CorrelationFit
    from residua.gaussian import fit_correlation as fit_correlation
    from residua.gaussian import propagate as propagate
    from residua.graph import Graph as Graph
    from residua.numerics import Cholesky as Cholesky
    from residua.numerics import Eigen as Eigen
    from residua.numerics import Lanczos as Lanczos
    from residua.numerics import NotConverged as NotConverged
    from residua.persistence import ModelFileError as ModelFileError
    from residua.persistence import load as load
    from residua.regressors.neighbours import NeighbourFeatures as NeighbourFeatures
    from residua.regressors.network_base import Network as Network


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"residua.{name}")
    raise AttributeError(f"module 'residua' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
