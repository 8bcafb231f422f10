"""The packaged maps: sizes, known figures of the literature, and shapes that agree with the edges."""

import importlib.util

import numpy as np
import pytest

import residua
from residua import Graph
from residua.datasets import load_baltimore, load_columbus, load_elect80, load_sids

LOADERS = {"columbus": load_columbus, "sids": load_sids, "baltimore": load_baltimore}
NO_GEO = importlib.util.find_spec("geopandas") is None or importlib.util.find_spec("libpysal") is None
with_shapes = pytest.mark.skipif(NO_GEO, reason="needs the extra geo")


@pytest.mark.parametrize(
    ("name", "size"), [("columbus", (49, 118, 2)), ("sids", (100, 245, 1)), ("baltimore", (211, 513, 11))]
)
def test_sizes_are_the_published_ones_and_nothing_is_missing(name, size):
    data = LOADERS[name]()
    assert (data.graph.n_nodes, data.graph.n_edges, data.X.shape[1]) == size
    assert np.isfinite(data.X.to_numpy()).all()
    assert np.isfinite(data.y).all()
    assert list(data.X.index) == list(data.nodes.index) == list(data.graph.nodes)
    assert data.places.stat().st_size < 300_000


def test_least_squares_on_columbus_is_that_of_the_textbook():
    """Anselin (1988), table 12.3: crime on income and housing value."""
    data = load_columbus()
    Z = np.column_stack([np.ones(49), data.X])
    np.testing.assert_allclose(np.linalg.lstsq(Z, data.y)[0], [68.619, -1.597, -0.274], atol=6e-4)


def test_counts_of_north_carolina_are_those_of_the_textbook():
    """Cressie (1993): 667 deaths in 329,962 live births from July 1974 to June 1978."""
    data = load_sids()
    assert (data.nodes["deaths_1974"].sum(), data.nodes["births_1974"].sum()) == (667, 329_962)
    ashe = data.nodes.loc["37009"]
    assert ashe["name"] == "Ashe"
    expected = np.sqrt(1000) * (np.sqrt(1 / 1091) + np.sqrt(2 / 1091))
    assert data.y[list(data.nodes.index).index("37009")] == pytest.approx(expected)
    assert load_sids(1979).y.sum() != data.y.sum()
    with pytest.raises(ValueError, match="year=1980 is unknown; use 1974 or 1979"):
        load_sids(1980)


@with_shapes
@pytest.mark.parametrize(
    ("name", "how"), [("columbus", {"how": "queen"}), ("sids", {"how": "queen"}), ("baltimore", {"how": "knn", "k": 4})]
)
def test_shapes_make_the_same_edges(name, how):
    data = LOADERS[name]()
    made = Graph.from_geopandas(data.geodataframe(), **how)
    np.testing.assert_array_equal(made.adjacency().toarray(), data.graph.adjacency().toarray())


@with_shapes
def test_a_map_is_fitted_by_the_users_own_lines():
    data = load_columbus()
    gdf = data.geodataframe()
    graph = Graph.from_geopandas(gdf, "queen")
    model = residua.GraphRegressor("linear").fit(gdf[["income", "house_value", "geometry"]], gdf["crime"], graph=graph)
    assert model.alpha_["edge"] > 0.5
    assert len(residua.plot.map(model, gdf, panels=["truth"]).axes) == 2


@with_shapes
def test_longitude_and_latitude_are_points_and_other_data_are_no_map():
    points = load_elect80().geodataframe()
    assert points.crs.is_geographic
    assert {"turnout", "income", "geometry"} <= set(points.columns)
    with pytest.raises(ValueError, match=r"'ising.*' has neither shapes nor longitude and latitude"):
        residua.datasets.simulate_ising().geodataframe()


@pytest.mark.parametrize("name", LOADERS)
def test_the_catalogue_has_them_with_their_terms(name):
    entry = next(entry for entry in residua.datasets.available() if entry.name == name)
    assert entry.present
    assert "BSD 3-clause" in entry.terms
    assert LOADERS[name]().source == entry.terms
