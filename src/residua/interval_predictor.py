"""Intervals of a fitted model, or of an average of some, and the table of all that it predicts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from residua.by_id import NoisyLabels, index_of, labels_by_id, with_noise
from residua.field.fitted import FittedField
from residua.field.leave_block_out import LeaveBlockOut
from residua.graph import Graph
from residua.graph.regions import Missing, missing_regions, seen_missing
from residua.intervals import LEFT_OUT, METHODS, jackknife_plus, jackknife_quantile, without_folds
from residua.predictor import Predictor, Vectors
from residua.targets import noise_by_target, side_by_side
from residua.validation import check_choice, check_graph, check_share, check_values


class IntervalPredictor(Predictor):
    """Base of what predicts intervals beside means and standard deviations."""

    @abstractmethod
    def _columns(self, X: Any, y: Any, graph: Graph | None, width: float) -> dict[str, np.ndarray]:
        """Return the columns of ``predict_frame``; intervals reach ``width`` standard deviations to both sides."""

    @abstractmethod
    def _learned_noise(self) -> float | None:
        """Return the learned variance of the noise of a label of weight 1; None where none was learned."""

    @abstractmethod
    def _scores(self) -> np.ndarray | None:
        """Return absolute errors in standard deviations at labels out of sample; None where they are too few."""

    @abstractmethod
    def _blocks(self, missing: Missing | None) -> LeaveBlockOut | None:
        """Return labels predicted without blocks like these regions; for None like those of the fit, if it has such."""

    @property
    @abstractmethod
    def _first_field(self) -> FittedField:
        """Return the fitted field, of an average that of its first model."""

    @abstractmethod
    def refitted(self, y: np.ndarray) -> Predictor:
        """Return a model of the same settings, fitted to labels y (n,) of the training graph."""

    @abstractmethod
    def _predictive_width(self, coverage: float) -> float:
        """Return the half-width of central intervals of the predictive distribution, in standard deviations."""

    @property
    def _noisy(self) -> bool:
        """Whether the labels of the fit have noise, or it was learned that they have none."""
        return self._first_field.noise is not None or self._first_field.learned_noise is not None

    def std_of_new_labels(self, std: np.ndarray, noise: Any, graph: Graph | None, at: np.ndarray | None) -> np.ndarray:
        """Return standard deviations of new labels, for those of the values and the variance of the labels' noise."""
        if noise is None:
            return std
        if self.targets_ is not None:
            each = zip(
                self.targets_.values(), std.T, noise_by_target(noise, list(self.targets_), "label_noise"), strict=True
            )
            return np.column_stack([one.std_of_new_labels(part, own, graph, at) for one, part, own in each])
        there, learned = self.graph_ if graph is None else check_graph(graph), self._learned_noise()
        if isinstance(noise, str):
            if noise != "learned" or learned is None:
                raise ValueError(f"label_noise={noise!r}: the fit learned no noise; give variances of new labels.")
            noise = learned
        if np.ndim(noise) == 0 and not isinstance(noise, Mapping):
            variance = np.full(len(std), float(noise))
        else:
            variance = check_values(labels_by_id(noise, there, "label_noise"), there, "label_noise")
            variance = variance if at is None else variance[at]
        if not (variance >= 0).all():
            raise ValueError(
                "label_noise is negative or unknown at a node that is asked for; give a variance for each."
            )
        return np.sqrt(std**2 + variance)

    def predict_interval(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        coverage: float = 0.9,
        method: str = "jackknife",
        left_out: str = "auto",
        nodes: Any = None,
        noise_variance: Any = None,
        label_noise: Any = None,
    ) -> Vectors:
        """Return lower and upper ends of an interval for every node; both are the label where that is without noise.

        Parameters
        ----------
        X, y, graph : array, array, Graph
            Other data, as in ``predict``.
        coverage : float
            Share of nodes that the intervals should cover, between 0 and 1.
        method : "jackknife", "jackknife+" or "predictive"
            "jackknife" (also "conformal") makes the Gaussian interval as wide, or as narrow, as covers the training
            labels, leave-one-out; it does not rest on normality, and has no guarantee. "jackknife+" fits ten models
            anew, each without a tenth of the labels, and covers with a probability of ``2 * coverage - 1`` at least (a
            little less for few labels) if known nodes are a random sample. "predictive" (once "gaussian")
            takes the model at its word: Student's t where a spread was learned, else a Gaussian.
        left_out : "auto", "nodes" or "blocks"
            What "jackknife" leaves out: single nodes; 40 blocks of labels that lie together as unknown nodes do; or
            blocks only where unknown nodes are farther from labels than labels are from each other. Labels with noise
            are left out as nodes only.
        nodes : ids (k,), optional
            Which nodes to return, in this order.
        noise_variance : float, (n,) array, Series or dict by id, optional
            Of the labels in y, as in ``predict``.
        label_noise : float, (n,) array, Series, dict by id or "learned", optional
            Variance of the noise of a new label at each node; "learned" is that of the fit for a label of weight 1. The
            intervals are then for such labels: by default they are for the values beneath the noise.

        Returns
        -------
        lower : (n,) array
            Lower ends.
        upper : (n,) array
            Upper ends.
        """
        check_choice(method, METHODS, "method")
        options: Any = {"graph": graph, "nodes": nodes}
        if method == "jackknife+":
            return self._jackknife_plus(
                X, y, coverage, noise_variance is not None or label_noise is not None, **options
            )
        width = self.interval_width(coverage, method, left_out, y=y, graph=graph, noise_variance=noise_variance)
        mean, std = self.predict(X, y, return_std=True, known="label", noise_variance=noise_variance, **options)
        if label_noise is not None:
            _, graph, at = self._asked(X, nodes, graph)
            std = self.std_of_new_labels(std, label_noise, graph, at)
        return mean - width * std, mean + width * std

    def _jackknife_plus(
        self, X: Any, y: Any, coverage: float, noisy: bool, *, graph: Graph | None, nodes: Any
    ) -> Vectors:
        """Return the ends of the intervals of method="jackknife+"; ``noisy`` where noise of labels was given."""
        check_share(coverage, "coverage")
        if noisy or (self.targets_ is None and self._noisy):
            raise ValueError('method="jackknife+" is for labels without noise; use method="jackknife".')
        options: Any = {"graph": graph, "nodes": nodes}
        if self.targets_ is not None:
            options |= {"coverage": coverage, "method": "jackknife+"}
            return side_by_side([one.predict_interval(X, own, **options) for one, own in self._each(y)])
        options["return_std"] = True
        found = without_folds(
            self.y_, self.refitted, lambda model: model.predict(X, y, **options), self._first_field.random_state
        )
        lower, upper = jackknife_plus(*found, coverage)
        mean, std = self.predict(X, y, known="label", **options)
        return np.where(std > 0, lower, mean), np.where(std > 0, upper, mean)

    def predict_frame(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        coverage: float = 0.9,
        method: str = "jackknife",
        left_out: str = "auto",
        nodes: Any = None,
        noise_variance: Any = None,
        label_noise: Any = None,
    ) -> pd.DataFrame:
        """Return all that is predicted as a table with a row for each node, indexed by id.

        Parameters
        ----------
        X, y, graph : array, array, Graph
            Other data, as in ``predict``.
        coverage, method, left_out : float, str, str
            Of the intervals, as in ``predict_interval``.
        nodes : ids (k,), optional
            Which nodes to return, in this order.
        noise_variance : float, (n,) array, Series or dict by id, optional
            Of the labels in y, as in ``predict``.
        label_noise : float, (n,) array, Series, dict by id or "learned", optional
            Variance of the noise of a new label at each node; "learned" is that of the fit for a label of weight 1. The
            intervals are then for such labels: by default they are for the values beneath the noise.

        Returns
        -------
        DataFrame
            Columns prediction (the label where it is known), std (0 there), lower and upper end of the interval, base
            (what the features say), correction (what the neighbours add), known (whether the label is), leave_one_out
            (what the other labels say of a known one; NaN elsewhere). Of several targets such columns for each, below
            its name.

        Examples
        --------
        >>> import residua
        >>> data = residua.datasets.load_elect80()
        >>> model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
        >>> frame = model.predict_frame()
        >>> frame.columns.tolist()[:4], frame.loc["01001", "prediction"].round(3)
        (['prediction', 'std', 'lower', 'upper'], np.float64(0.516))
        """
        if self.targets_ is not None:
            options: Any = {
                "graph": graph,
                "coverage": coverage,
                "method": method,
                "left_out": left_out,
                "nodes": nodes,
            }
            new = noise_by_target(label_noise, list(self.targets_), "label_noise")
            each = zip(self._each(y, noise_variance), new, strict=True)
            frames = [one.predict_frame(X, labels, **options, label_noise=own) for (one, labels), own in each]
            return pd.concat(dict(zip(self.targets_, frames, strict=True)), axis=1)
        check_choice(method, METHODS, "method")
        y, ends, width = with_noise(y, noise_variance), None, 0.0
        if method == "jackknife+":
            noisy = isinstance(y, NoisyLabels) or label_noise is not None
            ends = self._jackknife_plus(X, y, coverage, noisy, graph=graph, nodes=nodes)
        else:
            width = self.interval_width(coverage, method, left_out, y=y, graph=graph)
        X, graph, at = self._asked(X, nodes, graph)
        there = self.graph_ if graph is None else check_graph(graph)
        columns = self._columns(X, y, graph, width)
        if label_noise is not None:
            margin = width * self.std_of_new_labels(columns["std"], label_noise, graph, None)
            columns |= {"lower": columns["prediction"] - margin, "upper": columns["prediction"] + margin}
        frame = pd.DataFrame(columns, index=index_of(there))
        frame = frame if at is None else frame.iloc[at]
        return frame if ends is None else frame.assign(lower=ends[0], upper=ends[1])

    def interval_width(
        self,
        coverage: float = 0.9,
        method: str = "jackknife",
        left_out: str = "auto",
        *,
        y: Any = None,
        graph: Graph | None = None,
        noise_variance: Any = None,
    ) -> Any:
        """Return half the width of the intervals of ``predict_interval``, in standard deviations; one a target."""
        if method == "jackknife+":
            raise ValueError('method="jackknife+" has no width in standard deviations; see predict_interval.')
        if self.targets_ is not None:
            options: Any = {"method": method, "left_out": left_out, "graph": graph}
            each = self._each(y, noise_variance)
            return np.array([one.interval_width(coverage, y=labels, **options) for one, labels in each])
        check_choice(method, METHODS, "method")
        check_choice(left_out, LEFT_OUT, "left_out")
        check_share(coverage, "coverage")
        scores = self._scores() if method in ("jackknife", "conformal") else None
        if scores is None:
            return self._predictive_width(coverage)
        blocks = None if left_out == "nodes" else self._blocks_for(left_out, with_noise(y, noise_variance), graph)
        if blocks is None or not blocks.unseen.any():
            return jackknife_quantile(scores, coverage)
        return blocks.width(scores, coverage)

    def _blocks_for(self, left_out: str, y: Any, graph: Graph | None) -> LeaveBlockOut | None:
        """Return labels predicted without blocks like the regions without labels, if there are such or it is asked."""
        if self._noisy or isinstance(y, NoisyLabels):
            if left_out == "blocks":
                raise ValueError('left_out="blocks" is for labels without noise; use left_out="nodes".')
            return None
        there = self.graph_ if graph is None else check_graph(graph)
        known = np.isfinite(self._labels_on(there))
        if y is not None:
            known = known | np.isfinite(check_values(labels_by_id(y, there), there, "y"))
        elif there is self.graph_ and left_out == "auto":
            return self._blocks(None)
        missing = missing_regions(there, known) if left_out == "blocks" else seen_missing(there, known)
        return None if missing is None else self._blocks(missing)
