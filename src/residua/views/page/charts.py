"""The moving pictures of the report, drawn by Bokeh on a canvas: the map of the nodes, and clouds of points.

No text from data goes to a title or an axis, where Bokeh would read TeX; hover text is escaped by Bokeh itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from residua.views import figures
from residua.views.page.drawing import MAX_EDGES, Colours, Drawing

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure as Figure

    from residua.graph import Graph

GPU_FROM = 5_000  # nodes: below, the plain canvas looks better and starts at once
MAX_POINTS = 5_000
BLUE, GREY, RULE, PLATE = "#2a5f9e", "#8a8f98", "#c9ccd1", "#fbfbf9"
EDGE_COLOURS = ("#8d939c", "#c07f2f", "#2f8f83", "#8b5fae", "#b0466a", "#4f6fb5")


def node_map(
    drawing: Drawing,
    columns: Mapping[str, np.ndarray],
    texts: Mapping[str, str],
    numbers: Mapping[str, str],
    first: Colours,
    graph: Graph,
) -> Figure:
    """Draw the map: all columns by field, and what a hover calls those with text and those with numbers.

    The page's script finds the models named "nodes", "areas" and "edges-0" .. and the fields "x", "y" and "radius".
    """
    plot = _frame(drawing.ratio, len(drawing.xy))
    plot.x_range.update(start=drawing.low[0], end=drawing.high[0])
    plot.y_range.update(start=drawing.low[1], end=drawing.high[1])
    plot.axis.visible = False
    plot.grid.visible = False
    for k, (x, y) in enumerate(edge_lines(drawing, graph).values()):
        colour = EDGE_COLOURS[k % len(EDGE_COLOURS)]
        plot.line(x, y, name=f"edges-{k}", line_color=colour, line_width=1, line_alpha=_edge_alpha(graph))
    renderers = []
    areas = np.array(sorted(drawing.shapes), int)
    if len(areas):
        renderers.append(_areas(plot, drawing, areas, columns, first))
    dots = np.flatnonzero(drawing.drawn)
    if len(dots) or not len(areas):
        renderers.append(_dots(plot, drawing, dots, columns, first))
    plot.add_tools(*(_hover(renderer, texts, numbers) for renderer in renderers))
    return plot


def edge_lines(drawing: Drawing, graph: Graph) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for each edge type one line with gaps, x and y; nothing where there are too many edges to see any."""
    if not 0 < graph.n_edges <= MAX_EDGES:
        return {}
    lines = {}
    for kind in graph.edge_types:
        edges = sparse.triu(graph.adjacency(kind), k=1, format="coo")
        ends = np.full((edges.nnz, 3, 2), np.nan, np.float32)
        ends[:, 0], ends[:, 1] = drawing.xy[edges.row], drawing.xy[edges.col]
        lines[kind] = (ends[..., 0].ravel(), ends[..., 1].ravel())
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
    colour: str = BLUE,
) -> Figure:
    """Draw points with a line through the origin of this slope, or on one scale with its diagonal.

    More than 5,000 points are drawn as a random 5,000 of them.
    """
    kept = np.arange(len(x))
    if len(x) > MAX_POINTS:
        kept = np.sort(np.random.default_rng(0).choice(len(x), MAX_POINTS, replace=False))
    plot = _frame(0.82, len(kept))
    if scale:
        plot.x_range.update(start=scale[0], end=scale[1])
        plot.y_range.update(start=scale[0], end=scale[1])
        plot.line(scale, scale, line_color=GREY, line_width=1)
    else:
        _fit_ranges(plot, x, y)
    source = _source({"x": x[kept], "y": y[kept], "node": node[kept].astype(np.int32), "name": names[node[kept]]})
    dots = plot.scatter("x", "y", source=source, name="points", size=5, line_color=None, fill_color=colour)
    dots.glyph.fill_alpha = float(np.clip(400 / max(len(kept), 1), 0.22, 0.75))
    if slope is not None:
        reach = np.abs(x).max(initial=0.0)
        plot.line([-reach, reach], [-reach * slope, reach * slope], line_color="#b3402f", line_width=2)
    _axes(plot, *labels)
    plot.add_tools(_hover(dots, {"name": "node"}, {"x": labels[0], "y": labels[1]}))
    return plot


# Parts of a picture.


