"""From rows of ids and weights to symmetric adjacency matrices, without a Python loop over rows.

    ids -> positions 0 .. n-1 -> F, F_ij = sum of the rows i -> j -> A = combine(F, F')

``combine`` is commutative, so A equals its transpose to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

AGREE = 1e-9  # relative difference up to which two weights count as the same
LARGEST = np.iinfo(np.int32).max

Ends = tuple[pd.Series, pd.Series]
Positions = tuple[np.ndarray, np.ndarray, np.ndarray]  # nodes, source, target


class CSR(NamedTuple):
    """A matrix row by row; weights is None where every stored entry is 1."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


class Rows(NamedTuple):
    """Edges: the positions of both ends, and weights (None where every weight is 1)."""

    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None

    def take(self, chosen: np.ndarray) -> Rows:
        weight = None if self.weight is None else self.weight[chosen]
        return Rows(self.source[chosen], self.target[chosen], weight)


@dataclass(frozen=True)
class Symmetry:
    """How the two directions of a pair become one weight, and what an error says where they cannot.

    ``"rows"``: one direction is enough, and where both are listed they agree. ``"matrix"``: both are listed
    and agree. ``"max"``, ``"mean"``, ``"sum"``: of both directions, where one that is absent counts 0.
    """

    how: str
    name: str = "weight"
    remedy: str = ""


def choose_symmetry(symmetrize: str | None, default: str, name: str = "weight", remedy: str = "") -> Symmetry:
    if symmetrize not in (None, "max", "mean", "sum"):
        raise ValueError(f"symmetrize is {symmetrize!r}; use 'max', 'mean' or 'sum', or None to require symmetry.")
    return Symmetry(symmetrize or default, name, remedy)


def first(flags: Any) -> int | None:
    """Position of the first True."""
    flags = np.asarray(flags)
    return int(flags.argmax()) if flags.any() else None


