"""Where a model is sure and where it is not, and on what that depends, in words.

Names of the columns that move the scale of errors most, by the standard deviation of what each adds to its logarithm.
"""

from __future__ import annotations

import numpy as np

from residua.field.fitted import FittedField
from residua.field.spread import AROUND

MOST = 3  # reasons
LEAST = 0.05  # standard deviation of what a reason adds to the log scale


def spread_in_words(field: FittedField) -> str:
    """Return a sentence on the spread of a fit; nothing where it was not to be learned."""
    if field.spread_setting == "constant":
        return ""
    spread = field.spread
    tails = "Gaussian tails" if not np.isfinite(spread.df) or spread.df > 100 else f"Student tails ({spread.df:.1f} df)"
    if spread.constant:
        return f"the same everywhere but for where labels are, {tails}; {spread.n_scores:,} labels do not support more"
    own = field.prediction
    asked = ~own.known if not own.known.all() else own.known
    std = own.left_out_std[asked]
    low, high = np.quantile(std, [0.05, 0.95]) / np.median(std)
    reasons = {name: part[asked] for name, part in own.spread_parts().items()}
    sizes = {name: float(part.std()) for name, part in reasons.items()}
    largest = [name for name in sorted(sizes, key=lambda name: -sizes[name]) if sizes[name] > LEAST][:MOST]
    signs = dict(zip(spread.names, np.sign(spread.coefficients), strict=True)) | {AROUND: 1.0}
    wide, narrow = (_list(field, [(name, sign * signs[name]) for name in largest]) for sign in (1, -1))
    if not largest:
        return f"std from {low:.2g} to {high:.2g} times the median, {tails}"
    return f"std is widest ({high:.2g} times the median) where {wide}; narrowest ({low:.2g}) where {narrow}; {tails}"


def _list(field: FittedField, reasons: list[tuple[str, float]]) -> str:
    words = [f"{_name(field, name)} {_level(name, sign)}" for name, sign in reasons]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _level(name: str, sign: float) -> str:
    """Say on which side a column is."""
    if name == AROUND:
        return "are large" if sign > 0 else "are small"
    return "is high" if sign > 0 else "is low"


def _name(field: FittedField, name: str) -> str:
    """Return a feature by its name, if it has one."""
    if not name.removeprefix("x").isdigit():
        return name
    names = field.feature_names
    return f"feature {name[1:]}" if names is None else str(names[int(name[1:])])
