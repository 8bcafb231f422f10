"""What a model file is made of: JSON values and arrays, each checked for the type and shape it should have."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import numpy as np
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors

from residua import __version__
from residua.io.model_file.container import TABLE, ModelFileError, damaged
from residua.validation import one_line


class Table(dict[str, Any]):
    """A JSON object of a file: each value is checked as it is read."""

    @classmethod
    def read(cls, data: bytes, newest: int) -> Table:
        """Return the object in these bytes, of a format that this residua knows: up to ``newest``."""
        table = json.loads(data, object_hook=cls, parse_constant=_refuse_constant)
        if type(table) is not cls:
            raise damaged(f"{TABLE} is not an object")
        version, writer = table.need("format", int), table.need("residua", str)
        if version > newest:
            raise ModelFileError(
                f"was written by a newer residua ({one_line(writer, 20)}, file format {version}; this is {__version__} "
                f"and reads up to {newest}); upgrade residua."
            )
        if version < 1:
            raise damaged(f"format is {version}")
        return table

    def need(self, key: str, *kinds: type) -> Any:
        """Return the value of ``key``, just of one of these types (True is no int)."""
        if key not in self or type(self[key]) not in kinds:
            raise damaged(f"{key} is missing or of a wrong type")
        return self[key]

    def number(self, key: str) -> float:
        """Return the number of ``key``, which need not be finite."""
        return read_number(self.get(key))

    def numbers(self, key: str, names: tuple[str, ...]) -> dict[str, float]:
        """Return one number for each of these edge types."""
        values = self.need(key, Table)
        if tuple(values) != names:
            raise damaged(f"{key} has other edge types than the graph")
        return {name: read_number(value) for name, value in values.items()}


def read_number(value: Any) -> float:
    if type(value) not in (int, float) and value not in ("inf", "-inf", "nan"):
        raise damaged(f"a number is {one_line(repr(value), 40)}")
    return float(value)


def _refuse_constant(text: str) -> NoReturn:
    raise damaged(f"{TABLE} has {text}")


def pack_table(table: Mapping[str, Any]) -> bytes:
    return json.dumps(_named(table), allow_nan=False).encode()


def _named(value: Any) -> Any:
    """Return the value with numbers that are not finite by their names: JSON has no infinity."""
    if isinstance(value, Mapping):
        return {key: _named(part) for key, part in value.items()}
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any, name: str) -> Any:
    """Return an id or a name as JSON keeps it: tuples become lists, numpy's scalars Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is tuple:
        return [plain(part, name) for part in value]
    if type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    raise ValueError(
        f"{name} {one_line(repr(value), 60)} is of type {type(value).__name__}, which a model file does not keep; "
        "use int, str, finite float, bool or tuples of these."
    )


def plain_or_none(value: Any, name: str) -> Any:
    return None if value is None else plain(value, name)


def restore(values: Any, count: int, name: str) -> np.ndarray:
    """Return the (count,) array of the ids or names that ``plain`` made these of."""
    if type(values) is not list or len(values) != count:
        raise damaged(f"{name} are not {count}")
    return np.fromiter(map(_restore_one, values), object, count)


def _restore_one(value: Any) -> Hashable:
    if type(value) is list:
        return tuple(_restore_one(part) for part in value)
    if type(value) not in (bool, int, str, float):
        raise damaged(f"an id or a name is {one_line(repr(value), 40)}")
    return value


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Pack arrays by name; one that lies column by column stays so, since sums depend on it in the last bit."""
    packed = {}
    for name, array in arrays.items():
        by_column = array.flags.f_contiguous and not array.flags.c_contiguous
        packed[f"{name}.T" if by_column else name] = np.asarray(array.T if by_column else array, order="C")
    return to_safetensors(packed)


class Arrays:
    """The arrays of a file: each is taken once, and checked."""

    def __init__(self, data: bytes):
        self.left: dict[str, np.ndarray] = {}
        # safetensors itself refuses shapes that differ from the bytes there are.
        for key, array in from_safetensors(data).items():
            name = key.removesuffix(".T")
            if name in self.left:
                raise damaged(f"array {name!r} comes twice")
            self.left[name] = array if name == key else array.T

    def take(self, name: str, shape: tuple, dtype: type | np.dtype = np.float64, finite: bool = True) -> np.ndarray:
        """Return the array of that name, of that dtype and shape (None: any length)."""
        array = self.left.pop(name, None)
        if array is None:
            raise damaged(f"array {name} is missing")
        fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
        if array.dtype != dtype or not fits:
            raise damaged(f"array {name} is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of {shape}")
        if finite and not np.isfinite(array).all():
            raise damaged(f"array {name} is not finite")
        return array
