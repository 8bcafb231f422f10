"""Plots for notebooks, and how a notebook shows a model."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from PIL import Image
from scipy.stats import norm
from sklearn.linear_model import Ridge

import residua
from residua import plot
from residua.views.effects import effects
from residua.views.notebook import model_html


def make_model(n=120, types=None, **options):
    graph = residua.Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n, type=types)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = X @ [0.3, -0.2] + np.sin(np.arange(n) / 6) + 0.1 * rng.normal(size=n)
    y[::5] = np.nan
    return residua.GraphRegressor(**{"base": "linear"} | options).fit(X, y, graph=graph)


@pytest.fixture(scope="module")
def model():
    return make_model()


def titles(figure):
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


# effects


def test_effects_are_drawn_with_their_bands():
    model = make_model(base="splines")
    figure = plot.effects(model)
    assert [ax.get_xlabel() for ax in figure.axes] == ["feature 0", "feature 1"]
    for ax, effect in zip(figure.axes, effects(model), strict=True):
        curve = next(line for line in ax.lines if len(line.get_xdata()) == len(effect.x))
        assert_allclose(curve.get_xydata(), np.column_stack([effect.x, effect.value]))
        band = ax.collections[0].get_paths()[0].vertices
        assert_allclose(band[:, 1].max(), (effect.value + norm.ppf(0.975) * effect.std).max())
    assert [ax.get_xlabel() for ax in plot.effects(model, [1]).axes] == ["feature 1"]


@pytest.mark.parametrize("base", ["splines", "linear"])
def test_effects_and_a_level_add_up_to_the_base(base):
    model = make_model(base=base)
    known = ~np.isnan(model.y_)
    found = effects(model)
    parts = [np.interp(model.X_[known, j], effect.x, effect.value) for j, effect in enumerate(found)]
    assert_allclose([part.mean() for part in parts], 0, atol=2e-3)
    predicted = model.base_.predict(model.graph_, model.X_)[known]
    assert_allclose(sum(parts), predicted - predicted.mean(), atol=5e-3)
    slope, spread = model.base_.coefficients[1], model.correlation_.coefficient_covariance[1, 1]
    if base == "linear":  # the standard error of the slope, away from the mean
        away = (found[0].x - model.base_.centre[0]) / model.base_.spread[0]
        assert_allclose(found[0].value, slope * away, atol=1e-12)
        assert_allclose(found[0].std, np.sqrt(spread) * np.abs(away), atol=1e-12)


def test_effects_of_names_and_of_many_features():
    n, rng = 200, np.random.default_rng(0)
    ring = residua.Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    X = pd.DataFrame(rng.normal(size=(n, 30)), columns=[f"x{j}" for j in range(30)])
    model = residua.GraphRegressor("linear").fit(X, 5 * X["x29"] + rng.normal(size=n), graph=ring)
    drawn = [ax.get_xlabel() for ax in plot.effects(model).axes]
    assert len(drawn) == 24
    assert "x29" in drawn
    assert [effect.name for effect in effects(model, ["x7", 3])] == ["x7", "x3"]
    assert [ax.get_xlabel() for ax in plot.effects(model, "x7").axes] == ["x7"]
    assert [effect.name for effect in effects(model, 3)] == ["x3"]
    with pytest.raises(ValueError, match="features has 'x30', which the model does not have; its features are x0, x1"):
        plot.effects(model, ["x30"])
    with pytest.raises(ValueError, match="features has 30"):
        plot.effects(model, [30])


@pytest.mark.parametrize("correlation", ["propagate", None])
def test_effects_without_a_learned_correlation(correlation):
    model = make_model(base="splines", correlation=correlation)
    found = effects(model)[0]
    assert np.isnan(found.std).all() == (correlation == "propagate")
    assert len(plot.effects(model).axes) == 2


@pytest.mark.parametrize("base", ["mean", Ridge()])
def test_other_bases_have_no_effects(base):
    with pytest.raises(ValueError, match='no effect of each feature by itself; fit a model of "linear", "splines"'):
        plot.effects(make_model(base=base))


# map


def test_the_map_has_the_five_pictures(model):
    figure = plot.map(model, label="height")
    assert isinstance(figure, Figure)
    assert titles(figure) == ["truth", "base prediction", "residual", "correction", "final prediction"]


def test_the_map_draws_what_is_asked_where_it_is_asked(model, tmp_path):
    positions = np.column_stack([np.arange(120.0), np.arange(120) % 7])
    std = model.predict(return_std=True)[1]
    for edges in (False, True):
        figure = plot.map(model, positions, panels=["uncertainty"], edges=edges, path=tmp_path / "a.png")
        assert titles(figure) == ["uncertainty"]
        drawn = figure.axes[0].collections
        assert any(isinstance(collection, LineCollection) for collection in drawn) is edges
        dots = [collection for collection in drawn if isinstance(collection, PathCollection)]
        shown = {
            tuple(place): value for c in dots for place, value in zip(c.get_offsets().data, values(c), strict=True)
        }
        assert shown.keys() == {tuple(place) for place in positions}
        unknown = np.isnan(model.y_)
        assert_allclose([shown[tuple(place)] for place in positions[unknown]], std[unknown])
    with Image.open(tmp_path / "a.png") as picture:
        assert min(picture.size) > 100


def values(collection):
    """What the colours of dots mean; NaN for dots of one colour."""
    found = collection.get_array()
    return np.full(len(collection.get_offsets()), np.nan) if found is None else np.asarray(found)


def test_wrong_panels_are_refused(model):
    with pytest.raises(ValueError, match="panels"):
        plot.map(model, panels=["truht"])
    with pytest.raises(ValueError, match="scale of its own"):
        plot.map(model, panels=["truth", "uncertainty"])


# calibration


def test_calibration_counts_the_labels_that_intervals_hold(model):
    ax = plot.calibration(model)
    claimed, covered = next(line for line in ax.lines if len(line.get_xdata()) > 2).get_data()
    known = ~np.isnan(model.y_)
    mean, std = (part[known] for part in model.predict(known="predict", return_std=True))
    z = np.abs(model.y_[known] - mean) / std
    expected = [np.mean(z <= norm.ppf((1 + share) / 2)) for share in claimed]
    assert_allclose(covered, expected)
    at_90 = covered[np.abs(claimed - 0.9).argmin()]
    assert_allclose(at_90, model.diagnose().coverage)


def test_plots_go_into_given_axes(model):
    ax = Figure().subplots()
    assert plot.calibration(model, ax) is ax
    assert plot.correlation(model, ax) is ax
    assert plot.learning_curve(model, shares=(0.5,), repeats=1, ax=ax) is ax


# correlation


def test_the_correlogram_is_the_correlation_of_pairs():
    graph = residua.Graph.from_edges(np.arange(7), np.arange(1, 8))
    x = np.array([1.0, 3.0, np.nan, 2.0, 5.0, 4.0, 0.0, 1.0])
    hops, shared = plot.correlogram(x, graph, 3)
    z = x - np.nanmean(x)
    expected = [np.nanmean(z[:-k] * z[k:]) / np.nanmean(z**2) for k in (1, 2, 3)]
    assert hops.tolist() == [1, 2, 3]
    assert_allclose(shared, expected)


def test_correlation_falls_after_the_correction(model):
    before, after = (line.get_ydata() for line in plot.correlation(model, max_hops=4).lines[1:])
    assert before[0] > 0.5
    assert abs(after[0]) < 0.3


def test_the_likelihood_is_highest_at_alpha(model):
    line = plot.correlation(model, kind="likelihood").lines[0]
    alpha, height = line.get_data()
    assert_allclose(alpha[height.argmax()], model.alpha_["edge"], atol=1e-3)
    assert height.max() == pytest.approx(0, abs=1e-6)


def test_the_likelihood_has_a_curve_for_each_edge_type():
    model = make_model(types=["a", "b"] * 60)
    lines = plot.correlation(model, kind="likelihood").lines
    assert len(lines) == 2
    for line, alpha in zip(lines, model.alpha_.values(), strict=True):
        x, height = line.get_data()
        assert_allclose(x[height.argmax()], alpha, atol=1e-2)
        assert height.max() == pytest.approx(0, abs=1e-3)


def test_a_model_without_a_likelihood_says_so():
    with pytest.raises(ValueError, match='use kind="hops"'):
        plot.correlation(make_model(correlation="propagate"), kind="likelihood")
    with pytest.raises(ValueError, match="kind"):
        plot.correlation(make_model(), kind="hop")


# learning curve


def test_the_learning_curve_compares_base_and_neighbours(model):
    ax = plot.learning_curve(model, shares=(0.6, 0.2), repeats=2)
    assert isinstance(ax, Axes)
    alone, together = (line for line in ax.lines)
    assert alone.get_xdata().tolist() == together.get_xdata().tolist() == [0.2, 0.6]
    assert together.get_ydata()[1] > alone.get_ydata()[1]


def test_the_learning_curve_takes_data_of_its_own(model):
    unfitted = residua.GraphRegressor("linear")
    ax = plot.learning_curve(unfitted, model.X_, model.y_, graph=model.graph_, shares=(0.5,), repeats=1)
    assert len(ax.lines) == 2
    assert not hasattr(unfitted, "alpha_")
    with pytest.raises(ValueError, match="between 0 and 1"):
        plot.learning_curve(model, shares=(0.5, 1.0))
    for part in ({"X": model.X_ + 1}, {"graph": model.graph_}):
        with pytest.raises(ValueError, match="y is None, but X or graph is given; give all three, or none"):
            plot.learning_curve(model, **part, shares=(0.5,), repeats=1)


def test_no_global_figure_is_made(model):
    import matplotlib.pyplot as plt

    plot.calibration(model)
    plot.correlation(model)
    plot.map(model)
    plot.learning_curve(model, shares=(0.5,), repeats=1)
    assert plt.get_fignums() == []


# In a notebook


def test_a_model_shows_its_data_and_what_it_learned(model):
    text = model_html(model)
    found = model.diagnose()
    for part in ("120 nodes, 120 edges", "96 known (80%)", f"{model.alpha_['edge']:+.4f}", f"{found.r2_corrected:.3f}"):
        assert part in text
    assert f"{found.r2_base:.3f} base" in text


def test_a_large_model_is_not_solved_for_a_glance(model, monkeypatch):
    monkeypatch.setattr("residua.views.notebook.QUICK", 10)
    fresh = make_model()
    assert "with the neighbours" not in model_html(fresh)
    assert not fresh.field_.computed("prediction")
    fresh.diagnose()
    assert "with the neighbours" in model_html(fresh)


def test_settings_that_were_changed_are_shown_and_escaped():
    model = residua.GraphRegressor("linear", random_state=7, checkpoint="<script>alert(1)</script>")
    text = model_html(model)
    assert "random_state=7" in text
    assert "folds" not in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_edge_types_are_escaped():
    text = model_html(make_model(types=["<img src=x onerror=a>", "b"] * 60))
    assert "<img" not in text
    assert "alpha[&lt;img" in text


def town_model():
    maps = pytest.importorskip("maps")
    gdf = maps.town_map("EPSG:4326").set_index("id")
    graph = residua.Graph.from_geopandas(gdf, "rook")
    return gdf, residua.GraphRegressor("linear").fit(gdf[["size", "geometry"]], gdf["price"], graph=graph)


def areas_of(figure):
    return [c for axes in figure.axes for c in axes.collections if len(c.get_paths()) == 81]


def test_map_draws_polygons_of_a_geodataframe_in_the_colours_of_their_values(tmp_path):
    gdf, model = town_model()
    figure = residua.plot.map(model, gdf.sample(frac=1, random_state=0), panels=["truth", "final prediction"])
    truth, final = areas_of(figure)
    corners = np.array([path.vertices.min(axis=0) for path in truth.get_paths()], int)
    at = 9 * corners[:, 1] + corners[:, 0]  # the node whose block is there
    np.testing.assert_array_equal(np.sort(at), np.arange(81))
    np.testing.assert_array_equal(np.ma.filled(truth.get_array(), np.nan), model.y_[at])
    np.testing.assert_array_equal(final.get_array(), model.predict()[at])
    figure.savefig(tmp_path / "map.png")


def test_map_draws_map_files_and_points_too(tmp_path):
    gdf, model = town_model()
    gdf.reset_index().to_file(tmp_path / "town.gpkg")
    assert len(areas_of(residua.plot.map(model, tmp_path / "town.gpkg"))) == 5
    points = gdf.set_geometry(gdf.geometry.representative_point())
    figure = residua.plot.map(model, points, panels=["final prediction"])
    assert any(len(c.get_offsets()) == 81 for axes in figure.axes for c in axes.collections)


def test_map_names_nodes_without_a_polygon():
    gdf, model = town_model()
    with pytest.warns(UserWarning, match="2 nodes have no polygon and are not drawn: '000', '001'"):
        residua.plot.map(model, gdf[2:], panels=["truth"])
