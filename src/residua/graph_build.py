"""From rows of ids and weights to a symmetric adjacency matrix, without a Python loop over rows.

    ids -> positions 0 .. n-1 -> directed sums F -> A = combine(F, F')

F_ij sums the rows i -> j. ``combine`` is commutative, so A equals its transpose to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

AGREE = 1e-9  # relative difference up to which two weights count as the same
LARGEST = np.iinfo(np.int32).max


class CSR(NamedTuple):
    """A matrix row by row; weights is None where every stored entry is 1."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


class Rows(NamedTuple):
    """Edges: positions of both ends, and weights (None where every weight is 1)."""

    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None

    def take(self, chosen: np.ndarray) -> Rows:
        return Rows(*(None if column is None else column[chosen] for column in self))


@dataclass(frozen=True)
class Symmetry:
    """How the two directions of a pair become one weight.

    ``"rows"``: one direction is enough, and where both are listed they agree. ``"matrix"``: both are there and agree.
    ``"max"``, ``"mean"``, ``"sum"``: of both directions, where one that is absent counts 0.
    """

    how: str
    name: str
    remedy: str

    @classmethod
    def of_matrix(cls, symmetrize: str | None, name: str, remedy: str) -> Symmetry:
        check_choice(symmetrize)
        return cls(symmetrize or "matrix", name, remedy)

    @classmethod
    def of_rows(cls, symmetrize: str | None = None, remedy: str = "make the weights agree") -> Symmetry:
        check_choice(symmetrize)
        return cls(symmetrize or "rows", "weight", remedy)


def check_choice(symmetrize: str | None) -> None:
    if symmetrize not in (None, "max", "mean", "sum"):
        raise ValueError(f"symmetrize is {symmetrize!r}; use 'max', 'mean' or 'sum', or None to require symmetry.")


# Ids and their positions


def as_ids(values: Any, name: str) -> pd.Series:
    """Ids as a Series: int64 where all are integers, else any hashable."""
    if not pd.api.types.is_list_like(values):
        raise TypeError(f"{name} is {values!r}; it must be an array or a list of node ids.")
    if hasattr(values, "__array__") and not isinstance(values, pd.Series | pd.Index):
        values = np.asarray(values)
        if values.ndim != 1:
            raise ValueError(f"{name} has shape {values.shape}; it must have one dimension.")
    ids = pd.Series(values if hasattr(values, "dtype") else list(values)).reset_index(drop=True).infer_objects()
    row = first(ids.isna())
    if row is not None:
        raise ValueError(f"{name} is missing ({ids.iloc[row]}) at row {row}; drop the row or fill in the id.")
    if not pd.api.types.is_integer_dtype(ids.dtype):
        return ids
    return ids.astype(np.int64 if ids.max() <= np.iinfo(np.int64).max else object)


def node_array(ids: pd.Series) -> np.ndarray:
    """Our own copy of the ids, int64 or object."""
    return ids.to_numpy(np.int64 if ids.dtype == np.int64 else object, copy=True)


def as_nodes(values: Any) -> pd.Series:
    """Ids that name every node once."""
    ids = as_ids(values, "nodes")
    row = first(hashed(ids.duplicated, "nodes"))
    if row is not None:
        raise ValueError(f"nodes lists {ids.iloc[row]!r} a second time at position {row}; name every node once.")
    return ids


def hashed(function, name: str):
    """The result of a pandas function that hashes ids."""
    try:
        return function()
    except TypeError as error:
        raise TypeError(f"{name} holds an id that cannot be hashed: {error}; use a tuple, not a list.") from None


