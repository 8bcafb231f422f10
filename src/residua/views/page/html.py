"""The report: one HTML file that needs no network, for a screen, a phone or paper.

The template writes the words and the tables, Bokeh the moving pictures, and a short script joins them. Whatever comes
from data is escaped by Jinja (words, and data of the script) or by Bokeh (hover), and the page's own content policy
forbids it to load anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from residua import __version__
from residua.atomic import write_atomically
from residua.estimator import GraphRegressor
from residua.graph.alignment import align
from residua.summary import Summary
from residua.views.contents import COVERAGE, FIELDS, Contents, layers, moran_cloud
from residua.views.figures import BLUE, GREY, Scale
from residua.views.page import charts
from residua.views.page.drawing import Drawing, colours, make_drawing, thumbnail

MAX_ROWS = 100
MAX_TEXTS = 3
# What the page calls each number of a node.
NUMBERS = {field: title for title, field in FIELDS.items()}
NUMBERS |= {"lower": f"{100 * COVERAGE:.0f} % interval from", "upper": "to"}


def write_report(
    model: GraphRegressor,
    path: str | Path,
    *,
    title: str | None = None,
    target: str | None = None,
    nodes: pd.DataFrame | None = None,
    positions: Any = None,
    polygons: Any = None,
) -> None:
    """Write what a fitted model found to one HTML file that needs no network.

    Parameters
    ----------
    model : GraphRegressor
        Fitted.
    path : str or Path
        The file to write; it is there whole or not at all.
    title, target : str, optional
        The heading of the page, and the name of what is predicted.
    nodes : DataFrame, shape (n, any), optional
        Rows follow ``graph.nodes``, or are matched by id. Its first three columns with text (names, regions) are shown
        with a node; its columns longitude and latitude are the positions unless those are given.
    positions : array or DataFrame, shape (n, 2), optional
        As in `residua.views.strip`; by default a layout of the graph.
    polygons : GeoJSON or TopoJSON (mapping or path of a file) or GeoDataFrame, optional
        Areas by node id: as feature id, as index, or as any one of the properties. Nodes without one are dots.

    Examples
    --------
    >>> import residua, tempfile
    >>> from pathlib import Path
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor().fit(data.X, data.y, graph=data.graph)
    >>> path = Path(tempfile.mkdtemp(), "report.html")
    >>> write_report(model, path, target="turnout", nodes=data.nodes)
    >>> path.stat().st_size > 1_000_000
    True
    """
    text = report_html(model, title=title, target=target, nodes=nodes, positions=positions, polygons=polygons)
    write_atomically(path, lambda file: file.write(text.encode()), "writing the report")


def report_html(model: GraphRegressor, **options: Any) -> str:
    """Return the page as text; the options are those of `write_report`."""
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}  # NaN only in Bokeh's own encoding
    environment.filters |= {
        "alpha": alpha,
        "signed": signed,
        "r2": lambda x: f"{x:.3f}" if np.isfinite(x) else number(x),
        "share": lambda x: f"{x:.0%}".replace("%", "\N{NO-BREAK SPACE}%"),
    }
    environment.globals |= {"isfinite": np.isfinite, "thumbnail": thumbnail, "ticks": ticks, "version": __version__}
    environment.globals["edge_lines"] = charts.edge_lines
    bokeh = Resources(mode="inline", components=["bokeh", "bokeh-gl"], log_level="warn")
    page = Page(Contents(model), **options)
    words = {"page": page, "layers": layers(page.contents), "bokeh": "\n".join(bokeh.js_raw)}
    return environment.get_template("report.html").render(words)


@dataclass(frozen=True)
class Page:
    """What the template asks for: the options of `write_report`, and what follows from them."""

    contents: Contents
    title: str | None = None
    target: str | None = None
    nodes: pd.DataFrame | None = None
    positions: Any = None
    polygons: Any = None

    def __post_init__(self) -> None:
        graph = self.contents.graph
        n = graph.n_nodes
        object.__setattr__(self, "nodes", align(self.nodes, graph.nodes, "nodes"))
        if self.nodes is not None and len(self.nodes) != n:
            raise ValueError(f"nodes has {len(self.nodes)} rows but graph has {n} nodes; order nodes like graph.nodes.")

    @cached_property
    def texts(self) -> dict[str, np.ndarray]:
        """Ids and up to three columns of text, by their names."""
        texts: dict[str, Any] = {"node": self.contents.graph.nodes}
        columns = [] if self.nodes is None else [c for _, c in self.nodes.items() if c.dtype.kind in "OUT"]
        for column in columns[:MAX_TEXTS]:
            name = str(column.name)
            texts[f"{name} " if name in texts else name] = column
        return {name: np.array([str(text) for text in column], object) for name, column in texts.items()}

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """Columns of numbers, by their fields."""
        lower, upper = self.contents.interval
        return {field: getattr(self.contents, field) for field in FIELDS.values()} | {"lower": lower, "upper": upper}

    @cached_property
    def drawing(self) -> Drawing:
        """Where the nodes are drawn."""
        mapped = self.nodes is not None and {"longitude", "latitude"} <= set(self.nodes.columns)
        positions = self.nodes if self.positions is None and mapped else self.positions
        return make_drawing(self.contents.graph, positions, self.polygons)

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """Colours of the layers, by their titles."""
        return colours(layers(self.contents))

    @property
    def script_data(self) -> dict[str, Any]:
        """What the page's script reads."""
        from bokeh.core.types import ID
        from bokeh.embed import json_item

        labels = {f"text{k}": label for k, label in enumerate(self.texts)}
        columns = dict(zip(labels, self.texts.values(), strict=True)) | self.numbers
        columns["node"] = np.arange(self.contents.graph.n_nodes, dtype=np.int32)
        final = self.scales["final prediction"]
        nodes = charts.node_map(self.drawing, columns, labels, NUMBERS, final, self.contents.graph)
        figures = {"map": nodes, **self.clouds}
        return {
            "figures": {name: json_item(figure, ID(f"figure-{name}")) for name, figure in figures.items()},
            "layers": [
                {"field": FIELDS[title], "palette": scale.palette, "low": scale.low, "high": scale.high}
                for title, scale in self.scales.items()
            ],
            "rows": list((labels | NUMBERS).items()),
        }

    @cached_property
    def clouds(self) -> dict[str, Any]:
        """Predictions against labels, and residuals against those of neighbours, before and after."""
        found, names, clouds = self.contents, self.texts["node"], {}
        predictions = {"base": found.base_out_of_fold, "corrected": found.corrected}
        values = np.concatenate([found.truth, *predictions.values()])
        low, high = np.nanmin(values), np.nanmax(values)
        margin = 0.04 * (high - low) or 1.0
        look: dict[str, Any] = {"labels": ("label", "prediction"), "scale": (low - margin, high + margin)}
        for (name, predicted), colour in zip(predictions.items(), (GREY, BLUE), strict=True):
            known = np.flatnonzero(np.isfinite(predicted))
            if len(known):
                clouds[name] = charts.cloud(known, found.truth[known], predicted[known], names, colour=colour, **look)
        for name, values, moran, colour in (
            ("before", found.before, found.diagnosis.moran_base, GREY),
            ("after", found.after, found.diagnosis.moran_corrected, BLUE),
        ):
            if moran:
                look = {"labels": ("residual", "residuals of its neighbours"), "slope": moran.statistic}
                clouds[name] = charts.cloud(*moran_cloud(values, found.graph), names, colour=colour, **look)
        return clouds

    @cached_property
    def rows(self) -> list[int]:
        """Nodes with the largest corrections, the largest first."""
        size = np.abs(np.nan_to_num(self.contents.correction))
        return np.argsort(-size, kind="stable")[: min(MAX_ROWS, np.count_nonzero(size))].tolist()

    @cached_property
    def summary(self) -> Summary:
        """Coefficients in the units of the data, and what else the fit says of itself."""
        return self.contents.model.summary()

    @cached_property
    def digits(self) -> int:
        """As many decimals as show four digits of the largest label."""
        largest = float(np.nanmax(np.abs(self.contents.final))) or 1.0
        return int(np.clip(3 - np.floor(np.log10(largest)), 0, 8))

    def fixed(self, value: float) -> str:
        """Return a number with the decimals of its column."""
        return f"{value:,.{self.digits}f}".replace("-", "\N{MINUS SIGN}") if np.isfinite(value) else number(value)


# Words for the template.


def ticks(scale: Scale) -> Iterator[tuple[float, str]]:
    """Yield where along a colour bar (in percent), and what to write there."""
    from matplotlib.ticker import MaxNLocator

    for value in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(scale.low, scale.high):
        share = (value - scale.low) / (scale.high - scale.low)
        if -1e-9 <= share <= 1 + 1e-9:
            yield 100 * share, number(value)


def number(value: float) -> str:
    """Return four digits with a true minus, and a dash for a number that is not there."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}") if float(value) else "0"


def alpha(value: float) -> str:
    """Return digits enough to see a strong correlation apart from 1, as a diagnosis prints them."""
    return signed(value, 4 if abs(value) > 0.98 else 3)


def signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
