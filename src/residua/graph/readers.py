"""Readers: each kind of graph input as nodes, rows by edge type, and how its two directions become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from residua.caller import warn
from residua.graph import adjacency
from residua.graph.adjacency import EdgeList, Edges, Symmetry, as_weights, weights_of_lengths
from residua.graph.alignment import align, check_one_index, has_ids
from residua.graph.ids import as_nodes, node_array, positions

ONE_TYPE = "edge"


def read_edges(source: Any, target: Any, weight: Any, type: Any, nodes: Any, length: Any = None) -> Edges:
    """Read one row per edge."""
    check_one_index({"source": source, "target": target, "weight": weight, "type": type, "length": length})
    if weight is not None and length is not None:
        raise ValueError(
            "weight and length are both given; a length makes a weight, 1 / length: leave one of them out."
        )
    order, i, j = positions(source, target, nodes)
    weights = weights_of_lengths(length, len(i)) if length is not None else None
    rows = EdgeList(i, j, weights if weight is None else as_weights(weight, len(i)))
    types = {ONE_TYPE: rows} if type is None else adjacency.split_types(rows, type)
    return Edges(order, types, Symmetry("rows"), nodes is None)


def read_pandas(edges: pd.DataFrame, nodes: Any, **columns: Any) -> Edges:
    """Read a table whose columns are named by ``columns``."""
    for argument, column in columns.items():
        if column is not None and column not in edges.columns:
            raise ValueError(f"{argument}={column!r} is not a column of edges; its columns are {list(edges.columns)}.")
    taken = {argument: None if column is None else edges[column] for argument, column in columns.items()}
    return read_edges(**taken, nodes=nodes)


def read_matrices(A: Any, nodes: Any, symmetry: Symmetry) -> Edges:
    """Read one matrix, or one for each edge type."""
    matrices = dict(A) if isinstance(A, Mapping) else {ONE_TYPE: A}
    if not matrices:
        raise ValueError(f"{symmetry.name} is an empty dict; give one matrix per edge type.")
    nodes, tables = labelled_matrices(list(matrices.values()), nodes, symmetry.name)
    entries = [matrix_entries(matrix, symmetry.name) for matrix in tables]
    n = entries[0].shape[0]
    if any(matrix.shape != (n, n) for matrix in entries):
        shapes = [matrix.shape for matrix in entries]
        raise ValueError(f"{symmetry.name} has matrices of shapes {shapes}; give every edge type a row per node.")
    order = np.arange(n) if nodes is None else node_array(as_nodes(nodes))
    if len(order) != n:
        raise ValueError(f"nodes has {len(order)} ids but {symmetry.name} has {n} rows; give one id per row.")
    rows = [EdgeList(matrix.row, matrix.col, matrix.data) for matrix in entries]
    return Edges(order, dict(zip(adjacency.type_names(matrices), rows, strict=True)), symmetry)


def labelled_matrices(matrices: list[Any], nodes: Any, name: str) -> tuple[Any, list[Any]]:
    """Return the nodes, which the index of a DataFrame names too, and matrices whose rows and columns follow them."""
    named = next((A.index for A in matrices if isinstance(A, pd.DataFrame) and has_ids(A)), None)
    if named is None:
        return nodes, matrices
    nodes = node_array(as_nodes(named if nodes is None else nodes))

    def follow(A: Any) -> Any:
        if not isinstance(A, pd.DataFrame):
            return A
        columns = align(A.T, nodes, f"{name}.T", called="nodes")
        return align(columns.T, nodes, name, called="nodes").to_numpy()

    return nodes, [follow(A) for A in matrices]


def matrix_entries(A: Any, name: str) -> sp.coo_array:
    """Return the entries of a square matrix of weights, each place once."""
    if np.ma.is_masked(A):
        raise ValueError(f"{name} is a masked array; give 0 where there is no edge: {name}.filled(0).")
    A = A if sp.issparse(A) else np.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} has shape {A.shape}; an adjacency matrix is square.")
    if A.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {A.dtype}; weights must be real numbers.")
    adjacency.check_size(A.shape[0])
    matrix = sp.csr_array(A, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    entries = matrix.tocoo()
    adjacency.check_weights(entries.data, name, lambda k: f"({entries.row[k]}, {entries.col[k]})")
    return entries


def read_networkx(G: Any, weight: str | None, type: str | None, symmetrize: str | None) -> Edges:
    """Read a networkx graph, nodes in its own order."""
    table = list(G.edges(data=True))
    source, target, attributes = ([edge[k] for edge in table] for k in range(3))
    order, i, j = positions(source, target, list(G.nodes))
    rows = EdgeList(i, j, networkx_weights(table, attributes, weight))
    types = {ONE_TYPE: rows} if type is None else adjacency.split_types(rows, [a.get(type) for a in attributes])
    symmetry = adjacency.choose_symmetry(symmetrize, "matrix", "G", ", or give G.to_undirected()")
    return Edges(order, types, symmetry if G.is_directed() else Symmetry("rows"))


def networkx_weights(table: list, attributes: list[dict], weight: str | None) -> np.ndarray | None:
    """Return the weights of all edges; None where no edge has one."""
    if weight is None:
        return None
    if not any(weight in a for a in attributes):
        if weight != "weight" and attributes:
            there = sorted(map(str, set().union(*attributes)))
            raise ValueError(f"weight={weight!r} is on no edge of G; attributes of its edges are {there}.")
        return None
    values = [a.get(weight, 1.0) for a in attributes]
    return as_weights(values, len(values), lambda k: f"edge {table[k][:2]}")


def read_pyg(data: Any, symmetrize: str | None) -> Edges:
    """Read the edges of torch_geometric data."""
    n = data.num_nodes
    if n is None:
        raise ValueError("data has no num_nodes; set data.num_nodes.")
    types = {name: pyg_rows(store, n) for name, store in pyg_stores(data).items()}
    remedy = ", or pass symmetrize='max', 'mean' or 'sum'"
    return Edges(np.arange(n), types, adjacency.choose_symmetry(symmetrize, "rows", remedy=remedy))


def pyg_stores(data: Any) -> dict[str, Any]:
    """Return the edge stores of torch_geometric data by edge type."""
    # Asked of the class: a Data object may carry a tensor of any name.
    if not hasattr(type(data), "edge_types"):
        return {ONE_TYPE: data}
    if len(data.node_types) != 1:
        raise ValueError(f"data has node types {data.node_types}; give one with a single node type.")
    return {relation: data[source, relation, target] for source, relation, target in data.edge_types}


def pyg_rows(store: Any, n: int) -> EdgeList:
    """Return the edges of one store, checked."""
    if "edge_index" not in store:
        raise ValueError(f"data has no edge_index in {store}; add it as a (2, edges) tensor.")
    index = tensor_to_numpy(store.edge_index)
    if index.ndim != 2 or len(index) != 2:
        raise ValueError(f"data.edge_index has shape {index.shape}; it must be (2, edges).")
    if index.size and not (index.min() >= 0 and index.max() < n):
        found = f"{index.min()} .. {index.max()}"
        raise ValueError(f"data.edge_index has values in {found} but data has {n} nodes; set data.num_nodes.")
    weight = as_weights(tensor_to_numpy(store.edge_weight), index.shape[1]) if "edge_weight" in store else None
    return EdgeList(index[0], index[1], weight)


def read_pyg_attributes(data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the ends of the edges of torch_geometric data and their attributes; None where there are none."""
    if not any("edge_attr" in store and store.edge_attr is not None for store in pyg_stores(data).values()):
        return None
    if hasattr(type(data), "edge_types"):
        warn("edge_attr of HeteroData is not used: attributes are kept for Data; give weights as edge_weight.")
        return None
    source, target = tensor_to_numpy(data.edge_index)
    return source, target, tensor_to_numpy(data.edge_attr)


def tensor_to_numpy(tensor: Any) -> np.ndarray:
    """Return a tensor as an array, wherever it lives."""
    return np.asarray(tensor.detach().cpu())


def read_libpysal(w: Any, symmetrize: str | None) -> Edges:
    """Read spatial weights, old and new kind."""
    classic = hasattr(w, "id_order")
    remedy = 'undo row-standardisation by w.transform = "o"' if classic else "give w as it was before w.transform"
    symmetry = adjacency.choose_symmetry(symmetrize, "matrix", "w", f", or {remedy}")
    return read_matrices(w.sparse, list(w.id_order if classic else w.unique_ids), symmetry)
