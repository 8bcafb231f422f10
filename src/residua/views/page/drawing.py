"""Where the nodes of a report are drawn, and the small pictures that switch between layers."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from residua.views import figures
from residua.views.page.shapes import Shape, centres, is_geographic, open_polygons, read_shapes, snapped
from residua.views.positions import layout
from residua.views.scales import Scale

if TYPE_CHECKING:
    from residua.graph import Graph

SIDE = 8.0  # inches: the width at which dots are sized
THUMB = 2.4  # inches
THUMB_EDGES = 20_000
MAX_EDGES = 40_000  # beyond, none is drawn: nobody would see one


@dataclass(frozen=True)
class Drawing:
    """Positions in units alike along x and y, and what is drawn there."""

    xy: np.ndarray  # (n, 2), NaN for a node that is not drawn
    radius: np.ndarray  # (n,) of a dot, in units of xy
    low: np.ndarray  # (2,) corner of the view
    high: np.ndarray  # (2,)
    kind: str  # "map", "area" or "graph"
    shapes: dict[int, Shape] = field(default_factory=dict)  # by node, where it is drawn as an area

    @property
    def ratio(self) -> float:
        """Height over width."""
        return float((self.high - self.low)[1] / (self.high - self.low)[0])

    @property
    def drawn(self) -> np.ndarray:
        """Nodes drawn as dots."""
        dots = np.isfinite(self.xy).all(axis=1)
        dots[list(self.shapes)] = False
        return dots

    @property
    def placeless(self) -> int:
        """How many nodes are not drawn."""
        return int((~np.isfinite(self.xy).all(axis=1)).sum())


def make_drawing(graph: Graph, positions: Any, polygons: Any) -> Drawing:
    """Place areas where there are polygons, dots at the positions given, or a layout."""
    if polygons is not None:
        return _with_areas(graph, positions, polygons)
    if positions is None:
        return _dots(layout(graph), "graph", graph.n_edges)
    xy, geographic = figures.check_positions(positions, graph, None)
    return _dots(xy / [figures.stretch(xy, geographic), 1], "map" if geographic else "graph", graph.n_edges)


def _with_areas(graph: Graph, positions: Any, polygons: Any) -> Drawing:
    polygons = open_polygons(polygons)
    shapes = read_shapes(polygons, graph.nodes)
    degrees = is_geographic(polygons, shapes)
    xy = centres(shapes, graph.n_nodes)
    if positions is not None:
        xy = np.where(np.isnan(xy), figures.check_positions(positions, graph, None)[0], xy)
    placed = np.isfinite(xy).all(axis=1)
    stretch = np.array([1 / figures.stretch(xy[placed], degrees), 1.0])
    drawing = _dots(xy * stretch, "area", graph.n_edges)
    shapes = snapped(shapes, stretch)
    corners = np.concatenate([ring for shape in shapes.values() for polygon in shape for ring in polygon])
    low, high = _view(np.concatenate([corners, drawing.xy[placed]]), margin=0.01)
    return replace(drawing, shapes=shapes, low=low, high=high)


def _dots(xy: np.ndarray, kind: str, edges: int) -> Drawing:
    """Dots sized as in `figures.draw_nodes`, in units of the picture, so that they grow when one zooms in."""
    from matplotlib.figure import Figure

    placed = np.isfinite(xy).all(axis=1)
    low, high = _view(xy[placed])
    ax = Figure(figsize=(SIDE, SIDE * (high - low)[1] / (high - low)[0])).add_axes((0, 0, 1, 1))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    # Dots leave room for edges between them; without edges they close up to a surface.
    fill = 1.2 if edges > MAX_EDGES else 1.0 if kind == "map" else 0.7
    radius = np.full(len(xy), np.nan)
    radius[placed] = np.sqrt(figures.dot_areas(ax, xy[placed], fill)) / 2 / (72 * SIDE) * (high - low)[0]
    return Drawing(xy, radius, low, high, kind)


def _view(xy: np.ndarray, margin: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a view no flatter and no taller than a screen shows well."""
    low, high = figures.corners(xy, False) if margin is None else (xy.min(axis=0), xy.max(axis=0))
    size = high - low + 2 * (margin or 0) * np.ptp(xy, axis=0).max()
    size = np.maximum(size, [size[1] / 1.1, size[0] * 0.42])
    return (low + high - size) / 2, (low + high + size) / 2


# Small pictures.


def thumbnail(drawing: Drawing, values: np.ndarray, scale: Scale, graph: Graph) -> str:
    """A layer as a small PNG without background, as a data URI."""
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    figure = Figure(figsize=(THUMB, THUMB * drawing.ratio), dpi=150)
    ax = figure.add_axes((0, 0, 1, 1))
    look: dict[str, Any] = {"norm": Normalize(scale.low, scale.high), "cmap": scale.cmap}
    figures.draw_areas(ax, drawing.shapes, values, **look)
    dots = drawing.drawn
    if dots.any():
        look["size"] = (2 * 72 * THUMB * drawing.radius[dots] / (drawing.high - drawing.low)[0]) ** 2
        edges = graph if dots.all() and graph.n_edges <= THUMB_EDGES else None
        figures.draw_nodes(ax, drawing.xy[dots], values[dots], graph=edges, geographic=False, **look)
    ax.set(xlim=(drawing.low[0], drawing.high[0]), ylim=(drawing.low[1], drawing.high[1]), aspect="auto")
    ax.axis("off")
    file = io.BytesIO()
    figure.savefig(file, format="png", transparent=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
