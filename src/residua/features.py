"""Tables of features as they are given: arrays, DataFrames of any columns, sparse matrices. Rows, equality, copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp


def take_rows(X: Any, which: np.ndarray) -> Any:
    """Return some rows of a table, by a mask or by positions."""
    return X.iloc[np.flatnonzero(which) if which.dtype == bool else which] if isinstance(X, pd.DataFrame) else X[which]


def same_features(X: Any, other: Any) -> bool:
    """Return whether two tables hold the same, missing values at the same places included."""
    if isinstance(X, pd.DataFrame) and isinstance(other, pd.DataFrame):
        return bool(X.reset_index(drop=True).equals(other.reset_index(drop=True)))
    if sp.issparse(X) or sp.issparse(other):
        return sp.issparse(X) and sp.issparse(other) and X.shape == other.shape and (other != X).nnz == 0
    if type(X) is not type(other) or X.shape != other.shape:
        return False
    return np.array_equal(X, other, equal_nan=X.dtype.kind == "f")


def own_copy(X: Any) -> Any:
    """Return a copy that nobody else changes; of an array, one that cannot be changed."""
    if not isinstance(X, np.ndarray):
        return X.copy()
    copy = X.view()
    copy.flags.writeable = False
    return copy
