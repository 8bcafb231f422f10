"""The demonstration: turnout of US counties in 1980, a third of a minute from install to picture.

Sixty percent of the counties keep their label; base, propagated and learned predictions are compared on the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from residua.comparison import Score, score_hidden
from residua.datasets import Dataset, load_elect80
from residua.estimator import GraphRegressor
from residua.views.figures import strip

SETTINGS = {"base": None, "propagated": "propagate", "learned": "learned"}


@dataclass(frozen=True)
class Demo:
    """Scores of each setting on the held-out counties, the learned model and the data that it is compared with."""

    data: Dataset
    scores: dict[str, Score]
    model: GraphRegressor
    labelled: np.ndarray

    def picture(self, path: Path) -> None:
        """Draw truth, base prediction, residual, correction, final prediction and uncertainty, as maps."""
        base = self.model.base_.predict(self.data.graph, self.model.X_)
        final, std = self.model.predict(return_std=True)
        before, after = (f"R2 {self.scores[name].r2:.2f}" for name in ("base", "learned"))
        panels = {
            "truth": self.data.y,
            f"base prediction, {before}": base,
            "residual at known counties": np.where(self.labelled, self.data.y - base, np.nan),
            "learned correction elsewhere": np.where(self.labelled, np.nan, final - base),
            f"final prediction, {after}": final,
            "uncertainty elsewhere (std)": np.where(self.labelled, np.nan, std),
        }
        strip(self.data.nodes, panels, graph=self.data.graph, path=path, label="turnout")


def run_demo(base: Any = "linear", random_state: int = 0, progress: Callable[[str], None] = lambda _: None) -> Demo:
    """Fit the three settings to 60 percent of the counties and score them on the others."""
    data = load_elect80()
    labelled = np.random.default_rng(random_state).random(len(data.y)) < 0.6
    scores = {}
    for name, correlation in SETTINGS.items():
        progress(name)
        model = GraphRegressor(base, correlation, random_state=random_state)
        scores[name] = score_hidden(model, data.X, data.y, data.graph, ~labelled)
    return Demo(data, scores, model, labelled)  # the last, which is learned
