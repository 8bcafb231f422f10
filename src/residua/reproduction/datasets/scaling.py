"""Columns of a data set on one scale."""

import numpy as np
import pandas as pd


def standardise(table: pd.DataFrame) -> pd.DataFrame:
    """Return each column with mean 0 and n-1 standard deviation 1; a constant column becomes 0."""
    with np.errstate(all="ignore"):  # what overflows is refused
        centre, spread = table.mean(), table.std()
        return finite((table - centre) / spread.where(spread > 1e-12 * centre.abs(), 1.0))


def finite(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table, or refuse it where a number is missing or infinite."""
    for name in table.columns:
        if not np.isfinite(table[name]).all():
            raise ValueError(f"{name} has no known number, or numbers that are too large")
    return table
