"""Node maps: values on the nodes of a graph, side by side on shared colour scales.

Unknown nodes (NaN) are small and grey. matplotlib is imported when a picture is drawn, and pyplot never: no
global figure is touched, and no display is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from residua.arrays import as_floats
from residua.graph.alignment import align, align_together, check_one_index
from residua.views.scales import CLIP, SEQUENTIAL, Scale, shared_scales

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from residua.graph import Graph

    Array = NDArray[np.float64]

__all__ = ["draw_nodes", "strip"]

UNKNOWN = "#d6d6d6"
EDGE = "#9a9a9a"
INK = "#333333"
BLUE, GREY = "#2a5f9e", "#8a8f98"  # with the neighbours, and without
DPI = 150
MAX_EDGES = 200_000


def strip(
    positions: ArrayLike,
    panels: Mapping[str, ArrayLike],
    *,
    graph: Graph | None = None,
    path: str | Path | None = None,
    diverging: Collection[str] | None = None,
    label: str = "",
    width: float = 11.0,
    clip: float = CLIP,
    geographic: bool | None = None,
    shapes: Mapping[int, Any] | None = None,
) -> Figure:
    """Draw one node map per panel, side by side, on two rows if there are more than three.

    Parameters
    ----------
    positions : array or DataFrame, shape (n, 2)
        Where the nodes are. Of a DataFrame with columns longitude and latitude (degrees) those two are drawn,
        in the proportions of a map. `layout` computes positions where there are none.
    panels : mapping of title to array, shape (n,)
        Such as truth, base prediction, residual, correction, final prediction; NaN = unknown. Given a graph, pandas
        tables are matched to its nodes by id.
    graph : Graph, optional
        n nodes; its edges are drawn beneath, unless there are more than 200,000.
    path : str or Path, optional
        Where to write the picture (png, pdf or svg, by its ending).
    diverging : collection of str, optional
        Titles of the panels centred on 0; by default those that mention a residual or a correction.
    label : str
        What the colours mean, such as "turnout".
    width : float
        Of the figure, in inches; a PNG has 150 pixels to the inch.
    clip : float
        Share of values beyond each end of a colour scale, so that few outliers do not wash out the rest.
    geographic : bool, optional
        Are positions longitude and latitude? By default: if the columns say so.
    shapes : mapping of int to list of polygons, optional
        Areas in place of dots, as in `draw_areas`.

    Returns
    -------
    matplotlib.figure.Figure
        Shown by a notebook as it is; ``figure.savefig`` writes it again.

    Examples
    --------
    >>> from residua.datasets import load_elect80
    >>> data = load_elect80()
    >>> figure = strip(data.nodes, {"truth": data.y, "residual": data.y - data.y.mean()}, graph=data.graph)
    >>> [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    ['truth', 'residual']
    """
    from matplotlib.colors import Normalize

    if not panels:
        raise ValueError("panels is empty; give at least one title with its values.")
    names = [f"panels[{title!r}]" for title in panels]
    positions, *columns = _align(graph, positions, dict(zip(names, panels.values(), strict=True)))
    xy, geographic = check_positions(positions, graph, geographic)
    checked = [_check_values(column, len(xy), name) for name, column in zip(names, columns, strict=True)]
    values = dict(zip(panels, checked, strict=True))
    scales = shared_scales(values, diverging, clip)
    view = corners(xy, geographic) if shapes is None else _corners_of_areas(shapes)
    size = np.ptp(view, axis=0)
    ratio = np.clip(size[1] / size[0] * stretch(xy, geographic), 0.35, 1.3)
    figure, frames = _frames(len(values), width, float(ratio))
    for (title, column), scale, (ax, bar) in zip(values.items(), scales.values(), frames, strict=True):
        norm = Normalize(scale.low, scale.high)
        if shapes is None:
            dots = draw_nodes(ax, xy, column, graph=graph, norm=norm, cmap=scale.cmap, geographic=geographic)
        else:
            dots = draw_areas(ax, shapes, column, norm=norm, cmap=scale.cmap, linewidths=0.2, edgecolors="white")
            (left, bottom), (right, top) = view
            ax.set(xlim=(left, right), ylim=(bottom, top), aspect=stretch(xy, geographic))
            ax.axis("off")
        ax.set_title(title, loc="left", fontsize=10.5, color=INK, pad=5)
        _colour_bar(bar, dots, scale, label, key=bool(np.isnan(column).any()))
    if path is not None:
        figure.savefig(path, dpi=DPI, facecolor="white")
    return figure


def draw_nodes(
    ax: Axes,
    positions: ArrayLike,
    values: ArrayLike,
    *,
    graph: Graph | None = None,
    norm: Normalize | None = None,
    cmap: str | Colormap = SEQUENTIAL,
    size: float | None = None,
    geographic: bool | None = None,
) -> PathCollection:
    """Draw one node map: known values in colour, unknown ones (NaN) small and grey, edges thin beneath.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Its frame and ticks are taken away.
    positions : array or DataFrame, shape (n, 2)
        As in `strip`.
    values : array, shape (n,)
        NaN = unknown.
    graph : Graph, optional
        n nodes; its edges are drawn, unless there are more than 200,000.
    norm : matplotlib.colors.Normalize, optional
        The colour scale; by default from the smallest to the largest value.
    cmap : str or matplotlib.colors.Colormap
        The colours.
    size : float, optional
        Area of a dot in square points; by default such that near neighbours about touch.
    geographic : bool, optional
        As in `strip`.

    Returns
    -------
    matplotlib.collections.PathCollection
        The known nodes, for a colour bar.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> dots = draw_nodes(Figure().subplots(), [[0, 0], [1, 0], [2, 0]], [1.0, float("nan"), 3.0])
    >>> dots.get_offsets().tolist()
    [[0.0, 0.0], [2.0, 0.0]]
    """
    positions, values = _align(graph, positions, {"values": values})
    xy, geographic = check_positions(positions, graph, geographic)
    values = _check_values(values, len(xy), "values")
    (left, bottom), (right, top) = corners(xy, geographic)
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect=stretch(xy, geographic))
    ax.axis("off")
    ax.apply_aspect()
    # Dots on a map close up to a surface; elsewhere the edges should show between them.
    areas = dot_areas(ax, xy, fill=1.0 if geographic else 0.7) if size is None else np.full(len(xy), size)
    if graph is not None:
        _draw_edges(ax, xy, graph, width=0.1 * float(np.sqrt(np.median(areas))))
    known = ~np.isnan(values)
    dot: dict[str, Any] = {"linewidths": 0, "clip_on": False}
    x, y = xy.T
    ax.scatter(x[~known], y[~known], s=areas[~known] / 2, c=UNKNOWN, zorder=2, **dot)
    return ax.scatter(x[known], y[known], s=areas[known], c=values[known], norm=norm, cmap=cmap, zorder=3, **dot)


def draw_areas(ax: Axes, shapes: Mapping[int, Any], values: Array, **look: Any) -> PathCollection:
    """Draw nodes as areas: known values in colour, unknown ones (NaN) grey.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw; its limits are left as they are.
    shapes : mapping of int to list of polygons
        By position of the node: polygons, which are lists of rings (k, 2), the outline first, then holes.
    values : (n,) array
        NaN = unknown.
    **look : dict
        ``norm`` and ``cmap``, and what else matplotlib's PathCollection takes.

    Returns
    -------
    matplotlib.collections.PathCollection
        The areas, for a colour bar.
    """
    from matplotlib import colormaps
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    look["cmap"] = colormaps.get_cmap(look["cmap"]).with_extremes(bad=UNKNOWN)
    paths = [Path.make_compound_path(*(Path(r) for polygon in shape for r in polygon)) for shape in shapes.values()]
    areas = PathCollection(paths, linewidths=look.pop("linewidths", 0), array=values[list(shapes)], **look)
    ax.add_collection(areas, autolim=False)
    return areas


# The page: frames and bars.


def _frames(count: int, width: float, ratio: float) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """A figure with `count` panels, each axes with its colour bar below; all lengths in inches."""
    from matplotlib.figure import Figure

    rows = 1 if count <= 3 else 2
    columns = -(-count // rows)
    margin, gap, head, foot = 0.1, 0.2, 0.3, 0.42
    w = (width - 2 * margin - gap * (columns - 1)) / columns
    h = w * ratio
    length = min(0.44 * w, 1.8)  # of a colour bar
    height = 2 * margin + rows * (head + h + foot)
    figure = Figure(figsize=(width, height), facecolor="white")

    def axes(x: float, y: float, w: float, h: float) -> Axes:
        return figure.add_axes((x / width, y / height, w / width, h / height))

    frames = []
    for row, column in list(np.ndindex(rows, columns))[:count]:
        x = margin + column * (w + gap)
        y = height - margin - (row + 1) * (head + h) - row * foot
        frames.append((axes(x, y, w, h), axes(x + (w - length) / 2, y - 0.16, length, 0.075)))
    return figure, frames


def _colour_bar(bar: Axes, dots: PathCollection, scale: Scale, label: str, key: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    drawn = bar.figure.colorbar(dots, cax=bar, orientation="horizontal", extend=scale.extend, ticks=MaxNLocator(4))
    drawn.outline.set_visible(False)
    bar.tick_params(labelsize=7.5, labelcolor=INK, color=INK, length=2, width=0.5, pad=2)
    words: dict[str, Any] = {"transform": bar.transAxes, "va": "center", "fontsize": 7.5}
    bar.text(-0.1, 0.5, label, ha="right", color=INK, **words)
    if key:
        bar.text(1.12, 0.5, "\N{BLACK CIRCLE}", color=UNKNOWN, **words)
        bar.text(1.21, 0.5, "no value", color=INK, **words)


# One map: view, dots, edges.


def corners(xy: Array, geographic: bool) -> tuple[Array, Array]:
    """Lower left and upper right of the picture, with a margin for dots at the rim."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    margin = max(0.025, 0.25 / np.sqrt(len(xy))) * (np.max(high - low) or 1.0) / np.array([1, stretch(xy, geographic)])
    return low - margin, high + margin


def _corners_of_areas(shapes: Mapping[int, Any]) -> tuple[Array, Array]:
    points = np.concatenate([polygon[0] for shape in shapes.values() for polygon in shape])
    margin = 0.01 * np.ptp(points, axis=0).max()
    return points.min(axis=0) - margin, points.max(axis=0) + margin


def stretch(xy: Array, geographic: bool) -> float:
    """Length of one unit of y over one of x: a degree of longitude shrinks towards the poles."""
    return float(1 / np.cos(np.radians(xy[:, 1].mean()))) if geographic else 1.0


def dot_areas(ax: Axes, xy: Array, fill: float) -> Array:
    """Square points (n,) of dots that fill a share of the way to the nearest nodes, up to twice the usual."""
    points = ax.transData.transform(xy) * 72 / ax.figure.dpi
    if len(points) < 3:
        return np.full(len(points), 100.0)
    spacing = fill * KDTree(points).query(points, k=3)[0][:, 1:].mean(axis=1)
    visible = 0.25 * np.sqrt(np.prod(np.ptp(points, axis=0)) / len(points))
    usual = np.clip(np.median(spacing), max(0.7, min(visible, 10)), 10)
    return np.clip(spacing, usual, 2 * usual) ** 2


def _draw_edges(ax: Axes, xy: Array, graph: Graph, width: float) -> None:
    from matplotlib.collections import LineCollection

    edges = sparse.triu(graph.adjacency(), k=1, format="coo")
    if not 0 < edges.nnz <= MAX_EDGES:
        return
    segments = xy[np.column_stack([edges.row, edges.col])]  # (m, 2, 2)
    alpha = np.clip(1.8 * len(xy) / edges.nnz, 0.1, 0.6)  # many edges per node would bury the nodes
    ax.add_collection(LineCollection(segments, colors=EDGE, linewidths=width, alpha=alpha, zorder=1), autolim=False)


# What came in.


def _align(graph: Graph | None, positions: Any, columns: Mapping[str, Any]) -> list[Any]:
    """Return positions and columns of values, whose rows are those of the same nodes."""
    tables = {"positions": positions, **columns}
    if graph is not None:
        return align_together(graph.nodes, tables, unknown=tuple(columns))
    check_one_index(tables)
    return list(tables.values())


def check_positions(positions: Any, graph: Graph | None, geographic: bool | None) -> tuple[Array, bool]:
    if graph is not None:
        positions = align(positions, graph.nodes, "positions")
    named = {"longitude", "latitude"} <= set(getattr(positions, "columns", ()))
    xy = as_floats(positions[["longitude", "latitude"]] if named else positions, "positions")
    if xy.ndim != 2 or xy.shape[1] != 2 or not len(xy):
        raise ValueError(f"positions has shape {xy.shape}; give one x and one y per node, shape (n, 2).")
    if not np.isfinite(xy).all():
        raise ValueError(f"positions is not finite at row {(~np.isfinite(xy)).any(axis=1).argmax()}; place every node.")
    if graph is not None and graph.n_nodes != len(xy):
        raise ValueError(f"positions has {len(xy)} rows but graph has {graph.n_nodes} nodes; give one a node.")
    return xy, named if geographic is None else geographic


def _check_values(values: ArrayLike, n: int, name: str) -> Array:
    values = as_floats(values, name)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape} but there are {n} positions; give one value per node.")
    if np.isinf(values).any():
        raise ValueError(f"{name} is infinite at index {np.isinf(values).argmax()}; use NaN for unknown.")
    return values
