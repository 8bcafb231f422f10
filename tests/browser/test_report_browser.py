"""The report in a real browser."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.stats import spearmanr

import residua
from residua.io.tables.graphs import Columns, read_tables, rows_like
from residua.views.page.html import write_report

PHONE = {"viewport": {"width": 375, "height": 750}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
RANGE = "(({ x_range: x, y_range: y }) => [x.end - x.start, y.end - y.start])(Bokeh.documents[0].roots()[0])"
FRAME = "(({ x_range: x, y_range: y }) => [x.start, x.end, y.start, y.end])(Bokeh.documents[0].roots()[0])"
SHOWN = """() => {
  const plot = Bokeh.documents[0].roots()[0];
  const { node, value } = plot.renderers.find((r) => r.name === "nodes").data_source.data;
  return [[...node], [...value]];
}"""
LAYERS = ["truth", "base", "residual", "correction", "final", "std", "lower", "upper", "width", "base_error", "error"]


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


@pytest.fixture
def page(opened, counties):
    return opened(counties[0])


def test_it_opens_without_complaint_and_without_network(page, counties):
    assert page.wrong == []
    assert {url.split(":")[0] for url in page.asked} <= {"file", "data", "blob"}
    assert [url for url in page.asked if url.startswith("file")] == [counties[0].as_uri()]
    assert "The neighbours help: predictions miss by" in page.page.inner_text("header")
    assert counties[1].diagnose().verdict in page.page.inner_text("#how")
    assert "unsafe-eval" not in page.page.locator("meta[http-equiv]").get_attribute("content")


def test_layers_switch_without_reloading(page):
    pictures = set()
    page.page.evaluate("window.stayed = true")
    for k, field in enumerate(LAYERS):
        page.page.click(f'[data-layer="{k}"]')
        pictures.add(page.picture())
        assert page.page.evaluate("document.documentElement.dataset.layer") == field
        assert page.page.locator("[data-legend]:visible").get_attribute("data-legend") == str(k)
        assert page.page.locator("[data-layer][aria-pressed=true]").get_attribute("data-layer") == str(k)
    assert len(pictures) == len(LAYERS)
    assert page.page.evaluate("window.stayed")
    assert page.wrong == []


def test_hover_shows_the_numbers_of_a_node(page, counties):
    model = counties[1]
    node = int(np.flatnonzero(np.isnan(model.y_))[700])
    shown = page.point_at(node)
    assert shown["node"] == str(model.graph_.nodes[node])
    assert shown["truth"] == "–"
    assert number(shown["base prediction"]) == pytest.approx(
        model.base_.predict(model.graph_, model.X_)[node], rel=1e-3
    )
    assert number(shown["final prediction"]) == pytest.approx(model.predict()[node], rel=1e-3)
    assert number(shown["uncertainty"]) == pytest.approx(model.predict(return_std=True)[1][node], rel=1e-3)


def test_the_table_sorts_by_any_column(page):
    def column(k):
        cells = page.page.locator(f"#corrections tbody td:nth-child({k})")
        return cells.evaluate_all("(cells) => cells.map((c) => c.dataset.value ?? c.textContent)")

    corrections = np.array(column(4), float)
    assert len(corrections) == 100
    assert (np.diff(np.abs(corrections)) <= 0).all()
    page.page.click("#corrections th:nth-child(4)")
    assert (np.diff(np.array(column(4), float)) <= 0).all()
    page.page.click("#corrections th:nth-child(4)")
    assert (np.diff(np.array(column(4), float)) >= 0).all()
    page.page.click("#corrections th:nth-child(1)")
    assert column(1) == sorted(column(1))
    assert page.page.locator("th[aria-sort=ascending]").count() == 1


def test_a_node_is_chosen_by_row_by_name_and_by_click(page, counties):
    panel = page.page.locator("#node")
    first = page.page.locator("#corrections tbody tr").first
    first.click()
    assert first.locator("td").first.inner_text() in panel.inner_text()
    page.page.fill("#find", "county 06037")
    page.page.keyboard.press("Enter")
    assert "County 06037" in panel.inner_text()
    page.page.click('[data-zoom="0"]')
    page.page.locator("#figure-map").scroll_into_view_if_needed()
    page.page.mouse.click(*page.place(1000))
    page.until("(id) => document.getElementById('node').innerText.includes(id)", str(counties[1].graph_.nodes[1000]))
    page.page.fill("#find", "nobody")
    page.page.keyboard.press("Enter")
    assert panel.inner_text() == "No node is called so."
    assert page.wrong == []


def test_edges_are_drawn_between_their_ends_and_go_again(opened, tmp_path):
    """A square of four dots: the middles of its sides are empty but for the edges."""
    graph = residua.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], type=["road", "rail", "road", "rail"])
    model = residua.GraphRegressor("mean", None).fit(None, np.array([1.0, 2.0, 4.0, 3.0]), graph=graph)
    write_report(model, tmp_path / "square.html", positions=np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]))
    page = opened(tmp_path / "square.html")

    def sides():
        """The colours at the middle of each side, and in that of the square."""
        pixels, box = pixels_of(page), page.page.locator("#figure-map").bounding_box()
        ends = np.array([page.place(k) for k in range(4)]) - [box["x"], box["y"]]
        middles = [(ends[k] + ends[(k + 1) % 4]) / 2 for k in range(4)] + [ends.mean(axis=0)]
        return [tuple(_darkest(pixels, x, y)) for x, y in middles]

    empty = sides()[4]
    for road, rail in ((False, False), (True, False), (True, True), (False, True)):
        page.page.set_checked("[data-edges='0']", road)
        page.page.set_checked("[data-edges='1']", rail)
        assert [colour != empty for colour in sides()] == [road, rail, road, rail, False]
    assert page.wrong == []


def pixels_of(page):
    with Image.open(io.BytesIO(page.picture())) as picture:
        return np.asarray(picture.convert("RGB"), int)


def _darkest(pixels, x, y, reach=2):
    """The darkest colour around a place: a line is thin."""
    near = pixels[round(y) - reach : round(y) + reach + 1, round(x) - reach : round(x) + reach + 1].reshape(-1, 3)
    return near[np.argmin(near.sum(axis=1))].tolist()


def test_zoom_enlarges_what_is_in_the_middle_and_goes_back(page, counties):
    whole = page.page.evaluate(RANGE)
    page.page.locator("#figure-map").scroll_into_view_if_needed()
    plain = pixels_of(page)
    box = page.page.locator("#figure-map").bounding_box()
    middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    places = {node: np.array(page.place(node)) - middle for node in range(0, 3000, 50)}
    node = min(places, key=lambda k: np.linalg.norm(places[k]))
    page.page.click('[data-zoom="0.6"]')
    assert page.page.evaluate(RANGE) == pytest.approx([0.6 * size for size in whole])
    page.page.locator("#figure-map").scroll_into_view_if_needed()
    assert page.hover(*(middle + places[node] / 0.6))["node"] == str(counties[1].graph_.nodes[node])
    page.page.mouse.move(0, 0)
    page.page.locator(".tip").wait_for(state="hidden")
    zoomed = pixels_of(page)
    page.page.click('[data-zoom="0"]')
    page.page.mouse.move(0, 0)
    assert page.page.evaluate(RANGE) == pytest.approx(whole)
    again = pixels_of(page)
    assert np.abs(zoomed - plain).mean() > 5
    assert np.abs(again - plain).mean() < 0.5


def test_areas_are_drawn_coloured_and_named(opened, tmp_path):
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    areas = [
        {
            "type": "Feature",
            "id": f"{x}-{y}",
            "properties": {},
            "geometry": {"type": "Polygon", "coordinates": [[[x + a, y + b] for a, b in corners]]},
        }
        for x in range(5)
        for y in range(5)
    ]
    ids = [area["id"] for area in areas]
    graph = residua.Graph.from_edges(ids[:-1], ids[1:])
    y = np.where(np.arange(25) % 3, np.sin(np.arange(25)), np.nan)
    model = residua.GraphRegressor("mean").fit(None, y, graph=graph)
    path = tmp_path / "areas.html"
    write_report(model, path, polygons={"type": "FeatureCollection", "features": areas})
    page = opened(path)
    page.page.click(f'[data-layer="{LAYERS.index("final")}"]')
    left, right, bottom, top = page.page.evaluate(FRAME)
    pixels = pixels_of(page)
    height, width, _ = pixels.shape
    places = np.array([[float(part) for part in name.split("-")] for name in ids]) + 0.3
    columns, rows = (places[:, 0] - left) / (right - left) * width, (top - places[:, 1]) / (top - bottom) * height
    brightness = pixels[rows.astype(int), columns.astype(int)] @ [0.2126, 0.7152, 0.0722]
    assert spearmanr(brightness, model.predict()).statistic > 0.99  # a scale from dark to bright
    middle = page.page.locator("#figure-map").bounding_box()
    assert page.hover(middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2)["node"] == "2-2"
    assert page.wrong == []


def test_hostile_text_stays_text(opened, hostile):
    page = opened(hostile)
    shown = page.point_at(0)
    assert shown.pop("node") == "<script>window.hacked=1</script>0"
    assert shown["n\"'</script><img src=x onerror=window.hacked=3>"] == "</script><script>window.hacked=1</script>"
    assert shown["$$ @text0{safe}"] == "@base{safe}<img src=x onerror=window.hacked=4>"
    page.page.fill("#find", "<script>")
    page.page.keyboard.press("Enter")
    assert "<script>window.hacked=1</script>" in page.page.locator("#node").inner_text()
    for k in range(len(LAYERS)):
        page.page.click(f'[data-layer="{k}"]')
    page.page.click("#corrections th:nth-child(2)")
    page.drawn()
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("img[src=x]").count() == 0
    assert page.page.locator("script").count() == 3
    assert page.page.title() == "<script>window.hacked=1</script>"
    assert page.wrong == []
    assert {url.split(":")[0] for url in page.asked} <= {"file", "data", "blob"}


def test_hostile_tables_and_maps_stay_text(opened, tmp_path):
    """From files, as the command line has them: ids, columns, categories and the properties of areas."""
    script, image = "<script>window.hacked=1</script>", '"><img src=x onerror=window.hacked=2>'
    ids = [f"{script}{i}" for i in range(25)]
    size = np.random.default_rng(0).normal(size=25)
    nodes = pd.DataFrame({f"id{image}": ids, f"size{script}": size, "kind": np.resize([script, image], 25)})
    nodes[f"price{script}"] = np.where(np.arange(25) % 3, size + np.sin(np.arange(25)), np.nan)
    edges = pd.DataFrame({"source": ids[:-1], "target": ids[1:], f"type{image}": np.resize([script, image], 24)})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    areas = [
        {
            "type": "Feature",
            "properties": {script: name, image: image},
            "geometry": {"type": "Polygon", "coordinates": [[[k // 5 + a, k % 5 + b] for a, b in corners]]},
        }
        for k, name in enumerate(ids)
    ]
    (tmp_path / "areas.json").write_text(json.dumps({"type": "FeatureCollection", "features": areas}))
    columns = Columns(f"price{script}", id=f"id{image}", edge_type=f"type{image}")
    data = read_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", columns)
    model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    rows = rows_like(tmp_path / "nodes.csv", data.graph, data.recipe)
    given = {"target": data.recipe.target, "nodes": rows, "polygons": tmp_path / "areas.json", "title": image}
    write_report(model, tmp_path / "r.html", **given)
    page = opened(tmp_path / "r.html")
    page.page.fill("#find", ids[3])
    page.page.keyboard.press("Enter")
    assert ids[3] in page.page.locator("#node").inner_text()
    page.drawn()
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("img[src=x]").count() == 0
    assert page.page.locator("script").count() == 3
    assert page.page.title() == image
    assert page.wrong == []
    assert {url.split(":")[0] for url in page.asked} <= {"file", "data", "blob"}


def test_a_phone_scrolls_down_only(opened, counties, hostile):
    for path in (counties[0], hostile):
        page = opened(path, **PHONE)
        width, inner = page.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner == 375
        page.page.locator("#figure-map").scroll_into_view_if_needed()
        before = page.page.evaluate("scrollY")
        _swipe_up(page, *page.place(1))
        page.until("(y) => scrollY > y + 50", before)
        assert page.wrong == []


def _swipe_up(page, x, y):
    """One finger, from a place on the map."""
    finger = page.context.new_cdp_session(page.page)
    for kind, points in [
        ("touchStart", [{"x": x, "y": y}]),
        *(("touchMove", [{"x": x, "y": y - 15 * k}]) for k in range(1, 11)),
        ("touchEnd", []),
    ]:
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.drawn()


def test_paper_gets_whole_pictures(page, tmp_path):
    page.page.emulate_media(media="print")
    page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.until("() => [...document.querySelectorAll('img.paper')].every((i) => i.complete)")
    pictures = page.page.locator("img.paper")
    assert pictures.count() == 8  # the map, three effects, four clouds
    assert all(pictures.evaluate_all("(all) => all.map((i) => i.naturalWidth > 300 && i.offsetWidth > 100)"))
    page.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert pictures.count() == 0
    assert page.page.pdf().startswith(b"%PDF")
    assert page.wrong == []


def test_fifty_thousand_nodes_open_and_answer(opened, tmp_path):
    height, width = 200, 250
    ids = np.arange(height * width).reshape(height, width)
    source, target = np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()], np.r_[ids[:, 1:].ravel(), ids[1:].ravel()]
    graph = residua.Graph.from_edges(source, target, nodes=ids.ravel())
    rng = np.random.default_rng(0)
    y = np.where(rng.random(ids.size) < 0.4, rng.normal(size=ids.size), np.nan)
    model = residua.GraphRegressor("mean", correlation=None).fit(None, y, graph=graph)
    write_report(model, tmp_path / "large.html", positions=np.argwhere(ids >= 0)[:, ::-1])
    assert (tmp_path / "large.html").stat().st_size < 8e6
    page = opened(tmp_path / "large.html")
    before = page.picture()
    page.page.click('[data-layer="0"]')
    assert page.picture() != before
    assert page.point_at(20125)["node"] == "20125"
    assert page.wrong == []


def choose(page, node):
    page.page.fill("#find", str(node))
    page.page.keyboard.press("Enter")
    page.drawn()


def rows_of(page, caption):
    """The cells of a table below ``caption`` in the explanation of a node."""
    cells = page.page.locator(f"#why div:has(> h3:text-is('{caption}')) tbody tr")
    return cells.evaluate_all("(rows) => rows.map((r) => [...r.cells].map((c) => c.textContent))")


def test_an_explanation_adds_up_to_the_prediction(page, counties):
    model = counties[1]
    node = int(np.flatnonzero(np.isnan(model.y_))[300])
    choose(page, model.graph_.nodes[node])
    frame = model.predict_frame(nodes=[model.graph_.nodes[node]]).iloc[0]
    features, neighbours = rows_of(page, "What its features add"), rows_of(page, "Which neighbours move it")
    assert {row[0] for row in features[1:-1]} == set(model.feature_names_in_)
    assert sum(number(row[2]) for row in features[:-1]) == pytest.approx(frame["base"], abs=2e-4)
    assert sum(number(row[2]) for row in neighbours[:-1]) == pytest.approx(frame["correction"], abs=2e-4)
    assert number(neighbours[-1][2]) == pytest.approx(frame["correction"], rel=1e-3)
    shown = {row[0].split(" (")[1].rstrip(")") for row in neighbours[:-1] if "(" in row[0]}
    joined = model.graph_.nodes[model.graph_.adjacency()[[node]].indices].astype(str)
    assert shown <= set(joined)
    assert len(shown) == min(len(joined), 8)
    assert page.wrong == []


def test_a_known_label_is_shown_beside_what_the_others_say(page, counties):
    model = counties[1]
    node = int(np.flatnonzero(~np.isnan(model.y_))[7])
    choose(page, model.graph_.nodes[node])
    left_out = model.predict(known="predict")[node]
    text = page.page.inner_text("#why > p")
    assert [number(part) for part in re.findall(r"[−\d.]*\d", text)[:2]] == pytest.approx(
        [model.y_[node], left_out], rel=1e-3
    )
    assert page.page.locator("#if").count() == 0


def test_what_if_changes_predictions_as_the_model_would(page, counties):
    model = counties[1]
    unknown = np.flatnonzero(np.isnan(model.y_))
    node = int(unknown[300])
    choose(page, model.graph_.nodes[node])
    page.page.fill("#if", "0.9")
    page.page.click("#why button:text('Show what changes')")
    shown = page.page.evaluate(SHOWN)
    change = model.predict(y={model.graph_.nodes[node]: 0.9}) - model.predict()
    np.testing.assert_allclose(shown[1], change[shown[0]], atol=1e-6)
    assert page.page.locator("[data-legend]:visible").get_attribute("data-legend") == "change"
    page.page.click("#why button:text('Back to the map')")
    assert page.page.locator("[data-legend]:visible").get_attribute("data-legend") == "4"
    assert page.wrong == []


def test_the_slider_goes_from_the_base_to_the_final_prediction(page, counties):
    model = counties[1]
    base, final = model.base_.predict(model.graph_, model.X_), model.predict()
    for share in (0.0, 0.5, 1.0):
        page.page.locator("#blend").evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", share)
        node, value = page.page.evaluate(SHOWN)
        np.testing.assert_allclose(value, (base + share * (final - base))[node], atol=1e-6)


def test_the_filter_finds_every_node_and_the_file_has_all(page, counties, tmp_path):
    model = counties[1]
    page.page.fill("#filter", "county 0603")
    rows = page.page.locator("#corrections tbody tr td:first-child").all_inner_texts()
    assert sorted(rows) == sorted(str(node) for node in model.graph_.nodes if str(node).startswith("0603"))
    assert f"{len(rows)} nodes match" in page.page.inner_text("#matches")
    with page.page.expect_download() as caught:
        page.page.click("#download")
    caught.value.save_as(tmp_path / "all.csv")
    table = pd.read_csv(tmp_path / "all.csv", dtype={"node": str}).set_index("node")
    assert table.index.tolist() == model.graph_.nodes.tolist()
    np.testing.assert_allclose(table["final prediction"], model.predict(), rtol=1e-6)
    unknown = np.isnan(model.y_)
    assert table["truth"].isna().to_numpy().tolist() == unknown.tolist()
    np.testing.assert_allclose(table["to"].to_numpy()[unknown], model.predict_interval()[1][unknown], rtol=1e-6)
    assert page.wrong == []


def test_a_search_zooms_to_the_node(page, counties):
    whole = page.page.evaluate(RANGE)
    choose(page, counties[1].graph_.nodes[5])
    left, right, *_ = page.page.evaluate(FRAME)
    assert right - left < 0.5 * whole[0]
    box = page.page.locator("#figure-map").bounding_box()
    assert np.abs(np.array(page.place(5)) - [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]).max() < 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(opened, counties, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(counties[0], color_scheme=scheme, bypass_csp=True)  # axe is put into the page
    choose(page, counties[1].graph_.nodes[5])
    found = axe.run(page.page)
    assert [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found.response["violations"]] == []


def test_a_keyboard_reaches_nodes_and_layers(page, counties):
    row = page.page.locator("#corrections tbody tr").nth(2)
    row.focus()
    page.page.keyboard.press("Enter")
    assert row.locator("td").first.inner_text() in page.page.inner_text("#node")
    page.page.locator("[data-layer='1']").focus()
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.documentElement.dataset.layer") == "base"
