"""Several targets at once: one model for each column of y, and their answers side by side.

Each target has a base and a correlation of its own. What depends on the graph and on which labels are known alone, the
log-determinants, is computed once for all targets that are known at the same nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from residua.by_id import shape_of

SHARED = ("graph", "X", "n_features", "feature_names")  # attributes that are the same for all targets


def target_columns(y: Any) -> dict[Hashable, Any] | None:
    """Return the columns of a y of several targets, by their names or numbers; None for a single target."""
    shape = shape_of(y)
    if len(shape) != 2 or shape[1] < 2:
        return None
    if isinstance(y, pd.DataFrame):
        if not y.columns.is_unique:
            raise ValueError(f"y has columns {list(y.columns)}; give each target a name of its own.")
        return {name: y[name] for name in y.columns}
    table = y if isinstance(y, np.ndarray) else np.asarray(y)
    return {k: table[:, k] for k in range(shape[1])}


def by_target(y: Any, names: Sequence[Hashable], what: str = "y") -> list[Any]:
    """Return the labels of each target; None for those that have none.

    Parameters
    ----------
    y : (n, k) array, DataFrame, mapping or None
        A column for each target; a DataFrame or a dict by the names of the targets may leave some out.
    names : sequence of hashable
        The targets.
    what : str
        What errors call the labels.
    """
    if y is None:
        return [None] * len(names)
    if isinstance(y, pd.DataFrame | Mapping):
        unknown = [key for key in y if key not in names]
        if unknown:
            raise ValueError(f"{what} has {unknown[0]!r}, which is none of the targets {list(names)}; name them alike.")
        return [y.get(name) for name in names]
    shape = shape_of(y)
    if len(shape) != 2 or shape[1] != len(names):
        raise ValueError(
            f"{what} has shape {shape} but the model has {len(names)} targets; give a column for each, or a DataFrame "
            f"with columns among {list(names)}."
        )
    table = y if isinstance(y, np.ndarray) else np.asarray(y)
    return [table[:, k] for k in range(len(names))]


def noise_by_target(values: Any, names: Sequence[Hashable], what: str) -> list[Any]:
    """Return weights or variances of the labels of each target: a column each, or the same for all."""
    if len(shape_of(values)) < 2:
        return [values] * len(names)
    return by_target(values, names, what)


def side_by_side(parts: Sequence[Any]) -> Any:
    """Return vectors (n,) of each target as the columns of one array (n, k); of pairs of them a pair of arrays."""
    if isinstance(parts[0], tuple):
        return tuple(np.column_stack(each) for each in zip(*parts, strict=True))
    return np.column_stack(parts)


def read_targets(models: Mapping[Hashable, Any], name: str) -> Any:
    """Return an attribute of the fitted fields of all targets: one where it is shared, labels (n, k), else a dict."""
    found = {target: getattr(model.field_, name) for target, model in models.items()}
    if name in SHARED:
        return next(iter(found.values()))
    if name == "y":
        return side_by_side(list(found.values()))
    return {target: dict(value) if isinstance(value, Mapping) else value for target, value in found.items()}


def seeds(random_state: int) -> Iterator[int]:
    """Yield a seed for each target, so that their draws are independent."""
    for k in count():
        yield int(np.random.SeedSequence([random_state, k]).generate_state(1)[0])
