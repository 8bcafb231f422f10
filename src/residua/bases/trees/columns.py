"""Columns of a table as numbers for trees: categories and text as codes of their values, dates as days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from residua.arrays import as_floats
from residua.bases.trees.kernels import MISSING
from residua.encoding import is_ordered, ordered_floats


@dataclass(frozen=True)
class Columns:
    """How the columns of a table were made numbers.

    Parameters
    ----------
    values : tuple of (tuple or None)
        For each column its values by code, the most frequent first; None for one of numbers or dates.
    """

    values: tuple[tuple[Any, ...] | None, ...]

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Return how to encode a table: text and categories by value, beyond 255 values the rarest as missing."""
        if not isinstance(X, pd.DataFrame):
            return cls((None,) * X.shape[1])
        return cls(tuple(None if is_ordered(X[name]) else _values(X[name]) for name in X.columns))

    @property
    def categorical(self) -> np.ndarray:
        """(d,) bool: columns of codes, whose order means nothing."""
        return np.array([values is not None for values in self.values], bool)

    def numbers(self, X: Any) -> np.ndarray:
        """Return the table as floats (n, d), NaN where a value is missing or was not seen."""
        if not isinstance(X, pd.DataFrame):
            return as_floats(X, "X", "give numbers, or a DataFrame")
        parts = [
            ordered_floats(X[name]) if v is None else _codes(X[name], v) for name, v in zip(X, self.values, strict=True)
        ]
        return np.column_stack(parts) if parts else np.empty((len(X), 0))


def _values(cells: pd.Series) -> tuple[Any, ...]:
    found = cells.astype(object).dropna()
    unhashable = next((v for v in found if isinstance(v, list | dict | set | np.ndarray)), None)
    if unhashable is not None:
        raise ValueError(f"X has {type(unhashable).__name__}s in column {cells.name!r}; give one value in each cell.")
    counts = found.map(_plain).value_counts()
    order = sorted(counts.index, key=lambda value: (-counts[value], str(value)))
    return tuple(order[:MISSING])


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool) else str(value)


def _codes(cells: pd.Series, values: tuple[Any, ...]) -> np.ndarray:
    lookup = {value: code for code, value in enumerate(values)}
    return cells.astype(object).map(lambda v: lookup.get(_plain(v), np.nan), na_action="ignore").to_numpy(float)
