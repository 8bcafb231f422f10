"""Lengths in place of weights: 1 / length, on the scale on which the mean over the rows is 1."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from residua.graph import Graph

LENGTHS = np.array([2.0, 0.5, 8.0])
WEIGHTS = 3 / LENGTHS / (1 / LENGTHS).sum()


def test_weights_are_one_over_the_length_and_one_in_the_mean():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], length=LENGTHS)
    A = graph.adjacency().toarray()
    assert_allclose(A[[0, 1, 2], [1, 2, 3]], WEIGHTS)
    assert_allclose(A, A.T)


def test_the_unit_of_length_does_not_matter():
    one, other = (Graph.from_edges([0, 1, 2], [1, 2, 3], length=unit * LENGTHS) for unit in (1.0, 1e-200))
    assert_allclose(one.adjacency().toarray(), other.adjacency().toarray())


def test_a_table_names_its_column():
    table = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3], "km": LENGTHS})
    assert_allclose(Graph.from_pandas(table, length="km").degree[[0, 3]], WEIGHTS[[0, 2]])


def test_both_directions_of_an_edge_are_one():
    graph = Graph.from_edges([0, 1, 1], [1, 0, 2], length=[2.0, 2.0, 4.0])
    assert_allclose(graph.degree, [1.2, 1.8, 0.6])


@pytest.mark.parametrize("length", [0.0, -1.0, np.nan, np.inf])
def test_a_length_without_a_weight_is_refused_with_a_remedy(length):
    with pytest.raises(ValueError, match=r"length is .* at row 1; lengths must be finite and above 0"):
        Graph.from_edges([0, 1], [1, 2], length=[1.0, length])
    Graph.from_edges([0, 1], [1, 2], length=np.maximum([1.0, 0.0], 0.1))


def test_weight_and_length_together_are_refused():
    with pytest.raises(ValueError, match="weight and length are both given"):
        Graph.from_edges([0], [1], weight=[1.0], length=[1.0])


def test_places_of_a_map_are_as_far_apart_as_their_centroids():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    blocks = geopandas.GeoSeries([shapely.box(x, 0, y, 1) for x, y in ((0, 1), (1, 2), (2, 6))])
    A = Graph.from_geopandas(blocks, "rook", length=True).adjacency().toarray()
    nearness = 1 / np.array([1.0, 2.5])
    assert_allclose(A[[0, 1], [1, 2]], nearness / nearness.mean())
    with pytest.raises(ValueError, match=r"length is 0.0 at \(0, 1\)"):
        Graph.from_geopandas(geopandas.GeoSeries([shapely.Point(0, 0)] * 2), "knn", k=1, length=True)


def test_on_the_earth_distances_are_arcs():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    points = geopandas.GeoSeries([shapely.Point(x, 0) for x in (0, 90, 120)], crs="EPSG:4326")
    A = Graph.from_geopandas(points, "knn", k=1, length=True).adjacency().toarray()
    assert_allclose(A[1, 2] / A[0, 1], 3.0)
