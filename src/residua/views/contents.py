"""The numbers behind the report and the plots: what a fitted model says of every node of its graph.

    final = base + correction at unknown nodes, the label at known ones;   residual = label - base

Where every label is known, nothing is left to predict: then each label is left out in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from residua.validation import check_fitted

if TYPE_CHECKING:
    from residua.diagnosis import Diagnosis
    from residua.estimator import GraphRegressor
    from residua.graph import Graph

COVERAGE = 0.9


@dataclass(frozen=True)
class Moran:
    """A residual against those of its neighbours; the line through 0 with slope Moran's I fits the cloud best."""

    node: np.ndarray  # (k,) index of the node, which has a neighbour with a value
    own: np.ndarray  # (k,) centred residual, in standard deviations
    neighbours: np.ndarray  # (k,) weighted sum over neighbours, over the mean total weight of a node


@dataclass(frozen=True)
class Contents:
    """Columns over all nodes, NaN where there is none; computed when asked, and kept."""

    model: GraphRegressor

    def __post_init__(self) -> None:
        check_fitted(self.model)

    @property
    def graph(self) -> Graph:
        return self.model.graph_

    @property
    def truth(self) -> np.ndarray:
        return self.model.y_

    @cached_property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.truth)

    @cached_property
    def left_out(self) -> bool:
        """Whether every label is known, so that corrections are of labels left out one by one."""
        return bool(self.known.all())

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return self.model.diagnose()

    @cached_property
    def base(self) -> np.ndarray:
        return self.model._own.base

    @cached_property
    def residual(self) -> np.ndarray:
        return self.model._own.residual

    @cached_property
    def predicted(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation at every node, labels left out one by one at the known ones."""
        return self.model.predict(known="predict", return_std=True)

    @cached_property
    def correction(self) -> np.ndarray:
        asked = np.ones_like(self.known) if self.left_out else ~self.known
        return np.where(asked, self.predicted[0] - self.base, np.nan)

    @cached_property
    def final(self) -> np.ndarray:
        return self.predicted[0] if self.left_out else np.where(self.known, self.truth, self.predicted[0])

    @cached_property
    def std(self) -> np.ndarray:
        return self.predicted[1] if self.left_out else np.where(self.known, np.nan, self.predicted[1])

    @cached_property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the conformal interval of ``COVERAGE``, NaN where there is nothing to predict."""
        if self.left_out:
            width = self.model._conformal_quantile(COVERAGE) * self.std
            return self.final - width, self.final + width
        lower, upper = self.model.predict_interval(coverage=COVERAGE)
        return np.where(self.known, np.nan, lower), np.where(self.known, np.nan, upper)

    @cached_property
    def base_alone(self) -> np.ndarray:
        """Out-of-sample base predictions at known nodes; NaN for a base that never stood alone."""
        return self.truth - self._at_known(self.model.outcome_.base_out_of_fold_error)

    @cached_property
    def corrected(self) -> np.ndarray:
        """Leave-one-out predictions at known nodes whose label no part of the training has seen."""
        unseen = self._at_known(np.where(self.model._own.out_of_sample_labels, 0.0, np.nan))
        return np.where(self.known, self.predicted[0], np.nan) + unseen

    @cached_property
    def z_scores(self) -> np.ndarray:
        """Leave-one-out errors in standard deviations, at labels out of sample."""
        mean, std = self.predicted
        z = ((self.truth - mean) / std)[self.known]
        return z[self.model._own.out_of_sample_labels]

    @cached_property
    def before(self) -> np.ndarray:
        """Residuals (n,) whose correlation the model set out to explain."""
        error = self.model.outcome_.base_out_of_fold_error
        return self._at_known(error if np.isfinite(error).all() else self.model.outcome_.residual)

    @cached_property
    def after(self) -> np.ndarray:
        """Residuals (n,) decorrelated by the model: white noise if it is right."""
        return self._at_known(self.model._own.conditional.decorrelated(self.residual))

    def _at_known(self, values: np.ndarray) -> np.ndarray:
        full = np.full(self.graph.n_nodes, np.nan)
        full[self.known] = values
        return full


def moran_cloud(values: np.ndarray, graph: Graph) -> Moran | None:
    """The Moran scatter of values (n,), NaN = unknown; None where it is not defined."""
    node = np.flatnonzero(~np.isnan(values))
    x = values[node] - values[node].mean()
    W = sparse.csr_array(graph.adjacency())[node][:, node]
    W = W - sparse.diags_array(W.diagonal())
    if len(node) < 4 or np.ptp(x) == 0 or W.sum() == 0:
        return None
    x = x / x.std()
    joined = W.sum(axis=1) > 0
    return Moran(node[joined], x[joined], ((W @ x) * len(node) / W.sum())[joined])


def layers(contents: Contents) -> dict[str, np.ndarray]:
    """The pictures of the paper's figure 2, and the uncertainty, by their titles."""
    return {
        "truth": contents.truth,
        "base prediction": contents.base,
        "residual": contents.residual,
        "correction": contents.correction,
        "final prediction": contents.final,
        "uncertainty": contents.std,
    }
