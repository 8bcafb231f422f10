"""The moving pictures of the report, drawn by Bokeh on a canvas: the map of the nodes, and clouds of points.

No text from data goes into them: Bokeh would read TeX in a title or an axis. What is shown of a node is the page's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from residua.views import figures
from residua.views.page.drawing import MAX_EDGES, Drawing
from residua.views.scales import Scale

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource, HoverTool, TickFormatter
    from bokeh.plotting import figure as Figure

    from residua.graph import Graph
    from residua.views.effects import Effect

GPU_FROM = 5_000  # nodes: below, the plain canvas looks better and starts at once
MAX_POINTS = 5_000
EDGE_COLOURS = ("#8d939c", "#c07f2f", "#2f8f83", "#8b5fae", "#b0466a", "#4f6fb5")


def node_map(drawing: Drawing, values: np.ndarray, scale: Scale, graph: Graph) -> Figure:
    """Draw the map: values (n,) of the nodes on a colour scale.

    The page's script finds the models named "nodes", "areas" and "edges-0" .. and the fields "x", "y", "radius", "node"
    and "value".
    """
    from bokeh.models import LinearColorMapper

    plot = _frame(drawing.ratio, len(drawing.xy), *zip(drawing.low, drawing.high, strict=True))
    plot.axis.visible = plot.grid.visible = False
    for k, (colour, x, y) in enumerate(edge_lines(drawing, graph).values()):
        opacity = np.clip(1.5 * graph.n_nodes / graph.n_edges, 0.15, 0.6)
        plot.line(x, y, name=f"edges-{k}", line_color=colour, line_alpha=opacity)
    mapper = LinearColorMapper(palette=scale.palette, low=scale.low, high=scale.high, nan_color=figures.UNKNOWN)
    fill: dict[str, Any] = {"fill_color": {"field": "value", "transform": mapper}}
    columns: dict[str, Any] = {"node": np.arange(len(values), dtype=np.int32), "value": values}
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
        plot.add_tools(_hover(mark))
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
    source = _source({"x": x[kept], "y": y[kept], "node": node[kept].astype(np.int32)})
    look: dict[str, Any] = {"size": 5, "line_color": None, "fill_alpha": np.clip(400 / len(kept), 0.22, 0.75)}
    dots = plot.scatter("x", "y", source=source, name="points", fill_color=colour, **look)
    if slope is not None:
        reach = np.abs(x).max(initial=0.0)
        plot.line([-reach, reach], [-reach * slope, reach * slope], line_color="#b3402f", line_width=2)
    _axes(plot, *labels)
    plot.add_tools(_hover(dots))
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


def _hover(renderer: Any) -> HoverTool:
    """Tell the page's script which mark is pointed at; what it shows is its own, so that no text is run as code."""
    from bokeh.models import HoverTool

    return HoverTool(renderers=[renderer], tooltips=None)


def _source(columns: Mapping[str, np.ndarray], **nested: list[Any]) -> ColumnDataSource:
    from bokeh.models import ColumnDataSource

    light: dict[str, Any] = {
        field: column.astype(np.float32) if column.dtype.kind == "f" else column for field, column in columns.items()
    }
    return ColumnDataSource(light | nested)


def _reach(values: np.ndarray) -> tuple[float, float]:
    """Return a range that shows all values but the farthest few, with 0 in the middle."""
    reach = 1.15 * float(np.quantile(np.abs(values), 0.998)) or 1.0
    return -reach, reach


def _axes(plot: Figure, x: str, y: str) -> None:
    from bokeh.models import BasicTicker

    plot.xaxis.axis_label, plot.yaxis.axis_label = x, y
    ranges: list[Any] = [plot.x_range, plot.y_range]
    for axis, span in zip((plot.xaxis, plot.yaxis), ranges, strict=True):
        axis.update(axis_line_color=None, major_tick_line_color=None, minor_tick_line_color=None)
        axis.update(axis_label_text_font_style="normal", axis_label_text_color="#50555d", axis_label_standoff=6)
        axis.update(axis_label_text_font_size="12px", major_label_text_font_size="11px")
        axis.update(major_label_text_color="#6a7079", major_label_standoff=3, ticker=BasicTicker(desired_num_ticks=4))
        axis.update(formatter=_readable(max(abs(span.start), abs(span.end)), span.end - span.start))
    plot.grid.grid_line_color = "#e6e6e2"


def _readable(largest: float, span: float) -> TickFormatter:
    """Return ticks as people write numbers: thousands apart, as many decimals as needed, powers only where shorter."""
    from bokeh.models import BasicTickFormatter, NumeralTickFormatter

    if span < 1e-5 or largest >= 1e9:
        return BasicTickFormatter(precision=3)
    decimals = int(np.clip(np.ceil(1 - np.log10(span)), 0, 7))
    return NumeralTickFormatter(format=f"0,0[.]{'0' * decimals}" if decimals else "0,0")


def effect(found: Effect) -> Figure:
    """Draw what one feature adds to the prediction, with a band of two standard deviations."""
    low, high = (found.value + sign * 2 * np.nan_to_num(found.std) for sign in (-1, 1))
    margin = 0.05 * float(high.max() - low.min()) or 1.0
    plot = _frame(0.6, 0, (found.x[0], found.x[-1]), (float(low.min()) - margin, float(high.max()) + margin))
    if np.isfinite(found.std).all():
        plot.varea(found.x, low, high, fill_color=figures.BLUE, fill_alpha=0.18)
    plot.line([found.x[0], found.x[-1]], [0, 0], line_color=figures.GREY, line_dash="dotted")
    plot.line(found.x, found.value, line_color=figures.BLUE, line_width=2)
    ticks = np.unique(found.ticks)
    plot.scatter(
        ticks,
        np.full(len(ticks), float(low.min()) - margin / 2),
        marker="dash",
        angle=np.pi / 2,
        size=5,
        color=figures.GREY,
    )
    _axes(plot, "value of the feature", "adds to the prediction")
    return plot
