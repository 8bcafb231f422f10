"""Graphs of the places of a map, against the definition of each kind of neighbour."""

import numpy as np
import pandas as pd
import pytest

from residua import Graph, GraphRegressor
from residua.graph.spatial_weights import EARTH

geopandas = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")
pytest.importorskip("libpysal.graph")


def grid(side=5, crs=None, size=1.0, corner=(0.0, 0.0)):
    """Squares in a grid, named by column and row, in no particular order."""
    order = np.random.default_rng(0).permutation(side * side)
    column, row = order % side, order // side
    x, y = corner[0] + size * column, corner[1] + size * row
    return geopandas.GeoDataFrame(
        {"column": column, "row": row},
        geometry=shapely.box(x, y, x + size, y + size),
        index=[f"{c}-{r}" for c, r in zip(column, row, strict=True)],
        crs=crs,
    )


def dense(graph):
    return graph.adjacency().toarray()


def steps(gdf):
    """How many columns and rows two squares are apart."""
    return [np.abs(np.subtract.outer(*[gdf[name].to_numpy()] * 2)) for name in ("column", "row")]


def test_queen_joins_polygons_that_share_a_point_and_rook_those_that_share_an_edge():
    gdf = grid()
    across, up = steps(gdf)
    queen, rook = Graph.from_geopandas(gdf, "queen"), Graph.from_geopandas(gdf, "rook")
    np.testing.assert_array_equal(dense(queen), np.maximum(across, up) == 1)
    np.testing.assert_array_equal(dense(rook), across + up == 1)
    assert list(queen.nodes) == list(gdf.index)


def test_contiguity_is_that_of_libpysal():
    weights = pytest.importorskip("libpysal.weights")
    gdf = grid(4)
    expected = Graph.from_libpysal(weights.Queen.from_dataframe(gdf, use_index=True))
    assert list(Graph.from_geopandas(gdf).nodes) == list(expected.nodes)
    np.testing.assert_array_equal(dense(Graph.from_geopandas(gdf)), dense(expected))


def points(n=60, crs=None, spread=1.0, seed=1):
    xy = np.random.default_rng(seed).uniform(-spread, spread, (n, 2))
    return geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*xy.T), index=np.arange(n) + 100, crs=crs)


def great_circle(gdf):
    """Metres between points in degrees, by the haversine formula."""
    lon, lat = np.radians(gdf.geometry.x.to_numpy()), np.radians(gdf.geometry.y.to_numpy())
    across, up = np.subtract.outer(lon, lon), np.subtract.outer(lat, lat)
    h = np.sin(up / 2) ** 2 + np.multiply.outer(np.cos(lat), np.cos(lat)) * np.sin(across / 2) ** 2
    return 2 * EARTH * np.arcsin(np.sqrt(h))


def planar(gdf):
    return np.hypot(*(np.subtract.outer(v, v) for v in (gdf.geometry.x.to_numpy(), gdf.geometry.y.to_numpy())))


@pytest.mark.parametrize(
    ("crs", "spread", "between"), [(None, 1.0, planar), (3857, 9e3, planar), (4326, 80, great_circle)]
)
def test_knn_and_distance_are_those_of_all_pairs(crs, spread, between):
    gdf = points(crs=crs, spread=spread)
    far = between(gdf)
    np.fill_diagonal(far, np.inf)
    nearest = far <= np.sort(far, axis=1)[:, [2]]
    np.testing.assert_array_equal(dense(Graph.from_geopandas(gdf, "knn", k=3)), nearest | nearest.T)
    reach = float(np.quantile(far, 0.1))
    np.testing.assert_array_equal(
        dense(Graph.from_geopandas(gdf, "distance", distance=reach, islands="keep")), far <= reach
    )


def test_a_distance_left_out_is_the_least_that_leaves_no_island():
    gdf = points()
    far = planar(gdf)
    np.fill_diagonal(far, np.inf)
    np.testing.assert_array_equal(
        dense(Graph.from_geopandas(gdf, "distance")), far <= far.min(axis=1).max() * (1 + 1e-9)
    )


def test_degrees_know_the_date_line():
    gdf = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([179.9, -179.9, 170.0], [0.0, 0, 0]), crs=4326)
    np.testing.assert_array_equal(dense(Graph.from_geopandas(gdf, "knn", k=1)), [[0, 1, 1], [1, 0, 0], [1, 0, 0]])


def test_places_at_one_point_are_each_others_nearest_and_never_their_own():
    gdf = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([0.0] * 5 + [9.0], [0.0] * 6))
    A = dense(Graph.from_geopandas(gdf, "knn", k=2))
    assert (A.diagonal() == 0).all()
    assert (A.sum(axis=1) >= 2).all()


