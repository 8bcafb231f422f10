"""The same model past one machine, on the workers of a Dask cluster; lives in ``residua.backends.dask``."""

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
