"""The same model past one machine, on the workers of a Dask cluster; lives in ``residua.backends.dask``."""

from typing import Any

from residua.backends import dask
from residua.backends.dask import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(dask, name)


def __dir__() -> list[str]:
    return list(__all__)
