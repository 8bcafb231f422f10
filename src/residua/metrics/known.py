"""Columns of one length, and their rows where the first is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from residua.arrays import as_floats
from residua.graph.alignment import check_one_index


def known_rows(y: ArrayLike, *, name: str = "y", finite: bool = True, **others: ArrayLike) -> list[NDArray[np.float64]]:
    """Validate columns of one length, and keep the rows where the first is known."""
    check_one_index({name: y, **others})
    first = as_vector(y, name)
    if np.isinf(first).any():
        raise ValueError(f"{name} is infinite at index {np.isinf(first).argmax()}; mark unknown nodes with NaN.")
    known = ~np.isnan(first)
    if not known.any():
        raise ValueError(f"{name} has {len(first)} entries and none is known; give at least one that is not NaN.")
    columns = {key: as_vector(column, key) for key, column in others.items()}
    for key, column in columns.items():
        if len(column) != len(known):
            raise ValueError(f"{key} has {len(column)} entries but {name} has {len(known)}; give one per node.")
        bad = known & (~np.isfinite(column) if finite else np.isnan(column))
        if bad.any():
            raise ValueError(
                f"{key} is {column[bad][0]} at index {bad.argmax()}, where {name} is known; "
                f"give a number there, or set {name} to NaN to leave the node out."
            )
    return [first[known], *(column[known] for column in columns.values())]


def as_vector(column: ArrayLike, name: str) -> NDArray[np.float64]:
    vector = as_floats(column, name)
    if vector.ndim != 1:
        raise ValueError(f"{name} has shape {vector.shape}; give one number per node, shape (n,).")
    return vector
