import itertools
import struct
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from residua.graph import Graph
from residua.views import draw_nodes, layout, strip
from residua.views.figures import UNKNOWN

NAN = float("nan")


def grid(side):
    ids = np.arange(side * side).reshape(side, side)
    return Graph.from_edges(
        np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()],
        np.r_[ids[:, 1:].ravel(), ids[1:].ravel()],
        nodes=range(side**2),
    )


@pytest.fixture
def graph():
    return grid(8)


@pytest.fixture
def positions():
    return np.argwhere(np.ones((8, 8))).astype(float)


@pytest.fixture
def five():
    rng = np.random.default_rng(0)
    truth, base = rng.normal(3, 1, size=64), rng.normal(3, 0.3, size=64)
    known = rng.random(64) < 0.5
    residual = np.where(known, truth - base, NAN)
    correction = np.where(known, NAN, 0.1)
    final = np.where(known, truth, base + 0.1)
    return {
        "truth": truth,
        "base prediction": base,
        "residual": residual,
        "correction": correction,
        "final prediction": final,
    }


def maps(figure):
    """Title -> axes of the node maps, without the colour bars."""
    return {ax.get_title(loc="left"): ax for ax in figure.axes if ax.get_title(loc="left")}


def dots(ax):
    """The unknown and the known nodes of a map."""
    return ax.collections[-2:]


def limits(ax):
    return dots(ax)[1].get_clim()


def size_of_png(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


# The strip


def test_the_strip_is_a_png_of_the_asked_width(tmp_path, graph, positions, five):
    path = tmp_path / "strip.png"
    figure = strip(positions, five, graph=graph, path=path, width=6)
    width, height = size_of_png(path)
    assert width == 6 * 150
    assert abs(height - figure.get_figheight() * 150) <= 1


def test_predictions_share_one_scale_and_residuals_another(positions, five):
    axes = maps(strip(positions, five))
    assert list(axes) == list(five)
    sequential = {limits(axes[title]) for title in ("truth", "base prediction", "final prediction")}
    centred = {limits(axes[title]) for title in ("residual", "correction")}
    assert len(sequential) == len(centred) == 1
    ((low, high),) = centred
    assert low == -high
    assert sequential != centred


def test_with_nothing_clipped_the_scales_span_the_values(positions, five):
    axes = maps(strip(positions, five, clip=0))
    plain = np.concatenate([five["truth"], five["base prediction"], five["final prediction"]])
    assert limits(axes["truth"]) == (plain.min(), plain.max())
    assert limits(axes["residual"])[1] == np.nanmax(np.abs(five["residual"]))


def test_one_outlier_does_not_stretch_the_scale(positions, five):
    rng = np.random.default_rng(1)
    place, values = rng.random((1000, 2)), np.append(rng.random(999), 1e6)
    assert limits(maps(strip(place, {"truth": values}))["truth"])[1] <= 1


def test_diverging_panels_can_be_named(positions, five):
    axes = maps(strip(positions, {"truth": five["truth"], "change": five["residual"]}, diverging=["change"]))
    assert sum(limits(axes["change"])) == 0
    assert sum(limits(axes["truth"])) != 0


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (3, 1), (4, 2), (5, 2), (6, 2)])
def test_more_than_three_panels_take_two_rows(positions, count, rows):
    axes = maps(strip(positions, {f"map {i}": np.arange(64.0) for i in range(count)}))
    assert len(axes) == count
    assert len({round(ax.get_position().y0, 6) for ax in axes.values()}) == rows


def test_panels_and_bars_stay_on_the_page_and_apart(positions, five, graph):
    figure = strip(positions, five, graph=graph, label="a label")
    boxes = [ax.get_position() for ax in figure.axes]
    assert all(0 <= b.x0 < b.x1 <= 1 and 0 <= b.y0 < b.y1 <= 1 for b in boxes)
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


@pytest.mark.parametrize("values", [np.zeros(64), np.full(64, NAN)], ids=["constant", "unknown"])
@pytest.mark.parametrize("title", ["truth", "residual"])
def test_a_panel_without_contrast_still_has_a_scale(tmp_path, positions, values, title):
    path = tmp_path / "flat.png"
    low, high = limits(maps(strip(positions, {title: values}, path=path))[title])
    assert low < high
    assert size_of_png(path)[0] == 1650


# One map


def test_nan_nodes_are_grey_and_the_others_coloured(graph, positions):
    values = np.where(np.arange(64) % 3 == 0, NAN, np.arange(64.0))
    known = draw_nodes(ax := Figure().subplots(), positions, values, graph=graph)
    grey, coloured = dots(ax)
    assert coloured is known
    assert_allclose(grey.get_offsets(), positions[np.isnan(values)])
    assert_allclose(grey.get_facecolor(), [to_rgba(UNKNOWN)])
    assert_allclose(coloured.get_offsets(), positions[~np.isnan(values)])
    assert_allclose(coloured.get_array(), values[~np.isnan(values)])


