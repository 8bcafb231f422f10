"""Graphs that grow: new nodes and edges beside the old ones, and whether a graph has all of another in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from residua.graph import adjacency
from residua.graph.adjacency import AGREE, CSR, EdgeList, Edges, Symmetry, as_weights
from residua.graph.alignment import has_ids
from residua.graph.ids import alike, as_ids, as_nodes, factorize, find_ids, first, node_array, positions, show

if TYPE_CHECKING:
    from residua.graph.graph import Graph

COLUMNS = ("source", "target", "weight", "type")


def edge_table(edges: Any) -> pd.DataFrame:
    """Return edges, a table or pairs, as a table with columns source and target, and maybe weight and type."""
    if edges is None:
        return pd.DataFrame({"source": [], "target": []})
    if not isinstance(edges, pd.DataFrame):
        pairs = list(edges)
        if any(isinstance(pair, str) or np.ndim(pair) == 0 or len(pair) != 2 for pair in pairs):
            raise ValueError("edges has a row that is no pair; give (source, target) for each, or a DataFrame.")
        edges = pd.DataFrame({name: pd.Series([pair[k] for pair in pairs]) for k, name in enumerate(COLUMNS[:2])})
    missing = [name for name in COLUMNS[:2] if name not in edges.columns]
    unknown = [name for name in edges.columns if name not in COLUMNS]
    if missing or unknown:
        raise ValueError(
            f"edges has columns {list(edges.columns)}; name them source, target and, where there are such, weight and "
            "type, and drop all others."
        )
    return edges


def all_nodes(old: np.ndarray, nodes: Any, edges: pd.DataFrame) -> np.ndarray:
    """Return the ids of old nodes and, after them, of new ones: those given, else the ends of edges that are new."""
    before = pd.Series(old, dtype=old.dtype)
    lookup = pd.Index(old, dtype=old.dtype, tupleize_cols=False)
    if nodes is None:
        ends = [as_ids(edges[name], name) for name in COLUMNS[:2]]
        both = pd.concat(alike(dict(zip(COLUMNS, ends, strict=False))), ignore_index=True)
        both = both.take(np.arange(len(both)).reshape(2, -1).T.ravel())  # row by row
        new = pd.Series(factorize(both[find_ids(lookup, both) < 0], "edges")[1])
    else:
        new = as_nodes(nodes)
        again = first(find_ids(lookup, new) >= 0)
        if again is not None:
            raise ValueError(f"nodes has {show(new.iloc[again])}, which is in the graph already; give new nodes alone.")
    if not len(new):
        return old
    _refuse_two_kinds(before, new)
    return node_array(pd.concat(alike({"the graph": before, "nodes": new}), ignore_index=True))


def _refuse_two_kinds(old: pd.Series, new: pd.Series) -> None:
    """Refuse a new id that is written like an old one and is of another type: 7 beside "7"."""
    if old.dtype == new.dtype == np.int64:
        return
    row = first(new.astype(str).isin(old.astype(str)))
    if row is not None:
        raise ValueError(
            f"{show(new.iloc[row])} is new, but the graph has a node of another type that is written alike; give ids "
            "of one kind."
        )


def grown_matrices(graph: Graph, nodes: np.ndarray, edges: pd.DataFrame) -> dict[str, CSR]:
    """Return the adjacency of each edge type over all nodes, old edges and new ones."""
    n = len(nodes)
    matrices = {name: _padded(graph.adjacency(name), n) for name in graph.edge_types}
    if len(edges):
        _, i, j = positions(edges["source"], edges["target"], nodes)
        rows = EdgeList(i, j, as_weights(edges["weight"], len(i)) if "weight" in edges else None)
        for name, A in adjacency.adjacencies(Edges(nodes, _types(graph, rows, edges), Symmetry("rows")), True).items():
            data = np.ones(len(A.indices)) if A.weights is None else A.weights
            new = sp.csr_array((data, A.indices, A.indptr), shape=(n, n))
            before = matrices.get(name, sp.csr_array((n, n)))
            _refuse_again(new.multiply(before).tocoo(), nodes)
            matrices[name] = before + new
    return {name: CSR(A.indptr, A.indices, None if (A.data == 1).all() else A.data) for name, A in matrices.items()}


def _padded(A: sp.csr_array, n: int) -> sp.csr_array:
    return sp.csr_array((A.data, A.indices, np.pad(A.indptr, (0, n - A.shape[0]), mode="edge")), shape=(n, n))


def _types(graph: Graph, rows: EdgeList, edges: pd.DataFrame) -> dict[str, EdgeList]:
    if "type" in edges:
        return adjacency.split_types(rows, edges["type"])
    if len(graph.edge_types) > 1:
        raise ValueError(f"edges has no column type, and the graph has types {list(graph.edge_types)}; add the column.")
    return {graph.edge_types[0]: rows}


def _refuse_again(both: sp.coo_array, nodes: np.ndarray) -> None:
    if both.nnz:
        u, v = (show(nodes[ends[0]]) for ends in (both.row, both.col))
        raise ValueError(f"edges has ({u}, {v}), which is in the graph already; give new edges alone.")


def grown_features(features: Any, nodes: Any, ids: np.ndarray) -> Any:
    """Return features of all ``ids``: of old nodes, then of new ones, the rows of ``nodes``, a DataFrame by id."""
    table = isinstance(nodes, pd.DataFrame)
    if features is None:
        if table:
            raise ValueError(
                "nodes has features, but the graph carries none; give ids alone, or graph.with_features(X)."
            )
        return None
    if not table:
        raise ValueError(
            "the graph carries features; give nodes as a DataFrame of theirs, indexed by id, or start from "
            "graph.with_features(None)."
        )
    if not isinstance(features, pd.DataFrame):
        if nodes.shape[1] != features.shape[1]:
            raise ValueError(
                f"nodes has {nodes.shape[1]} features but the graph has {features.shape[1]}; give the same."
            )
        return np.vstack([features, nodes.to_numpy()])
    if set(nodes.columns) != set(features.columns):
        raise ValueError(
            f"nodes has columns {list(nodes.columns)} but the features of the graph are {list(features.columns)}; give "
            "the same."
        )
    both = pd.concat([features, nodes[features.columns]], ignore_index=True)
    return both.set_axis(pd.Index(ids, dtype=ids.dtype, tupleize_cols=False))


def features_of_grown(X: Any, fitted: Any, names: np.ndarray | None, at: np.ndarray, graph: Graph) -> Any:
    """Return features of every node of a grown graph, where X has rows by id of some nodes, of the new ones at least.

    Parameters
    ----------
    X : DataFrame, array or None
        What has a row for each node, or is no table by id, comes back as it is, to be checked like any other.
    fitted : (n, d) array, DataFrame or sparse matrix
        Features of the old nodes, as the fit keeps them: they hold where X has no row.
    names : (d,) array of str or None
        Columns of the features of the fit.
    at : (n,) array
        Positions of the old nodes.
    graph : Graph
        The grown graph, of m nodes.
    """
    new = np.ones(graph.n_nodes, bool)
    new[at] = False
    if X is None and fitted.shape[1] and not new.any():
        X = pd.DataFrame(columns=range(fitted.shape[1]) if names is None else names)
    elif not isinstance(X, pd.DataFrame) or len(X) >= graph.n_nodes or not has_ids(X):
        _check_rows_by_id(X, int(new.sum()), graph)
        return X
    rows = find_ids(pd.Index(X.index, tupleize_cols=False), pd.Series(graph.nodes, dtype=graph.nodes.dtype))
    if (rows >= 0).sum() < len(X) or X.shape[1] != fitted.shape[1]:
        return X  # refused like any other
    lacking = first(new & (rows < 0))
    if lacking is not None:
        raise ValueError(
            f"X has no row for {show(graph.nodes[lacking])}, a new node; give rows by id of all {new.sum():,} new "
            "nodes (those of the fit are known), or of every node."
        )
    before = np.full(graph.n_nodes, -1)
    before[at] = np.arange(len(at))
    order = np.where(rows >= 0, len(at) + rows, before)
    if sp.issparse(fitted):
        return sp.csr_array(sp.vstack([fitted, sp.csr_array(X.to_numpy(float))]))[order]
    if names is None:
        return np.concatenate([fitted, X.to_numpy(fitted.dtype)])[order]
    # Other names of columns, or their order, are refused like any other.
    old = pd.DataFrame(fitted) if isinstance(fitted, np.ndarray) else fitted
    old = old.set_axis(X.columns, axis=1)
    both = pd.concat([old, _of_types(X, old)] if len(X) else [old], ignore_index=True)
    return both.iloc[order].set_axis(pd.Index(graph.nodes, dtype=graph.nodes.dtype, tupleize_cols=False))


def _of_types(X: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """Return new rows with the categories of the old ones, where they have no others."""
    alike: dict[Any, pd.CategoricalDtype] = {}
    for name in old.columns:
        kind = old[name].dtype
        if isinstance(kind, pd.CategoricalDtype) and X[name].dropna().isin(kind.categories).all():
            alike[name] = kind
    return X.astype(alike)


def _check_rows_by_id(X: Any, count: int, graph: Graph) -> None:
    """Refuse as many rows without ids as there are new nodes."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and count and shape[0] == count < graph.n_nodes:
        raise ValueError(
            f"X has {count:,} rows, as many as the graph has new nodes, but no ids; give pd.DataFrame(X, index=ids), "
            "with the ids of the new nodes in the order of its rows."
        )


def positions_within(part: Graph, graph: Graph) -> np.ndarray | None:
    """Return where the nodes of one graph are in another that has all of its nodes and edges; None if it has not."""
    if part.n_nodes > graph.n_nodes or not set(part.edge_types) <= set(graph.edge_types):
        return None
    at = shared_nodes(part, graph)
    if (at < 0).any():
        return None
    for name in part.edge_types:
        A, B = part.adjacency(name), graph.adjacency(name)[at][:, at]
        if (abs(B.multiply(A != 0) - A) > AGREE * A).nnz:
            return None
    return at


def shared_nodes(part: Graph, graph: Graph) -> np.ndarray:
    """Return the position in ``graph`` of each node of ``part`` (n,), -1 where it has no node of that id."""
    lookup = pd.Index(graph.nodes, dtype=graph.nodes.dtype, tupleize_cols=False)
    return find_ids(lookup, pd.Series(part.nodes, dtype=part.nodes.dtype))


def merely_numbered(graph: Graph) -> bool:
    """Return whether ids are the numbers 0, 1, 2, .. in order, which any graph may have."""
    return np.array_equal(graph.nodes, np.arange(graph.n_nodes))
