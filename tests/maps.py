"""A small town as a map, for the tests of map files."""

import geopandas
import numpy as np
import shapely

from tables import SIDE, town

TOPOLOGY = {  # two squares that share an edge
    "type": "Topology",
    "arcs": [[[1, 0], [1, 1]], [[1, 1], [0, 1], [0, 0], [1, 0]], [[1, 0], [2, 0], [2, 1], [1, 1]]],
    "objects": {
        "areas": {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "Polygon", "arcs": [[0, 1]], "properties": {"name": "west", "price": 1.5}},
                {"type": "Polygon", "arcs": [[2, -1]], "properties": {"name": "east", "price": None}},
            ],
        }
    },
}


def town_map(crs="EPSG:3857"):
    """The blocks of the town with what is known of them; a third of the prices are unknown."""
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    blocks = shapely.box(column, row, column + 1, row + 1)
    return geopandas.GeoDataFrame(town()[0], geometry=blocks, crs=crs)
