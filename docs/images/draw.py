"""Draw elect80.png: the maps that `residua demo` writes, in 256 colours so that the file stays small."""

from pathlib import Path

import numpy as np
from PIL import Image

import residua
from residua.views.figures import strip


def main() -> None:
    path = Path(__file__).with_name("elect80.png")
    data = residua.datasets.load_elect80()
    labelled = np.random.default_rng(0).random(len(data.y)) < 0.6
    y = np.where(labelled, data.y, np.nan)
    model = residua.GraphRegressor(base="linear", correlation="learned").fit(data.X, y, graph=data.graph)
    base, final = model.base_.predict(model.graph_, model.X_), model.predict()
    panels = {
        "truth": data.y,
        "base (linear)": base,
        "residual at the labelled counties": np.where(labelled, data.y - base, np.nan),
        "learned correction at the others": np.where(labelled, np.nan, final - base),
        "final prediction": final,
    }
    strip(data.nodes, panels, graph=data.graph, path=path, label="turnout")
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
