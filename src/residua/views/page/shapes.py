"""Polygons of nodes, from a GeoDataFrame, GeoJSON, TopoJSON, or another map file.

A shape is a list of polygons, a polygon a list of rings, a ring an array (k, 2): the outline first, then holes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from residua.graph.alignment import has_ids
from residua.maps import OTHERS, PARQUET, read_map

Ring = np.ndarray
Shape = list[list[Ring]]

FARTHEST = 1e100  # of a coordinate; areas of larger ones would not be finite
FINE = 4000  # grid cells across the picture: nothing smaller is seen


def open_polygons(polygons: Any) -> Any:
    """Return what a map file other than JSON holds, a GeoDataFrame; all else as it is."""
    is_file = isinstance(polygons, str | Path) and Path(polygons).suffix.lower() in (*OTHERS, *PARQUET)
    return read_map(polygons) if is_file else polygons


def read_shapes(polygons: Any, nodes: np.ndarray) -> dict[int, Shape]:
    """Return shapes by the index of their node in ``nodes``.

    Parameters
    ----------
    polygons : GeoJSON or TopoJSON (mapping or path of a file) or GeoDataFrame
        A feature belongs to the node whose id is the feature's id, its index, or the one of its properties in
        which most node ids are found.
    nodes : array, shape (n,)
        Ids.
    """
    collection = _collection(polygons)
    try:
        features = _features(collection)
        lookup = {str(node): i for i, node in enumerate(nodes)}
        numbered = isinstance(polygons, pd.DataFrame) and not has_ids(polygons)
        key = _best_key(features, lookup, numbered)
        shapes: dict[int, Shape] = {}
        for f in features:  # an area of several features, such as islands, has them all
            name = _name(f, key)
            if f.get("geometry") and name in lookup and (shape := _shape(f["geometry"])):
                shapes[lookup[name]] = shapes.get(lookup[name], []) + shape
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        text = repr(" ".join(str(error).split()))[1:-1][:200]
        raise ValueError(
            f"polygons is malformed ({type(error).__name__}: {text}); give GeoJSON or TopoJSON as its standard has it."
        ) from error
    if not shapes:
        raise ValueError(
            f"polygons has {len(features)} features and none is a polygon with a node's id, such as {nodes[0]!r}; "
            "give the id as feature id, as index or as a property."
        )
    return shapes


def is_geographic(polygons: Any, shapes: Mapping[int, Shape]) -> bool:
    """Are the coordinates degrees? A GeoDataFrame says so itself; GeoJSON is in degrees unless it cannot be."""
    crs = getattr(polygons, "crs", None)
    if crs is not None:
        return bool(crs.is_geographic)
    corners = np.abs(np.concatenate([ring for shape in shapes.values() for polygon in shape for ring in polygon]))
    return not hasattr(polygons, "__geo_interface__") and bool((corners.max(axis=0) <= [180, 90]).all())


def centres(shapes: Mapping[int, Shape], n: int) -> np.ndarray:
    """(n, 2) centre of gravity of each shape's largest outline; NaN for nodes without a shape."""
    middle = np.full((n, 2), np.nan)
    for i, shape in shapes.items():
        middle[i] = max((_centroid(polygon[0]) for polygon in shape), key=lambda found: found[0])[1]
    return middle


def snapped(shapes: Mapping[int, Shape], stretch: np.ndarray) -> dict[int, Shape]:
    """Shapes in stretched coordinates on a fine grid, without points that fall together."""
    corners = np.concatenate([ring for shape in shapes.values() for polygon in shape for ring in polygon]) * stretch
    cell = max(float(np.ptp(corners, axis=0).max()) / FINE, np.finfo(float).tiny)
    digits = int(np.clip(1 - np.floor(np.log10(cell)), 0, 15))

    def snap(ring: Ring) -> Ring:
        grid = np.round(ring * stretch / cell)
        kept = np.r_[True, (np.diff(grid, axis=0) != 0).any(axis=1)]
        # A ring smaller than three cells keeps its points: it is all there is to see of its node.
        return np.round(grid[kept] * cell if kept.sum() >= 4 else ring * stretch, digits)

    return {i: [[snap(ring) for ring in polygon] for polygon in shape] for i, shape in shapes.items()}


