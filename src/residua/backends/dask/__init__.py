"""One model past one machine: S in row blocks on the workers of a Dask cluster; no solver and no statistics.

    w_b = S_b [v_b, halo_b]        halo_b: the rows of other blocks that block b has a neighbour in

A gang of tasks, one for each block, runs the model of one machine on its own rows; products fetch the halo, and
inner products are summed over the gang. Needs the extra ``residua[dask]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'residua.backends.dask needs Dask ({error}); pip install "residua[dask]", or use residua on one machine.'
    ) from None

# Loaded on first use: a worker needs the module of its task and no more.
_HOME = {
    "DaskRegressor": "base",
    "DistributedFit": "pipeline",
    "DistributedGraph": "graph",
    "LinearBase": "base",
    "Predicted": "model",
    "SchedulerLost": "cluster",
    "Vector": "vectors",
    "WorkersLost": "cluster",
    "fit": "pipeline",
    "fit_correlation": "model",
    "neighbour_features": "model",
    "predict": "model",
    "propagate": "model",
    "write_parquet": "output",
}

__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from residua.backends.dask.base import DaskRegressor as DaskRegressor
    from residua.backends.dask.base import LinearBase as LinearBase
    from residua.backends.dask.cluster import SchedulerLost as SchedulerLost
    from residua.backends.dask.cluster import WorkersLost as WorkersLost
    from residua.backends.dask.graph import DistributedGraph as DistributedGraph
    from residua.backends.dask.model import Predicted as Predicted
    from residua.backends.dask.model import fit_correlation as fit_correlation
    from residua.backends.dask.model import neighbour_features as neighbour_features
    from residua.backends.dask.model import predict as predict
    from residua.backends.dask.model import propagate as propagate
    from residua.backends.dask.output import write_parquet as write_parquet
    from residua.backends.dask.pipeline import DistributedFit as DistributedFit
    from residua.backends.dask.pipeline import fit as fit
    from residua.backends.dask.vectors import Vector as Vector


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"residua.backends.dask.{_HOME[name]}"), name)
    raise AttributeError(f"module 'residua.backends.dask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
