"""Compiled functions, kept between runs where there is a folder to keep them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``numba.njit`` with a cache; without one where neither the package nor the user's cache folder can be written."""
    if function is None:
        return lambda given: compiled(given, **options)
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # "no locator available"
        return njit(**options)(function)
