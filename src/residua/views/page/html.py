"""The report: one HTML file that needs no network, for a screen, a phone or paper.

Python writes the words and the tables, Bokeh the moving pictures, and a short script joins them. Whatever comes
from data is escaped by Jinja (words), by `_json` (data of the script) or by Bokeh (hover), and the page's own
content policy forbids it to load anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from residua import __version__
from residua.atomic import write_atomically
from residua.views.contents import COVERAGE, Contents, layers, moran_cloud
from residua.views.page import charts
from residua.views.page.drawing import Colours, Drawing, colours, make_drawing, thumbnail

if TYPE_CHECKING:
    import pandas as pd

    from residua.estimator import GraphRegressor

TEMPLATES = Path(__file__).parent / "templates"
MAX_ROWS = 100
MAX_TEXTS = 3
FIELDS = {
    "truth": "truth",
    "base prediction": "base",
    "residual": "residual",
    "correction": "correction",
    "final prediction": "final",
    "uncertainty": "std",
}


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
        Rows follow ``graph.nodes``. Its first three columns with text (names, regions) are shown with a node;
        its columns longitude and latitude are the positions unless those are given.
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


def report_html(
    model: GraphRegressor,
    *,
    title: str | None = None,
    target: str | None = None,
    nodes: pd.DataFrame | None = None,
    positions: Any = None,
    polygons: Any = None,
) -> str:
    """Return the page as text; see `write_report`."""
    from bokeh.resources import Resources

    contents = Contents(model)
    texts = node_texts(contents.graph.nodes, nodes)
    if positions is None and nodes is not None and {"longitude", "latitude"} <= set(nodes.columns):
        positions = nodes
    drawing = make_drawing(contents.graph, positions, polygons)
    page = Page(contents, drawing, texts, target or "the label")
    return (
        _environment()
        .get_template("report.html")
        .render(
            page=page,
            title=title or (f"Report on {target}" if target else "Report on a graph regression"),
            version=__version__,
            bokeh=_inline(*Resources(mode="inline", components=["bokeh", "bokeh-gl"], log_level="warn").js_raw),
            data=_inline(_json(page.script_data)),
        )
    )


@dataclass(frozen=True)
class Page:
    """What the template asks for."""

    contents: Contents
    drawing: Drawing
    texts: Mapping[str, np.ndarray]
    target: str

    @cached_property
    def layers(self) -> list[dict[str, Any]]:
        """The pictures, with their words and colours."""
        values = layers(self.contents)
        scales = colours(values)
        return [
            {
                "field": FIELDS[title],
                "title": title,
                "caption": self._captions[title],
                "thumbnail": thumbnail(self.drawing, column, scales[title], self.contents.graph),
                "colours": scales[title],
                "ticks": list(_ticks(scales[title])),
                "missing": self._missing(title) if np.isnan(column).any() else "",
            }
            for title, column in values.items()
        ]

    def _missing(self, title: str) -> str:
        return "label unknown" if title in ("truth", "residual") else "label known"

    @property
    def _captions(self) -> dict[str, str]:
        rest = "leave-one-out" if self.contents.left_out else "at nodes whose label is unknown"
        final = (
            "Each label predicted from all others (leave-one-out)"
            if self.contents.left_out
            else "Known labels, and base plus correction"
        )
        return {
            "truth": "Labels that were given.",
            "base prediction": "What the features of a node say.",
            "residual": "What the base leaves over where the label is known: label minus base prediction.",
            "correction": f"What the neighbours' residuals add, {rest}.",
            "final prediction": f"{final}.",
            "uncertainty": f"Standard deviation of the prediction, {rest}.",
        }

    @cached_property
    def script_data(self) -> dict[str, Any]:
        """What the page's script reads."""
        from bokeh.core.types import ID
        from bokeh.embed import json_item

        figures = {"map": self._map, **self.clouds}
        return {
            "figures": {name: json_item(figure, ID(f"figure-{name}")) for name, figure in figures.items()},
            "layers": [_script_layer(layer) for layer in self.layers],
            "rows": [*((f"text{k}", label) for k, label in enumerate(self.texts)), *self._numbers.items()],
        }

    @property
    def _numbers(self) -> dict[str, str]:
        share = f"{COVERAGE:.0%} interval".replace("%", " %")
        return {field: title for title, field in FIELDS.items()} | {"lower": f"{share} from", "upper": "to"}

    @property
    def _map(self) -> Any:
        found = self.contents
        numbers = {FIELDS[title]: column for title, column in layers(found).items()}
        numbers |= {"lower": found.interval[0], "upper": found.interval[1]}
        texts = {f"text{k}": column for k, column in enumerate(self.texts.values())}
        columns = {**texts, **numbers, "node": np.arange(found.graph.n_nodes, dtype=np.int32)}
        first = next(layer["colours"] for layer in self.layers if layer["field"] == "final")
        labels = {f"text{k}": label for k, label in enumerate(self.texts)}
        return charts.node_map(self.drawing, columns, labels, self._numbers, first, found.graph)

    @cached_property
    def clouds(self) -> dict[str, Any]:
        """Predictions against labels, and residuals against those of neighbours, before and after."""
        return {name: charts.cloud(i, x, y, self.names, **look) for name, (i, x, y), look in self._clouds()}

    def _clouds(self) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        found = self.contents
        both = {"base": found.base_out_of_fold, "corrected": found.corrected}
        values = np.concatenate([found.truth, *both.values()])
        low, high = np.nanmin(values), np.nanmax(values)
        margin = 0.04 * (high - low) or 1.0
        look: dict[str, Any] = {"labels": ("label", "prediction"), "scale": (low - margin, high + margin)}
        for (name, predicted), colour in zip(both.items(), (charts.GREY, charts.BLUE), strict=True):
            known = np.flatnonzero(np.isfinite(predicted))
            if len(known):
                yield name, (known, found.truth[known], predicted[known]), look | {"colour": colour}
        look = {"labels": ("residual", "residuals of its neighbours")}
        for name, values, moran, colour in (
            ("before", found.before, found.diagnosis.moran_base, charts.GREY),
            ("after", found.after, found.diagnosis.moran_corrected, charts.BLUE),
        ):
            if moran and (cloud := moran_cloud(values, found.graph)):
                points = (cloud.node, cloud.own, cloud.neighbours)
                yield name, points, look | {"slope": moran.statistic, "colour": colour}

    def fixed(self, value: float) -> str:
        """A number with as many decimals as show four digits of the largest label."""
        largest = float(np.nanmax(np.abs(self.contents.final))) or 1.0
        digits = int(np.clip(3 - np.floor(np.log10(largest)), 0, 8))
        return f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}") if np.isfinite(value) else number(value)

    @property
    def names(self) -> np.ndarray:
        return next(iter(self.texts.values()))

    @cached_property
    def edges(self) -> list[tuple[str, str]]:
        """Edge types that are drawn, and their colours."""
        drawn = charts.edge_lines(self.drawing, self.contents.graph)
        return [(t, charts.EDGE_COLOURS[k % len(charts.EDGE_COLOURS)]) for k, t in enumerate(drawn)]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Nodes with the largest corrections, the largest first."""
        size = np.abs(np.nan_to_num(self.contents.correction))
        largest = np.argsort(-size, kind="stable")[: min(MAX_ROWS, int((size > 0).sum()))]
        columns = layers(self.contents)
        return [
            {
                "node": int(i),
                "texts": [str(column[i]) for column in self.texts.values()],
                **{FIELDS[title]: float(column[i]) for title, column in columns.items()},
                "lower": float(self.contents.interval[0][i]),
                "upper": float(self.contents.interval[1][i]),
            }
            for i in largest
        ]

    @cached_property
    def alphas(self) -> list[dict[str, Any]]:
        """Strength of the correlation by edge type, with its 95 % interval; shares are of the way from -1 to 1."""
        found = self.contents.diagnosis
        counts = {t: self.contents.graph.adjacency(t) for t in found.alpha}
        return [
            {
                "type": t,
                "alpha": value,
                "low": found.alpha_interval[t][0],
                "high": found.alpha_interval[t][1],
                "edges": (counts[t].nnz + np.count_nonzero(counts[t].diagonal())) // 2,
            }
            for t, value in found.alpha.items()
        ]

    @property
    def features(self) -> list[str]:
        named = getattr(self.contents.model, "feature_names_in_", None)
        return [] if named is None else [str(name) for name in named]


def node_texts(ids: np.ndarray, nodes: pd.DataFrame | None) -> dict[str, np.ndarray]:
    """Ids and up to three columns of text, by their names."""
    texts: dict[str, np.ndarray] = {"node": ids.astype(object)}
    if nodes is None:
        return texts
    if len(nodes) != len(ids):
        raise ValueError(f"nodes has {len(nodes)} rows but graph has {len(ids)} nodes; order nodes like graph.nodes.")
    chosen = [k for k in range(nodes.shape[1]) if nodes.iloc[:, k].dtype.kind in "OUT"][:MAX_TEXTS]
    for k in chosen:
        name = str(nodes.columns[k])
        texts[f"{name} " if name in texts else name] = nodes.iloc[:, k].astype(object).to_numpy()
    return texts


def _script_layer(layer: Mapping[str, Any]) -> dict[str, Any]:
    scale: Colours = layer["colours"]
    return {"field": layer["field"], "palette": scale.palette, "low": scale.low, "high": scale.high}


def _ticks(scale: Colours) -> Iterator[tuple[float, str]]:
    """Where along a colour bar (in percent), and what to write there."""
    from matplotlib.ticker import MaxNLocator

    for value in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(scale.low, scale.high):
        share = (value - scale.low) / (scale.high - scale.low)
        if -1e-9 <= share <= 1 + 1e-9:
            yield 100 * share, number(value)


# Words and data for the template.


def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "alpha": alpha,
        "signed": signed,
        "r2": lambda x: f"{x:.3f}" if np.isfinite(x) else number(x),
        "share": lambda x: f"{x:.0%}".replace("%", "\N{NO-BREAK SPACE}%"),
    }
    environment.globals["isfinite"] = np.isfinite
    environment.globals["inline"] = lambda name: _inline((TEMPLATES / name).read_text("utf-8"))
    return environment


def number(value: float) -> str:
    """Four digits with a true minus, and a dash for a number that is not there."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}") if float(value) else "0"


def alpha(value: float) -> str:
    """Digits enough to see a strong correlation apart from 1, as a diagnosis prints them."""
    return signed(value, 4 if abs(value) > 0.98 else 3)


def signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _json(value: Any) -> str:
    """JSON that ends no script element, whatever its strings hold; no number is NaN outside Bokeh's own encoding."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _inline(*texts: str) -> Any:
    """Text of ours that goes into the page as it is."""
    from markupsafe import Markup

    return Markup("\n".join(texts))
