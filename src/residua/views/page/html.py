"""The report: one HTML file that needs no network, for a screen, a phone or paper.

The template writes the words and the tables, Bokeh the moving pictures, and a short script joins them. Whatever comes
from data is escaped by Jinja (words, and data of the script) or by Bokeh (hover), and the page's own content policy
forbids it to load anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
from residua.views.contents import COVERAGE, FIELDS, MORE, Contents, layers, moran_cloud, more_layers
from residua.views.effects import Effect, effects
from residua.views.figures import BLUE, GREY
from residua.views.page import charts
from residua.views.page.drawing import Drawing, make_drawing, thumbnail
from residua.views.page.explain import explanation, packed
from residua.views.page.words import MINUS, Words, about
from residua.views.scales import CLIP, Scale, shared_scales

MAX_ROWS = 100
MAX_TEXTS = 3
# What the page calls each number of a node.
NUMBERS = {field: title for title, field in FIELDS.items()}
NUMBERS |= {"lower": f"{100 * COVERAGE:.0f} % interval from", "upper": "to", "left_out_mean": "without its own label"}
MAX_EFFECTS = 12
# What the axes of each cloud of points are.
CLOUDS = dict.fromkeys(("base", "corrected"), ("label", "prediction"))
CLOUDS |= dict.fromkeys(("before", "after"), ("residual", "residuals of its neighbours"))


def write_report(
    model: GraphRegressor,
    path: str | Path,
    *,
    title: str | None = None,
    target: str | None = None,
    nodes: pd.DataFrame | None = None,
    positions: Any = None,
    polygons: Any = None,
    others: Mapping[str, GraphRegressor] | None = None,
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
    others : dict of GraphRegressor, optional
        Other models of the same labels by name, to compare this one with.

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
    options: dict[str, Any] = {"positions": positions, "polygons": polygons, "others": others or {}}
    text = report_html(model, title=title, target=target, nodes=nodes, **options)
    write_atomically(path, lambda file: file.write(text.encode()), "writing the report")


def report_html(model: GraphRegressor, **options: Any) -> str:
    """Return the page as text; the options are those of `write_report`."""
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}  # NaN only in Bokeh's own encoding
    environment.filters |= {
        "about": about,
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
    others: Mapping[str, GraphRegressor] = field(default_factory=dict)

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
        ids = [str(node) for node in self.contents.graph.nodes]
        columns = [] if self.nodes is None else [c for _, c in self.nodes.items() if c.dtype.kind in "OUT"]
        columns = [column for column in columns if [str(text) for text in column] != ids]  # it says nothing new
        for column in columns[:MAX_TEXTS]:
            name = str(column.name)
            texts[f"{name} " if name in texts else name] = column
        return {name: np.array([str(text) for text in column], object) for name, column in texts.items()}

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """Columns of numbers, by their fields."""
        fields = dict.fromkeys([*FIELDS.values(), *NUMBERS, *self.fields.values()])
        return {field: getattr(self.contents, field) for field in fields}

    @property
    def packed(self) -> dict[str, Any]:
        """Those columns that the script does not compute from others."""
        ends = ("lower", "upper", "width")
        columns = {field: column for field, column in self.numbers.items() if field not in ends}
        columns["every_half_width"] = self.contents.every_half_width
        return {field: packed(column, "f4") for field, column in columns.items()}

    @cached_property
    def more(self) -> dict[str, np.ndarray]:
        """Layers without a small picture, by their titles."""
        return more_layers(self.contents)

    @property
    def fields(self) -> dict[str, str]:
        """Fields of all layers, by their titles."""
        return FIELDS | {title: MORE[title] for title in self.more}

    @cached_property
    def words(self) -> Words:
        """The first screen."""
        return Words(self.contents)

    @cached_property
    def drawing(self) -> Drawing:
        """Where the nodes are drawn."""
        mapped = self.nodes is not None and {"longitude", "latitude"} <= set(self.nodes.columns)
        positions = self.nodes if self.positions is None and mapped else self.positions
        return make_drawing(self.contents.graph, positions, self.polygons)

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """Colours of the layers, by their titles."""
        return shared_scales(layers(self.contents) | self.more, None, CLIP)

    @property
    def script_data(self) -> dict[str, Any]:
        """What the page's script reads."""
        from bokeh.core.types import ID
        from bokeh.embed import json_item

        labels = {f"text{k}": label for k, label in enumerate(self.texts)}
        texts = {field: column.tolist() for field, column in zip(labels, self.texts.values(), strict=True)}
        nodes = charts.node_map(self.drawing, self.contents.final, self.scales["final prediction"], self.contents.graph)
        figures = {"map": nodes, **self.effects, **self.clouds}
        return {
            "figures": {name: json_item(figure, ID(f"figure-{name}")) for name, figure in figures.items()},
            "layers": [
                {"field": self.fields[title], "palette": scale.palette, "low": scale.low, "high": scale.high}
                for title, scale in self.scales.items()
            ],
            "columns": {"texts": texts, "numbers": self.packed},
            "digits": self.digits,
            "texts": list(labels.items()),
            "numbers": [(field, name) for field, name in NUMBERS.items() if np.isfinite(self.numbers[field]).any()],
            "target": self.target or "the label",
            "axes": {name: CLOUDS[name] for name in self.clouds},
            **explanation(self.contents),
        }

    @cached_property
    def strongest(self) -> list[Effect]:
        """What each feature adds to the prediction, those that move it most first."""
        base = self.contents.model.base_
        if base.name not in ("linear", "splines") or not self.contents.model.n_features_in_:
            return []
        return sorted(effects(self.contents.model), key=lambda found: -float(np.ptp(found.value)))[:MAX_EFFECTS]

    @cached_property
    def effects(self) -> dict[str, Any]:
        """Pictures of these effects, by the name of their place on the page."""
        return {f"effect-{k}": charts.effect(found) for k, found in enumerate(self.strongest)}

    @cached_property
    def clouds(self) -> dict[str, Any]:
        """Predictions against labels, and residuals against those of neighbours, before and after."""
        found, clouds = self.contents, {}
        predictions = {"base": found.base_out_of_fold, "corrected": found.corrected}
        values = np.concatenate([found.truth, *predictions.values()])
        low, high = np.nanmin(values), np.nanmax(values)
        margin = 0.04 * (high - low) or 1.0
        look: dict[str, Any] = {"labels": CLOUDS["base"], "scale": (low - margin, high + margin)}
        for (name, predicted), colour in zip(predictions.items(), (GREY, BLUE), strict=True):
            known = np.flatnonzero(np.isfinite(predicted))
            if len(known):
                clouds[name] = charts.cloud(known, found.truth[known], predicted[known], colour=colour, **look)
        for name, values, moran, colour in (
            ("before", found.before, found.diagnosis.moran_base, GREY),
            ("after", found.after, found.diagnosis.moran_corrected, BLUE),
        ):
            if moran:
                look = {"labels": CLOUDS[name], "slope": moran.statistic}
                clouds[name] = charts.cloud(*moran_cloud(values, found.graph), colour=colour, **look)
        return clouds

    @property
    def table(self) -> dict[str, str]:
        """Heads of the table of nodes: texts by themselves, numbers by their fields."""
        heads = {name: name for name in self.texts}
        heads |= {"truth": "truth"} if self.contents.left_out else {}
        numbers = {"base": "base", "correction": "correction", "final": "prediction", "std": "std"}
        return heads | numbers | {"lower": "90 % from", "upper": "to"}

    @cached_property
    def rows(self) -> list[int]:
        """Nodes with the largest corrections, the largest first."""
        size = np.abs(np.nan_to_num(self.contents.correction))
        return np.argsort(-size, kind="stable")[: min(MAX_ROWS, np.count_nonzero(size))].tolist()

    @cached_property
    def summary(self) -> Summary:
        """Coefficients in the units of the data, and what else the fit says of itself."""
        return self.contents.model.summary()

    @property
    def comparison(self) -> list[list[str]]:
        """A table of models: heads, then a row for each, the model of this page first."""
        heads = ["model", "typical error", "R², leave-one-out", "90 % interval, half width", "labels inside"]
        return [heads, *(self._compared(name, model) for name, model in self._models())]

    def _models(self) -> Iterator[tuple[str, GraphRegressor]]:
        yield f"this one, base {self.contents.model.base_.name}", self.contents.model
        yield from self.others.items()

    def _compared(self, name: str, model: GraphRegressor) -> list[str]:
        found = self.contents if model is self.contents.model else Contents(model)
        same = np.array_equal(found.truth, self.contents.truth, equal_nan=True)
        if not same:
            raise ValueError(
                f"others[{name!r}] was fitted on other labels than the model of the page; fit it on these."
            )
        half = float(np.median(found.half_width[np.isfinite(found.half_width)]))
        error = Words(found).errors[1]
        return [name, about(error), number(found.diagnosis.r2_corrected), about(half), f"{100 * found.covered:.1f} %"]

    @cached_property
    def digits(self) -> int:
        """As many decimals as show four digits of the largest label."""
        largest = float(np.nanmax(np.abs(self.contents.final))) or 1.0
        return int(np.clip(3 - np.floor(np.log10(largest)), 0, 8))

    def fixed(self, value: float) -> str:
        """Return a number with the decimals of its column."""
        return f"{value:,.{self.digits}f}".replace("-", MINUS) if np.isfinite(value) else number(value)


# Words for the template.


def ticks(scale: Scale) -> list[tuple[float, str]]:
    """Return where along a colour bar (in percent), and what to write there: three to six numbers."""
    from matplotlib.ticker import MaxNLocator

    inside: list[float] = []
    for count in range(4, 10):
        values = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]).tick_values(scale.low, scale.high)
        inside = [value for value in values if scale.low <= value <= scale.high]
        if len(inside) >= 3:
            break
    return [(100 * (value - scale.low) / (scale.high - scale.low), number(value)) for value in inside]


def number(value: float) -> str:
    """Return four digits with a true minus, and a dash for a number that is not there."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", MINUS) if float(value) else "0"


def alpha(value: float) -> str:
    """Return digits enough to see a strong correlation apart from 1, as a diagnosis prints them."""
    return signed(value, 4 if abs(value) > 0.98 else 3)


def signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", MINUS)
