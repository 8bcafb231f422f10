"""The numbers behind the report and the plots: what a fitted model says of every node of its graph.

    final = base + correction at unknown nodes, the label at known ones;   residual = label - base

Where every label is known, nothing is left to predict: then predictions are leave-one-out.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from residua.diagnosis import Diagnosis
from residua.estimator import GraphRegressor
from residua.graph import Graph
from residua.metrics.morans_i import values_and_weights
from residua.validation import check_fitted

COVERAGE = 0.9
# Layers of the paper's figure 2, and the uncertainty: by title, the column of `Contents`.
FIELDS = {
    "truth": "truth",
    "base prediction": "base",
    "residual": "residual",
    "correction": "correction",
    "final prediction": "final",
    "uncertainty": "std",
}
# What a report offers beside them.
MORE = {
    "lower end of the interval": "lower",
    "upper end of the interval": "upper",
    "width of the interval": "width",
    "error without the neighbours": "base_error",
    "error with the neighbours": "error",
}


class Contents:
    """Columns over all nodes, NaN where there is none; what takes computing is computed when asked, and kept.

    Parameters
    ----------
    model : GraphRegressor
        Fitted model.

    Attributes
    ----------
    graph : Graph
        Training graph.
    own : Prediction
        What the model says of it.
    truth, base, residual : (n,) array
        Known labels, base predictions, and residuals at known nodes.
    left_out : bool
        Whether every label is known, so that corrections are leave-one-out.
    asked : (n,) array of bool
        Nodes where there is something to predict.
    base_out_of_fold : (n,) array
        Out-of-sample base predictions at known nodes; NaN for a base that was never tried without correlation.
    before : (n,) array
        Residuals whose correlation the model set out to explain.
    """

    def __init__(self, model: GraphRegressor):
        check_fitted(model)
        self.model, self.graph, self.own = model, model.graph_, model.field_.prediction
        self.truth, self.base, self.residual = model.y_, self.own.base, self.own.residual
        self.left_out = bool(self.own.known.all())
        self.asked = ~self.own.known | self.left_out
        self.base_out_of_fold = self.truth - self.own.at_known(model.field_.outcome.base_out_of_fold_error)
        self.before = self.own.at_known(model.field_.uncorrected)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Diagnosis of the model."""
        return self.model.diagnose()

    @cached_property
    def correction(self) -> np.ndarray:
        """Prediction minus base prediction, where there is something to predict."""
        return np.where(self.asked, self.own.left_out_mean - self.base, np.nan)

    @cached_property
    def final(self) -> np.ndarray:
        """Predictions, the label where it is known; labels left out where all are."""
        return np.where(self.asked, self.own.left_out_mean, self.truth)

    @cached_property
    def std(self) -> np.ndarray:
        """Standard deviations, where there is something to predict."""
        return np.where(self.asked, self.own.left_out_std, np.nan)

    @cached_property
    def half_width(self) -> np.ndarray:
        """Half the width of the interval of ``COVERAGE``, where there is something to predict."""
        return self.model.interval_width(COVERAGE) * self.std

    @property
    def lower(self) -> np.ndarray:
        """Lower ends of these intervals."""
        return self.final - self.half_width

    @property
    def upper(self) -> np.ndarray:
        """Upper ends of these intervals."""
        return self.final + self.half_width

    @property
    def width(self) -> np.ndarray:
        """Widths of these intervals."""
        return 2 * self.half_width

    @property
    def covered(self) -> float:
        """Share of the known labels inside the interval around what the others say of them."""
        return float(np.mean(self.own.scores <= self.model.interval_width(COVERAGE)))

    @property
    def base_error(self) -> np.ndarray:
        """Size of the error of the base by itself, out of sample, at known nodes."""
        return np.abs(self.truth - self.base_out_of_fold)

    @property
    def error(self) -> np.ndarray:
        """Size of the leave-one-out error at known nodes."""
        return np.abs(self.truth - self.corrected)

    @property
    def left_out_mean(self) -> np.ndarray:
        """Predictions of known labels from all the others, NaN elsewhere."""
        return self.own.left_out

    @property
    def every_half_width(self) -> np.ndarray:
        """Half the width of the interval at every node; at known ones, that around what the other labels say."""
        return self.own.left_out_std * self.model.interval_width(COVERAGE)

    @cached_property
    def beyond(self) -> np.ndarray:
        """(n,) bool: nodes with a number among their features below or above all those at known labels."""
        X, known = self.model.X_, self.own.known
        numbers = X.select_dtypes("number").to_numpy(float) if hasattr(X, "select_dtypes") else X
        if not isinstance(numbers, np.ndarray) or not numbers.size:
            return np.zeros(self.graph.n_nodes, bool)
        seen = numbers[known]
        with np.errstate(invalid="ignore"):
            low, high = np.fmin.reduce(seen, axis=0), np.fmax.reduce(seen, axis=0)
            return np.asarray(((numbers < low) | (numbers > high)).any(axis=1))

    @cached_property
    def corrected(self) -> np.ndarray:
        """Leave-one-out predictions at known nodes whose label no part of the training has seen."""
        return self.truth - self.own.at_known(self.own.out_of_sample_error)

    @cached_property
    def after(self) -> np.ndarray:
        """Residuals (n,) decorrelated by the model: white noise if it is right."""
        return self.own.at_known(self.own.decorrelated)


def moran_cloud(values: np.ndarray, graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values (n,), NaN = unknown, against those of neighbours: the line of slope Moran's I fits this cloud best.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Such that `residua.metrics.morans_i` is defined.
    graph : Graph
        The graph.

    Returns
    -------
    node : ndarray of shape (k,)
        Index of each node that has a neighbour with a value.
    own : ndarray of shape (k,)
        Its centred value, in standard deviations.
    neighbours : ndarray of shape (k,)
        Weighted sum over its neighbours, over the mean total weight of a node.
    """
    x, W = values_and_weights(values, graph)
    x, joined = x / x.std(), W.sum(axis=1) > 0
    return np.flatnonzero(~np.isnan(values))[joined], x[joined], ((W @ x) * len(x) / W.sum())[joined]


def layers(contents: Contents) -> dict[str, np.ndarray]:
    """Return the pictures of the paper's figure 2, and the uncertainty, by their titles."""
    return {title: getattr(contents, field) for title, field in FIELDS.items()}


def more_layers(contents: Contents) -> dict[str, np.ndarray]:
    """Return ends and widths of intervals, and sizes of errors, by title: those of which there are any."""
    found = {title: getattr(contents, field) for title, field in MORE.items()}
    return {title: column for title, column in found.items() if np.isfinite(column).any()}
