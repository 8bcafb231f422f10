"""Map files, by geopandas: GeoPackage, shapefile, GeoParquet, GeoJSON and TopoJSON in, GeoPackage and GeoJSON out."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any, BinaryIO

from residua.atomic import write_atomically
from residua.extras import needs

JSON = (".geojson", ".json", ".topojson")
PARQUET = (".parquet", ".geoparquet", ".pq")
OTHERS = (".gpkg", ".shp")
WRITTEN = {".gpkg": "GPKG", ".geojson": "GeoJSON"}
KINDS = "GeoPackage (.gpkg), shapefile (.shp), GeoParquet, GeoJSON or TopoJSON"


def is_map(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a map, by its ending; of Parquet, by what it says of itself."""
    suffix = Path(path).suffix.lower()
    return suffix in (*JSON, *OTHERS) or (suffix in PARQUET and _has_geometry(Path(path)))


def _has_geometry(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        return b"geo" in (parquet.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):  # whoever reads the file says what is wrong
        return False


def read_map(path: str | os.PathLike[str]) -> Any:
    """Return the places of a map file.

    Parameters
    ----------
    path : path
        A GeoPackage, shapefile, GeoParquet, GeoJSON or TopoJSON file; of one with several layers, the first.

    Returns
    -------
    GeoDataFrame
    """
    try:
        import geopandas
        from pyogrio.errors import DataLayerError, DataSourceError
    except ImportError as error:
        raise ImportError(needs(f"reading {path}", "geopandas", "geo", error)) from None
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} not found; check the name, and the folder you are in.")
    try:
        if path.suffix.lower() in PARQUET:
            return geopandas.read_parquet(path)
        found = geopandas.read_file(path, engine="pyogrio")
    except (DataSourceError, DataLayerError, ValueError, OSError, RuntimeError) as error:
        said = " ".join(str(error).split())[:160]
        raise ValueError(f"{path} cannot be read as a map ({said}); give {KINDS}.") from None
    if not hasattr(found, "geometry"):
        raise ValueError(f"{path} has no geometry; give {KINDS}.")
    return found


def write_map(gdf: Any, path: str | os.PathLike[str]) -> None:
    """Write a GeoDataFrame as GeoPackage or GeoJSON, by the ending of ``path``; whole or not at all."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():  # a map whose coordinates are of no named system stays so
        warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
        gdf.to_file(buffer, driver=WRITTEN[Path(path).suffix.lower()], engine="pyogrio", index=False)

    def write(file: BinaryIO) -> None:
        file.write(buffer.getvalue())

    write_atomically(path, write, "writing the map")
