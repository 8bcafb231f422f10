"""How the tables of a fit were read, in a model file: names of columns, medians, values of text, all as JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from residua.io.model_file.container import damaged
from residua.io.model_file.values import Table, need, read_number
from residua.io.tables.recipe import Recipe

OPTIONAL = ("weight", "edge_type")


def unpack_recipe(table: Table, names: np.ndarray | None) -> Recipe:
    """Return the recipe, whose features are those of the model."""
    for name in OPTIONAL:
        if table.get(name) is not None:
            need(table, name, str)
    recipe = Recipe(
        id=need(table, "id", str),
        target=need(table, "target", str),
        source=need(table, "source", str),
        to=need(table, "to", str),
        weight=table.get("weight"),
        edge_type=table.get("edge_type"),
        missing=_texts(need(table, "missing", list)),
        medians={name: read_number(value) for name, value in need(table, "medians", dict).items()},
        values={name: _texts(value) for name, value in need(table, "values", dict).items()},
    )
    if not all(map(math.isfinite, recipe.medians.values())) or not all(recipe.values.values()):
        raise damaged("recipe has a median that is not finite, or text without values")
    if recipe.feature_names != ([] if names is None else list(names)):
        raise damaged("recipe makes other features than the model has")
    return recipe


def _texts(values: Any) -> tuple[str, ...]:
    if type(values) is not list or any(type(value) is not str for value in values) or len(set(values)) < len(values):
        raise damaged("recipe has a list that is not of distinct texts")
    return tuple(values)
