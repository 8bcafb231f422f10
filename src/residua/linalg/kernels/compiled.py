"""Compiled functions, kept between runs where there is a folder to keep them in."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from numba import njit


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile with ``numba.njit`` and keep the result, unless there is no folder that can be written to.

    Compiled functions take the arrays of a matrix one by one: the rule of eight arguments is for Python functions.
    """
    if function is None:
        return lambda given: compiled(given, **options)
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # "no locator available"
        return njit(**options)(function)


class Threaded(NamedTuple):
    """One body compiled twice; called with whether the work is small, then its arguments.

    Attributes
    ----------
    one : callable
        Works on the thread that calls: to wake another takes longer than a small graph.
    many : callable
        Deals its blocks to all threads.
    """

    one: Any
    many: Any

    def __call__(self, small: bool, *arguments: Any) -> Any:
        return (self.one if small else self.many)(*arguments)


def compiled_twice(**options: Any) -> Callable[[Any], Threaded]:
    """Compile a body with ``prange`` for one thread, where that is ``range``, and for many."""

    def compile_both(function: Any) -> Threaded:
        single = FunctionType(function.__code__, function.__globals__, function.__name__)
        single.__qualname__ = f"{function.__qualname__}_small"  # numba's cache goes by names, not by options
        return Threaded(compiled(single, **options), compiled(function, parallel=True, **options))

    return compile_both
