"""Map files in and out, each format the same places."""

import json

import numpy as np
import pytest

geopandas = pytest.importorskip("geopandas")
pytest.importorskip("pyogrio")

from maps import TOPOLOGY, town_map  # noqa: E402
from residua.maps import is_map, read_map, write_map  # noqa: E402

WRITERS = {
    "town.gpkg": lambda gdf, path: gdf.to_file(path, driver="GPKG"),
    "town.shp": lambda gdf, path: gdf.to_file(path),
    "town.geojson": lambda gdf, path: gdf.to_file(path, driver="GeoJSON"),
    "town.parquet": lambda gdf, path: gdf.to_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_holds_the_same_places(name, tmp_path):
    gdf = town_map()
    WRITERS[name](gdf, tmp_path / name)
    assert is_map(tmp_path / name)
    found = read_map(tmp_path / name)
    assert found.geometry.geom_equals(gdf.geometry).all()
    assert list(found["id"]) == list(gdf["id"])  # ids such as 007 stay text
    np.testing.assert_allclose(found["price"], gdf["price"], rtol=1e-12)


def test_topojson(tmp_path):
    (tmp_path / "two.topojson").write_text(json.dumps(TOPOLOGY))
    found = read_map(tmp_path / "two.topojson")
    assert list(found["name"]) == ["west", "east"]
    np.testing.assert_allclose(found.geometry.area, 1)


@pytest.mark.parametrize("name", ["out.gpkg", "out.geojson"])
def test_what_is_written_is_read_again(name, tmp_path):
    gdf = town_map("EPSG:4326")
    write_map(gdf, tmp_path / name)
    found = read_map(tmp_path / name)
    assert found.geometry.geom_equals(gdf.geometry).all()
    assert found.crs == gdf.crs
    np.testing.assert_allclose(found["size"], gdf["size"], rtol=1e-12)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_map_of_no_named_coordinates_stays_one(tmp_path):
    write_map(town_map(None), tmp_path / "out.gpkg")
    assert read_map(tmp_path / "out.gpkg").crs in (None, "Undefined")


def test_tables_are_no_maps(tmp_path):
    gdf = town_map()
    gdf.drop(columns="geometry").to_parquet(tmp_path / "plain.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no more")
    assert not any(is_map(tmp_path / name) for name in ("plain.parquet", "broken.parquet", "absent.parquet", "x.csv"))


@pytest.mark.parametrize("name", ["cut.gpkg", "cut.shp", "cut.geojson", "cut.topojson"])
def test_a_damaged_file_is_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=rf"{name} cannot be read as a map \(.*; give GeoPackage"):
        read_map(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"absent\.gpkg not found"):
        read_map(tmp_path / "absent.gpkg")
