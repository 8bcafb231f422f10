"""Compiled loops over CSR rows: the one place where time is spent.

    out = (S V) p + Z q,   S = diag(s) A diag(s),   and the column inner products out'V

A is stored by rows (indptr, indices) with weights w, or with none where every weight is 1: the pattern and the
scale s say all. Rows are dealt in blocks of equal work. Partial sums are kept per block and added in order, so a
result does not depend on the number of threads.
"""

from typing import Any

import numpy as np
from numba import prange

from residua.linalg.kernels.compiled import compiled, compiled_twice
from residua.linalg.kernels.registers import MASKED_GATHERS, combined_rows, gathered_total

# Sums may be re-ordered for vector registers; infinities and NaN keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
# Of functions that other compiled ones call. Out of line, the copy that a process happens to load first serves all of
# them, and copies that were optimised in different surroundings add in different order.
INNER: dict[str, Any] = {"fastmath": FAST, "forceinline": True}
BLOCKS = 128


def row_blocks(indptr: np.ndarray) -> np.ndarray:
    """Return the borders of ``BLOCKS`` runs of rows with about equal work (entries plus rows)."""
    n = len(indptr) - 1
    work = indptr + np.arange(n + 1)
    return np.searchsorted(work, np.linspace(0, work[-1], min(BLOCKS, max(n, 1)) + 1)).astype(np.int64)


@compiled(**INNER)
def _looped_total(x, indices, weights, first, last):
    total = x[:1].sum() * 0
    # Unsigned positions: numba would test a signed one for counting from the end.
    for e in range(np.uint64(first), np.uint64(last)):
        value = x[np.uint64(indices[e])]
        total += value if weights is None else weights[e] * value
    return total


row_total = gathered_total if MASKED_GATHERS else _looped_total


@compiled(**INNER)
def _combine_column_block(b, blocks, indptr, indices, weights, scale, v, vs, p, z, q, out, dots):
    dot = 0.0
    for i in range(np.uint64(blocks[b]), np.uint64(blocks[b + 1])):
        total = row_total(vs, indices, weights, indptr[i], indptr[i + np.uint64(1)]) * (p * scale[i])
        if z is not None:
            total += q * z[i]
        out[i] = total
        if dots is not None:
            dot += total * v[i]
    if dots is not None:
        dots[b, 0] = dot


@compiled_twice(fastmath=FAST)
def combine_column(blocks, indptr, indices, weights, scale, v, vs, p, z, q, out, dots):
    """Write one column ``out = p S v + q z``, and ``out'v`` by block to dots; ``vs`` is room for ``scale * v``."""
    for b in prange(len(blocks) - 1):
        for i in range(np.uint64(blocks[b]), np.uint64(blocks[b + 1])):
            vs[i] = scale[i] * v[i]
    for i in range(blocks[-1], len(scale)):  # columns beyond these rows, where they are of a larger matrix
        vs[i] = scale[i] * v[i]
    for b in prange(len(blocks) - 1):
        _combine_column_block(b, blocks, indptr, indices, weights, scale, v, vs, p, z, q, out, dots)


@compiled  # without fastmath: combined_rows says itself which sums may be re-ordered
def _combine_rows(first, last, indptr, indices, weights, scale, codes, table, V, p, Z, q, out, dots):
    combined_rows(first, last, (indptr, indices, weights, scale, codes, table, V, p, Z, q, out, dots))


@compiled_twice(fastmath=FAST)
def combine_columns(blocks, indptr, indices, weights, scale, codes, table, V, p, Z, q, out, dots):
    """Write many columns ``out = (S V) p + Z q`` with p, q per column, and ``out'V`` by block to dots."""
    for b in prange(len(blocks) - 1):
        first, last = blocks[b], blocks[b + 1]
        if dots is None:
            _combine_rows(first, last, indptr, indices, weights, scale, codes, table, V, p, Z, q, out, None)
        else:
            _combine_rows(first, last, indptr, indices, weights, scale, codes, table, V, p, Z, q, out, dots[b])


@compiled(fastmath=FAST)
def product_at(rows, indptr, indices, weights, scale, v):
    """Return ``(S v)`` at some rows only."""
    out = np.empty(len(rows), v.dtype)
    for k in range(len(rows)):
        i = rows[k]
        total = scale[i] * 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            total += scale[j] * v[j] * (weights[e] if weights is not None else 1)
        out[k] = scale[i] * total
    return out


@compiled(**INNER)
def _add_rows(W, V, c, squares):
    for i in range(len(W)):
        for j in range(W.shape[1]):
            W[i, j] += V[i, j] * c[j]
            squares[j] += W[i, j] * W[i, j]


