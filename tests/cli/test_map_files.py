"""From a map to a model, predictions on the map and a page, as a user types it."""

import json

import numpy as np
import pandas as pd
import pytest

geopandas = pytest.importorskip("geopandas")
pytest.importorskip("pyogrio")
pytest.importorskip("libpysal.graph")

from commands import run, stopped  # noqa: E402
from maps import town_map  # noqa: E402
from residua import Graph, load  # noqa: E402

FORMATS = ["town.gpkg", "town.shp", "town.geojson", "town.parquet"]


def written(name, gdf=None):
    gdf = town_map() if gdf is None else gdf
    gdf.to_parquet(name) if name.endswith("parquet") else gdf.to_file(name)
    return gdf


@pytest.fixture(autouse=True)
def _folder(folder):
    """In a folder of tables, too."""


@pytest.mark.parametrize("name", FORMATS)
def test_a_map_is_fitted_and_predictions_come_back_on_it(name):
    gdf = written(name)
    out = run(f"fit {name} rook --target price -o m.residua --exclude quarter")
    assert "81 (ids: id)" in out
    assert "144 (neighbours: rook)" in out
    assert "no correlation at all: p " in out
    model = load("m.residua")
    expected = Graph.from_geopandas(gdf.set_index("id"), "rook")
    np.testing.assert_array_equal(model.graph_.adjacency().toarray(), expected.adjacency().toarray())
    run(f"predict m.residua --polygons {name} -o out.gpkg")
    found = geopandas.read_file("out.gpkg")
    numbers = ["prediction", "std", "lower", "upper", "base", "correction"]
    assert list(found.columns) == ["id", *numbers, "known", "leave_one_out", "geometry"]
    assert list(found["id"]) == list(gdf["id"])
    np.testing.assert_allclose(found["prediction"], model.predict(), rtol=1e-12)
    assert found.geometry.geom_equals(gdf.geometry).all()


def test_the_same_model_as_from_tables():
    written("town.gpkg")
    run("fit town.gpkg rook --target price -o map.residua")
    run("fit nodes.csv edges.csv --target price -o table.residua")
    np.testing.assert_allclose(load("map.residua").predict(), load("table.residua").predict(), rtol=1e-8)


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("queen", {"how": "queen"}),
        ("knn:3", {"how": "knn", "k": 3}),
        ("distance:1.5", {"how": "distance", "distance": 1.5}),
        ("queen,nearest", {"how": "queen", "islands": "nearest"}),
    ],
)
def test_neighbours_by_words(words, how):
    gdf = written("town.gpkg")
    run(f"fit town.gpkg {words} --target price -o m.residua")
    expected = Graph.from_geopandas(gdf.set_index("id"), **how)
    np.testing.assert_array_equal(load("m.residua").graph_.adjacency().toarray(), expected.adjacency().toarray())


def test_another_map_is_predicted_from_its_known_labels_and_written_on_itself():
    gdf = written("town.gpkg")
    run("fit town.gpkg queen --target price -o m.residua")
    written("other.gpkg", gdf.assign(id=gdf["id"] + "x", price=gdf["price"].where(gdf.index < 9)))
    run("predict m.residua --nodes other.gpkg --edges queen -o there.geojson")
    found = geopandas.read_file("there.geojson")
    assert found["id"].str.endswith("x").all()
    np.testing.assert_allclose(found["prediction"][:9].dropna(), gdf["price"][:9].fillna(found["prediction"][:9]))


def test_islands_are_named_or_joined(capsys):
    gdf = town_map()
    far = gdf[:1].assign(id="far")
    far.geometry = far.geometry.translate(-30)
    written("town.gpkg", pd.concat([gdf, far]))
    with pytest.warns(UserWarning, match="1 place has no neighbour: 'far'.* rook,nearest joins .* rook,keep leaves"):
        run("fit town.gpkg rook --target price -o m.residua")
    run("fit town.gpkg rook,nearest --target price -o m.residua")
    assert load("m.residua").graph_.describe().isolates == 0


@pytest.mark.parametrize("name", [*FORMATS, "town.topojson"])
def test_a_page_with_areas(name):
    if name == "town.topojson":
        rings = [np.array(shape.exterior.coords).tolist() for shape in town_map().geometry]
        parts = [{"type": "Polygon", "arcs": [[k]], "id": f"{k:03d}"} for k in range(len(rings))]
        topology = {
            "type": "Topology",
            "arcs": rings,
            "objects": {"all": {"type": "GeometryCollection", "geometries": parts}},
        }
        with open(name, "w") as file:
            json.dump(topology, file)
    else:
        written(name)
    run("fit nodes.csv edges.csv --target price -o m.residua")
    assert "page.html" in run(f"report m.residua --polygons {name} -o page.html")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("fit nodes.csv queen --target price", "edges 'queen' needs a map, and nodes.csv is none; give GeoPackage"),
        ("fit town.gpkg queen,closest --target price", "edges 'queen,closest' is unknown; give an edge table or"),
        ("fit town.gpkg quen --target price", "edges 'quen' is unknown; give an edge table or, for a map, queen, rook"),
        ("fit town.gpkg knn:many --target price", "edges 'knn:many': 'many' is no number; write knn:4"),
        ("fit town.gpkg queen --target price --id quarter", "more than once; name the id column: --id"),
        ("predict m.residua -o out.gpkg", "--output out.gpkg is a map; give the one with the places"),
        ("predict m.residua --polygons town.gpkg", "--polygons town.gpkg is for predictions on a map; name --output"),
        ("predict m.residua --polygons part.gpkg -o out.gpkg", "part.gpkg lacks 71 of 81 nodes, such as '010'"),
        ("predict m.residua --polygons nameless.gpkg -o out.gpkg", "nameless.gpkg has no column 'id' with the ids"),
    ],
)
def test_wrong_maps_end_in_one_line(command, words, monkeypatch, capsys):
    gdf = written("town.gpkg")
    written("part.gpkg", gdf[:10])
    written("nameless.gpkg", gdf.rename(columns={"id": "block"}))
    run("fit nodes.csv edges.csv --target price -o m.residua")
    assert words in stopped(command, monkeypatch, capsys)
