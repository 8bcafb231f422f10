"""Scikit-learn regressors in a model file: a skops part, checked before skops sees it, of trusted types only."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from copy import deepcopy
from pathlib import PurePath
from typing import Any
from zipfile import ZipFile

import numpy as np

from residua.bases.registry import find_base
from residua.io.model_file.container import ESTIMATORS, ModelFileError, damaged, sound_members, write_members
from residua.validation import one_line

SCHEMA = "schema.json"  # of a skops part
OURS = "residua.bases.neighbours.NeighbourFeatures"  # which skops does not know

# skops itself is imported where it is needed: it takes two seconds, and only a scikit-learn base has use for it.


def pack_estimators(estimators: dict[str, Any]) -> bytes:
    """Return a skops part that is known to load."""
    import skops.io

    try:
        data = _canonical(skops.io.dumps({name: _without_times(estimators[name]) for name in sorted(estimators)}))
        unpack_estimators(data, sorted(estimators), skops.io.get_untrusted_types(data=data))
    except Exception as error:
        names = ", ".join(sorted({type(estimator).__name__ for estimator in estimators.values()}))
        raise ValueError(
            f"base {names} cannot be kept in a model file ({one_line(error)}); "
            "use estimators and functions that can be imported by name, without sparse matrices or bytes."
        ) from error
    return data


def _canonical(data: bytes) -> bytes:
    """Return a skops part without addresses in memory or the time of day: the same regressor gives the same bytes.

    skops knows an object that occurs again by its address, by which it also names arrays; here they are counted, and
    values and types, which cannot change, are one where they are equal.
    """
    with ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    state = json.loads(members.pop(SCHEMA))
    numbers: dict[Any, int] = {}
    kept: dict[str, bytes] = {}

    def count(node: Any) -> None:
        if isinstance(node, dict) and "__id__" in node:
            value = node["__loader__"] in ("JsonNode", "TypeNode")
            key = json.dumps(node | {"__id__": 0}, sort_keys=True) if value else node["__id__"]
            node["__id__"] = numbers.setdefault(key, len(numbers) + 1)
        if isinstance(node, dict) and node.get("file") in members:
            name = f"{node['__id__']}{PurePath(node['file']).suffix}"
            kept[name], node["file"] = _without_padding(members[node["file"]]), name
        for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            count(part)

    count(state)
    packed = io.BytesIO()
    write_members(packed, kept | {SCHEMA: json.dumps(state).encode()})
    return packed.getvalue()


def _without_padding(member: bytes) -> bytes:
    """Return an array's file with zeros between its fields, where a tree's nodes have whatever the memory held."""
    if not member.startswith(np.lib.format.MAGIC_PREFIX):
        return member
    array = np.load(io.BytesIO(member))
    if array.dtype.names is None:
        return member
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = array[name]
    packed = io.BytesIO()
    np.save(packed, clean)
    return packed.getvalue()


def _without_times(estimator: Any) -> Any:
    """Return a regressor whose searches over parameters do not say how long they took; a copy, if there is one."""
    from sklearn.model_selection._search import BaseSearchCV

    def searches(part: Any) -> Iterator[BaseSearchCV]:
        if isinstance(part, BaseSearchCV):
            yield part
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
        for value in vars(part).values() if hasattr(part, "get_params") else inside:
            yield from searches(value)

    if not any(True for _ in searches(estimator)):
        return estimator
    copy = deepcopy(estimator)
    for search in searches(copy):
        for times in (v for k, v in vars(search).get("cv_results_", {}).items() if k.endswith("_time")):
            times[:] = 0.0
        if hasattr(search, "refit_time_"):
            search.refit_time_ = 0.0
    return copy


def unpack_estimators(data: bytes, names: list, trusted: list) -> dict[str, Any]:
    """Return the regressors, which have just these names."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    _check_members(data)
    trusted = [*trusted, OURS]
    try:
        found = skops.io.loads(data, trusted=trusted)
    except UntrustedTypesFoundException:
        wanted = [name for name in skops.io.get_untrusted_types(data=data) if name != OURS]
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
        members = {info.filename: info for info in sound_members(archive, len(data)) if info.filename != SCHEMA}
        for name, info in members.items():
            if not name.endswith(".npy"):  # such as a sparse matrix, which is a compressed zip in its turn
                raise damaged(f"{ESTIMATORS} has a member {name!r}")
            with archive.open(info) as file:
                shape, _, dtype = headers[np.lib.format.read_magic(file)](file)
                if dtype.hasobject or min(shape, default=0) < 0:
                    raise damaged(f"{name!r} holds objects")
                if math.prod(shape) * dtype.itemsize != info.file_size - file.tell():
                    raise damaged(f"{name!r} is not of shape {shape}")
