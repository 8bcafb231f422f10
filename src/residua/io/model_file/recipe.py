"""How the tables of a fit were read, in a model file: names of columns, medians, values of text, all as JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from residua.encoding import Encoding
from residua.io.model_file.container import damaged
from residua.io.model_file.values import Table, read_number
from residua.io.tables.dates import PARTS
from residua.io.tables.duplicates import RULES
from residua.io.tables.numerals import Notation
from residua.io.tables.recipe import Recipe


def unpack_recipe(table: Table, names: np.ndarray | None, check: bool = True) -> Recipe:
    """Return the recipe, whose features are those of the model; of an average, where none has them all, unchecked."""
    found = unpack_encoding(table)
    recipe = Recipe(
        **{name: table.need(name, str) for name in ("id", "target", "source", "to")},
        **{name: table.need(name, str, type(None)) for name in ("weight", "edge_type", "length") if name in table},
        missing=_texts(table.need("missing", list)),
        **_numerals(table),
        duplicates=table.need("duplicates", str) if "duplicates" in table else "sum",
        dates={name: _date(value) for name, value in table.need("dates", Table).items()} if "dates" in table else {},
        positions=_texts(table.need("positions", list)) if "positions" in table else (),
        medians=found.medians,
        values=found.values,
        as_is=bool(table.get("as_is")),
    )
    if not recipe.dates.keys() <= recipe.medians.keys() or len(recipe.positions) not in (0, 2):
        raise damaged("recipe has dates that are no features, or a position that is no pair")
    if recipe.duplicates not in RULES:
        raise damaged("recipe has an unknown rule for rows that list one edge")
    if check and recipe.feature_names != ([] if names is None else list(names)):
        raise damaged("recipe makes other features than the model has")
    return recipe


def unpack_encoding(table: Table) -> Encoding:
    """Return how a table becomes numbers."""
    medians = {name: read_number(value) for name, value in table.need("medians", Table).items()}
    values = {name: _texts(value) for name, value in table.need("values", Table).items()}
    if not all(map(math.isfinite, medians.values())) or not all(values.values()):
        raise damaged("it has a median that is not finite, or text without values")
    return Encoding(medians, values)


def _numerals(table: Table) -> dict[str, Any]:
    """Return how numbers are written, of which older files say nothing."""
    found = {name: table[name] for name in ("thousands", "decimal", "units") if name in table}
    try:
        Notation(**found)
    except (ValueError, TypeError):
        raise damaged("recipe has marks of numbers that are unknown") from None
    if type(found.get("units", False)) is not bool:
        raise damaged("recipe has marks of numbers that are unknown")
    return found


def _date(value: Any) -> tuple[str, str]:
    found = _texts(value)
    if len(found) != 2 or found[1] not in PARTS:
        raise damaged("recipe has a date of an unknown kind")
    return found[0], found[1]


def _texts(values: Any) -> tuple[str, ...]:
    if type(values) is not list or any(type(value) is not str for value in values) or len(set(values)) < len(values):
        raise damaged("recipe has a list that is not of distinct texts")
    return tuple(values)