def positions(source: Any, target: Any, nodes: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes in their order, and the positions of the source and the target of each row."""
    ends = [as_ids(source, "source"), as_ids(target, "target")]
    check_length(target=ends[1], rows=len(ends[0]))
    known = None if nodes is None else as_nodes(nodes)
    if all(ids.dtype == np.int64 for ids in [*ends, known] if ids is not None):
        named = ends if known is None else [known]
        low, span = value_range([ids.to_numpy() for ids in named])
        if span <= 4 * sum(map(len, named)) + 1024:
            return tabulated_positions(ends, known, low, span)
    return hashed_positions(ends, known)


def value_range(arrays: list[np.ndarray]) -> tuple[int, int]:
    arrays = [a for a in arrays if a.size]
    low = min((int(a.min()) for a in arrays), default=0)
    return low, max((int(a.max()) for a in arrays), default=low - 1) - low + 1


def tabulated_positions(ends, known, low, span):
    """Positions of integers by a table over their range."""
    numbers = [ids.to_numpy() for ids in ends]
    nodes = present(numbers, low, span) if known is None else node_array(known)
    if np.array_equal(nodes, np.arange(span)):
        found = numbers
    else:
        table = np.full(span, -1)
        table[nodes - low] = np.arange(len(nodes))
        found = [np.where((a >= low) & (a < low + span), table.take(a - low, mode="clip"), -1) for a in numbers]
    if known is not None:
        check_known(ends, found, len(nodes))
    return nodes, *found


def present(numbers: list[np.ndarray], low: int, span: int) -> np.ndarray:
    """The integers that occur, ascending."""
    seen = np.zeros(span, bool)
    for a in numbers:
        seen[a - low if low else a] = True
    return np.flatnonzero(seen) + low


def hashed_positions(ends, known):
    """Positions of any ids; codes count up in order of appearance, so known nodes come first and in order."""
    together = pd.concat(ends if known is None else [known, *ends], ignore_index=True)
    codes, unique = hashed(lambda: pd.factorize(together), "source or target")
    if known is not None:
        found = np.split(codes[len(known) :], 2)
        check_known(ends, found, len(known))
        return node_array(known), *found
    found = np.split(codes, 2)
    ids = pd.Series(unique)
    order = np.argsort(ids.to_numpy()) if ids.dtype == np.int64 else order_of_rows(*found, len(ids))
    rank = np.empty(len(ids), np.int64)
    rank[order] = np.arange(len(ids))
    return node_array(ids.iloc[order]), *(rank[codes] for codes in found)


def order_of_rows(source: np.ndarray, target: np.ndarray, n: int) -> np.ndarray:
    """Order of first appearance when rows are read one by one, source before target."""
    rows = np.arange(len(source))
    when = np.full((2, n), 2 * len(rows))
    # Written from the last row to the first, so that the first appearance stays.
    when[0, source[::-1]] = 2 * rows[::-1]
    when[1, target[::-1]] = 2 * rows[::-1] + 1
    return np.argsort(when.min(axis=0))


def check_known(ends, found, n: int) -> None:
    for name, ids, position in zip(("source", "target"), ends, found, strict=True):
        row = first((position < 0) | (position >= n))
        if row is not None:
            raise ValueError(f"{name} names node {ids.iloc[row]!r} at row {row}, which is not in nodes; add it to nodes.")


# Weights and types


def as_weights(values: Any, rows: int, name: str = "weight") -> np.ndarray:
    """Finite weights that are not negative, one per row."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    try:
        if kind not in "biufO":
            raise TypeError
        weights = pd.Series(values).to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not numeric ({values!r:.60}); give one number per edge.") from None
    check_length(rows=rows, **{name: weights})
    row = first(~((weights >= 0) & np.isfinite(weights)))
    if row is not None:
        raise ValueError(f"{name} is {weights[row]} at row {row}; weights must be finite and not negative.")
    return weights


def split_types(rows: Rows, type: Any) -> dict[str, Rows]:
    """Rows by edge type, in order of first appearance."""
    ids = as_ids(type, "type")
    check_length(type=ids, rows=len(rows.source))
    codes, unique = pd.factorize(ids)
    names = [str(name) for name in unique]
    if len(set(names)) < len(names):
        raise ValueError(f"type holds {list(unique)!r}, of which two read the same; name edge types by strings.")
    if len(names) == 1:
        return {names[0]: rows}
    order = np.argsort(codes.astype(np.int16) if len(names) < 2**15 else codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return {name: rows.take(part) for name, part in zip(names, parts, strict=True)}


def check_length(rows: int, **column: Any) -> None:
    ((name, values),) = column.items()
    if len(values) != rows:
        raise ValueError(f"{name} has {len(values)} entries but source has {rows}; give one per row.")


def first(flags: Any) -> int | None:
    """Position of the first True."""
    flags = np.asarray(flags)
    return int(flags.argmax()) if flags.any() else None


# Adjacency


def adjacencies(types: Mapping[str, Rows], nodes: np.ndarray, symmetry: Symmetry, self_loops: bool) -> dict[str, CSR]:
    """One symmetric matrix of positive weights per edge type."""
    matrices = {name: symmetric(rows, nodes, symmetry, self_loops) for name, rows in types.items()}
    if not any(A.nnz for A in matrices.values()):
        raise ValueError(
            f"graph has no edges among its {len(nodes)} nodes; give at least one row of positive weight"
            + ("." if self_loops else ", or keep self-loops by self_loops=True.")
        )
    for name, A in matrices.items():
        if not A.nnz:
            raise ValueError(f"edge type {name!r} has no edges; leave it out.")
    with np.errstate(over="ignore"):
        if not np.isfinite(sum(A.data.sum() for A in matrices.values())):
            raise ValueError("weight adds up to infinity; scale the weights down.")
    return {name: CSR(A.indptr, A.indices, None if (A.data == 1).all() else A.data) for name, A in matrices.items()}


def symmetric(rows: Rows, nodes: np.ndarray, symmetry: Symmetry, self_loops: bool) -> sp.csr_array:
    F = directed(rows, len(nodes), self_loops)
    B = F.T.tocsr()
    if symmetry.how == "sum":
        return F + B
    if symmetry.how == "mean":
        return (F + B) * 0.5
    if symmetry.how != "max":
        if same(F, B):
            return F
        check_agreement(F, B, nodes, symmetry)
    return F.maximum(B)


def directed(rows: Rows, n: int, self_loops: bool) -> sp.csr_array:
    """Sums over repeated rows, without zeros."""
    if not self_loops:
        rows = rows.take(rows.source != rows.target)
    weight = np.ones(len(rows.source)) if rows.weight is None else rows.weight
    F = sp.coo_array((weight, (rows.source.astype(np.int32), rows.target.astype(np.int32))), shape=(n, n)).tocsr()
    F.sum_duplicates()
    F.eliminate_zeros()
    return F


def same(F: sp.csr_array, B: sp.csr_array) -> bool:
    return all(np.array_equal(getattr(F, part), getattr(B, part)) for part in ("indptr", "indices", "data"))


def check_agreement(F: sp.csr_array, B: sp.csr_array, nodes: np.ndarray, symmetry: Symmetry) -> None:
    """F and B, its transpose, agree up to rounding."""
    if symmetry.how == "rows":
        F, B = F.multiply(pattern(B)).tocsr(), B.multiply(pattern(F)).tocsr()
    wrong = sp.triu(abs(F - B) > F.maximum(B) * AGREE, format="coo")
    if not wrong.nnz:
        return
    i, j = wrong.row[0], wrong.col[0]
    pair, reverse = f"({show(nodes[i])}, {show(nodes[j])})", f"({show(nodes[j])}, {show(nodes[i])})"
    if symmetry.how == "rows":
        raise ValueError(
            f"weight of edge {pair} is {F[i, j]}, but {B[i, j]} where it is listed as {reverse}; "
            f"an edge is undirected: {symmetry.remedy}."
        )
    raise ValueError(
        f"{symmetry.name} is not symmetric: {wrong.nnz} pairs disagree, such as {pair} with {F[i, j]} "
        f"and {reverse} with {B[i, j]}; pass symmetrize='max', 'mean' or 'sum'{symmetry.remedy}."
    )


def pattern(A: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)


def row_sums(A: CSR) -> np.ndarray:
    counts = np.diff(A.indptr)
    if A.weights is None:
        return counts.astype(np.float64)
    sums = np.zeros(len(counts))
    sums[counts > 0] = np.add.reduceat(A.weights, A.indptr[:-1][counts > 0])
    return sums


def self_loops(A: CSR) -> int:
    rows = np.repeat(np.arange(len(A.indptr) - 1, dtype=A.indices.dtype), np.diff(A.indptr))
    return int((rows == A.indices).sum())
