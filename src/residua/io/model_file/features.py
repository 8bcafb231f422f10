"""Features of the nodes in a model file: an array, a DataFrame column by column, or a sparse matrix; no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from residua.io.model_file.container import damaged
from residua.io.model_file.values import Arrays, Table, plain, restore

SPARSE = ("data", "indices", "indptr")


def pack_features(X: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Put features into ``arrays``; return what the table keeps of them, None for an array of numbers."""
    if sp.issparse(X):
        arrays |= {"X.data": X.data.astype(float), **{f"X.{k}": getattr(X, k).astype(np.int64) for k in SPARSE[1:]}}
        return {"sparse": X.shape[1]}
    if isinstance(X, pd.DataFrame):
        return {"columns": [_pack_column(X.iloc[:, j], f"X.{j}", arrays) for j in range(X.shape[1])]}
    if X.dtype != float:
        raise ValueError("X is an array of text, which a model file does not keep; fit on a DataFrame.")
    arrays["X"] = X
    return None


def _pack_column(cells: pd.Series, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    dtype, types = cells.dtype, pd.api.types
    if isinstance(dtype, pd.CategoricalDtype):
        arrays[place] = cells.cat.codes.to_numpy(np.int64)
        return {"categories": [plain(v, "category") for v in dtype.categories], "ordered": bool(dtype.ordered)}
    if types.is_integer_dtype(dtype) and not cells.isna().any():
        arrays[place] = cells.to_numpy(np.int64)
        return {"dtype": str(dtype)}
    if types.is_numeric_dtype(dtype):
        arrays[place] = cells.to_numpy(float, na_value=np.nan)
        return {"dtype": str(dtype)}
    if types.is_datetime64_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        arrays[place] = cells.to_numpy().astype(np.int64)
        return {"dtype": str(dtype)}
    missing = cells.isna()
    if all(isinstance(value, str) for value in cells[~missing]):
        return {"dtype": str(dtype), "text": [None if gone else v for v, gone in zip(cells, missing, strict=True)]}
    raise ValueError(f"column {cells.name!r} of X holds {dtype} that a model file does not keep; use text or numbers.")


def unpack_features(table: Any, n: int, names: Any, arrays: Arrays) -> Any:
    """Return the features that ``pack_features`` kept, of n nodes; numbers may be missing in those of a table."""
    if table is None:
        return arrays.take("X", (n, None), finite=False)
    if "sparse" in table:
        data, indices, indptr = (arrays.take(f"X.{k}", (None,), float if k == "data" else np.int64) for k in SPARSE)
        found = sp.csr_array((data, indices, indptr), shape=(n, table.need("sparse", int)))
        found.check_format(full_check=True)
        return found
    columns = table.need("columns", list)
    cells = {j: _unpack_column(column, f"X.{j}", n, arrays) for j, column in enumerate(columns)}
    return pd.DataFrame(cells, index=range(n)).set_axis(restore(names, len(columns), "feature names"), axis=1)


def _unpack_column(table: Table, place: str, n: int, arrays: Arrays) -> Any:
    if "categories" in table:
        categories = restore(table["categories"], len(table.need("categories", list)), "categories")
        codes = arrays.take(place, (n,), np.int64)
        return pd.Categorical.from_codes(codes, pd.Index(categories).infer_objects(), table.need("ordered", bool))
    dtype = table.need("dtype", str)
    if "text" in table:
        text = table.need("text", list)
        if len(text) != n or any(type(value) not in (str, type(None)) for value in text):
            raise damaged("a column of text is not of text")
        return pd.Series(text, dtype=_known(dtype))
    kind = np.int64 if dtype.lower().startswith(("int", "uint", "datetime", "timedelta")) else float
    if kind is np.int64 and arrays.left.get(place, np.empty(0)).dtype == float:
        kind = float
    values = pd.Series(arrays.take(place, (n,), kind, finite=False))
    return (
        pd.Series(values.to_numpy().view(dtype))
        if dtype.startswith(("datetime", "timedelta"))
        else values.astype(_known(dtype))
    )


def _known(dtype: str) -> Any:
    """Return a dtype of numbers, flags or text, and no other."""
    if not dtype.lower().startswith(("int", "uint", "float", "bool", "object", "str", "string")):
        raise damaged(f"a column is of dtype {dtype[:40]}")
    return dtype
