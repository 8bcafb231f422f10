"""An average in a model file: the members of each of its models in a folder of its own, and the weights.

    average.json + 0/model.json + 0/arrays.safetensors [+ 0/base.skops] + 1/model.json + ..

Each folder is a whole model, checked as one that has a file to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from residua import __version__
from residua.average import Average
from residua.encoding import Encoding
from residua.estimator import GraphRegressor
from residua.io.model_file.container import damaged
from residua.io.model_file.recipe import unpack_encoding, unpack_recipe
from residua.io.model_file.values import Table, pack_table, read_number
from residua.validation import one_line

WEIGHTS = "average.json"
FORMAT = 1

Members = Mapping[str, bytes]


def pack_average(average: Average, pack: Callable[[GraphRegressor], Members]) -> dict[str, bytes]:
    """Return the members of the file, those of each model by ``pack``."""
    table: dict[str, Any] = {"format": FORMAT, "residua": __version__, "weights": average.weights.tolist()}
    if any(average.encodings):
        table["encodings"] = [None if encoding is None else asdict(encoding) for encoding in average.encodings]
    if hasattr(average, "recipe_"):
        table["recipe"] = asdict(average.recipe_)
    return {WEIGHTS: pack_table(table)} | pack_folders(average.models, pack)


def pack_folders(models: Iterable[GraphRegressor], pack: Callable[[GraphRegressor], Members]) -> dict[str, bytes]:
    """Return the members of several models, each in a folder of its number."""
    return {f"{k}/{name}": data for k, model in enumerate(models) for name, data in pack(model).items()}


def unpack_folders(members: Members, table: str, count: int) -> list[dict[str, bytes]]:
    """Return the members of each of ``count`` models; there is nothing else beside their ``table``."""
    folders: dict[str, dict[str, bytes]] = {str(k): {} for k in range(count)}
    for name in members.keys() - {table}:
        folder, _, rest = name.partition("/")
        if folder not in folders:
            raise damaged(f"it has a member {one_line(name, 60)!r}")
        folders[folder][rest] = members[name]
    return list(folders.values())


def unpack_average(members: Members, unpack: Callable[[Members], GraphRegressor]) -> Average:
    """Return the average that these members hold, each model by ``unpack``."""
    table = Table.read(members[WEIGHTS], FORMAT)
    weights = np.array([read_number(value) for value in table.need("weights", list)])
    models = [unpack(folder) for folder in unpack_folders(members, WEIGHTS, len(weights))]
    average = Average(models, weights, _encodings(table, len(models)))
    if not np.allclose(average.weights, weights):
        raise damaged("weights do not add up to 1")
    average.weights = weights  # to the last bit
    if table.get("recipe") is not None:
        average.recipe_ = unpack_recipe(table.need("recipe", Table), None, check=False)
    return average


def _encodings(table: Table, count: int) -> list[Encoding | None] | None:
    """Return how the features become those of each model; older files say nothing."""
    if "encodings" not in table:
        return None
    parts = table.need("encodings", list)
    if len(parts) != count or not all(part is None or isinstance(part, Table) for part in parts):
        raise damaged("encodings are not one for each model")
    return [None if part is None else unpack_encoding(part) for part in parts]
