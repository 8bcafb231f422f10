"""What a field asks of a base that was fitted, and of what that leaves over."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from residua.field.correlation import CorrelationFit
from residua.graph import Graph


class FittedBase(Protocol):
    """What a field asks of a base that has been fitted."""

    name: str
    takes_tables: bool
    coefficients: np.ndarray
    prior_variance: np.ndarray | None

    def predict(self, graph: Graph, X: Any) -> np.ndarray:
        """Return (n,) predictions of every node."""

    def predict_members(self, graph: Graph, X: Any) -> np.ndarray:
        """Return (k, n) predictions whose mean is that of ``predict``."""

    def design(self, X: Any) -> np.ndarray | None:
        """Return the (n, c) columns of a mean linear in its coefficients, None for a base that is not."""

    def fine_tuned(self, task: Any, steps: int, learning_rate: float) -> FittedBase:
        """Return a copy whose training has gone on with the labels of another task."""


class Leftover(Protocol):
    """What a base leaves over at the labelled nodes, as ``residua.bases.base.Outcome`` holds it."""

    @property
    def residual(self) -> np.ndarray:
        """(|L|,) label minus base prediction."""

    @property
    def base_out_of_fold_error(self) -> np.ndarray:
        """(|L|,) out-of-sample error of the base without any correlation, NaN if not known."""

    @property
    def correlation(self) -> CorrelationFit | None:
        """Correlation of the residuals, None unless learned."""

    @property
    def members(self) -> np.ndarray | None:
        """(k, |L|) residuals of each network of an ensemble."""

    @property
    def out_of_sample(self) -> np.ndarray | None:
        """(k, |L|) bool: labels that each of those networks was not trained on."""

    @property
    def optimism(self) -> np.ndarray | None:
        """(k,) how many times squared errors at those labels are larger if they had no say in when to stop."""

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """How the training went, one entry a step; empty where there is none to tell of."""