@compiled_twice(fastmath=FAST)
def add_scaled(count, W, V, c):
    """Add ``V c`` to W in place, in ``count`` blocks; return the squared column norms of W by block."""
    n = len(W)
    size = max(1, -(-n // count))
    partial = np.zeros((count, W.shape[1]))
    for b in prange(count):
        rows = slice(min(n, b * size), min(n, (b + 1) * size))
        _add_rows(W[rows], V[rows], c, partial[b])
    return partial


@compiled(**INNER)
def _advance_rows(X, P, R, a, b):
    for i in range(len(X)):
        for j in range(X.shape[1]):
            X[i, j] += P[i, j] * a[j]
            P[i, j] = R[i, j] + P[i, j] * b[j]


@compiled_twice(fastmath=FAST)
def advance(count, X, P, R, a, b):
    """End a conjugate-gradient step, in ``count`` blocks: add ``P a`` to X, then make P ``R + P b``."""
    n = len(X)
    size = max(1, -(-n // count))
    for block in prange(count):
        rows = slice(min(n, block * size), min(n, (block + 1) * size))
        _advance_rows(X[rows], P[rows], R[rows], a, b)


@compiled(fastmath=FAST)
def cg_column(indptr, indices, weights, scale, alpha, b, x, goal, max_iter):
    """Solve ``(I - alpha S) x = b`` for one column on a small graph, all in one call; x is start and result."""
    r = np.empty_like(b)
    xs = x * scale
    for i in range(len(b)):
        total = row_total(xs, indices, weights, indptr[i], indptr[i + 1])
        r[i] = b[i] - x[i] + alpha * scale[i] * total
    return cg_column_from(indptr, indices, weights, scale, alpha, r, x, goal, max_iter)


@compiled(**INNER)
def cg_column_from(indptr, indices, weights, scale, alpha, r, x, goal, max_iter):
    """Go on from x, whose residual r is known, and bring both to their end; return the steps and ``r'r``."""
    n = len(r)
    p = r.copy()
    ap = np.empty_like(r)
    ps = np.empty_like(r)
    rr = 0.0
    for i in range(n):
        rr += r[i] * r[i]
    step = 0
    while rr > goal and step < max_iter:
        for i in range(n):
            ps[i] = p[i] * scale[i]
        pap = 0.0
        for i in range(n):
            total = row_total(ps, indices, weights, indptr[i], indptr[i + 1])
            ap[i] = p[i] - alpha * scale[i] * total
            pap += p[i] * ap[i]
        if pap <= 0.0:
            break
        a = rr / pap
        old = rr
        rr = 0.0
        for i in range(n):
            x[i] += a * p[i]
            r[i] -= a * ap[i]
            rr += r[i] * r[i]
        for i in range(n):
            p[i] = r[i] + rr / old * p[i]
        step += 1
    return step, rr


@compiled
def submatrix(indptr, indices, weights, scale, rows):
    """Return indptr, indices and weights of rows and columns ``rows``, columns in the order of ``indices``.

    Mini-batches ask for one at each step: on a few thousand rows scipy takes two to three times as long.
    """
    position = np.full(len(scale), -1, np.int32)
    out_indptr = np.zeros(len(rows) + 1, np.int64)
    for new in range(len(rows)):
        position[rows[new]] = new
    for new in range(len(rows)):
        out_indptr[new + 1] = out_indptr[new]
        for e in range(indptr[rows[new]], indptr[rows[new] + 1]):
            out_indptr[new + 1] += position[indices[e]] >= 0
    out_indices = np.empty(out_indptr[-1], np.int32)
    out_weights = np.empty(0 if weights is None else out_indptr[-1], scale.dtype)
    at = 0
    for i in rows:
        for e in range(indptr[i], indptr[i + 1]):
            j = position[indices[e]]
            if j >= 0:
                out_indices[at] = j
                if weights is not None:
                    out_weights[at] = weights[e]
                at += 1
    return out_indptr, out_indices, out_weights


@compiled
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]  # halve the path on the way up
        i = parent[i]
    return i


@compiled
def join_components(indptr, indices, parent):
    """Union-find: let ``parent`` name for both ends of every entry one root, the smallest node of the component."""
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            a, b = _root(parent, i), _root(parent, np.int64(indices[e]))
            if a != b:
                parent[max(a, b)] = min(a, b)
    for i in range(len(parent)):
        parent[i] = parent[parent[i]]  # which names the root, since no parent comes after its child


@compiled(forceinline=True)
def diagonal_rest(i, indptr, indices, weights, scale, alpha):
    """Return what the edges of row i leave of the diagonal of ``I - alpha S``, where each takes a square."""
    rest = 1.0
    for e in range(indptr[i], indptr[i + 1]):
        m = alpha if weights is None else alpha * weights[e]
        rest -= (m if indices[e] == i else abs(m)) * scale[i] * scale[i]
    return max(rest, 0.0)


@compiled
def edge_noise(indptr, indices, weights, scale, alpha, edge_normals, node_normals, out):
    """Add to ``out`` a draw with covariance ``I - alpha S``, from one normal for each edge and each node."""
    at = 0
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                m = alpha if weights is None else alpha * weights[e]
                draw = np.sqrt(abs(m)) * edge_normals[at]
                at += 1
                out[i] += scale[i] * draw
                out[j] -= np.sign(m) * scale[j] * draw
        out[i] += np.sqrt(diagonal_rest(i, indptr, indices, weights, scale, alpha)) * node_normals[i]