@pytest.mark.parametrize("crs", [None, 4326])
def test_islands_are_named_and_can_be_joined_to_their_nearest(crs):
    main = grid(3, crs)
    island = geopandas.GeoDataFrame(
        {"column": 9, "row": 9}, geometry=[shapely.box(3.5, 0.2, 3.9, 0.8)], index=["hawaii"], crs=crs
    )
    gdf = pd.concat([main, island])
    with pytest.warns(UserWarning, match="1 place has no neighbour: 'hawaii'.*islands=\"nearest\" joins"):
        alone = Graph.from_geopandas(gdf, "queen")
    assert alone.degree[-1] == 0
    joined = Graph.from_geopandas(gdf, "queen", islands="nearest")
    added = np.argwhere(np.triu(dense(joined) - dense(alone)))
    assert [set(joined.nodes[pair]) for pair in added] == [{"hawaii", "2-0"}]
    np.testing.assert_array_equal(dense(Graph.from_geopandas(gdf, "queen", islands="keep")), dense(alone))


def test_a_map_of_row_numbers_beside_a_table_of_ids_is_refused_and_the_remedy_works():
    """As read from a file, with the ids in a column."""
    gdf = grid().rename_axis("id").reset_index()
    X, y = gdf.set_index("id")[["row"]], np.random.default_rng(0).normal(size=len(gdf))
    model = GraphRegressor("linear")
    with pytest.raises(ValueError, match=r"on a map by from_geopandas\(gdf\.set_index\(column\)\)"):
        model.fit(X, y, graph=Graph.from_geopandas(gdf, "rook"))
    model.fit(X, y, graph=Graph.from_geopandas(gdf.set_index("id"), "rook"))
    assert list(model.graph_.nodes) == list(X.index)


def test_a_degree_of_longitude_is_short_in_the_north():
    """Four degrees east are nearer than three degrees south, at 70 degrees north."""
    corners = [(0, 70), (4.5, 70), (0, 66.5), (4.5, 70.5), (0, 66)]
    gdf = geopandas.GeoSeries([shapely.box(x, y, x + 0.5, y + 0.5) for x, y in corners], crs=4326)
    A = dense(Graph.from_geopandas(gdf, "queen", islands="nearest"))
    np.testing.assert_array_equal(np.flatnonzero(A[0]), [1])
    flat = dense(Graph.from_geopandas(gdf.set_crs(None, allow_override=True), "queen", islands="nearest"))
    np.testing.assert_array_equal(np.flatnonzero(flat[0]), [2])


def test_points_without_a_neighbour_are_joined_to_their_nearest():
    gdf = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([0.0, 0.5, 5, 9], [0.0] * 4))
    A = dense(Graph.from_geopandas(gdf, "distance", distance=1, islands="nearest"))
    np.testing.assert_array_equal(np.argwhere(np.triu(A)), [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"how": "bishop"}, "how='bishop' is unknown; use one of 'queen'"),
        ({"how": "queen", "islands": "drop"}, "islands='drop' is unknown"),
        ({"how": "knn", "k": 60}, "k=60 is not from 1 to 59"),
        ({"how": "distance", "distance": 0.0}, "distance=0.0 is not positive"),
        ({"how": "queen"}, 'gdf has a Point at 100; use how="knn" or "distance"'),
    ],
)
def test_what_cannot_be_right_is_refused_with_a_remedy(options, match):
    with pytest.raises(ValueError, match=match):
        Graph.from_geopandas(points(), **options)


def test_a_place_without_geometry_is_named_and_the_remedy_works():
    gdf = points(10)
    gdf.geometry = gdf.geometry.where(gdf.index != 103)
    with pytest.raises(ValueError, match=r"no geometry at 103 \(1 rows\); drop such rows: gdf\[~"):
        Graph.from_geopandas(gdf, "knn")
    assert Graph.from_geopandas(gdf[~(gdf.geometry.isna() | gdf.geometry.is_empty)], "knn").n_nodes == 9
    with pytest.raises(TypeError, match="gdf is DataFrame, not a GeoDataFrame"):
        Graph.from_geopandas(pd.DataFrame({"a": [1]}))


def test_a_geodataframe_is_x_and_its_geometry_is_no_feature():
    gdf = grid(6)
    y = gdf["column"] + np.random.default_rng(0).normal(0, 0.1, len(gdf))
    graph = Graph.from_geopandas(gdf, "queen")
    model = GraphRegressor("linear").fit(gdf.sample(frac=1, random_state=0), y, graph=graph)
    plain = GraphRegressor("linear").fit(gdf[["column", "row"]], y, graph=graph)
    assert list(model.feature_names_in_) == ["column", "row"]
    np.testing.assert_array_equal(model.predict(known="predict"), plain.predict(known="predict"))
    other = Graph.from_geopandas(gdf, "rook")
    plain = model.predict(gdf[["column", "row"]], y, graph=other)
    np.testing.assert_array_equal(model.predict(gdf, y, graph=other), plain)
