"""Tables of features as they are given: arrays, DataFrames of any columns, sparse matrices. Rows, equality, copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp


def take_rows(X: Any, which: np.ndarray) -> Any:
    """Return some rows of a table, by a mask or by positions."""
    if not isinstance(X, pd.DataFrame):
        return X[which]
    return in_rows(X.iloc[np.flatnonzero(which) if which.dtype == bool else which])


def in_rows(X: pd.DataFrame) -> pd.DataFrame:
    """Return a copy whose numbers, where all columns have one type of them, lie row by row as those of an array do.

    Sums depend on it in the last bit: a regressor says the same of a DataFrame, of its array, and in any order of rows.
    """
    types = set(X.dtypes)
    if len(types) == 1 and isinstance(only := types.pop(), np.dtype) and only.kind in "iuf":
        return pd.DataFrame(np.array(X.to_numpy(), order="C"), X.index, X.columns, copy=False)
    return X.copy()


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
    if isinstance(X, pd.DataFrame):
        return in_rows(X)
    if not isinstance(X, np.ndarray):
        return X.copy()
    copy = X.view()
    copy.flags.writeable = False
    return copy


def number_columns(X: Any, most: int) -> dict[str, np.ndarray]:
    """Return columns (n,) of numbers by their positions, x0, x1, ..; none of a table of more than ``most`` columns."""
    if X is None or X.shape[1] > most:
        return {}
    if isinstance(X, pd.DataFrame):
        kinds = pd.api.types
        numeric = [k for k, t in enumerate(X.dtypes) if kinds.is_numeric_dtype(t) and not kinds.is_complex_dtype(t)]
        return {f"x{k}": X.iloc[:, k].to_numpy(dtype=float, na_value=np.nan) for k in numeric}
    table = X.toarray() if sp.issparse(X) else np.asarray(X)
    return {f"x{k}": column.astype(float) for k, column in enumerate(table.T)}
