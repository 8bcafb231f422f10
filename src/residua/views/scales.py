"""Colour scales that several maps share.

Predictions share one sequential scale, residuals and corrections one diverging scale centred on 0, and what is never
negative, such as uncertainty, has one of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SEQUENTIAL = "viridis"
# Blue to red through sand: white would vanish on the page, and grey means unknown.
DIVERGING = ("#173f7a", "#3f83bf", "#9cc7de", "#efe3bd", "#f0ac7d", "#cf5f47", "#861a2b")
SPREADS = ("uncertainty", "width", "error")  # words in titles of what is never negative, each with a scale of its own
CLIP = 0.01  # share of values beyond each end of a colour scale


@dataclass(frozen=True)
class Scale:
    """A colour scale shared by several panels: from low to high, and which ends stand for more."""

    low: float
    high: float
    cmap: str | Colormap
    extend: str = "neither"

    @cached_property
    def palette(self) -> list[str]:
        """Colours from low to high, as HTML writes them."""
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        return [to_hex(colour) for colour in colormaps.get_cmap(self.cmap)(np.linspace(0, 1, 128))]


def shared_scales(values: Mapping[str, Array], diverging: Collection[str] | None, clip: float) -> dict[str, Scale]:
    """Return the scale of each title: one for panels centred on 0, one for each of ``SPREADS``, one for all others."""
    if diverging is None:
        diverging = {t for t in values if "residual" in t.casefold() or "correction" in t.casefold()}
    unknown = set(diverging) - set(values)
    if unknown:
        raise ValueError(f"diverging names {sorted(unknown)}, not among the panels {list(values)}.")
    rest = [title for title in values if title not in diverging]
    spreads = {word: [title for title in rest if word in title.casefold()] for word in SPREADS}
    plain = [title for title in rest if not any(title in group for group in spreads.values())]
    scales = dict.fromkeys(plain, plain_scale([values[title] for title in plain], clip))
    scales |= dict.fromkeys(diverging, centred_scale([values[title] for title in diverging], clip))
    for group in spreads.values():
        scales |= dict.fromkeys(group, plain_scale([values[title] for title in group], clip, _plum()))
    return {title: scales[title] for title in values}


def _plum() -> Colormap:
    """Return colours of what is never negative: pale where small, dark where large, so that no end is lost on white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["magma_r"](np.linspace(0.08, 0.85, 256)), name="plum")


def plain_scale(columns: Iterable[Array], clip: float, cmap: str | Colormap = SEQUENTIAL) -> Scale:
    values = _pool(columns)
    if not len(values):
        return Scale(0, 1, cmap)
    low, high = np.quantile(values, clip, method="lower"), np.quantile(values, 1 - clip, method="higher")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Scale(low, high, cmap, _extend(values, low, high))


def centred_scale(columns: Iterable[Array], clip: float) -> Scale:
    from matplotlib.colors import LinearSegmentedColormap

    values = _pool(columns)
    reach = (np.quantile(np.abs(values), 1 - 2 * clip, method="higher") if len(values) else 0) or 1.0
    colours = LinearSegmentedColormap.from_list("residua", DIVERGING)
    return Scale(-reach, reach, colours, _extend(values, -reach, reach))


def _extend(values: Array, low: float, high: float) -> str:
    """The ends of a colour bar that stand for values beyond it, in matplotlib's words."""
    return ("neither", "min", "max", "both")[int((values < low).any()) + 2 * int((values > high).any())]


def _pool(columns: Iterable[Array]) -> Array:
    values = np.concatenate([*columns, np.empty(0)])
    return values[~np.isnan(values)]
