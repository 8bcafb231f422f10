"""Numbers as users give them, as arrays of floats: masked entries are NaN, and what is no real number is refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

NO_NUMBERS = (complex, np.complexfloating, np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)


def as_floats(values: Any, name: str, remedy: str = "give real numbers, NaN where unknown") -> np.ndarray:
    """Return our own copy of numbers as floats, NaN where a mask hides them or they are missing.

    Parameters
    ----------
    values : array_like
        An array, masked or not, a pandas object, a tensor, or a list; not a sparse matrix.
    name : str
        What an error calls them.
    remedy : str
        What an error says to do.

    Returns
    -------
    ndarray of float
    """
    if sp.issparse(values):  # of which some are mappings
        raise ValueError(f"{name} is a sparse matrix of shape {values.shape}; give it as an array: {name}.toarray().")
    _refuse_mapping(values, name)
    if isinstance(values, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in values):
        values = np.ma.stack(values)
    values = _from_tensor(values, name)
    try:
        found = values.data if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        kind = _not_real(found)
        if kind:
            raise TypeError(f"it holds {kind}")
        pandas = hasattr(values, "iloc")  # whose own word for a missing value is no float
        numbers = np.array(values.to_numpy(dtype=float, na_value=np.nan) if pandas else found, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not numeric ({error}); {remedy}.") from None
    if isinstance(values, np.ma.MaskedArray):
        numbers[np.ma.getmaskarray(values)] = np.nan
    return numbers


def _from_tensor(values: Any, name: str) -> Any:
    """Return a tensor of any device and precision, with or without a gradient, as numpy reads it; all else as is."""
    if not hasattr(values, "detach"):
        return values
    if str(values.layout) != "torch.strided":
        raise ValueError(f"{name} is a sparse tensor of shape {tuple(values.shape)}; give {name}.to_dense().")
    values = values.detach().cpu()
    return values.double() if values.is_floating_point() else values


def _not_real(array: np.ndarray) -> str:
    """Return the name of a type that numpy makes floats of, though it is no real number; else nothing."""
    if array.dtype.kind in "cmM":
        return str(array.dtype)
    types = set(map(type, array.flat)) if array.dtype == object else set()
    return next((type.__name__ for type in types if issubclass(type, NO_NUMBERS)), "")


def _refuse_mapping(values: Any, name: str) -> None:
    if isinstance(values, Mapping):
        raise ValueError(
            f"{name} is a {type(values).__name__}; give it as a pandas table, whose rows are matched by id: "
            f"pd.Series({name}).reindex(graph.nodes) where it has numbers of some ids."
        )


def as_flags(values: Any, name: str = "labelled") -> np.ndarray:
    """Return an array of flags, False where a mask hides one; what else there is as it is, or as floats, NaN there."""
    _refuse_mapping(values, name)
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(_from_tensor(values, name))
    return values.filled(False) if values.dtype == bool else as_floats(values, name)