def test_every_edge_is_one_line_beneath_the_nodes(graph, positions):
    draw_nodes(ax := Figure().subplots(), positions, np.arange(64.0), graph=graph)
    lines, *nodes = ax.collections
    drawn = {tuple(map(tuple, segment)) for segment in lines.get_segments()}
    edges = np.argwhere(np.triu(graph.adjacency().toarray()))
    assert drawn == {(tuple(positions[i]), tuple(positions[j])) for i, j in edges}
    assert all(lines.get_zorder() < group.get_zorder() for group in nodes)


def test_dots_shrink_as_nodes_crowd():
    def width(side):
        place = np.argwhere(np.ones((side, side)))
        return np.median(draw_nodes(Figure().subplots(), place, np.arange(side**2)).get_sizes()) ** 0.5

    assert_allclose(width(30) / width(60), 60 / 30, rtol=0.1)


def test_a_degree_of_longitude_shrinks_with_the_cosine_of_latitude():
    place = pd.DataFrame({"latitude": [59.0, 60.0, 61.0], "longitude": [10.0, 12.0, 11.0], "people": [1, 2, 3]})
    draw_nodes(ax := Figure().subplots(), place, [1, 2, 3])
    assert_allclose(ax.get_aspect(), 2)
    assert_allclose(dots(ax)[1].get_offsets()[0], [10, 59])
    draw_nodes(ax, place[["longitude", "latitude"]].to_numpy(), [1, 2, 3])
    assert ax.get_aspect() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"panels": {}}, "panels is empty"),
        ({"panels": {"truth": [1.0]}}, r"panels\['truth'\] has shape \(1,\) but there are 64 positions"),
        ({"panels": {"truth": np.full(64, np.inf)}}, r"panels\['truth'\] is infinite at index 0"),
        ({"positions": np.zeros((64, 3))}, r"positions has shape \(64, 3\)"),
        ({"positions": np.full((64, 2), NAN)}, "positions is not finite at row 0"),
        ({"graph": grid(3)}, "positions has 64 rows but graph has 9 nodes"),
        ({"diverging": ["nonsense"]}, r"diverging names \['nonsense'\]"),
    ],
)
def test_bad_input_is_named(positions, five, change, message):
    with pytest.raises(ValueError, match=message):
        strip(**{"positions": positions, "panels": five} | change)


def test_importing_needs_no_matplotlib_and_drawing_no_pyplot(tmp_path):
    code = (
        "import sys, residua.views as report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "report.strip([[0, 0], [1, 1], [2, 0]], {'truth': [1, 2, 3]}, path=sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.png")], check=True)


# Layout


def path_graph(n):
    return Graph.from_edges(range(n - 1), range(1, n))


def test_a_layout_is_the_same_at_every_call(graph):
    first = layout(graph)
    np.random.seed(7)  # noqa: NPY002  (a global seed must not matter)
    assert (layout(graph) == first).all()


def test_a_path_is_drawn_in_its_order():
    x = layout(path_graph(30))[:, 0]
    assert (np.diff(x) > 0).all() or (np.diff(x) < 0).all()


def test_distance_in_the_picture_follows_distance_in_the_graph(graph, positions):
    place = layout(graph)
    i, j = np.triu_indices(64, k=1)
    hops = np.abs(positions[i] - positions[j]).sum(axis=1)
    assert np.corrcoef(hops, np.linalg.norm(place[i] - place[j], axis=1))[0, 1] > 0.9


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([0] * 80, range(1, 81)),
        Graph.from_edges(*np.triu_indices(7, k=1)),
        Graph.from_edges([0, 1], [1, 2], nodes=range(30)),
        Graph.from_edges([0], [1]),
        Graph.from_edges(np.arange(0, 120, 3).repeat(2), np.arange(120)[np.arange(120) % 3 > 0]),
    ],
    ids=["star", "complete", "isolates", "pair", "forty paths"],
)
def test_no_two_nodes_coincide(graph):
    place = layout(graph)
    distance = np.linalg.norm(place[:, None] - place, axis=2) + np.eye(len(place))
    assert np.isfinite(place).all()
    assert distance.min() > 0.1


@pytest.mark.parametrize("sizes", [(3, 3, 3, 3, 3, 3, 3), (30, 12, 2, 2, 1), (5, 40, 5, 40)])
def test_no_component_lies_over_another(sizes):
    paths = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    ends = [np.concatenate([path[:-1] for path in paths]), np.concatenate([path[1:] for path in paths])]
    place = layout(Graph.from_edges(*ends, nodes=np.arange(sum(sizes))))
    boxes = [(place[path].min(axis=0), place[path].max(axis=0)) for path in paths]
    for (low, high), (lower, higher) in itertools.combinations(boxes, 2):
        assert ((low > higher) | (lower > high)).any()


def test_components_keep_apart():
    a, b = grid(6), path_graph(25)
    (i, j), (k, l) = a.adjacency().nonzero(), b.adjacency().nonzero()
    place = layout(Graph.from_edges(*(np.r_[s, t + 36][np.r_[i < j, k < l]] for s, t in ((i, k), (j, l)))))
    low, high = (np.array([f(place[:36], axis=0), f(place[36:], axis=0)]) for f in (np.min, np.max))
    assert (low[0] > high[1]).any() or (low[1] > high[0]).any()
