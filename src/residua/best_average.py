"""The best that there is for some labels: several bases, each fitted with the correlation, and their average.

    prediction = sum_k w_k m_k,    w = mean over resamples of L of the best of all w >= 0, sum w = 1

m_k models, L known labels. Weights are chosen by errors at known labels, each predicted without itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from residua.average import Average
from residua.bases.progress import progress
from residua.bases.registry import find_base, networks_installed
from residua.by_id import whole_tables
from residua.caller import warn
from residua.encoding import Encoding, needs_encoding
from residua.estimator import GraphRegressor
from residua.graph import Graph
from residua.targets import target_columns
from residua.validation import check_count, check_graph, check_known_values, check_seconds, check_together, one_line

SAMPLES = 100  # of the labels, each with the weights that are best on it
LEAST = 0.02  # weight of a model that is kept
BUDGET = 120.0  # CPU seconds


def best(
    X: Any,
    y: Any,
    *,
    graph: Graph,
    time_budget: float = BUDGET,
    random_state: int = 0,
    verbose: bool = False,
) -> Average:
    """Fit several bases, and average them by their errors at known labels that they did not learn from.

    Parameters
    ----------
    X : (n, d) array or DataFrame
        Features of every node. Missing values, text and dates may be among them: trees take them as they are; for the
        other bases empty cells take the column's median, and a column of text becomes one for each value.
    y : (n,) array or Series
        Labels, NaN where unknown.
    graph : Graph
        The graph.
    time_budget : float
        CPU seconds after which no further base is begun, and a base at work ends with the best that it has; one base
        at least is fitted.
    random_state : int
        Seed of everything random.
    verbose : bool
        Print which base is at work.

    Returns
    -------
    Average
        Of the bases that earn a weight; networks are among them where the extra ``gnn`` is installed.

    Examples
    --------
    >>> import numpy as np, residua
    >>> data = residua.datasets.load_elect80()
    >>> y = np.where(np.arange(len(data.y)) % 3 > 0, data.y, np.nan)
    >>> model = residua.best(data.X, y, graph=data.graph, time_budget=1)
    >>> bool(model.score(data.X, data.y) > 0.6)
    True
    """
    check_count(random_state, "random_state", 0)
    begin, budget = time.process_time(), check_seconds(time_budget, "time_budget")
    X, y = whole_tables(check_graph(graph), X, y)
    X, y = check_together(graph, X, y=y)
    if target_columns(y) is not None:
        raise ValueError("y has several targets; give one column at a time.")
    check_known_values(y, graph, "y")
    features = _Features.of(X)
    graph = graph if graph.features is None else graph.with_features(None)
    models: list[GraphRegressor] = []
    encodings: list[Encoding | None] = []
    makers = _candidates()
    with progress("trying bases", verbose) as advance:
        for k, (name, make) in enumerate(makers.items()):
            left = budget - (time.process_time() - begin)
            if models and left <= 0:
                break
            advance(k / len(makers), name)
            model = make().set_params(random_state=random_state)
            table, encoding = features.of_base(model.base)
            try:
                models.append(model.fit(table, y, graph=graph, time_budget=max(left, 1e-9)))
            except ValueError as error:
                if k == len(makers) - 1 and not models:
                    raise
                warn(f"{name} is left out: {one_line(error)}")
                continue
            encodings.append(encoding)
    return weighted(models, random_state, encodings)


@dataclass(frozen=True)
class _Features:
    """Features as they are, and as numbers where they are none."""

    X: Any
    encoding: Encoding | None = None
    numbers: Any = None

    @classmethod
    def of(cls, X: Any) -> _Features:
        if X is None or not needs_encoding(X):
            return cls(X)
        encoding = Encoding.of(X)
        return cls(X, encoding, encoding.transform(X))

    def of_base(self, base: Any) -> tuple[Any, Encoding | None]:
        """Return the table for a base, and how it was made. Of scikit-learn's none is asked to read text."""
        as_they_are = self.encoding is None or (isinstance(base, str) and find_base(base).tables)
        return (self.X, None) if as_they_are else (self.numbers, self.encoding)


def _candidates() -> dict[str, Callable[[], GraphRegressor]]:
    """Models that are not fitted yet, by name: the cheapest first, in case that time runs out."""

    def extra_trees() -> GraphRegressor:
        from sklearn.ensemble import ExtraTreesRegressor
        from sklearn.pipeline import make_pipeline

        from residua.bases.neighbours import NeighbourFeatures

        trees = ExtraTreesRegressor(200, min_samples_leaf=2, max_features=0.5)
        return GraphRegressor(make_pipeline(NeighbourFeatures(), trees), folds=10)

    def network(kind: str) -> GraphRegressor:
        from residua.bases.networks.settings import Network

        return GraphRegressor(Network(kind, widths=(64, 32)), ensemble=10)

    plain = {name: lambda name=name: GraphRegressor(name) for name in ("linear", "splines", "trees")}
    networks = {name: lambda name=name: network(name) for name in ("hops", "sage")} if networks_installed() else {}
    return {**plain, **networks, "extra trees on neighbours": extra_trees}


def weighted(
    models: list[GraphRegressor], random_state: int = 0, encodings: list[Encoding | None] | None = None
) -> Average:
    """Return the average of fitted models by errors at labels that none of them learned from, those of no use left out.

    Parameters
    ----------
    models : list of GraphRegressor
        Fitted to the same labels on the same graph.
    random_state : int
        Seed of the resamples.
    encodings : list of (Encoding or None), optional
        How features became those of each model, as ``Average`` has it.
    """
    fields = [model.field_ for model in models]
    unseen = np.logical_and.reduce([field.prediction.out_of_sample_labels for field in fields])
    y = fields[0].y[fields[0].labelled][unseen]
    predictions = y - np.stack([field.prediction.expected_error[unseen] for field in fields])
    weights = resampled_weights(predictions, y, random_state)
    kept = np.flatnonzero(weights >= min(LEAST, weights.max()))
    own = None if encodings is None else [encodings[k] for k in kept]
    return Average([models[k] for k in kept], weights[kept], own)


def resampled_weights(predictions: np.ndarray, y: np.ndarray, random_state: int) -> np.ndarray:
    """Weights (K,) of predictions (K, m) of labels y (m,): the mean of those that are best on resamples of the labels.

    A few hundred labels hardly tell good models apart: the best weights of one sample leave out models that another
    would keep, their mean does not.
    """
    samples = np.random.default_rng(random_state).integers(len(y), size=(SAMPLES, len(y)))
    return np.mean([best_weights(predictions[:, here], y[here]) for here in samples], axis=0)


def best_weights(predictions: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Solve least squares with w >= 0 and sum w = 1."""
    errors = (y - predictions).T
    # A row that asks for sum w = 1. It only sets the length of w, so any scale serves; this one is well conditioned.
    scale = np.linalg.norm(errors) or 1.0
    rows = np.vstack([errors, np.full((1, len(predictions)), scale)])
    weights, _ = nnls(rows, np.append(np.zeros(len(y)), scale))
    return weights / weights.sum()
