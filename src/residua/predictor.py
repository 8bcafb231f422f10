"""What a user asks of a fitted model, or of an average of some: predictions, a score, a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from residua import metrics
from residua.by_id import NAMED, labels_by_id, names_nodes, positions_of, whole_tables, with_noise
from residua.graph import Graph
from residua.targets import by_target, noise_by_target, side_by_side
from residua.validation import check_choice, check_graph, check_together, check_values

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
    def _labels_on(self, graph: Graph) -> np.ndarray:
        """Return the labels (m,) that are known at the nodes of a graph, NaN elsewhere."""

    @abstractmethod
    def _mean_with_features(self, X: Any, y: Any) -> np.ndarray:
        """Return means of the training graph, were its features X, given the labels of the fit and further ones y."""

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
