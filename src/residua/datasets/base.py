"""What a dataset is: a graph, features and one label per node, and an account of how they were made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from residua.extras import needs
from residua.graph import Graph

CRS = {"sids": "EPSG:4267"}  # of packaged shapes; those of others are in arbitrary units


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A graph with features and a label on its nodes; every row follows ``graph.nodes``.

    Parameters
    ----------
    graph : Graph
        n nodes.
    X : DataFrame, shape (n, k)
        Features, indexed by node id.
    y : array, shape (n,)
        The label in float64; NaN where it is unknown.
    nodes : DataFrame, shape (n, any)
        What else is known of the nodes, such as coordinates, indexed by node id.
    name : str
        Short name.
    notes : tuple of str
        What was dropped, filled or scaled, and what a reader of the numbers should know.
    source : str
        Where the data come from and under which licence.
    target : str
        What the label is.
    places : Path, optional
        GeoJSON with the shape of each node, where there is one.

    Examples
    --------
    >>> from residua.datasets import load_elect80
    >>> load_elect80()
    Dataset('elect80': 3,107 nodes, 9,063 edges, 3 features)
    """

    graph: Graph
    X: pd.DataFrame
    y: NDArray[np.float64]
    nodes: pd.DataFrame
    name: str
    notes: tuple[str, ...]
    source: str
    target: str = "y"
    places: Path | None = None

    def geodataframe(self) -> Any:
        """Return features, label and what else is known, with geometry; needs the extra ``geo``.

        Returns
        -------
        GeoDataFrame
            Indexed by node id: the label in the column named by ``target``, and polygons or points. Of a data set with
            longitude and latitude and no shapes, points.
        """
        degrees = {"longitude", "latitude"} <= set(self.nodes.columns)
        if self.places is None and not degrees:
            raise ValueError(f"{self.name!r} has neither shapes nor longitude and latitude; it is no map.")
        try:
            import geopandas
        except ImportError as error:
            raise ImportError(needs("geodataframe()", "geopandas", "geo", error)) from None
        table = self.X.join(self.nodes).assign(**{self.target: self.y})
        if self.places is None:
            points = geopandas.points_from_xy(self.nodes["longitude"], self.nodes["latitude"])
            return geopandas.GeoDataFrame(table, geometry=points, crs="EPSG:4326")
        shapes = json.loads(self.places.read_text(encoding="utf-8"))["features"]
        found = geopandas.GeoDataFrame.from_features(shapes).set_axis([shape["id"] for shape in shapes])
        return geopandas.GeoDataFrame(table, geometry=found.geometry.loc[list(table.index)], crs=CRS.get(self.name))

    def __repr__(self) -> str:
        size = f"{self.graph.n_nodes:,} nodes, {self.graph.n_edges:,} edges, {self.X.shape[1]} features"
        return f"Dataset({self.name!r}: {size})"
