"""``residua edges``: an edge table for those who have none."""

import numpy as np
import pandas as pd
import pytest

from commands import run, stopped

EARTH = 6_371_008.8


@pytest.fixture
def places(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"id": [f"p{k:02d}" for k in range(30)]})
    table["longitude"], table["latitude"] = rng.uniform(8, 9, 30), rng.uniform(47, 48, 30)
    table["price"] = table["longitude"] + rng.normal(size=30) * 0.1
    monkeypatch.chdir(tmp_path)
    table.to_csv("nodes.csv", index=False)
    return table


def apart(table):
    """Metres between all pairs, by the haversine formula."""
    lon, lat = np.radians(table["longitude"].to_numpy()), np.radians(table["latitude"].to_numpy())
    h = np.sin((lat[:, None] - lat) / 2) ** 2
    h += np.cos(lat)[:, None] * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    return 2 * EARTH * np.arcsin(np.sqrt(h))


def test_the_nearest_of_each_along_the_surface_of_the_earth(places):
    assert "edges of 30 nodes; distance in metres" in run("edges nodes.csv --nearest 5 -o edges.csv")
    found, D = pd.read_csv("edges.csv"), apart(places)
    order = np.argsort(D, axis=1)[:, 1:6]
    expected = {tuple(sorted((i, j))) for i in range(30) for j in order[i]}
    row = {name: k for k, name in enumerate(places["id"])}
    pairs = [(row[a], row[b]) for a, b in zip(found["source"], found["target"], strict=True)]
    assert set(pairs) == expected
    np.testing.assert_allclose(found["distance"], [D[i, j] for i, j in pairs], atol=1e-3)
    assert "Labels" in run("fit nodes.csv edges.csv --target price --base mean -o m.residua")


def test_all_within_a_distance_and_who_is_alone(places):
    said = run("edges nodes.csv --within 12km -o edges.csv")
    D = apart(places)
    near = np.triu(D < 12_000, 1)
    assert len(pd.read_csv("edges.csv")) == near.sum()
    alone = int((~(near | near.T).any(axis=1)).sum())
    assert alone > 0
    assert f"{alone} of them without an edge" in said


def test_columns_of_a_plane_are_taken_by_name(places, tmp_path):
    renamed = places.rename(columns={"longitude": "X", "latitude": "Y"})
    renamed.to_csv("nodes.csv", index=False)
    run("edges nodes.csv --within 0.2 -o edges.csv")
    xy = places[["longitude", "latitude"]].to_numpy()
    expected = np.triu(np.linalg.norm(xy[:, None] - xy, axis=2) <= 0.2, 1).sum()
    assert len(pd.read_csv("edges.csv")) == expected
    renamed.rename(columns={"X": "a", "Y": "b"}).to_csv("nodes.csv", index=False)
    run("edges nodes.csv --within 0.2 --x a --y b -o other.csv")
    assert (tmp_path / "other.csv").read_bytes() == (tmp_path / "edges.csv").read_bytes()


def test_areas_that_touch(places):
    geopandas = pytest.importorskip("geopandas")
    from shapely import box

    ids = [f"{k:02d}" for k in range(9)]
    squares = [box(k % 3, k // 3, k % 3 + 1, k // 3 + 1) for k in range(9)]
    geopandas.GeoDataFrame({"id": ids}, geometry=squares, crs=3857).to_file("map.gpkg")
    pd.DataFrame({"id": ids[::-1], "price": 1.0}).to_csv("nodes.csv", index=False)
    assert "20 edges of 9 nodes" in run("edges nodes.csv --polygons map.gpkg --queen -o edges.csv")
    assert "12 edges of 9 nodes" in run("edges nodes.csv --polygons map.gpkg --rook -o edges.csv")
    pairs = pd.read_csv("edges.csv", dtype=str)
    assert ((pairs["source"] == "01") & (pairs["target"] == "00")).any()


@pytest.mark.parametrize(
    ("options", "told"),
    {
        "": "give one of --nearest 5, --within 10km, or --polygons",
        "--nearest 5 --within 3km": "give one of --nearest 5",
        "--nearest 5 --queen": "--queen and --rook are for --polygons map.gpkg",
        "--polygons map.gpkg": "--queen and --rook are for --polygons map.gpkg",
        "--within ten": "--within 'ten' is no distance; write 10km",
        "--nearest 40": "k=40 is not from 1 to 29",
        "--nearest 3 --x price --y id": "column 'id' holds text",
    }.items(),
)
def test_what_does_not_go_together_is_refused(places, options, told, monkeypatch, capsys):
    assert told in stopped(f"edges nodes.csv {options}", monkeypatch, capsys)


def test_a_table_without_positions_says_which_columns_to_name(places, monkeypatch, capsys):
    places.drop(columns="latitude").to_csv("nodes.csv", index=False)
    assert "nodes.csv has no columns with positions" in stopped("edges nodes.csv --nearest 3", monkeypatch, capsys)
