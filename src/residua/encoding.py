"""A table of any columns as numbers without gaps, for what needs such: medians in empty cells, a column for each value.

    numbers: an empty cell takes the column's median;    text: one column a value, and an empty cell is a value too

The work is done by scikit-learn's ``ColumnTransformer``. Medians and values say all of it, so they are what a model
file holds, as JSON: no type to trust, and nothing slow to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from residua.arrays import as_floats
from residua.caller import warn

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer

NONE = "(empty)"  # the value of an empty cell among text
MOST_VALUES = 64  # of a text column that becomes features without being asked for
DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Encoding:
    """What is needed to make numbers of a table.

    Parameters
    ----------
    medians : dict of str to float
        The median of each column of numbers, by its name.
    values : dict of str to tuple of str
        The values of each column of text, by its name, in the order of the features.
    """

    medians: dict[str, float]
    values: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, X: Any) -> Encoding:
        """Learn how to encode a DataFrame or an array; a column that is empty or of too many texts is left out.

        Examples
        --------
        >>> import pandas as pd
        >>> from residua.encoding import Encoding
        >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "kind": ["a", "b", None]})
        >>> Encoding.of(table).transform(table).iloc[1].to_dict()
        {'size': 2.0, 'kind=(empty)': 0.0, 'kind=a': 0.0, 'kind=b': 1.0}
        """
        table = _readable(X)
        medians: dict[str, float] = {}
        values: dict[str, tuple[str, ...]] = {}
        for name in map(str, table):
            cells = table[name]
            if cells.isna().all():
                warn(f"X has no value in column {name!r}, which is left out where numbers are needed.")
            elif cells.dtype == float:
                medians[name] = float(np.nanmedian(cells))
            elif (count := cells.nunique()) > MOST_VALUES:
                warn(
                    f"X has {count:,} different texts in column {name!r}, more than {MOST_VALUES}, so it is left out "
                    "where numbers are needed; group its values, or leave it out."
                )
            else:
                values[name] = tuple(sorted(set(cells.fillna(NONE))))
        found = cls(medians, values)
        names = pd.Index(found.feature_names)
        if names.has_duplicates:
            again = names[names.duplicated()][0]
            raise ValueError(f"X has a value that makes a feature {again!r}, and there is another; rename a column.")
        return found

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are read."""
        return [*self.medians, *self.values]

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded columns."""
        return [*self.medians, *(f"{column}={value}" for column, values in self.values.items() for value in values)]

    @cached_property
    def transformer(self) -> ColumnTransformer:
        """Scikit-learn's encoder, fitted: a table of one row has the medians for its medians."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder

        categories = [np.array(values, object) for values in self.values.values()]
        onehot = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
        median = SimpleImputer(strategy="median")
        parts = [("numbers", median, list(self.medians)), ("text", onehot, list(self.values))]
        row = self.medians | {column: values[0] for column, values in self.values.items()}
        return ColumnTransformer([part for part in parts if part[2]]).fit(pd.DataFrame([row]))

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the numbers (n, features) of a table that has the columns of the one this was learned from."""
        table = _readable(X)
        lacking = [column for column in self.columns if column not in table]
        if lacking:
            raise ValueError(f"X has no column {lacking[0]!r}; give the columns of the fit: {self.columns}.")
        wrong = [column for column in self.columns if (table[column].dtype == float) is (column in self.values)]
        for column in wrong:  # a table in which a column happens to be empty, or text happens to be digits
            table[column] = as_floats(table[column], column) if column in self.medians else _texts(table[column])
        table = table[self.columns].fillna(dict.fromkeys(self.values, NONE))
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(self.transformer.transform(table), index, self.feature_names)


def needs_encoding(X: Any) -> bool:
    """Return whether a table of features has gaps, or columns that are no numbers."""
    if isinstance(X, pd.DataFrame):
        kinds = [pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes if str(dtype) != "geometry"]
        return not all(kinds) or bool(X.isna().to_numpy().any())
    return isinstance(X, np.ndarray) and X.dtype.kind == "f" and bool(np.isnan(X).any())


def is_ordered(cells: pd.Series) -> bool:
    """Return whether a column holds numbers, dates or spans of time."""
    types = pd.api.types
    return types.is_numeric_dtype(cells) or types.is_datetime64_any_dtype(cells) or types.is_timedelta64_dtype(cells)


def ordered_floats(cells: pd.Series) -> np.ndarray:
    """Return numbers as floats (n,), dates as days since 1970, spans as days."""
    if pd.api.types.is_numeric_dtype(cells):
        return as_floats(cells, str(cells.name))
    if pd.api.types.is_timedelta64_dtype(cells):
        return np.asarray(cells.dt.total_seconds() / DAY, float)
    since = cells.dt.tz_localize(None) if cells.dt.tz is not None else cells
    return np.asarray((since - pd.Timestamp(0)).dt.total_seconds() / DAY, float)


def _readable(X: Any) -> pd.DataFrame:
    """Return a table of floats and of texts, its columns by name: those of an array are counted."""
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(np.asarray(X))
    X = X.loc[:, [str(dtype) != "geometry" for dtype in X.dtypes]]
    cells = {str(name): X[name] for name in X}
    return pd.DataFrame(
        {name: ordered_floats(one) if is_ordered(one) else _texts(one) for name, one in cells.items()}, X.index
    )


def _texts(cells: pd.Series) -> pd.Series:
    return cells.astype(object).map(str, na_action="ignore").astype(object)
