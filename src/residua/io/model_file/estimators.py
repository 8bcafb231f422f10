"""Scikit-learn regressors in a model file: a skops part, checked before skops sees it, of trusted types only."""

from __future__ import annotations

import io
import math
from typing import Any
from zipfile import ZipFile

import numpy as np

from residua.bases.registry import find_base
from residua.io.model_file.container import ESTIMATORS, ModelFileError, damaged, sound_members
from residua.validation import one_line

# skops itself is imported where it is needed: it takes two seconds, and only a scikit-learn base has use for it.


def pack_estimators(estimators: dict[str, Any]) -> bytes:
    """Return a skops part that is known to load."""
    import skops.io

    try:
        data = skops.io.dumps(estimators)
        unpack_estimators(data, sorted(estimators), skops.io.get_untrusted_types(data=data))
    except Exception as error:
        names = ", ".join(sorted({type(estimator).__name__ for estimator in estimators.values()}))
        raise ValueError(
            f"base {names} cannot be kept in a model file ({one_line(error)}); "
            "use estimators and functions that can be imported by name, without sparse matrices or bytes."
        ) from error
    return data


def unpack_estimators(data: bytes, names: list, trusted: list) -> dict[str, Any]:
    """Return the regressors, which have just these names."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    _check_members(data)
    try:
        found = skops.io.loads(data, trusted=trusted)
    except UntrustedTypesFoundException:
        wanted = skops.io.get_untrusted_types(data=data)
        raise ModelFileError(
            f"has a base with types that are not trusted by default: {', '.join(wanted)}; "
            f"if you know where the file comes from, load it with trusted={wanted}."
        ) from None
    if type(found) is not dict or sorted(found) != names:
        raise damaged(f"{ESTIMATORS} does not hold {one_line(names)}")
    if not all(find_base(estimator).kind == "regressor" for estimator in found.values()):
        raise damaged(f"{ESTIMATORS} does not hold regressors")
    return found


def _check_members(data: bytes) -> None:
    """Check that no member of a skops file is packed, and no array holds objects or claims a shape beyond its bytes."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: info for info in sound_members(archive, len(data)) if info.filename != "schema.json"}
        for name, info in members.items():
            if not name.endswith(".npy"):  # such as a sparse matrix, which is a compressed zip in its turn
                raise damaged(f"{ESTIMATORS} has a member {name!r}")
            with archive.open(info) as file:
                shape, _, dtype = headers[np.lib.format.read_magic(file)](file)
                if dtype.hasobject or min(shape, default=0) < 0:
                    raise damaged(f"{name!r} holds objects")
                if math.prod(shape) * dtype.itemsize != info.file_size - file.tell():
                    raise damaged(f"{name!r} is not of shape {shape}")
