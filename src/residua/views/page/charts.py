"""The moving pictures of the report, drawn by Bokeh on a canvas: the map of the nodes, and clouds of points.

No text from data goes to a title or an axis, where Bokeh would read TeX; hover text is escaped by Bokeh itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from residua.views import figures
from residua.views.page.drawing import MAX_EDGES, Drawing

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure as Figure

    from residua.graph import Graph

GPU_FROM = 5_000  # nodes: below, the plain canvas looks better and starts at once
MAX_POINTS = 5_000
EDGE_COLOURS = ("#8d939c", "#c07f2f", "#2f8f83", "#8b5fae", "#b0466a", "#4f6fb5")


def node_map(
    drawing: Drawing,
    columns: Mapping[str, np.ndarray],
    texts: Mapping[str, str],
    numbers: Mapping[str, str],
    first: figures.Scale,
    graph: Graph,
) -> Figure:
    """Draw the map: all columns by field, and what a hover calls those with text and those with numbers.

    The page's script finds the models named "nodes", "areas" and "edges-0" .. and the fields "x", "y" and "radius".
    """
    from bokeh.models import LinearColorMapper

    plot = _frame(drawing.ratio, len(drawing.xy), *zip(drawing.low, drawing.high, strict=True))
    plot.axis.visible = plot.grid.visible = False
    for k, (colour, x, y) in enumerate(edge_lines(drawing, graph).values()):
        opacity = np.clip(1.5 * graph.n_nodes / graph.n_edges, 0.15, 0.6)
        plot.line(x, y, name=f"edges-{k}", line_color=colour, line_alpha=opacity)
    mapper = LinearColorMapper(palette=first.palette, low=first.low, high=first.high, nan_color=figures.UNKNOWN)
    fill: dict[str, Any] = {"fill_color": {"field": "final", "transform": mapper}}
    marks: list[Any] = []
    areas = sorted(drawing.shapes)
    if areas:
        source = _source({field: column[areas] for field, column in columns.items()}, **_rings(drawing, areas))
        rim: dict[str, Any] = {"line_color": "#ffffff", "line_width": 0.3, "line_alpha": 0.6}
        marks.append(plot.multi_polygons(xs="x", ys="y", source=source, name="areas", **rim, **fill))
    dots = np.flatnonzero(drawing.drawn)
    if len(dots) or not areas:
        x, y = drawing.xy.T
        placed = {"x": x, "y": y, "radius": drawing.radius, **columns}
        source = _source({field: column[dots] for field, column in placed.items()})
        marks.append(plot.circle("x", "y", radius="radius", source=source, name="nodes", line_color=None, **fill))
    for mark in marks:
        # The chosen node has a ring; the others keep their glyph, so that a change of layer reaches it.
        mark.nonselection_glyph = mark.glyph
        mark.selection_glyph = mark.glyph.clone(line_color="#111111", line_width=3, line_alpha=1)
        plot.add_tools(_hover(mark, texts, numbers))
    return plot


def edge_lines(drawing: Drawing, graph: Graph) -> dict[str, tuple[str, np.ndarray, np.ndarray]]:
    """Return for each edge type a colour and one line with gaps, x and y; nothing where edges are too many to see."""
    if not 0 < graph.n_edges <= MAX_EDGES:
        return {}
    lines = {}
    for kind, colour in zip(graph.edge_types, cycle(EDGE_COLOURS), strict=False):
        edges = sparse.triu(graph.adjacency(kind), k=1, format="coo")
        ends = np.full((edges.nnz, 3, 2), np.nan, np.float32)
        ends[:, 0], ends[:, 1] = drawing.xy[edges.row], drawing.xy[edges.col]
        lines[kind] = (colour, ends[..., 0].ravel(), ends[..., 1].ravel())
    return lines


def cloud(
    node: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    names: np.ndarray,
    *,
    labels: tuple[str, str],
    slope: float | None = None,
    scale: tuple[float, float] | None = None,
    colour: str = figures.BLUE,
) -> Figure:
    """Draw points with a line through the origin of this slope, or on one scale with its diagonal.

    More than 5,000 points are drawn as a random 5,000 of them.
    """
    kept = np.sort(np.random.default_rng(0).choice(len(x), min(len(x), MAX_POINTS), replace=False))
    plot = _frame(0.82, len(kept), scale or _reach(x), scale or _reach(y))
    if scale:
        plot.line(scale, scale, line_color=figures.GREY)
    source = _source({"x": x[kept], "y": y[kept], "node": node[kept].astype(np.int32), "name": names[node[kept]]})
    look: dict[str, Any] = {"size": 5, "line_color": None, "fill_alpha": np.clip(400 / len(kept), 0.22, 0.75)}
    dots = plot.scatter("x", "y", source=source, name="points", fill_color=colour, **look)
    if slope is not None:
        reach = np.abs(x).max(initial=0.0)
        plot.line([-reach, reach], [-reach * slope, reach * slope], line_color="#b3402f", line_width=2)
    _axes(plot, *labels)
    plot.add_tools(_hover(dots, {"name": "node"}, {"x": labels[0], "y": labels[1]}))
    return plot


# Parts of a picture.


def _frame(ratio: float, points: int, x_range: tuple[float, float], y_range: tuple[float, float]) -> Figure:
    from bokeh.models import Range1d, WheelZoomTool
    from bokeh.plotting import figure

    plot = figure(
        sizing_mode="scale_width",
        aspect_ratio=1 / ratio,
        toolbar_location=None,
        tools=["pan", WheelZoomTool(modifiers="ctrl"), "tap"],
        x_range=Range1d(start=x_range[0], end=x_range[1]),
        y_range=Range1d(start=y_range[0], end=y_range[1]),
        min_border=0,
        output_backend="webgl" if points > GPU_FROM else "canvas",
    )
    plot.update(background_fill_color=None, border_fill_color=None, outline_line_color=None)
    # The page has to scroll under the wheel and under a finger: the script turns dragging on where there is a mouse.
    plot.toolbar.active_drag = None
    return plot


def _rings(drawing: Drawing, nodes: list[int]) -> dict[str, list[Any]]:
    """Return the coordinates of shapes as Bokeh nests them: by axis, a list of shapes of polygons of rings."""
    return {
        axis: [[[ring[:, k].tolist() for ring in polygon] for polygon in drawing.shapes[i]] for i in nodes]
        for k, axis in enumerate(("x", "y"))
    }


def _hover(renderer: Any, texts: Mapping[str, str], numbers: Mapping[str, str]) -> HoverTool:
    """Show texts by Bokeh, escaped; numbers with 4 digits, and a dash for one that is not there.

    Bokeh writes NaN before it asks a formatter, so numbers are asked for by the name of their field, given as the
    format of the node's index.
    """
    from bokeh.models import CustomJSHover, HoverTool

    code = """
      const number = source.data[format][special_vars.index]
      return Number.isFinite(number) ? String(+number.toPrecision(4)) : "\\u2013"
    """
    rows = [(label, f"@{field}") for field, label in texts.items()]
    rows += [(label, f"@node{{{field}}}") for field, label in numbers.items()]
    formatters: Any = {"@node": CustomJSHover(args={"source": renderer.data_source}, code=code)}
    return HoverTool(renderers=[renderer], tooltips=rows, formatters=formatters, limit=1, point_policy="follow_mouse")


def _source(columns: Mapping[str, np.ndarray], **nested: list[Any]) -> ColumnDataSource:
    from bokeh.models import ColumnDataSource

    def light(column: np.ndarray) -> Any:
        if column.dtype.kind == "f":
            return column.astype(np.float32)
        return [str(value) for value in column] if column.dtype.kind in "OUT" else column

    return ColumnDataSource({field: light(column) for field, column in columns.items()} | nested)


def _reach(values: np.ndarray) -> tuple[float, float]:
    """Return a range that shows all values but the farthest few, with 0 in the middle."""
    reach = 1.15 * float(np.quantile(np.abs(values), 0.998)) or 1.0
    return -reach, reach


def _axes(plot: Figure, x: str, y: str) -> None:
    from bokeh.models import BasicTicker

    plot.xaxis.axis_label, plot.yaxis.axis_label = x, y
    for axis in plot.axis:
        axis.update(axis_line_color=None, major_tick_line_color=None, minor_tick_line_color=None)
        axis.update(axis_label_text_font_style="normal", axis_label_text_color="#50555d", axis_label_standoff=6)
        axis.update(axis_label_text_font_size="12px", major_label_text_font_size="11px")
        axis.update(major_label_text_color="#6a7079", major_label_standoff=3, ticker=BasicTicker(desired_num_ticks=5))
    plot.grid.grid_line_color = "#e6e6e2"
