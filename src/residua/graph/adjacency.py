"""From rows of positions and weights to symmetric adjacency matrices, without a Python loop over rows.

    rows -> F, F_ij = sum of the rows i -> j -> A = combine(F, F')

``combine`` is commutative, so A equals its transpose to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from residua.arrays import as_floats
from residua.graph.ids import as_column, as_ids, check_length, factorize, first, show

AGREE = 1e-9  # relative difference up to which two weights count as the same
LARGEST = np.iinfo(np.int32).max


class CSR(NamedTuple):
    """A matrix row by row; weights is None where every stored entry is 1."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


class EdgeList(NamedTuple):
    """Edges, one a row: the positions of both ends, and weights (None where every weight is 1)."""

    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None

    def take(self, chosen: np.ndarray) -> EdgeList:
        weight = None if self.weight is None else self.weight[chosen]
        return EdgeList(self.source[chosen], self.target[chosen], weight)


class Symmetry(NamedTuple):
    """How the two directions of a pair become one weight, and what an error says where they cannot.

    ``"rows"``: one direction is enough, and where both are listed they agree. ``"matrix"``: both are listed
    and agree. ``"max"``, ``"mean"``, ``"sum"``: of both directions, where one that is absent counts 0.
    """

    how: str
    name: str = "weight"
    remedy: str = ""


class Edges(NamedTuple):
    """What every reader returns.

    Attributes
    ----------
    nodes : ndarray of shape (n,)
        Ids.
    types : dict of str to EdgeList
        The rows of each edge type.
    symmetry : Symmetry
        How the two directions of a pair become one weight.
    found : bool
        Whether nodes are those that occur in the edges, in an order that nobody gave.
    """

    nodes: np.ndarray
    types: dict[str, EdgeList]
    symmetry: Symmetry
    found: bool = False


def choose_symmetry(symmetrize: str | None, default: str, name: str = "weight", remedy: str = "") -> Symmetry:
    """Return what the user asked for, else the default of this kind of input."""
    if symmetrize not in (None, "max", "mean", "sum"):
        raise ValueError(f"symmetrize is {symmetrize!r}; use 'max', 'mean' or 'sum', or None to require symmetry.")
    return Symmetry(symmetrize or default, name, remedy)


def as_weights(values: Any, rows: int, place: Callable[[int], str] = "row {}".format) -> np.ndarray:
    """Return finite weights that are not negative, one per row."""
    column = as_column(values, "weight", "with one number per row")
    check_length("weight", column, rows)
    weights = as_floats(column, "weight", "give one real number per row")
    check_weights(weights, "weight", place)
    return weights


def weights_of_lengths(values: Any, rows: int, place: Callable[[int], str] = "row {}".format) -> np.ndarray:
    """Return one over each length, on the scale on which the mean is 1."""
    column = as_column(values, "length", "with one number per row")
    check_length("length", column, rows)
    lengths = as_floats(column, "length", "give one real number per row")
    row = first(~((lengths > 0) & np.isfinite(lengths)))
    if row is not None:
        raise ValueError(
            f"length is {lengths[row]} at {place(row)}; lengths must be finite and above 0: give the least that counts "
            "as one, np.maximum(length, least), or merge nodes at the same place."
        )
    nearness = lengths.min(initial=np.inf) / lengths  # up to 1, so that none is too large for floats
    return nearness / nearness.mean() if len(nearness) else nearness


def check_weights(weights: np.ndarray, name: str, place: Callable[[int], str]) -> None:
    """Refuse weights that are negative or not finite; ``place`` says where."""
    row = first(~((weights >= 0) & np.isfinite(weights)))
    if row is not None:
        raise ValueError(f"{name} is {weights[row]} at {place(row)}; weights must be finite and not negative.")


