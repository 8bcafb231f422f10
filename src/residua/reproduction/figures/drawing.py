"""How the figures look: one palette that colour-blind readers can tell apart, quiet axes, words next to lines.

matplotlib is imported when a picture is drawn, and pyplot never.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, QUIET, GRID = "#222222", "#6b6b6b", "#e4e4e4"
# Okabe and Ito's colours; a marker of its own for each, so that a grey print does as well.
COLOURS = {"C-GNN": "#0072B2", "GNN": "#D55E00", "LP-GNN": "#B8860B", "LP": "#009E73", "MLP": "#AA4499"}
MARKERS = {"C-GNN": "o", "GNN": "s", "LP-GNN": "D", "LP": "^", "MLP": "v"}
NEGATIVE, POSITIVE = "#2166ac", "#c0392b"
DPI = 160
REPOSITORY = "github.com/000Justin000/gnn-residual-correlation"


def page(width: float, height: float, title: str, subtitle: str, source: str = "") -> Figure:
    """An empty figure; ``content`` says where its axes may go."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    figure.text(0.14 / width, 1 - 0.12 / height, title, ha="left", va="top", fontsize=13, weight="bold", color=INK)
    figure.text(0.14 / width, 1 - 0.42 / height, subtitle, ha="left", va="top", fontsize=9.5, color=QUIET)
    figure.text(0.14 / width, 0.08 / height, source, ha="left", va="bottom", fontsize=7.5, color=QUIET)
    return figure


def content(figure: Figure, head: float = 0.7, foot: float = 0.3, sides: float = 0.1) -> tuple[float, ...]:
    """Return left, bottom, right and top of what is left for axes, lengths in inches turned to shares."""
    width, height = figure.get_size_inches()
    return sides / width, foot / height, 1 - sides / width, 1 - head / height


def panels(figure: Figure, rows: int, columns: int, *, head: float = 0.7, foot: float = 0.3, **spec: Any) -> np.ndarray:
    """Axes (rows, columns) that leave room for the words above and below."""
    left, bottom, right, top = content(figure, head, foot)
    figure.set_layout_engine("constrained", rect=(left, bottom, right - left, top - bottom), w_pad=0.08, h_pad=0.06)
    return figure.subplots(rows, columns, squeeze=False, **spec)


def tidy(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Give axes two spines, a faint grid and words."""
    ax.set_title(title, loc="left", fontsize=10.5, color=INK, pad=6)
    ax.set_xlabel(x, fontsize=9, color=INK)
    ax.set_ylabel(y, fontsize=9, color=INK)
    ax.tick_params(labelsize=8.5, colors=INK, length=3, width=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set(color=QUIET, linewidth=0.7)
    ax.grid(color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)


def curve(ax: Axes, x: np.ndarray, scores: np.ndarray, method: str, label: str | None = None) -> None:
    """Draw the mean of scores (seeds, points) with a band of one standard deviation of the seeds either way."""
    mean = scores.mean(axis=0)
    colour = COLOURS[method]
    if len(scores) > 1:
        spread = scores.std(axis=0, ddof=1)
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    style: dict[str, Any] = {"color": colour, "marker": MARKERS[method], "markersize": 5, "linewidth": 1.8}
    ax.plot(x, mean, label=label or method, markeredgecolor="white", markeredgewidth=0.6, zorder=3, **style)


def reference(ax: Axes, points: Mapping[int, float], method: str) -> None:
    """Draw numbers of the authors: hollow marks, joined by dashes where there are several."""
    x, y = list(points), list(points.values())
    style: dict[str, Any] = {"color": COLOURS[method], "marker": MARKERS[method], "markersize": 8, "linewidth": 1.1}
    ax.plot(x, y, linestyle=(0, (4, 3)), markerfacecolor="none", markeredgewidth=1.2, zorder=2, **style)


def legend(figure: Figure, ax: Axes, extra: Sequence[Any] = ()) -> None:
    """Explain the lines of ``ax`` in a row below the subtitle; ``extra`` handles come last."""
    handles = [*ax.get_legend_handles_labels()[0], *extra]
    width, height = figure.get_size_inches()
    style: dict[str, Any] = {
        "frameon": False,
        "fontsize": 9,
        "labelcolor": INK,
        "handlelength": 2.6,
        "columnspacing": 1.8,
    }
    corner = (0.08 / width, 1 - 0.62 / height)
    words = figure.legend(handles=handles, loc="upper left", bbox_to_anchor=corner, ncols=len(handles), **style)
    words.set_in_layout(False)


def reference_key(text: str) -> Any:
    """Return a handle for the legend that explains hollow marks."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=QUIET, linestyle=(0, (4, 3)), marker="o", markerfacecolor="none", label=text)


def point_map(ax: Axes, places: np.ndarray, values: np.ndarray, width: float, **colours: Any) -> Any:
    """Draw dots at longitude and latitude (2, n) on a map some inches wide, small and grey where NaN."""
    longitude, latitude = places
    ax.set_aspect(1 / np.cos(np.radians(latitude.mean())))
    ax.axis("off")
    # Counties of the west are far apart: a dot grows with the room around it.
    size = dot_areas(longitude, latitude, width)
    known = ~np.isnan(values)
    ax.scatter(longitude[~known], latitude[~known], s=size[~known] / 5, c="#d4d4d4", linewidths=0)
    return ax.scatter(longitude[known], latitude[known], s=size[known], c=values[known], linewidths=0, **colours)


def dot_areas(longitude: np.ndarray, latitude: np.ndarray, width: float) -> np.ndarray:
    """Square points of dots that about touch on a map ``width`` inches wide."""
    from scipy.spatial import KDTree

    places = np.column_stack([longitude * np.cos(np.radians(latitude.mean())), latitude])
    points = places * 72 * width / np.ptp(places[:, 0])
    spacing = KDTree(points).query(points, k=4)[0][:, 1:].mean(axis=1)
    usual = np.median(spacing)
    return np.clip(spacing, usual, 1.9 * usual) ** 2
