"""Which places of a map are neighbours: they touch, or they are near.

queen: outlines share a point     rook: they share an edge     knn: i among the k nearest of j, or j of i
distance: |c_i - c_j| <= d        c_i the centroid; along the Earth's surface where coordinates are degrees
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from residua.caller import warn
from residua.extras import needs
from residua.graph.adjacency import EdgeList, Edges, Symmetry, weights_of_lengths
from residua.graph.ids import as_nodes, node_array, show
from residua.graph.readers import ONE_TYPE

WAYS = ("queen", "rook", "knn", "distance")
ISLANDS = ("warn", "keep", "nearest")
EARTH = 6_371_008.8  # mean radius in metres
MOST_PAIRS = 200_000_000  # that a distance may join
SHOWN = 10  # islands that a warning names


def read_geopandas(gdf: Any, how: str, k: int, distance: float | None, islands: str, length: bool = False) -> Edges:
    """Read the rows of a GeoDataFrame, or the entries of a GeoSeries, as places."""
    if not hasattr(gdf, "geometry"):
        raise TypeError(f"gdf is {type(gdf).__name__}, not a GeoDataFrame; make one with geopandas.read_file(path).")
    for value, choices, name in ((how, WAYS, "how"), (islands, ISLANDS, "islands")):
        if value not in choices:
            raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}.")
    nodes = node_array(as_nodes(gdf.index))
    geometry = np.asarray(gdf.geometry.values)
    _check_geometry(geometry, nodes, how)
    degrees = bool(gdf.crs is not None and gdf.crs.is_geographic)
    if how in ("queen", "rook"):
        source, target = _touching(geometry, how)
    else:
        source, target = _near(_centres(geometry, degrees), how, k, distance, degrees)
    without = np.flatnonzero(np.bincount(np.r_[source, target], minlength=len(nodes)) == 0)
    if len(without) and islands == "warn":
        warn(name_islands(nodes[without], 'islands="nearest"', 'islands="keep"'))
    if len(without) and islands == "nearest":
        nearest = nearest_places(geometry, without, degrees)
        source, target = np.r_[source, without], np.r_[target, nearest]
    # A pair may come from either end, or from both; it is one edge of weight 1.
    low, high = np.unique(np.sort(np.stack([source, target]), axis=0), axis=1)
    weights = _nearness(_centres(geometry, degrees), low, high, nodes) if length else None
    return Edges(nodes, {ONE_TYPE: EdgeList(low, high, weights)}, Symmetry("rows"))


def _nearness(centres: np.ndarray, low: np.ndarray, high: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the weights of distances; those along the surface of the sphere are arcs over the chords in space."""
    apart = np.linalg.norm(centres[low] - centres[high], axis=1)
    arcs = 2 * np.arcsin(np.minimum(apart / 2, 1)) if centres.shape[1] == 3 else apart
    return weights_of_lengths(arcs, len(low), lambda row: f"({show(nodes[low[row]])}, {show(nodes[high[row]])})")


def _check_geometry(geometry: np.ndarray, nodes: np.ndarray, how: str) -> None:
    import shapely

    nothing = shapely.is_missing(geometry) | shapely.is_empty(geometry)
    if nothing.any():
        raise ValueError(
            f"gdf has no geometry at {show(nodes[nothing.argmax()])} ({nothing.sum():,} rows); drop such rows: "
            "gdf[~(gdf.geometry.isna() | gdf.geometry.is_empty)]."
        )
    if how in ("queen", "rook"):
        flat = ~np.isin(shapely.get_type_id(geometry), (3, 6))
        if flat.any():
            kind = geometry[flat.argmax()].geom_type
            raise ValueError(
                f'how="{how}" joins polygons that touch, and gdf has a {kind} at {show(nodes[flat.argmax()])}; '
                'use how="knn" or "distance".'
            )
    elif len(geometry) < 2:
        raise ValueError(f"gdf has {len(geometry)} rows; neighbours need at least two places.")