def show(value: Any) -> str:
    """An id as its user wrote it: 3, not np.int64(3)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


# Ids and their positions


def as_ids(values: Any, name: str) -> pd.Series:
    """Ids as a Series: int64 where all are integers, else any hashable."""
    if not pd.api.types.is_list_like(values):
        raise TypeError(f"{name} is {values!r}; it must be an array or a list of ids.")
    ids = pd.Series(one_dimension(values, name), copy=False).reset_index(drop=True).infer_objects()
    row = first(ids.isna())
    if row is not None:
        raise ValueError(f"{name} is missing ({ids.iloc[row]}) at row {row}; drop the row or fill in the id.")
    if isinstance(ids.dtype, pd.CategoricalDtype):
        ids = ids.astype(ids.cat.categories.dtype)
    if not len(ids) or not pd.api.types.is_integer_dtype(ids.dtype):
        return ids
    return ids.astype(np.int64 if ids.max() <= np.iinfo(np.int64).max else object)


def one_dimension(values: Any, name: str) -> Any:
    """Values as pandas reads them into one column: tuples stay tuples, and 1 beside "a" stays a number."""
    if isinstance(values, pd.Series | pd.Index):
        return values
    if not hasattr(values, "__array__"):
        return list(values)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; it must have one dimension.")
    return array


def as_nodes(values: Any) -> pd.Series:
    """Ids that name every node once."""
    ids = as_ids(values, "nodes")
    codes, _ = hashed(lambda: pd.factorize(ids), "nodes")
    row = first(codes != np.arange(len(codes)))
    if row is not None:
        raise ValueError(f"nodes lists {show(ids.iloc[row])} again at position {row}; name every node once.")
    return ids


def node_array(ids: pd.Series) -> np.ndarray:
    """Our own copy of the ids, int64 or object."""
    return ids.to_numpy(np.int64 if ids.dtype == np.int64 else object, copy=True)


def hashed(function: Callable, name: str) -> Any:
    """The result of a pandas function that hashes ids."""
    try:
        return function()
    except TypeError as error:
        raise TypeError(f"{name} has an id that cannot be hashed ({error}); use tuples instead of lists.") from None


def positions(source: Any, target: Any, nodes: Any = None) -> Positions:
    """Nodes in their order, and the positions of the source and of the target of each row."""
    ends = (as_ids(source, "source"), as_ids(target, "target"))
    check_length("target", ends[1], len(ends[0]))
    known = None if nodes is None else as_nodes(nodes)
    if all(len(ids) and ids.dtype == np.int64 for ids in [*ends, known] if ids is not None):
        named = [ids.to_numpy() for ids in (ends if known is None else (known,))]
        low = min(int(ids.min()) for ids in named)
        span = max(int(ids.max()) for ids in named) - low + 1
        if span <= 4 * sum(map(len, named)) + 1024:
            return tabulated_positions(ends, known, low, span)
    return hashed_positions(ends, known)


def tabulated_positions(ends: Ends, known: pd.Series | None, low: int, span: int) -> Positions:
    """Positions of integers, by a table over their range."""
    numbers = [ids.to_numpy() for ids in ends]
    nodes = occurring(numbers, low, span) if known is None else node_array(known)
    found = numbers
    if not np.array_equal(nodes, np.arange(span)):
        table = np.full(span, -1)
        table[nodes - low] = np.arange(len(nodes))
        found = [np.where((a >= low) & (a < low + span), table.take(a - low, mode="clip"), -1) for a in numbers]
    if known is not None:
        check_known(ends, found, len(nodes))
    return nodes, found[0], found[1]


def occurring(numbers: list[np.ndarray], low: int, span: int) -> np.ndarray:
    """The integers that occur, ascending."""
    seen = np.zeros(span, bool)
    for a in numbers:
        seen[a - low if low else a] = True
    return np.flatnonzero(seen) + low


def hashed_positions(ends: Ends, known: pd.Series | None) -> Positions:
    """Positions of any ids. Codes count up as ids appear, so known nodes take 0 .. n-1 in their own order."""
    together = pd.concat(ends if known is None else (known, *ends), ignore_index=True)
    codes, unique = hashed(lambda: pd.factorize(together), "source or target")
    source, target = np.split(codes[len(codes) - 2 * len(ends[0]) :], 2)
    if known is not None:
        check_known(ends, (source, target), len(known))
        return node_array(known), source, target
    ids = pd.Series(unique)
    order = np.argsort(ids.to_numpy()) if ids.dtype == np.int64 else order_of_rows(source, target, len(ids))
    rank = np.empty(len(ids), np.int64)
    rank[order] = np.arange(len(ids))
    return node_array(ids.iloc[order]), rank[source], rank[target]


def order_of_rows(source: np.ndarray, target: np.ndarray, n: int) -> np.ndarray:
    """Order of first appearance when rows are read one by one, source before target."""
    rows = np.arange(len(source))[::-1]
    when = np.full((2, n), 2 * len(rows))
    # Written from the last row to the first, so that the first appearance stays.
    when[0, source[::-1]] = 2 * rows
    when[1, target[::-1]] = 2 * rows + 1
    return np.argsort(when.min(axis=0))


def check_known(ends: Ends, found: Iterable[np.ndarray], n: int) -> None:
    for name, ids, position in zip(("source", "target"), ends, found, strict=True):
        row = first((position < 0) | (position >= n))
        if row is not None:
            unknown = show(ids.iloc[row])
            raise ValueError(f"{name} names node {unknown} at row {row}, not in nodes; add it to nodes.")


def check_length(name: str, values: Any, rows: int) -> None:
    if len(values) != rows:
        raise ValueError(f"{name} has {len(values)} entries but source has {rows}; give one per row.")


# Weights and types


def as_weights(values: Any, rows: int, place: Callable[[int], str] = "row {}".format) -> np.ndarray:
    """Finite weights that are not negative, one per row."""
    if not pd.api.types.is_list_like(values):
        raise TypeError(f"weight is {values!r}; it must be an array or a list with one number per row.")
    column = pd.Series(one_dimension(values, "weight"), copy=False)
    check_length("weight", column, rows)
    try:
        if pd.api.types.is_complex_dtype(column.dtype):
            raise TypeError(f"its dtype is {column.dtype}")
        weights = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weight is not numeric ({error}); give one real number per row.") from None
    check_weights(weights, "weight", place)
    return weights


def check_weights(weights: np.ndarray, name: str, place: Callable[[int], str]) -> None:
    row = first(~((weights >= 0) & np.isfinite(weights)))
    if row is not None:
        raise ValueError(f"{name} is {weights[row]} at {place(row)}; weights must be finite and not negative.")


def split_types(rows: Rows, type: Any) -> dict[str, Rows]:
    """Rows by edge type, in order of first appearance."""
    ids = as_ids(type, "type")
    check_length("type", ids, len(rows.source))
    codes, unique = hashed(lambda: pd.factorize(ids), "type")
    names = type_names(unique)
    if len(names) <= 1:
        return dict.fromkeys(names, rows)
    order = np.argsort(codes.astype(np.int16) if len(names) < 2**15 else codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return {name: rows.take(part) for name, part in zip(names, parts, strict=True)}


def type_names(values: Iterable) -> list[str]:
    names = [str(value) for value in values]
    if len(set(names)) < len(names):
        raise ValueError(f"type has values that read the same, {names}; name edge types by strings.")
    return names


# Adjacency


def adjacencies(types: Mapping[str, Rows], nodes: np.ndarray, symmetry: Symmetry, self_loops: bool) -> dict[str, CSR]:
    """One symmetric matrix of positive weights per edge type."""
    check_size(len(nodes))
    matrices = {}
    for name, rows in types.items():
        kept = rows if self_loops else rows.take(rows.source != rows.target)
        matrices[name] = symmetric(kept, nodes, symmetry, f" of type {name!r}" if len(types) > 1 else "")
    check_edges(matrices, len(nodes))
    return {name: CSR(A.indptr, A.indices, None if (A.data == 1).all() else A.data) for name, A in matrices.items()}


def check_size(n: int) -> None:
    if n > LARGEST:
        raise ValueError(f"graph has {n} nodes; positions are 32-bit, so at most {LARGEST} are possible.")


def check_edges(matrices: dict[str, sp.csr_array], n: int) -> None:
    if not any(A.nnz for A in matrices.values()):
        raise ValueError(f"graph has no edges ({n} nodes); give at least one edge of positive weight.")
    for name, A in matrices.items():
        if not A.nnz:
            raise ValueError(f"type {name!r} has no edges; leave it out.")
    with np.errstate(over="ignore"):
        total = sum(A.data.sum() for A in matrices.values())
    if not np.isfinite(total):
        raise ValueError(f"weight adds up to {total}; scale the weights down.")


def symmetric(rows: Rows, nodes: np.ndarray, symmetry: Symmetry, kind: str) -> sp.csr_array:
    F = directed(rows, len(nodes))
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
        check_agreement(F, B, nodes, symmetry, kind)
    return A


def same(F: sp.csr_array, B: sp.csr_array) -> bool:
    return all(np.array_equal(getattr(F, part), getattr(B, part)) for part in ("indptr", "indices", "data"))


def directed(rows: Rows, n: int) -> sp.csr_array:
    """Sums over repeated rows, without zeros."""
    weight = np.ones(len(rows.source)) if rows.weight is None else rows.weight
    ends = rows.source.astype(np.int32), rows.target.astype(np.int32)
    F = sp.coo_array((weight, ends), shape=(n, n)).tocsr()
    F.sum_duplicates()
    F.eliminate_zeros()
    return F


def check_agreement(F: sp.csr_array, B: sp.csr_array, nodes: np.ndarray, symmetry: Symmetry, kind: str) -> None:
    """F and its transpose B agree up to rounding."""
    if symmetry.how == "rows":
        F, B = F.multiply(pattern(B)).tocsr(), B.multiply(pattern(F)).tocsr()
    wrong = sp.triu(abs(F - B) > F.maximum(B) * AGREE, format="coo")
    if not wrong.nnz:
        return
    i, j = wrong.row[0], wrong.col[0]
    u, v, forward, backward = show(nodes[i]), show(nodes[j]), F[i, j], B[i, j]
    if symmetry.how == "rows":
        raise ValueError(
            f"weight of edge ({u}, {v}){kind} is {forward}, but {backward} where it is listed as ({v}, {u}); "
            f"an edge is undirected: make the weights agree, or sort each pair so that rows add up{symmetry.remedy}."
        )
    raise ValueError(
        f"{symmetry.name}{kind} is not symmetric: {wrong.nnz} pairs disagree, such as ({u}, {v}) with "
        f"{forward} and ({v}, {u}) with {backward}; pass symmetrize='max', 'mean' or 'sum'{symmetry.remedy}."
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


def count_self_loops(A: CSR) -> int:
    rows = np.repeat(np.arange(len(A.indptr) - 1, dtype=np.int32), np.diff(A.indptr))
    return int((rows == A.indices).sum())