def split_types(rows: EdgeList, type: Any) -> dict[str, EdgeList]:
    """Return the rows of each edge type, in order of first appearance."""
    ids = as_ids(type, "type")
    check_length("type", ids, len(rows.source))
    codes, unique = factorize(ids, "type")
    names = type_names(unique)
    if len(names) <= 1:
        return dict.fromkeys(names, rows)
    order = np.argsort(codes.astype(np.int16) if len(names) < 2**15 else codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return {name: rows.take(part) for name, part in zip(names, parts, strict=True)}


def type_names(values: Iterable) -> list[str]:
    """Return the edge types as strings, no two the same."""
    names = [str(value) for value in values]
    if len(set(names)) < len(names):
        raise ValueError(f"type has values that read the same, {names}; name edge types by strings.")
    return names


def adjacencies(edges: Edges, self_loops: bool) -> dict[str, CSR]:
    """Return one symmetric matrix of positive weights per edge type."""
    check_size(len(edges.nodes))
    matrices = {}
    for name, rows in edges.types.items():
        kept = rows if self_loops else rows.take(rows.source != rows.target)
        kind = f" of type {name!r}" if len(edges.types) > 1 else ""
        matrices[name] = symmetric(kept, edges.nodes, edges.symmetry, kind)
    check_edges(matrices, len(edges.nodes))
    return {name: CSR(A.indptr, A.indices, None if (A.data == 1).all() else A.data) for name, A in matrices.items()}


def check_size(n: int) -> None:
    """Refuse more nodes than positions can count."""
    if n > LARGEST:
        raise ValueError(f"graph has {n} nodes; positions are 32-bit, so at most {LARGEST} are possible.")


def check_edges(matrices: dict[str, sp.csr_array], n: int) -> None:
    """Refuse a graph or an edge type without edges, and weights that overflow."""
    if not any(A.nnz for A in matrices.values()):
        raise ValueError(f"graph has no edges ({n} nodes); give at least one edge of positive weight.")
    for name, A in matrices.items():
        if not A.nnz:
            raise ValueError(f"type {name!r} has no edges; leave it out.")
        if A.data.min() < np.finfo(float).tiny:  # has few digits, and its degree no inverse
            raise ValueError(f"weight is {A.data.min():.3g}, smaller than floats hold well; scale the weights up.")
    with np.errstate(over="ignore"):
        total = sum(A.data.sum() for A in matrices.values())
    if not np.isfinite(total):
        raise ValueError(f"weight adds up to {total}; scale the weights down.")


def symmetric(rows: EdgeList, nodes: np.ndarray, symmetry: Symmetry, kind: str) -> sp.csr_array:
    """Return the adjacency of rows read in either direction."""
    F = directed(rows, (len(nodes), len(nodes)))
    B = F.T.tocsr()
    if symmetry.how == "sum":
        return F + B
    if same(F, B):
        return F
    if symmetry.how == "mean":
        return (F + B) * 0.5
    A = F.maximum(B)
    listed_once = F.nnz + B.nnz - A.nnz == np.count_nonzero(F.diagonal())
    if symmetry.how == "matrix" or (symmetry.how == "rows" and not listed_once):
        check_agreement(F, B, lambda i, j: (show(nodes[i]), show(nodes[j])), symmetry, kind)
    return A


def same(F: sp.csr_array, B: sp.csr_array) -> bool:
    """Compare two matrices to the last bit."""
    return all(np.array_equal(getattr(F, part), getattr(B, part)) for part in ("indptr", "indices", "data"))


def directed(rows: EdgeList, shape: tuple[int, int]) -> sp.csr_array:
    """Return the sums over repeated rows, without zeros."""
    weight = np.ones(len(rows.source)) if rows.weight is None else rows.weight
    kind = np.int32 if max(shape) <= LARGEST else np.int64
    ends = rows.source.astype(kind), rows.target.astype(kind)
    F = sp.coo_array((weight, ends), shape=shape).tocsr()
    F.eliminate_zeros()
    return F


def check_agreement(
    F: sp.csr_array, B: sp.csr_array, ends: Callable[[int, int], tuple[str, str]], symmetry: Symmetry, kind: str = ""
) -> None:
    """Refuse rows F of a matrix where they and those of its transpose, B, differ; ``ends`` names row and column."""
    if symmetry.how == "rows":
        F, B = F.multiply(B.astype(bool)).tocsr(), B.multiply(F.astype(bool)).tocsr()
    wrong = (abs(F - B) > F.maximum(B) * AGREE).tocoo()
    if not wrong.nnz:
        return
    i, j = wrong.row[0], wrong.col[0]
    (u, v), forward, backward = ends(i, j), F[i, j], B[i, j]
    if symmetry.how == "rows":
        raise ValueError(
            f"weight of edge ({u}, {v}){kind} is {forward}, but {backward} where it is listed as ({v}, {u}); "
            f"an edge is undirected: make the weights agree, or sort each pair so that rows add up{symmetry.remedy}."
        )
    raise ValueError(
        f"{symmetry.name}{kind} is not symmetric: {wrong.nnz // 2} pairs disagree, such as ({u}, {v}) with "
        f"{forward} and ({v}, {u}) with {backward}; pass symmetrize='max', 'mean' or 'sum'{symmetry.remedy}."
    )


def row_sums(A: CSR) -> np.ndarray:
    """Return the total weight of each row."""
    counts = np.diff(A.indptr)
    if A.weights is None:
        return counts.astype(np.float64)
    sums = np.zeros(len(counts))
    sums[counts > 0] = np.add.reduceat(A.weights, A.indptr[:-1][counts > 0])
    return sums


def read_csr(arrays: Mapping[str, np.ndarray], k: int, n: int, name: str) -> CSR:
    """Return edge type number k; refuse arrays of a damaged file, since compiled kernels read what they point to."""
    A = CSR(arrays[f"indptr.{k}"], arrays[f"indices.{k}"], arrays.get(f"weights.{k}"))
    fits = len(A.indptr) == n + 1 and A.indptr[0] == 0 and A.indptr[-1] == len(A.indices) > 0
    fits = fits and (A.weights is None or len(A.weights) == len(A.indices))
    if not (fits and (np.diff(A.indptr) >= 0).all() and A.indices.min() >= 0 and A.indices.max() < n):
        raise ValueError(f"arrays of type {name!r} do not fit {n} nodes; they are damaged or of another graph.")
    return A
