"""Write the packaged maps anew, from the example data of libpysal: ``python tools/maps.py``."""

import json
import shutil
from importlib.metadata import distribution
from pathlib import Path

import geopandas
import libpysal
import numpy as np
import scipy.sparse as sp

from residua import Graph

SOURCE = Path(libpysal.__file__).parent / "examples"
TARGET = Path(__file__).parents[1] / "src" / "residua" / "datasets" / "data" / "maps"
DIGITS = 5


def columbus() -> geopandas.GeoDataFrame:
    table = geopandas.read_file(SOURCE / "columbus" / "columbus.shp").set_index("POLYID")
    names = {"CRIME": "crime", "INC": "income", "HOVAL": "house_value", "OPEN": "open_space", "PLUMB": "no_plumbing"}
    return chosen(table, names | {"DISCBD": "distance_to_centre"})


def sids() -> geopandas.GeoDataFrame:
    table = geopandas.read_file(SOURCE / "sids2" / "sids2.shp").set_index("FIPS")
    names = {"BIR": "births", "SID": "deaths", "NWBIR": "nonwhite"}
    years = {f"{name}{year}": f"{word}_19{year}" for year in ("74", "79") for name, word in names.items()}
    return chosen(table, {"NAME": "name"} | years).set_crs("EPSG:4267")


def baltimore() -> geopandas.GeoDataFrame:
    table = geopandas.read_file(SOURCE / "baltim" / "baltim.shp").set_index("STATION")
    names = {"PRICE": "price", "NROOM": "rooms", "NBATH": "baths", "PATIO": "patio", "FIREPL": "fireplace"}
    names |= {"AC": "air_conditioning", "GAR": "garage", "AGE": "age", "LOTSZ": "lot", "SQFT": "floor"}
    return chosen(table, names | {"DWELL": "detached", "CITCOU": "county"})


def chosen(table: geopandas.GeoDataFrame, names: dict[str, str]) -> geopandas.GeoDataFrame:
    table.index = [str(int(i)) if not isinstance(i, str) else i for i in table.index]
    return table.rename_axis("id")[[*names, "geometry"]].rename(columns=names)


def write(name: str, places: geopandas.GeoDataFrame, **how: object) -> None:
    """Write a table, the shapes and who is whose neighbour."""
    folder = TARGET / name
    folder.mkdir(parents=True, exist_ok=True)
    places.drop(columns="geometry").round(6).to_csv(folder / "nodes.csv", lineterminator="\n")
    rounded = places.set_geometry(places.geometry.transform(lambda xy: np.round(xy, DIGITS)))
    features = json.loads(rounded[["geometry"]].to_json(drop_id=False))["features"]
    lines = ",\n".join(json.dumps({k: f[k] for k in ("type", "id", "geometry")} | {"properties": {}}) for f in features)
    text = f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'
    (folder / "places.geojson").write_text(text.replace(", ", ","), encoding="utf-8")
    A = sp.triu(Graph.from_geopandas(rounded, **how).adjacency()).tocoo()
    ids = places.index.to_numpy()
    edges = "".join(f"{ids[i]},{ids[j]}\n" for i, j in zip(A.row, A.col, strict=True))
    (folder / "edges.csv").write_text(f"source,target\n{edges}", encoding="utf-8")


if __name__ == "__main__":
    write("columbus", columbus(), how="queen")
    write("sids", sids(), how="queen")
    write("baltimore", baltimore(), how="knn", k=4)
    licence = next(f for f in distribution("libpysal").files or [] if f.name.startswith("LICENSE"))
    shutil.copyfile(licence.locate(), TARGET / "LICENSE.libpysal.txt")
