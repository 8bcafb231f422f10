"""Boosted trees in a model file: arrays alone, checked so that no walk down a tree leaves them or goes round."""

from __future__ import annotations

import numpy as np

from residua.bases.trees.base import Ensemble, TreesBase
from residua.bases.trees.bins import Bins
from residua.bases.trees.columns import Columns
from residua.bases.trees.kernels import CODES, MISSING
from residua.io.model_file.container import damaged
from residua.io.model_file.values import Arrays, Table, plain, restore

NUMBERS = ("x_centre", "x_spread")


def pack_trees(base: TreesBase, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """Put the boosters into ``arrays``; return what the table keeps of them."""
    e, b = base.ensemble, base.bins
    arrays |= {f"base.{name}": getattr(base, name) for name in NUMBERS}
    arrays |= {"base.edges": b.edges, "base.counts": b.counts, "base.categorical": b.categorical.astype(np.int64)}
    arrays |= {"base.theta": e.theta, "base.values": e.values, "base.feature": e.feature, "base.children": e.children}
    arrays["base.tables"] = np.packbits(e.tables, axis=-1)
    values = [None if v is None else [plain(one, "value") for one in v] for v in base.columns.values]
    scale = {"y_centre": base.y_centre, "y_spread": base.y_spread}
    return {"kind": "trees", "joint": base.joint, "values": values, **scale}


def unpack_trees(table: Table, columns: int, arrays: Arrays) -> TreesBase:
    """Return the boosters that ``pack_trees`` kept, for ``columns`` features."""
    base = TreesBase(table.need("joint", bool))
    base.y_centre, base.y_spread = table.number("y_centre"), table.number("y_spread")
    base.x_centre, base.x_spread = (arrays.take(f"base.{name}", (columns,)) for name in NUMBERS)
    base.bins = _unpack_bins(columns, arrays)
    values = table.need("values", list)
    base.columns = Columns(tuple(None if v is None else tuple(restore(v, len(v), "values")) for v in values))
    if len(values) != columns or (base.columns.categorical != base.bins.categorical).any():
        raise damaged("columns are not encoded as they are cut")
    theta = arrays.take("base.theta", (None, 1 + columns))
    values = arrays.take("base.values", (len(theta), None, None))
    m, t, leaves = values.shape
    feature = arrays.take("base.feature", (m, t, leaves - 1), np.int16)
    children = arrays.take("base.children", (m, t, leaves - 1, 2), np.int16)
    packed = arrays.take("base.tables", (m, t, leaves - 1, CODES // 8), np.uint8)
    if not (m and (base.x_spread > 0).all() and 0 < base.y_spread < np.inf and _sound(feature, children, columns)):
        raise damaged("trees are none, or lead nowhere")
    base.ensemble = Ensemble(theta, feature, np.unpackbits(packed, axis=-1).astype(bool), children, values)
    return base


def _unpack_bins(columns: int, arrays: Arrays) -> Bins:
    edges, counts = arrays.take("base.edges", (None,)), arrays.take("base.counts", (columns,), np.int64)
    categorical = arrays.take("base.categorical", (columns,), np.int64)
    if not ((counts >= 0) & (counts < MISSING)).all() or counts.sum() != len(edges) or (categorical // 2).any():
        raise damaged("borders of columns are not as many as they should be")
    return Bins(edges, counts, categorical.astype(bool))


def _sound(feature: np.ndarray, children: np.ndarray, columns: int) -> bool:
    """Whether every split asks a column that there is, and leads to a later split of its tree or to a leaf."""
    splits = feature.shape[-1]
    inner = children >= 0
    later = children > np.arange(splits)[:, None]
    there = np.take_along_axis(feature, np.clip(children, 0, splits - 1).reshape(*feature.shape[:2], -1), axis=2) >= 0
    leads = np.where(inner, later & (children < splits) & there.reshape(children.shape), children >= -splits - 1)
    used = feature >= 0
    return bool((feature < columns).all() and (leads | ~used[..., None]).all())