def _touching(geometry: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of polygons that share a vertex, or two in a row."""
    try:
        from geopandas import GeoSeries
        from libpysal.graph import Graph
    except ImportError as error:
        raise ImportError(needs(f'Graph.from_geopandas(how="{how}")', "libpysal", "geo", error)) from None
    pairs = sp.coo_array(Graph.build_contiguity(GeoSeries(geometry), rook=how == "rook").sparse)
    there = (pairs.data > 0) & (pairs.row != pairs.col)
    return pairs.row[there], pairs.col[there]


def near_points(points: np.ndarray, how: str, k: int, distance: float | None, degrees: bool) -> np.ndarray:
    """Return pairs of points that are near each other, each once, and how far apart they are: three rows.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        Longitude and latitude, or coordinates of a plane.
    how, k, distance : str, int, float
        "knn" and its number, or "distance" and how far.
    degrees : bool
        Whether points are longitude and latitude; distances are metres then.
    """
    centres = _on_sphere(points) if degrees else points
    source, target = _near(centres, how, k, distance, degrees)
    low, high = np.unique(np.sort(np.stack([source, target]), axis=0), axis=1)
    apart = np.sqrt(((centres[low] - centres[high]) ** 2).sum(axis=1))
    apart = 2 * EARTH * np.arcsin(np.minimum(apart / 2, 1)) if degrees else apart
    return np.stack([low, high, apart])


def _centres(geometry: np.ndarray, degrees: bool) -> np.ndarray:
    import shapely

    centres = shapely.get_coordinates(shapely.centroid(geometry))
    return _on_sphere(centres) if degrees else centres


def _on_sphere(lonlat: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere: the nearest in space is the nearest along its surface."""
    longitude, latitude = np.radians(lonlat).T
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def _near(
    centres: np.ndarray, how: str, k: int, distance: float | None, degrees: bool
) -> tuple[np.ndarray, np.ndarray]:
    n, tree = len(centres), KDTree(centres)
    if how == "knn":
        if not 1 <= k < n:
            raise ValueError(f"k={k} is not from 1 to {n - 1}, the number of other places.")
        return _nearest_k(tree, centres, k)
    if distance is None:  # the least at which every place has a neighbour
        reach = float(tree.query(centres, k=2)[0][:, 1].max()) * (1 + 1e-12)
    elif not distance > 0:
        raise ValueError(f"distance={distance!r} is not positive; give it in the units of gdf.crs, metres for degrees.")
    else:
        reach = 2 * np.sin(min(distance / EARTH, np.pi) / 2) if degrees else distance
    pairs = (tree.count_neighbors(tree, reach) - n) // 2
    if pairs > MOST_PAIRS:
        raise ValueError(f'distance={distance} joins {pairs:,} pairs of places; give a smaller one, or use how="knn".')
    found = tree.query_pairs(reach, output_type="ndarray")
    return found[:, 0], found[:, 1]


def _nearest_k(tree: KDTree, centres: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each place with its k nearest others; of places at one point, others may come before the place itself."""
    found = tree.query(centres, k=k + 1)[1]
    own = found == np.arange(len(centres))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.repeat(np.arange(len(centres)), k), found[~own]


def nearest_places(geometry: np.ndarray, places: np.ndarray, degrees: bool) -> np.ndarray:
    """Return the place nearest to each of some.

    Parameters
    ----------
    geometry : ndarray of shapely geometries, shape (n,)
        All places.
    places : ndarray of int, shape (k,)
        Those to find a neighbour for.
    degrees : bool
        Whether coordinates are longitude and latitude. Outlines are then compared on a plane that is true to scale
        at the place asked for, and which the date line cuts; points on the sphere.

    Returns
    -------
    ndarray of int, shape (k,)
    """
    import shapely

    if (shapely.get_type_id(geometry) == 0).all():
        centres = _centres(geometry, degrees)
        return _nearest_k(KDTree(centres), centres, 1)[1][places]
    if not degrees:
        return _nearest_outline(geometry, places)
    return np.concatenate([_nearest_outline(_flattened(geometry, geometry[i]), np.array([i])) for i in places])


def _nearest_outline(geometry: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the place whose outline is nearest to each of some; none of them is there twice, for it would touch."""
    import shapely

    tree = shapely.STRtree(geometry)
    return tree.query_nearest(geometry[places], exclusive=True, all_matches=False)[1]


def _flattened(geometry: np.ndarray, place: Any) -> np.ndarray:
    """Return geometry in degrees with longitudes shrunk as they are at one place."""
    import shapely

    shrunk = np.array([np.cos(np.radians(shapely.get_y(shapely.centroid(place)))), 1.0])
    return shapely.transform(geometry, lambda lonlat: lonlat * shrunk)


def name_islands(islands: np.ndarray, nearest: str, keep: str) -> str:
    """Return a warning that names islands, and how to ask for each of the two remedies."""
    names = ", ".join(show(node) for node in islands[:SHOWN]) + (", .." if len(islands) > SHOWN else "")
    places = "place has" if len(islands) == 1 else "places have"
    return (
        f"{len(islands):,} {places} no neighbour: {names}. Nothing is learned from neighbours there; "
        f"{nearest} joins each to its nearest place, {keep} leaves them as they are."
    )