def _centroid(ring: Ring) -> tuple[float, np.ndarray]:
    """Area and centre of gravity of an outline."""
    origin = ring[0]
    a, b = ring - origin, np.roll(ring, -1, axis=0) - origin
    cross = a[:, 0] * b[:, 1] - b[:, 0] * a[:, 1]
    area = cross.sum() / 2
    if abs(area) < np.finfo(float).tiny:
        return 0.0, ring.mean(axis=0)
    return abs(area), origin + ((a + b) * cross[:, None]).sum(axis=0) / (6 * area)


# What came in.


def _collection(polygons: Any) -> Mapping[str, Any]:
    if isinstance(polygons, str | Path):
        try:
            polygons = json.loads(Path(polygons).read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"polygons={str(polygons)!r} is not GeoJSON or TopoJSON: {error}.") from None
    polygons = getattr(polygons, "__geo_interface__", polygons)
    if not isinstance(polygons, Mapping) or polygons.get("type") not in ("FeatureCollection", "Topology"):
        raise ValueError("polygons is no GeoJSON FeatureCollection, TopoJSON Topology or GeoDataFrame.")
    return polygons


def _features(collection: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return features as GeoJSON has them."""
    if collection["type"] == "FeatureCollection":
        return list(collection["features"])
    arcs = _decode_arcs(collection)
    parts = [part for group in collection["objects"].values() for part in group.get("geometries", [group])]
    return [{**p, "geometry": {"type": p.get("type"), "coordinates": _stitch(p.get("arcs", []), arcs)}} for p in parts]


def _decode_arcs(topology: Mapping[str, Any]) -> list[np.ndarray]:
    """Return the arcs of TopoJSON, which stores them as steps on a grid where it has a transform."""
    arcs = [np.asarray(arc, float)[:, :2] for arc in topology["arcs"]]
    if "transform" not in topology:
        return arcs
    scale, shift = (np.asarray(topology["transform"][k]) for k in ("scale", "translate"))
    return [np.cumsum(arc, axis=0) * scale + shift for arc in arcs]


def _stitch(indices: list[Any], arcs: list[np.ndarray]) -> list[Any]:
    """Rings from arc numbers, at any depth; ~i is arc i backwards, and an arc starts where the last ended."""
    if indices and isinstance(indices[0], int):
        parts = [arcs[i] if i >= 0 else arcs[~i][::-1] for i in indices]
        return np.concatenate([parts[0], *(part[1:] for part in parts[1:])]).tolist()
    return [_stitch(inner, arcs) for inner in indices]


def _shape(geometry: Mapping[str, Any]) -> Shape:
    kind = geometry["type"]
    if kind not in ("Polygon", "MultiPolygon"):
        return []
    polygons = [geometry["coordinates"]] if kind == "Polygon" else geometry["coordinates"]
    shape = [[_ring(ring) for ring in polygon if len(ring) > 2] for polygon in polygons]
    return [polygon for polygon in shape if polygon]


def _ring(corners: Any) -> Ring:
    ring = np.asarray(corners, float)
    if ring.ndim != 2 or ring.shape[1] < 2 or not (np.abs(ring) < FARTHEST).all():
        raise ValueError("a ring is not a list of points with two finite coordinates")
    return ring[:, :2]


def _name(feature: Mapping[str, Any], key: str | None) -> str:
    return str(feature.get("id") if key is None else (feature.get("properties") or {}).get(key))


def _best_key(features: list[Mapping[str, Any]], lookup: Mapping[str, int], numbered: bool = False) -> str | None:
    """The property that names most nodes; None stands for the feature's own id, which wins a draw unless ``numbered``.

    Rows that a table has only numbered, 0, 1, 2, .., have ids that nobody gave them.
    """
    own = {_name(f, None) for f in features} & lookup.keys()
    named: dict[str | None, set[str]] = {} if numbered else {None: own}
    for f in features:  # one pass, however many properties there are
        for key in f.get("properties") or {}:
            if (name := _name(f, key)) in lookup:
                named.setdefault(key, set()).add(name)
    named.setdefault(None, own)
    return max(named, key=lambda key: len(named[key]))
