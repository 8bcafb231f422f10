"""Dates as numbers: days since 2000-01-01 and, where they span more than a year, where in the year they lie.

    days = (date - 2000-01-01) / 24 h,    sine, cosine of 2 pi (day of the year - 1) / 365.25

Dates are columns of dates, and text that is an ISO date in each cell, 2024-03-31, with or without a time of day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from residua.io.tables.columns import Table

ISO = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
ORIGIN = pd.Timestamp("2000-01-01")
YEAR = 365.25
PARTS = {"days": "{} (days)", "sine": "{} (sine of the year)", "cosine": "{} (cosine of the year)"}


def read_dates(cells: pd.Series) -> pd.Series | None:
    """Return a column as dates, NaT where a cell is empty; None where some cell is no date."""
    known = cells.dropna()
    if not len(known):
        return None
    if not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        kind = pd.api.types.infer_dtype(known)
        if kind not in ("date", "datetime") and not (kind == "string" and known.str.fullmatch(ISO).all()):
            return None
    found = pd.to_datetime(cells, errors="coerce", utc=True, format=None if cells.dtype.kind == "M" else "ISO8601")
    return None if found.isna().sum() > cells.isna().sum() else found.dt.tz_localize(None)


def need_dates(nodes: Table, column: str) -> pd.Series:
    """Return a column that was dates in a fit, or refuse it."""
    cells = nodes.cells(column)
    found = read_dates(cells)
    if found is None and cells.notna().any():
        raise ValueError(f"{nodes.path} column {column!r} held dates in the fit, such as 2024-03-31; write such dates.")
    return pd.Series(pd.NaT, index=cells.index) if found is None else found


def parts_of(column: str, dates: pd.Series) -> dict[str, str]:
    """Return names of features and the parts of dates that they are: days, and the time of the year if it varies."""
    span = (dates.max() - dates.min()).total_seconds() / 86400
    return {PARTS[part].format(column): part for part in (PARTS if span > YEAR else ("days",))}


def part_of(dates: pd.Series, part: str) -> np.ndarray:
    """Return a part of dates as numbers, NaN where there is none."""
    dates = pd.to_datetime(dates)
    if part == "days":
        return ((dates - ORIGIN) / pd.Timedelta(days=1)).to_numpy(float)
    turn = 2 * np.pi * (dates.dt.day_of_year - 1) / YEAR
    return np.asarray(np.sin(turn) if part == "sine" else np.cos(turn), float)
