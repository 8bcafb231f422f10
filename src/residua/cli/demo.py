"""The demonstration: turnout of US counties in 1980, a third of a minute from install to picture.

Sixty percent of the counties keep their label; base, propagated and learned predictions are compared on the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from residua import metrics
from residua.datasets import Dataset, load_elect80
from residua.estimator import GraphRegressor
from residua.views.figures import strip

SETTINGS = {"base": None, "propagated": "propagate", "learned": "learned"}


@dataclass(frozen=True)
class DemoRow:
    """One setting on the held-out counties.

    Parameters
    ----------
    name : str
        The setting.
    r2 : float
        Share of the variance that is explained.
    coverage : float
        Share of counties inside the 90 % conformal interval.
    width : float
        Mean width of that interval.
    seconds : float
        Of fit and prediction.
    """

    name: str
    r2: float
    coverage: float
    width: float
    seconds: float


@dataclass(frozen=True)
class Demo:
    """Rows to print, the learned model and the data that it is compared with."""

    data: Dataset
    rows: list[DemoRow]
    model: GraphRegressor
    labelled: np.ndarray

    def picture(self, path: Path) -> None:
        """Draw truth, base prediction, residual, correction and final prediction, as maps."""
        base = self.model.base_.predict(self.data.graph, self.model.X_)
        final = self.model.predict()
        panels = {
            "truth": self.data.y,
            "base prediction": base,
            "residual at labelled counties": np.where(self.labelled, self.data.y - base, np.nan),
            "learned correction elsewhere": np.where(self.labelled, np.nan, final - base),
            "final prediction": final,
        }
        strip(self.data.nodes, panels, graph=self.data.graph, path=path, label="turnout")


def run_demo(base: Any = "linear", random_state: int = 0, progress: Callable[[str], None] = lambda _: None) -> Demo:
    """Fit the three settings to 60 percent of the counties and score them on the others."""
    data = load_elect80()
    labelled = np.random.default_rng(random_state).random(len(data.y)) < 0.6
    y = np.where(labelled, data.y, np.nan)
    rows = []
    for name, correlation in SETTINGS.items():
        progress(name)
        start = time.perf_counter()
        model = GraphRegressor(base, correlation, random_state=random_state).fit(data.X, y, graph=data.graph)
        lower, upper = (bound[~labelled] for bound in model.predict_interval(coverage=0.9))
        r2, covered = model.score(data.X, data.y), metrics.coverage(data.y[~labelled], lower, upper)
        rows.append(DemoRow(name, r2, covered, float(np.mean(upper - lower)), time.perf_counter() - start))
    return Demo(data, rows, model, labelled)  # the last, which is learned
