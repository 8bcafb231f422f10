"""Polygons of nodes, from every format that is read."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import residua
from residua.views.page.drawing import make_drawing
from residua.views.page.html import report_html
from residua.views.page.shapes import centres, read_shapes, snapped

IDS = np.array(["a", "b", "c"], object)


def square(x, y=0.0, side=1.0):
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def feature(name, geometry, **properties):
    return {"type": "Feature", "id": name, "properties": properties, "geometry": geometry}


def polygon(x):
    return {"type": "Polygon", "coordinates": [square(x)]}


@pytest.fixture
def collection():
    with_hole = {"type": "Polygon", "coordinates": [square(0, side=4), square(1)]}
    two = {"type": "MultiPolygon", "coordinates": [[square(5)], [square(8, side=2)]]}
    return {
        "type": "FeatureCollection",
        "features": [feature("a", with_hole), feature("b", two), feature("z", polygon(9))],
    }


def test_geojson_from_a_mapping_and_from_a_file(collection, tmp_path):
    path = tmp_path / "areas.json"
    path.write_text(json.dumps(collection))
    for given in (collection, path, str(path)):
        shapes = read_shapes(given, IDS)
        assert {i: [len(polygon) for polygon in shape] for i, shape in shapes.items()} == {0: [2], 1: [1, 1]}


def test_ids_may_be_in_any_property(collection):
    for f, code in zip(collection["features"], "abc", strict=True):
        f["id"], f["properties"] = None, {"year": 1980, "code": code}
    assert set(read_shapes(collection, IDS)) == {0, 1, 2}


def test_topojson_is_decoded():
    # Two unit squares with one side in common: arc 0 the left one's rest, arc 1 the side, arc 2 the right one's rest.
    topology = {
        "type": "Topology",
        "transform": {"scale": [0.5, 0.5], "translate": [10, 0]},
        "arcs": [[[2, 2], [-2, 0], [0, -2], [2, 0]], [[2, 0], [0, 2]], [[2, 0], [2, 0], [0, 2], [-2, 0]]],
        "objects": {
            "areas": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "id": "a", "arcs": [[1, 0]]},
                    {"type": "Polygon", "id": "b", "arcs": [[2, -2]]},
                ],
            }
        },
    }
    shapes = read_shapes(topology, IDS)
    assert_allclose(centres(shapes, 3)[:2], [[10.5, 0.5], [11.5, 0.5]])
    assert np.isnan(centres(shapes, 3)[2]).all()


def test_a_geodataframe_is_keyed_by_its_index_or_a_column():
    geopandas = pytest.importorskip("geopandas")
    from shapely.geometry import box

    areas = [box(0, 0, 1, 1), box(2, 0, 3, 1)]
    for frame in (
        geopandas.GeoDataFrame(geometry=areas, index=["a", "b"], crs=4326),
        geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=areas, crs=3857),
    ):
        assert set(read_shapes(frame, IDS)) == {0, 1}


def test_rows_that_are_only_numbered_have_no_ids_where_a_column_has_them():
    """Numbers as ids: the default index names as many nodes as the column does, and each of them wrongly."""
    geopandas = pytest.importorskip("geopandas")
    from shapely.geometry import box

    frame = geopandas.GeoDataFrame({"zone": [2, 0, 1]}, geometry=[box(x, 0, x + 1, 1) for x in (20, 0, 10)])
    nodes = np.arange(3)
    for given in (frame, frame.set_index("zone"), frame.drop(columns="zone").set_axis([2, 0, 1])):
        assert_allclose(centres(read_shapes(given, nodes), 3)[:, 0], [0.5, 10.5, 20.5])
    assert_allclose(centres(read_shapes(frame.drop(columns="zone"), nodes), 3)[:, 0], [20.5, 0.5, 10.5])


def test_an_area_of_several_features_has_them_all(collection):
    collection["features"].append(feature("a", polygon(20)))
    shapes = read_shapes(collection, IDS)
    assert [len(rings) for rings in shapes[0]] == [2, 1]
    assert shapes[0][1][0][:, 0].max() == 21


def test_centres_are_those_of_gravity(collection):
    middle = centres(read_shapes(collection, IDS), 3)
    assert_allclose(middle[:2], [[2, 2], [9, 1]])


def test_snapping_keeps_small_areas_and_drops_needless_points():
    shore = np.column_stack([np.linspace(0, 1, 50_000), np.zeros(50_000)])
    shapes = {0: [[np.vstack([shore, [[1, 1], [0, 1], [0, 0]]])]], 1: [[np.array(square(0.5, 0.5, 1e-6))]]}
    found = snapped(shapes, np.array([1.0, 1.0]))
    assert len(found[0][0][0]) < 5000
    assert len(found[1][0][0]) == 5


def test_wrong_polygons_are_refused_with_a_remedy(tmp_path):
    nothing = {"type": "FeatureCollection", "features": [feature("z", polygon(0))]}
    with pytest.raises(ValueError, match="none is a polygon with a node's id, such as 'a'"):
        read_shapes(nothing, IDS)
    with pytest.raises(ValueError, match="no GeoJSON FeatureCollection"):
        read_shapes({"type": "Point"}, IDS)
    cut = tmp_path / "cut.json"
    cut.write_text('{"type": "Feature')
    with pytest.raises(ValueError, match="is not GeoJSON or TopoJSON"):
        read_shapes(cut, IDS)


def test_a_report_draws_areas_and_dots_for_the_rest(collection):
    graph = residua.Graph.from_edges(["a", "b", "c", "d"], ["b", "c", "d", "e"], nodes=list("abcde"))
    model = residua.GraphRegressor("mean", correlation="propagate").fit(None, [1.0, 2.0, 4.0, 3.0, np.nan], graph=graph)
    positions = np.column_stack([np.arange(5.0), np.arange(5.0)])
    drawing = make_drawing(graph, positions, collection)
    assert set(drawing.shapes) == {0, 1}
    assert drawing.drawn.tolist() == [False, False, True, True, True]
    assert make_drawing(graph, None, collection).drawn.sum() == 0
    text = report_html(model, positions=positions, polygons=collection)
    assert '"MultiPolygons"' in text
    assert '"Circle"' in text
    assert "are not drawn" not in text
    alone = " ".join(report_html(model, polygons=collection).split())
    assert "3 of 5 nodes have neither an area nor a position, and are not drawn." in alone
