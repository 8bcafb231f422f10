"""What a user asks of a fitted model, or of an average of some: predictions, intervals, a score, a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from residua import metrics
from residua.by_id import NAMED, index_of, labels_by_id, names_nodes, positions_of, whole_tables, with_noise
from residua.graph import Graph
from residua.intervals import conformal_quantile
from residua.targets import by_target, noise_by_target, side_by_side
from residua.validation import check_choice, check_graph, check_share, check_together, check_values

Vectors = tuple[np.ndarray, np.ndarray]


class Predictor(ABC):
    """Base of what predicts the nodes of a graph with means and standard deviations."""

    graph_: Graph  # of the fit
    y_: np.ndarray  # (n,) labels of the fit, NaN where unknown
    targets_: Any = None  # models of several targets by name, each a Predictor, after a fit of such

    @abstractmethod
    def _moments(self, X: Any, y: Any, graph: Graph | None, left_out: bool, std: bool) -> tuple[np.ndarray, Any]:
        """Return means and, if asked, standard deviations; of known labels too where they are ``left_out``."""

    @abstractmethod
    def _columns(self, X: Any, y: Any, graph: Graph | None, width: float) -> dict[str, np.ndarray]:
        """Return the columns of ``predict_frame``; intervals reach ``width`` standard deviations to both sides."""

    @abstractmethod
    def _labels_on(self, graph: Graph) -> np.ndarray:
        """Return the labels (m,) that are known at the nodes of a graph, NaN elsewhere."""

    @abstractmethod
    def _mean_with_features(self, X: Any, y: Any) -> np.ndarray:
        """Return means of the training graph, were its features X, given the labels of the fit and further ones y."""

    @abstractmethod
    def _learned_noise(self) -> float | None:
        """Return the learned variance of the noise of a label of weight 1; None where none was learned."""

    @abstractmethod
    def _scores(self) -> np.ndarray | None:
        """Return absolute errors in standard deviations at labels out of sample; None where they are too few."""

    @abstractmethod
    def _predictive_width(self, coverage: float) -> float:
        """Return the half-width of central intervals of the predictive distribution, in standard deviations."""

    @overload
    def predict(
        self,
        X: Any = ...,
        y: Any = ...,
        *,
        graph: Graph | None = ...,
        return_std: Literal[False] = ...,
        known: str | None = ...,
        nodes: Any = ...,
        noise_variance: Any = ...,
    ) -> np.ndarray: ...

    @overload
    def predict(
        self,
        X: Any = ...,
        y: Any = ...,
        *,
        graph: Graph | None = ...,
        return_std: Literal[True],
        known: str | None = ...,
        nodes: Any = ...,
        noise_variance: Any = ...,
    ) -> Vectors: ...

    @overload
    def predict(
        self,
        X: Any = ...,
        y: Any = ...,
        *,
        graph: Graph | None = ...,
        return_std: bool,
        known: str | None = ...,
        nodes: Any = ...,
        noise_variance: Any = ...,
    ) -> np.ndarray | Vectors: ...

    def predict(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        return_std: bool = False,
        known: str | None = None,
        nodes: Any = None,
        noise_variance: Any = None,
    ) -> np.ndarray | Vectors:
        """Predict every node of the training graph, or of another graph given its features and few known labels.

        Parameters
        ----------
        X : (n, d) array, DataFrame or ids of nodes (k,), optional
            Features of another graph, unless that carries them; of the training graph grown, a DataFrame of the new
            nodes by id is enough. Without graph: features of the training graph in place of those of the fit. Or ids,
            which is the same as ``nodes``.
        y : (n,) array, Series or dict, optional
            Known labels of another graph, NaN where unknown. Without X and graph: labels of the training graph that
            came to be known since the fit, NaN elsewhere. They are conditioned on beside those of the fit, which they
            replace at the same nodes, and are not kept. Only a base "linear", "splines" or "mean" follows
            them (with correlation="propagate" none does); nothing else is fitted anew. A dict or a Series may have the
            labels of a few ids, ``{"01001": 0.5}``.
        graph : Graph, optional
            Another graph. One that has every node and every edge of the training graph, as ``graph.with_nodes`` makes
            it, is that graph, grown: the labels of the fit are known there too, by id, and y adds to them.
        return_std : bool
            Also return standard deviations.
        known : "label" or "predict", optional
            "label", the default, returns known labels as they are, with std 0; "predict" gives leave-one-out
            predictions there. That is the default where X has features of the training graph, as scorers of
            scikit-learn pass them: they compare what ``predict(X)`` returns with those very labels. After a fit to
            labels with noise means and standard deviations are those of the values beneath it: "label" takes each
            node's own label for as much as it tells.
        nodes : ids (k,), optional
            Which nodes to return, in this order.
        noise_variance : float, (n,) array, Series or dict by id, optional
            Variances of the noise of the labels in y, 0 for those without. By default that of the fit where it is
            one number that was learned, and none where the fit had none.

        Returns
        -------
        mean : (n,) array
            Predictions in the order of the graph's nodes, or those (k,) of ``nodes``; a column for each of several
            targets.
        std : (n,) array
            Standard deviations, only if ``return_std``.
        """
        check_choice(known, (None, "label", "predict"), "known")
        if known is None:
            own = graph is None or graph is self.graph_
            known = "predict" if own and X is not None and not names_nodes(X) else "label"
        if self.targets_ is not None:
            options: Any = {"graph": graph, "return_std": return_std, "known": known, "nodes": nodes}
            return side_by_side([one.predict(X, labels, **options) for one, labels in self._each(y, noise_variance)])
        X, graph, at = self._asked(X, nodes, graph)
        y = with_noise(y, noise_variance)
        mean, std = self._moments(X, y, graph, known == "predict", return_std)
        if at is not None:
            mean, std = mean[at], None if std is None else std[at]
        return (mean, std) if return_std else mean

    def _each(self, y: Any, noise_variance: Any = None) -> list[tuple[Any, Any]]:
        """Return the model of each of several targets with its part of the labels y."""
        names = list(self.targets_)
        noise = noise_by_target(noise_variance, names, "noise_variance")
        labels = [with_noise(*pair) for pair in zip(by_target(y, names), noise, strict=True)]
        return list(zip(self.targets_.values(), labels, strict=True))

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

    def _asked(self, X: Any, nodes: Any, graph: Graph | None) -> tuple[Any, Graph | None, np.ndarray | None]:
        """Return features, graph, and the positions of the nodes that are asked for: None for all."""
        name = "nodes"
        if names_nodes(X):
            if nodes is not None:
                raise ValueError("X and nodes both name nodes; give one of them.")
            X, nodes, name = None, X, NAMED
            graph = None if graph is self.graph_ else graph
        if nodes is None:
            return X, graph, None
        return X, graph, positions_of(nodes, self.graph_ if graph is None else check_graph(graph), name)

    def predict_interval(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        coverage: float = 0.9,
        method: str = "conformal",
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
        method : "conformal" or "predictive"
            "conformal" widens or narrows the interval of the model until it covers the training labels, leave-one-out,
            so its coverage does not rest on the shape of the tails; "predictive" takes the model at its word: Student's
            t where a spread was learned, else a Gaussian. "gaussian" is the former name of "predictive".
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
        width = self.interval_width(coverage, method)
        options: Any = {"graph": graph, "known": "label", "nodes": nodes, "noise_variance": noise_variance}
        mean, std = self.predict(X, y, return_std=True, **options)
        if label_noise is not None:
            _, graph, at = self._asked(X, nodes, graph)
            std = self.std_of_new_labels(std, label_noise, graph, at)
        return mean - width * std, mean + width * std

    def predict_frame(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Graph | None = None,
        coverage: float = 0.9,
        method: str = "conformal",
        nodes: Any = None,
        noise_variance: Any = None,
        label_noise: Any = None,
    ) -> pd.DataFrame:
        """Return all that is predicted as a table with a row for each node, indexed by id.

        Parameters
        ----------
        X, y, graph : array, array, Graph
            Other data, as in ``predict``.
        coverage, method : float, str
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
            options: Any = {"graph": graph, "coverage": coverage, "method": method, "nodes": nodes}
            new = noise_by_target(label_noise, list(self.targets_), "label_noise")
            each = zip(self._each(y, noise_variance), new, strict=True)
            frames = [one.predict_frame(X, labels, **options, label_noise=own) for (one, labels), own in each]
            return pd.concat(dict(zip(self.targets_, frames, strict=True)), axis=1)
        width = self.interval_width(coverage, method)
        X, graph, at = self._asked(X, nodes, graph)
        there = self.graph_ if graph is None else check_graph(graph)
        columns = self._columns(X, with_noise(y, noise_variance), graph, width)
        if label_noise is not None:
            margin = width * self.std_of_new_labels(columns["std"], label_noise, graph, None)
            columns |= {"lower": columns["prediction"] - margin, "upper": columns["prediction"] + margin}
        frame = pd.DataFrame(columns, index=index_of(there))
        return frame if at is None else frame.iloc[at]

    def interval_width(self, coverage: float = 0.9, method: str = "conformal") -> float:
        """Return half the width of the intervals of ``predict_interval``, in standard deviations; one a target."""
        if self.targets_ is not None:
            widths: Any = np.array([one.interval_width(coverage, method) for one in self.targets_.values()])
            return widths
        check_choice(method, ("conformal", "predictive", "gaussian"), "method")
        check_share(coverage, "coverage")
        scores = self._scores() if method == "conformal" else None
        return self._predictive_width(coverage) if scores is None else conformal_quantile(scores, coverage)

    def score(self, X: Any, y: Any, *, known: Any = None, graph: Graph | None = None) -> float:
        """Return R2 at nodes whose label was unknown to the model; of several targets the mean of theirs.

        Parameters
        ----------
        X : (n, d) array, DataFrame or ids of nodes (k,)
            Features. Of the training graph: None, or those of the fit, or others in their place, which the fitted base
            predicts from (its coefficients stay as they are); the residuals at the labels of the fit move with it. Or
            ids of nodes, which alone count then, each predicted without its own label: leave-one-out at nodes that
            were labelled in ``fit``.
        y : (n,) array or Series
            True labels, NaN where unknown, of all nodes or of those that X names. Without such names nodes that were
            labelled in ``fit`` (or in ``known``) do not count.
        known : (n,) array, Series or dict, optional
            Labels to condition on: of another graph, or those of the training graph that came after the fit.
        graph : Graph, optional
            Another graph.
        """
        if self.targets_ is not None:
            each = zip(self._each(y), by_target(known, list(self.targets_), "known"), strict=True)
            scores = [
                one.score(X, truth, known=labels, graph=graph) for (one, truth), labels in each if truth is not None
            ]
            return float(np.mean(scores))
        trained = graph is None or graph is self.graph_
        there = self.graph_ if trained else check_graph(graph)
        known = labels_by_id(known, there, "known")
        if names_nodes(X):
            return self._score_at(X, y, known, None if trained else there)
        by_id = isinstance(X, pd.DataFrame) and len(X) < there.n_nodes and not trained  # rows of new nodes only
        aligned, y, known = check_together(there, None if by_id else X, y=y, known=known)
        X = X if by_id else aligned
        truth = check_values(y, there, "y")
        unseen = ~np.isnan(truth) & np.isnan(self._labels_on(there))
        if known is not None:
            unseen &= np.isnan(check_values(known, there, "known"))
        if unseen.sum() < 2:
            raise ValueError(
                f"y has {unseen.sum()} labels that the model has not seen; at least 2 are needed to score. "
                "Mask some labels as NaN in fit, or see diagnose() for leave-one-out accuracy."
            )
        if trained:
            mean = self._mean_with_features(X, known)
        else:
            self._check_unseen(there, truth, unseen)
            mean = self.predict(X, np.full(there.n_nodes, np.nan) if known is None else known, graph=there)
        return metrics.r2(truth[unseen], mean[unseen])

    def _check_unseen(self, graph: Graph, truth: np.ndarray, unseen: np.ndarray) -> None:
        """Refuse to score at the labels of the fit, on a copy of its graph."""
        if not np.array_equal(graph.nodes, self.graph_.nodes):
            return
        both = unseen & ~np.isnan(self.y_)
        if both.any() and np.array_equal(truth[both], self.y_[both]):
            raise ValueError(
                f"graph has the nodes of the fit and y has {both.sum():,} of its labels, which the model has learned "
                "from; leave graph out, so that they do not count, or pass known= with them."
            )

    def _score_at(self, nodes: Any, y: Any, known: Any, graph: Graph | None) -> float:
        """Return R2 at nodes that are named, each predicted without its own label."""
        there = self.graph_ if graph is None else graph
        at = positions_of(nodes, there, NAMED)
        truth = check_values(whole_tables(there, nodes, y)[1], there, "y")[at]
        given = np.isfinite(self._labels_on(there))
        if known is not None:
            given = given | np.isfinite(check_values(known, there, "known"))
        mean = self.predict(None, known, graph=graph, known="predict" if given[at].any() else "label", nodes=nodes)
        counted = np.isfinite(truth)
        if counted.sum() < 2:
            raise ValueError(f"y has {counted.sum()} labels at the nodes of X; at least 2 are needed to score.")
        return metrics.r2(truth[counted], mean[counted])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; ``residua.load`` reads it."""
        from residua.io.model_file import save

        save(self, path)
