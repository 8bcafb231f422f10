"""The report as a file: what it says, what it escapes, and where its numbers come from."""

import base64
import html.parser
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import residua
from residua.views.contents import Contents, layers, moran_cloud
from residua.views.page.charts import edge_lines
from residua.views.page.drawing import make_drawing
from residua.views.page.html import alpha, number, report_html, write_report
from residua.views.scales import CLIP, shared_scales

HOSTILE = "<script>alert(1)</script>"


def ring(n=40, types=None, ids=None, seed=0, unknown=4, **options):
    ids = np.arange(n) if ids is None else np.asarray(ids, object)
    graph = residua.Graph.from_edges(ids, np.roll(ids, 1), type=types, nodes=ids)
    rng = np.random.default_rng(seed)
    y = np.sin(np.arange(n) / 5) + 0.2 * rng.normal(size=n)
    if unknown:
        y[::unknown] = np.nan
    X = pd.DataFrame({"first": rng.normal(size=n)})
    return residua.GraphRegressor(**{"base": "linear"} | options).fit(X, y, graph=graph)


@pytest.fixture(scope="module")
def model():
    return ring()


class Tags(html.parser.HTMLParser):
    """Elements and attributes as a browser reads them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.words.append(data)


def script_data(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


# What the page says


def test_the_page_says_what_was_asked_and_what_was_found(model):
    words = " ".join(" ".join(Tags(report_html(model, target="height", title="A ring")).words).split())
    for text in (
        "A ring",
        "Predicted: height. It is known at 30 of 40 nodes and predicted at 10",
        "along 40 edges",
        model.diagnose().verdict,
        "first",
        "linear",
    ):
        assert text in words


def test_the_page_names_nothing_to_load(model):
    tags = Tags(report_html(model))
    loads = {value for name, value in tags.attributes if name in ("src", "href", "action", "srcset", "data")}
    assert all(value.startswith("data:") for value in loads)
    policies = [value for name, value in tags.attributes if name == "content" and "default-src" in value]
    assert [policy.split(";")[0] for policy in policies] == ["default-src 'none'"]


def test_the_layers_hold_the_numbers_of_the_model(model):
    columns = layers(Contents(model))
    known = ~np.isnan(model.y_)
    mean, std = model.predict(return_std=True)
    assert_allclose(columns["final prediction"], mean)
    assert_allclose((columns["base prediction"] + columns["correction"])[~known], mean[~known])
    assert_allclose((columns["base prediction"] + columns["residual"])[known], model.y_[known])
    assert_allclose(columns["uncertainty"][~known], std[~known])
    assert np.isnan(columns["uncertainty"][known]).all()


def test_the_interval_of_a_node_is_the_models(model):
    unknown = np.isnan(model.y_)
    contents = Contents(model)
    for found, expected in zip((contents.lower, contents.upper), model.predict_interval(), strict=True):
        assert_allclose(found[unknown], expected[unknown])
        assert np.isnan(found[~unknown]).all()
    columns = map_columns(report_html(model))
    upper = columns["final"] + columns["every_half_width"]
    assert_allclose(upper[unknown], model.predict_interval()[1][unknown], rtol=1e-6)


def test_with_every_label_known_each_is_left_out():
    model = ring(unknown=0)
    found = Contents(model)
    assert_allclose(found.final, model.predict(known="predict"))
    assert np.isfinite(found.correction).all()
    assert (found.lower < found.upper).all()
    assert "Each is predicted as if its own were not known" in report_html(model)


@pytest.mark.parametrize(
    ("correlation", "named", "value"),
    [("learned", "learned", None), ("propagate", "taken as complete (propagation)", 1.0), (None, "not used", 0.0)],
)
def test_every_correlation_has_a_page_with_its_own_numbers_and_words(correlation, named, value):
    model = ring(correlation=correlation)
    text = report_html(model)
    words = " ".join(" ".join(Tags(text).words).split())
    assert f"correlation of its residuals {named}." in words
    assert model.diagnose().verdict in words
    assert ("Bands are 95 % intervals" in words) is (correlation == "learned")
    assert ("Propagation sets it to 1" in words) is (correlation == "propagate")
    assert alpha(model.alpha_["edge"] if value is None else value) in words
    columns, (mean, std) = map_columns(text), model.predict(return_std=True)
    unknown = np.isnan(model.y_)
    assert_allclose(columns["final"], mean, rtol=1e-6)
    assert_allclose(columns["std"][unknown], std[unknown], rtol=1e-6)
    corrected = (columns["base"] + columns["correction"])[unknown]
    assert_allclose(corrected, mean[unknown], rtol=1e-5, atol=1e-6)
    assert correlation is not None or not columns["correction"][unknown].any()


def map_columns(text):
    """The numbers of the nodes as the page holds them."""
    return {field: unpacked(packed) for field, packed in script_data(text)["columns"]["numbers"].items()}


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), "<" + packed["kind"])


def test_isolated_nodes_and_a_few_labels_have_a_page():
    graph = residua.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], nodes=range(9))
    y = np.array([1, 2, 3, 2, 4, np.nan, 5, np.nan, np.nan])
    assert "9 nodes" in report_html(residua.GraphRegressor("mean").fit(None, y, graph=graph))


def test_the_slope_of_the_moran_cloud_is_morans_i(model):
    values = Contents(model).before
    _, own, neighbours = moran_cloud(values, model.graph_)
    known = int((~np.isnan(values)).sum())
    assert_allclose(own @ neighbours / known, residua.metrics.morans_i(values, model.graph_).statistic)


def test_rows_are_the_largest_corrections_first(model):
    text = report_html(model)
    rows = [int(node) for node in re.findall(r'<tr data-node="(\d+)"', text)]
    size = np.abs(Contents(model).correction)
    assert rows == np.argsort(-np.nan_to_num(size), kind="stable")[: len(rows)].tolist()
    assert len(rows) == int(np.isfinite(size).sum())


def test_each_edge_type_has_its_alpha_and_interval():
    model = ring(types=["road", "rail"] * 20)
    words = " ".join(Tags(report_html(model)).words)
    words = " ".join(words.split())
    for name, value in model.alpha_.items():
        low, high = model.correlation_.interval()[name]
        assert f"{name} 20 edges {alpha(value)} [{alpha(low)}, {alpha(high)}]" in re.sub(r" +", " ", words)


def test_each_edge_is_drawn_once_from_end_to_end():
    model = ring(types=["road", "rail"] * 20)
    graph, drawing = model.graph_, make_drawing(model.graph_, None, None)
    lines = edge_lines(drawing, graph)
    assert list(lines) == ["road", "rail"]
    assert lines["road"][0] != lines["rail"][0]
    for kind, (_, x, y) in lines.items():
        xy = np.stack([x, y], axis=1).reshape(-1, 3, 2)
        assert np.isnan(xy[:, 2]).all()  # a gap after every edge
        pairs = np.argwhere(sparse.triu(graph.adjacency(kind)).toarray())
        assert len(xy) == len(pairs) == 20
        expected = drawing.xy[pairs].astype(np.float32)
        assert sorted(xy[:, :2].reshape(-1, 4).tolist()) == sorted(expected.reshape(-1, 4).tolist())
        assert (np.linalg.norm(xy[:, 0] - xy[:, 1], axis=1) > 0).all()
    assert edge_lines(drawing, residua.Graph.from_edges([0, 1], [0, 1]))["edge"][1].size == 0  # loops are not lines


@pytest.mark.parametrize(
    ("value", "text"), [(float("nan"), "–"), (-0.12345, "−0.1235"), (0.0, "0"), (1234567.0, "1,234,567")]
)
def test_numbers_are_short(value, text):
    assert number(value) == text


# Escaping


def test_text_from_data_makes_no_element_and_no_attribute():
    plain = ring(types=["a", "b"] * 20)
    model = ring(
        types=[f'"><img src=x onerror=a>{HOSTILE}', "$$x$$ ' \""] * 20, ids=[f"{HOSTILE}{i}" for i in range(40)]
    )
    model.field_ = replace(model.field_, feature_names=np.array([f"</script>{HOSTILE}"], object))
    names = pd.DataFrame({f"</script>{HOSTILE}\"'": [f"<img src=x onerror=b>{i}" for i in range(40)]})
    hostile = Tags(report_html(model, title=HOSTILE, target=f'</title>"{HOSTILE}', nodes=names))
    harmless = Tags(report_html(plain, title="t", target="u", nodes=pd.DataFrame({"name": ["x"] * 40})))
    assert sorted(hostile.tags) == sorted(harmless.tags)
    assert {name for name, _ in hostile.attributes} == {name for name, _ in harmless.attributes}
    assert f"{HOSTILE}0" in "".join(hostile.words)


def test_data_of_the_script_ends_no_script():
    model = ring(ids=[f"</script><!--{i}" for i in range(40)])
    text = report_html(model)
    raw = re.search(r'id="data">(.*?)</script>', text, re.S)[1]
    assert "<" not in raw
    assert script_data(text)["layers"][0]["field"] == "truth"


# Files


def test_the_file_is_whole_or_not_there(model, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(model, path)
    assert path.read_text().rstrip().endswith("</html>")
    first = path.read_bytes()
    with pytest.raises(ValueError, match="nodes has 3 rows but graph has 40"):
        write_report(model, path, nodes=pd.DataFrame({"a": range(3)}))
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_report(model, tmp_path / "missing" / "report.html")


def test_the_same_model_makes_the_same_page(model):
    first, second = (renumbered(report_html(model)) for _ in range(2))
    assert first == second
    assert first == renumbered(report_html(ring()))
    assert first != renumbered(report_html(ring(seed=1)))


def renumbered(text):
    """The page with Bokeh's objects counted from its beginning, not from that of the process."""
    names = {}
    return re.sub(r'"p\d+"', lambda found: names.setdefault(found[0], f'"object {len(names)}"'), text)


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        write_report(residua.GraphRegressor(), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


# Pictures


def test_residuals_and_corrections_share_a_scale_centred_on_zero(model):
    scales = shared_scales(layers(Contents(model)), None, CLIP)
    assert scales["residual"] == scales["correction"]
    assert scales["residual"].low == -scales["residual"].high
    assert scales["truth"] == scales["base prediction"] == scales["final prediction"]
    assert scales["uncertainty"].palette != scales["truth"].palette


def test_longitude_and_latitude_of_the_node_table_make_a_map(model):
    nodes = pd.DataFrame({"longitude": np.linspace(-120, -70, 40), "latitude": np.linspace(25, 50, 40)})
    drawing = make_drawing(model.graph_, nodes, None)
    assert drawing.kind == "map"
    width, height = np.ptp(drawing.xy, axis=0)
    assert_allclose(width / height, 2 * np.cos(np.radians(37.5)))


def test_every_dot_lies_in_view(model):
    drawing = make_drawing(model.graph_, None, None)
    assert drawing.kind == "graph"
    assert (drawing.xy - drawing.radius[:, None] > drawing.low).all()
    assert (drawing.xy + drawing.radius[:, None] < drawing.high).all()
    assert 0.4 < drawing.ratio < 1.12
