"""A spread in a model file: the numbers of one that was learned, else the word by which it is to be.

Files from before there were spreads have none, and answer as they did: by the constant one.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from residua.field.spread import SLIMMEST, Spread
from residua.field.spread_columns import is_column
from residua.io.model_file.container import damaged
from residua.io.model_file.values import Arrays, Table
from residua.validation import one_line

SETTINGS = ("learned", "constant")
VECTORS = ("coefficients", "centre", "unit")
NUMBERS = ("df", "level", "prior_weight", "region_weight", "mean_square", "decay", "middle")


def pack_spread(spread: str | Spread, arrays: dict[str, np.ndarray]) -> Any:
    """Return what the JSON part has of a spread; vectors go to ``arrays``."""
    if isinstance(spread, str):
        return spread
    arrays |= {f"spread.{name}": getattr(spread, name) for name in VECTORS}
    rest = {f.name: getattr(spread, f.name) for f in fields(spread) if f.name not in VECTORS}
    return rest | {"names": list(spread.names)}


def unpack_spread(found: Any, n_features: int, arrays: Arrays) -> str | Spread:
    """Return the spread of a file: a word, or the numbers that were learned."""
    if found is None:
        return "constant"
    if isinstance(found, str) and found in SETTINGS:
        return found
    if not isinstance(found, Table):
        raise damaged(f"spread is {one_line(repr(found), 40)}")
    names, numbers = found.need("names", list), {name: found.number(name) for name in NUMBERS}
    if not all(type(name) is str and is_column(name, n_features) for name in names) or len(set(names)) < len(names):
        raise damaged(f"spread is of columns {one_line(names, 80)}")
    vectors = {name: arrays.take(f"spread.{name}", (len(names),)) for name in VECTORS}
    bounded = all(math.isfinite(numbers[name]) for name in ("level", "region_weight", "mean_square", "decay", "middle"))
    positive = (
        min(numbers["prior_weight"], numbers["region_weight"]) > 0
        and numbers["mean_square"] > 0
        and 0 <= numbers["decay"] <= 1
    )
    if not (bounded and positive and numbers["df"] >= SLIMMEST and (vectors["unit"] > 0).all()):
        raise damaged(f"spread is {one_line(found, 80)}")
    learned: dict[str, Any] = {**numbers, **vectors}
    return Spread(**learned, names=tuple(names), n_scores=found.need("n_scores", int))
