"""Polygons in, a report with their map out. Needs the extra geo."""

import tempfile
from pathlib import Path

import geopandas
import numpy as np
from shapely.geometry import box

import residua
from residua.views.page.html import write_report

# A made-up city of 20 x 20 blocks: rents fall with the distance to the centre, and by quarter.
side = 20
rng = np.random.default_rng(0)
column, row = np.meshgrid(np.arange(side), np.arange(side))
quarter = np.sin(column / 3) + np.cos(row / 4)
blocks = geopandas.GeoDataFrame(
    {
        "block": [f"{c}-{r}" for c, r in zip(column.ravel(), row.ravel(), strict=True)],
        "distance": np.hypot(column - side / 2, row - side / 2).ravel(),
        "geometry": [box(c, r, c + 1, r + 1) for c, r in zip(column.ravel(), row.ravel(), strict=True)],
    }
).set_index("block")
rent = 20 - 0.5 * blocks["distance"] + 2 * quarter.ravel() + rng.normal(0, 0.5, len(blocks))
known = rng.random(len(blocks)) < 0.3

graph = residua.Graph.from_geopandas(blocks, "queen")
y = np.where(known, rent, np.nan)
model = residua.GraphRegressor("linear").fit(blocks[["distance"]], y, graph=graph)
print(model.diagnose().verdict)
print(f"R2 of the {np.sum(~known)} blocks whose rent is not known: {model.score(blocks[['distance']], rent):.2f}")

with tempfile.TemporaryDirectory() as folder:  # name a file of your own to keep it
    page = Path(folder) / "rents.html"
    write_report(model, page, target="rent", polygons=blocks)
    print(f"report of {page.stat().st_size / 1e6:.1f} MB: open it in a browser")
