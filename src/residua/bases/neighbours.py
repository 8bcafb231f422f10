"""What surrounds a node, as features: averages over its neighbours, their neighbours, and so on.

    [x, M x, .., M^K x, log(1 + d), M log(1 + d)],    M = D_t^-1 A_t for each edge type t

M averages over neighbours of one type. The hops are computed once, with the sparse kernel, and serve any regressor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from residua.arrays import as_floats
from residua.graph import Graph
from residua.linalg import Matrix
from residua.validation import check_choice, check_count, check_features, check_graph


class NeighbourFeatures(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Features of a node and of its surroundings, for any scikit-learn regressor.

    Parameters
    ----------
    hops : int
        How far to look; 0 keeps the features as they are.
    degree : bool
        Whether to add the logarithm of the degree and its neighbour average, for each edge type.

    Examples
    --------
    >>> import numpy as np, residua
    >>> path = residua.Graph.from_edges([0, 1], [1, 2])
    >>> residua.NeighbourFeatures(hops=1, degree=False).fit_transform(np.array([[0.0], [1.0], [4.0]]), graph=path)
    array([[0., 1.],
           [1., 2.],
           [4., 1.]])
    """

    def __init__(self, hops: int = 2, degree: bool = True):
        self.hops = hops
        self.degree = degree

    def fit(self, X: Any, y: Any = None, *, graph: Graph | None = None) -> NeighbourFeatures:
        """Check the features and remember their names; nothing is learned."""
        check_count(self.hops, "hops", 0)
        X, names = check_features(X, check_graph(graph), optional=True, as_is=True)
        self.n_features_in_, self.edge_types_ = X.shape[1], check_graph(graph).edge_types
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, after those of the fit or ``input_features`` (d,)."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError("this NeighbourFeatures is not fitted yet; call fit(X, graph=graph) first.")
        own = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        own = [str(name) for name in (own if input_features is None else input_features)]
        names = list(own)
        for kind in self.edge_types_:
            suffix = f", {kind}" if len(self.edge_types_) > 1 else ""
            names += [f"{name}, hop {hop}{suffix}" for hop in range(1, self.hops + 1) for name in own]
            names += [f"log degree{suffix}", f"log degree, hop 1{suffix}"] if self.degree else []
        return np.array(names, dtype=object)

    def set_output(self, *, transform: str | None = None) -> NeighbourFeatures:
        """Set what ``transform`` returns.

        Parameters
        ----------
        transform : "default", "pandas" or None
            An array, a DataFrame indexed by the ids of the nodes, or what was set before.
        """
        if transform is not None:
            check_choice(transform, ("default", "pandas"), "transform")
            self._sklearn_output_config = {"transform": transform}  # which scikit-learn copies into clones
        return self

    def transform(self, X: Any, *, graph: Graph | None = None) -> Any:
        """Return features (n, columns) of every node of ``graph``, given their own X (n, d) in its order or by id.

        The columns are those of the fit, in their order. Numbers are averaged, over those neighbours that have one;
        other columns are passed on as they are. An array, or a DataFrame: with other columns, or indexed by id after
        ``set_output(transform="pandas")``.
        """
        graph = check_graph(graph)
        found = self._features(X, graph)
        chosen = getattr(self, "_sklearn_output_config", {"transform": get_config()["transform_output"]})
        if chosen["transform"] != "pandas" or isinstance(found, pd.DataFrame):
            return found
        index = pd.Index(graph.nodes, dtype=graph.nodes.dtype, tupleize_cols=False)
        return pd.DataFrame(found, index=index, columns=self.get_feature_names_out())

    def _features(self, X: Any, graph: Graph) -> Any:
        names = getattr(self, "feature_names_in_", None)
        like = (self.n_features_in_, names) if hasattr(self, "n_features_in_") else None
        X, _ = check_features(X, graph, optional=not (like and like[0]), like=like, as_is=True)
        types = getattr(self, "edge_types_", graph.edge_types)
        unknown = [name for name in graph.edge_types if name not in types]
        if unknown:
            raise ValueError(f"graph has edge types {unknown}, which fit has not seen; it saw {list(types)}.")
        numbers = numeric_columns(X)
        found = neighbour_features(graph, numbers, self.hops, self.degree, types)
        if numbers.shape[1] == X.shape[1]:
            return found
        added = found[:, numbers.shape[1] :]
        names = [f"neighbours {k}" for k in range(added.shape[1])]
        return pd.concat([X, pd.DataFrame(added, index=X.index, columns=names)], axis=1)

    def fit_transform(self, X: Any, y: Any = None, *, graph: Graph | None = None) -> Any:
        """Return the features of the graph that is fitted to."""
        return self.fit(X, graph=graph).transform(X, graph=graph)


def numeric_columns(X: Any) -> np.ndarray:
    """Return the columns of numbers of a checked table, NaN where one is missing; dates and flags are none."""
    if isinstance(X, pd.DataFrame):
        X = X.select_dtypes("number")
    return as_floats(X.toarray() if sp.issparse(X) else X, "X", "give numbers, or a DataFrame with other columns")


def neighbour_features(
    graph: Graph, X: np.ndarray, hops: int, degree: bool, types: tuple[str, ...] | None = None
) -> np.ndarray:
    """Return the columns of ``NeighbourFeatures`` for checked features X (n, d); zeros for a type without edges."""
    columns = [X]
    for name in graph.edge_types if types is None else types:
        average = NeighbourMean(graph.operators[name]) if name in graph.operators else np.zeros_like
        hop = X
        for _ in range(hops if X.shape[1] else 0):
            hop = average(hop)
            columns.append(hop)
        if degree:
            logs = np.log1p(getattr(average, "degree", np.zeros(len(X))))[:, None]
            columns += [logs, average(logs)]
    return np.hstack(columns)


class NeighbourMean:
    """``M = D_t^-1 A_t`` from ``S_t = D^-1/2 A_t D^-1/2``; a node without neighbours of the type gets zeros.

    Parameters
    ----------
    S : Matrix
        ``S_t``.
    """

    def __init__(self, S: Matrix):
        self.S = S
        self.root = S.inverse_scale()[:, None]
        self.degree = (self.root * (S @ self.root))[:, 0]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        there = np.isfinite(X)
        if there.all():
            return self._mean(X, self.degree[:, None])
        weight = self.root * (self.S @ (self.root * there))  # of the neighbours that have a number
        found = self._mean(np.where(there, X, 0.0), np.where(weight > 1e-12 * self.degree[:, None], weight, 0.0))
        return np.where((self.degree[:, None] > 0) & (weight <= 1e-12 * self.degree[:, None]), np.nan, found)

    def _mean(self, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
        total = self.root * (self.S @ (self.root * X))
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
