"""Regression trees on columns of codes: grown by histograms of the slopes at each leaf, in compiled loops.

    gain of a split = G_l^2 / (n_l + c) + G_r^2 / (n_r + c) - G^2 / (n + c)

G sum of the pseudo-responses and n number of the rows on a side, c a ridge. Every column has at most 256 codes; a split
is a table of which of them go left, so numbers, categories and missing values are all asked alike.
"""

from __future__ import annotations

import numpy as np

from residua.linalg.kernels.compiled import compiled

CODES = 256
MISSING = CODES - 1  # the code of a value that is not there, or that no fit has seen


@compiled
def _histogram(codes: np.ndarray, rows: np.ndarray, g: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Fill out (d, 256, 2) with sums of g and counts of rows by code, of the columns that are asked for."""
    out[:] = 0.0
    for row in rows:
        value = g[row]
        for f in columns:
            code = codes[row, f]
            out[f, code, 0] += value
            out[f, code, 1] += 1.0


@compiled
def _best_split(
    hist: np.ndarray,
    columns: np.ndarray,
    categorical: np.ndarray,
    least: float,
    ridge: float,
    table: np.ndarray,
) -> tuple[float, int]:
    """Return the best gain and its column, -1 for none; ``table`` (256,) says which codes go left."""
    best, column = 1e-12, -1
    order = np.empty(CODES, np.int64)
    for f in columns:
        present = 0
        G, n = 0.0, 0.0
        for code in range(CODES):
            if hist[f, code, 1] > 0:
                G += hist[f, code, 0]
                n += hist[f, code, 1]
                if code < MISSING or categorical[f]:
                    order[present] = code
                    present += 1
        whole = G * G / (n + ridge)
        absent = hist[f, MISSING, 1] > 0 and not categorical[f]
        if categorical[f]:
            key = np.empty(present)
            for k in range(present):
                key[k] = hist[f, order[k], 0] / (hist[f, order[k], 1] + 10.0)
            order[:present] = order[:present][np.argsort(key, kind="mergesort")]
        for side in range(2 if absent else 1):  # missing values right, then left
            Gl = hist[f, MISSING, 0] if side else 0.0
            nl = hist[f, MISSING, 1] if side else 0.0
            for k in range(present if absent and not side else present - 1):
                Gl += hist[f, order[k], 0]
                nl += hist[f, order[k], 1]
                if nl < least or n - nl < least:
                    continue
                gain = Gl * Gl / (nl + ridge) + (G - Gl) ** 2 / (n - nl + ridge) - whole
                if gain > best * (1 + 1e-10):
                    best, column = gain, f
                    more_left = 2 * nl > n
                    for code in range(CODES):
                        # What was not seen here goes with the many; numbers go by their order.
                        table[code] = more_left if categorical[f] else code <= order[k]
                    if categorical[f]:
                        for j in range(present):
                            table[order[j]] = j <= k
                    else:
                        table[MISSING] = bool(side) if absent else more_left
    return best, column


@compiled
def grow(
    codes: np.ndarray,
    rows: np.ndarray,
    g: np.ndarray,
    columns: np.ndarray,
    categorical: np.ndarray,
    leaves: int,
    least: float,
    ridge: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grow one tree on ``rows``, the leaf of the largest gain first.

    Returns the column (leaves - 1,) of each split, its table (leaves - 1, 256) of codes that go left, and its children
    (leaves - 1, 2): a split where not negative, else leaf -c - 1. A split that is not there has column -1.
    """
    d = codes.shape[1]
    feature = np.full(leaves - 1, -1, np.int16)
    tables = np.zeros((leaves - 1, CODES), np.bool_)
    children = np.zeros((leaves - 1, 2), np.int16)
    order = rows.copy()
    room = np.empty_like(order)
    start, end = np.zeros(leaves, np.int64), np.zeros(leaves, np.int64)
    hist = np.zeros((leaves, d, CODES, 2))
    gain, split = np.zeros(leaves), np.full(leaves, -1, np.int64)
    wanted = np.zeros((leaves, CODES), np.bool_)
    parent, side = np.full(leaves, -1, np.int64), np.zeros(leaves, np.int64)
    end[0] = len(order)
    _histogram(codes, order, g, columns, hist[0])
    gain[0], split[0] = _best_split(hist[0], columns, categorical, least, ridge, wanted[0])
    count = 1
    while count < leaves:
        leaf = -1
        for k in range(count):
            if split[k] >= 0 and (leaf < 0 or gain[k] > gain[leaf]):
                leaf = k
        if leaf < 0:
            break
        node = count - 1
        feature[node], tables[node] = split[leaf], wanted[leaf]
        children[node, 0], children[node, 1] = -leaf - 1, -count - 1
        if parent[leaf] >= 0:
            children[parent[leaf], side[leaf]] = node
        parent[leaf], side[leaf], parent[count], side[count] = node, 0, node, 1
        left, right = start[leaf], 0
        for at in range(start[leaf], end[leaf]):
            row = order[at]
            if wanted[leaf, codes[row, split[leaf]]]:
                order[left] = row
                left += 1
            else:
                room[right] = row
                right += 1
        order[left : left + right] = room[:right]
        start[count], end[count], end[leaf] = left, end[leaf], left
        small, large = (leaf, count) if 2 * right > end[count] - start[leaf] else (count, leaf)
        whole = hist[leaf].copy()
        _histogram(codes, order[start[small] : end[small]], g, columns, hist[small])
        hist[large] = whole - hist[small]
        for k in (leaf, count):
            gain[k], split[k] = _best_split(hist[k], columns, categorical, least, ridge, wanted[k])
        count += 1
    return feature, tables, children


@compiled
def find_leaves(
    codes: np.ndarray, feature: np.ndarray, tables: np.ndarray, children: np.ndarray, out: np.ndarray
) -> None:
    """Fill out (n,) with the leaf of each row of codes."""
    if feature[0] < 0:
        out[:] = 0
        return
    for i in range(len(codes)):
        node = 0
        while node >= 0:
            node = children[node, 0 if tables[node, codes[i, feature[node]]] else 1]
        out[i] = -node - 1


@compiled
def add_trees(
    codes: np.ndarray,
    feature: np.ndarray,
    tables: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add what trees (T, splits) with leaf values (T, leaves) say of each row of codes to out (n,)."""
    for t in range(len(feature)):
        if feature[t, 0] < 0:
            out += values[t, 0]
            continue
        for i in range(len(codes)):
            node = 0
            while node >= 0:
                node = children[t, node, 0 if tables[t, node, codes[i, feature[t, node]]] else 1]
            out[i] += values[t, -node - 1]


@compiled
def add_contributions(
    codes: np.ndarray,
    feature: np.ndarray,
    tables: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add to out (n, d) what each split on the way of each row of codes changes: the mean behind it less that before.

    Means are over the rows of codes, of what trees (T, splits) with leaf values (T, leaves) say of them.
    """
    leaf = np.empty(len(codes), np.int64)
    for t in range(len(feature)):
        if feature[t, 0] < 0:
            continue
        find_leaves(codes, feature[t], tables[t], children[t], leaf)
        ends, total = np.zeros(values.shape[1]), np.zeros(len(feature[t]))
        for i in range(len(codes)):
            ends[leaf[i]] += 1
        count = np.zeros(len(feature[t]))
        for node in range(len(feature[t]) - 1, -1, -1):  # a split comes before those behind it
            for side in range(2):
                if feature[t, node] >= 0:
                    child = children[t, node, side]
                    count[node] += count[child] if child >= 0 else ends[-child - 1]
                    total[node] += total[child] if child >= 0 else ends[-child - 1] * values[t, -child - 1]
        for i in range(len(codes)):
            node, before = 0, total[0] / count[0]
            while node >= 0:
                j = feature[t, node]
                node = children[t, node, 0 if tables[t, node, codes[i, j]] else 1]
                after = total[node] / count[node] if node >= 0 else values[t, -node - 1]
                out[i, j] += after - before
                before = after
