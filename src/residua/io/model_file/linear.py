"""Linear bases and splines in a model file: their columns and coefficients, all of them arrays."""

from __future__ import annotations

import numpy as np

from residua.bases.linear import LinearBase
from residua.bases.splines import KNOTS, LEAST_KNOTS, SplineBase
from residua.io.model_file.container import damaged
from residua.io.model_file.values import Arrays


def pack_linear(base: LinearBase, arrays: dict[str, np.ndarray]) -> None:
    """Put a fitted base among the arrays."""
    arrays |= {f"base.{name}": getattr(base, name) for name in ("coefficients", "centre", "spread")}
    if isinstance(base, SplineBase):
        assert base.prior_variance is not None
        arrays["base.knots"] = np.concatenate([np.empty(0), *base.knots])
        arrays["base.knot_counts"] = np.array([len(knots) for knots in base.knots], np.int64)
        arrays["base.prior_variance"] = base.prior_variance[base.groups > 0]


def unpack_linear(base: LinearBase, features: int, arrays: Arrays) -> LinearBase:
    """Return the base, fitted as the arrays say."""
    base.centre, base.spread = (arrays.take(f"base.{name}", (features,)) for name in ("centre", "spread"))
    if not (base.spread > 0).all():
        raise damaged("base.spread is not positive")
    if isinstance(base, SplineBase):
        base.knots = _unpack_knots(features, arrays)
    base.coefficients = arrays.take("base.coefficients", base.features.shape)
    if isinstance(base, SplineBase):
        base.prior_variance = np.full(base.features.shape, np.inf)
        bent = base.groups > 0
        base.prior_variance[bent] = arrays.take("base.prior_variance", (int(bent.sum()),))
        if (base.prior_variance < 0).any():
            raise damaged("base.prior_variance is negative")
    return base


def _unpack_knots(features: int, arrays: Arrays) -> list[np.ndarray]:
    counts = arrays.take("base.knot_counts", (features,), np.int64)
    if not np.isin(counts, (0, *range(LEAST_KNOTS, KNOTS + 1))).all():
        raise damaged("base.knot_counts are not those of splines")
    knots = np.split(arrays.take("base.knots", (int(counts.sum()),)), np.cumsum(counts)[:-1]) if features else []
    if any((np.diff(own) <= 0).any() for own in knots):
        raise damaged("base.knots are not in order")
    return knots
