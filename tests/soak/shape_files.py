"""Hostile maps: GeoJSON and TopoJSON of the areas of nodes."""

import json
import tempfile
from pathlib import Path

import numpy as np

from residua.views.page.shapes import centres, is_geographic, read_shapes, snapped
from soak.mutations import damaged, damaged_json
from soak.verdicts import Budget, Judge, nothing_runs, until

SIDE = 3
NODES = np.array([f"{x}-{y}" for x in range(SIDE) for y in range(SIDE)], object)


def geojson() -> dict:
    """Squares; the last node has two, one with a hole."""
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    features = []
    for name in NODES:
        x, y = map(int, name.split("-"))
        square = [[x + a, y + b] for a, b in corners]
        hole = [[x + 0.5 + a / 4, y + 0.5 + b / 4] for a, b in corners]
        last = name == NODES[-1]
        shape = {"type": "MultiPolygon", "coordinates": [[square, hole], [square]]}
        plain = {"type": "Polygon", "coordinates": [square]}
        features.append(
            {"type": "Feature", "id": name, "properties": {"name": name}, "geometry": shape if last else plain}
        )
    return {"type": "FeatureCollection", "features": features}


def topojson() -> dict:
    """The same squares as arcs on a grid."""
    arcs = [[[10 * x, 10 * y], [10, 0], [0, 10], [-10, 0], [0, -10]] for x in range(SIDE) for y in range(SIDE)]
    areas = [{"type": "Polygon", "id": name, "arcs": [[k]]} for k, name in enumerate(NODES)]
    return {
        "type": "Topology",
        "transform": {"scale": [0.1, 0.1], "translate": [0, 0]},
        "objects": {"areas": {"type": "GeometryCollection", "geometries": areas}},
        "arcs": arcs,
    }


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Read damaged maps, from files and as values, and do with the shapes what a report does."""
    judge = Judge()
    good = [json.dumps(shape).encode() for shape in (geojson(), topojson())]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "areas.json"
        for k in until(budget):
            rng = np.random.default_rng([random_state, k])
            data = (damaged if k % 3 == 0 else damaged_json)(good[rng.integers(2)], rng)
            path.write_bytes(data)
            judge.judge(data, lambda: _use(path), "polygons" if k % 3 else "")
    return dict(judge.counts)


def _use(path: Path) -> None:
    with nothing_runs():
        shapes = read_shapes(path, NODES)
        middle = centres(shapes, len(NODES))
        snapped(shapes, np.ones(2))
        is_geographic(path, shapes)
    assert np.isfinite(middle[list(shapes)]).all()