def _frame(ratio: float, points: int) -> Figure:
    from bokeh.models import Range1d, WheelZoomTool
    from bokeh.plotting import figure

    plot = figure(
        sizing_mode="scale_width",
        aspect_ratio=1 / ratio,
        toolbar_location=None,
        tools=["pan", WheelZoomTool(modifiers="ctrl"), "tap"],
        x_range=Range1d(),
        y_range=Range1d(),
        min_border=0,
        output_backend="webgl" if points > GPU_FROM else "canvas",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
    )
    # The page has to scroll under the wheel and under a finger: the script turns dragging on where there is a mouse.
    plot.toolbar.active_drag = None
    return plot


def _dots(plot: Figure, drawing: Drawing, nodes: np.ndarray, columns: Mapping[str, np.ndarray], first: Colours) -> Any:
    place = {"x": drawing.xy[nodes, 0], "y": drawing.xy[nodes, 1], "radius": drawing.radius[nodes]}
    source = _source(place | {field: column[nodes] for field, column in columns.items()})
    dots = plot.circle("x", "y", radius="radius", source=source, name="nodes", line_color=None, **_fill(first))
    _highlight(dots)
    return dots


def _areas(plot: Figure, drawing: Drawing, nodes: np.ndarray, columns: Mapping[str, np.ndarray], first: Colours) -> Any:
    shapes = [drawing.shapes[i] for i in nodes]
    rings = {
        axis: [[[ring[:, k].tolist() for ring in polygon] for polygon in shape] for shape in shapes]
        for k, axis in enumerate(("x", "y"))
    }
    source = _source({field: column[nodes] for field, column in columns.items()})
    for axis, values in rings.items():
        source.add(values, axis)
    look: dict[str, Any] = {"line_color": "#ffffff", "line_width": 0.3, "line_alpha": 0.6, **_fill(first)}
    areas = plot.multi_polygons(xs="x", ys="y", source=source, name="areas", **look)
    _highlight(areas)
    return areas


def _fill(first: Colours) -> dict[str, Any]:
    from bokeh.models import LinearColorMapper

    mapper = LinearColorMapper(palette=first.palette, low=first.low, high=first.high, nan_color=figures.UNKNOWN)
    return {"fill_color": {"field": "final", "transform": mapper}}


def _highlight(renderer: Any) -> None:
    """Ring a chosen node; the others stay as they are."""
    renderer.nonselection_glyph = renderer.glyph  # the same one, so that a change of layer reaches it
    renderer.selection_glyph = renderer.glyph.clone(line_color="#111111", line_width=3, line_alpha=1)


def _edge_alpha(graph: Graph) -> float:
    return float(np.clip(1.5 * graph.n_nodes / graph.n_edges, 0.15, 0.6))


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


def _source(columns: Mapping[str, np.ndarray]) -> ColumnDataSource:
    from bokeh.models import ColumnDataSource

    def light(column: np.ndarray) -> Any:
        if column.dtype.kind == "f":
            return column.astype(np.float32)
        return [str(value) for value in column] if column.dtype.kind in "OUT" else column

    return ColumnDataSource({field: light(column) for field, column in columns.items()})


def _fit_ranges(plot: Figure, x: np.ndarray, y: np.ndarray) -> None:
    """Show all points but the farthest few, with 0 in the middle."""
    for values, span in ((x, plot.x_range), (y, plot.y_range)):
        reach = 1.15 * float(np.quantile(np.abs(values), 0.998)) or 1.0
        span.update(start=-reach, end=reach)


def _axes(plot: Figure, x: str, y: str) -> None:
    from bokeh.models import BasicTicker

    plot.xaxis.axis_label, plot.yaxis.axis_label = x, y
    for axis in plot.axis:
        axis.update(axis_line_color=None, major_tick_line_color=None, minor_tick_line_color=None)
        axis.update(axis_label_text_font_style="normal", axis_label_text_color="#50555d", axis_label_standoff=6)
        axis.update(axis_label_text_font_size="12px", major_label_text_font_size="11px")
        axis.update(major_label_text_color="#6a7079", major_label_standoff=3)
        axis.ticker = BasicTicker(desired_num_ticks=5)
    for grid in plot.grid:
        grid.update(grid_line_color="#e6e6e2", grid_line_width=1)
