"""Regions without labels: where they are, and balls of labels like them.

    F_k(t), F_u(t)  shares of known and of unknown nodes with another label within t hops
    core = {u unknown: more than t* hops from any label},    t* = argmax F_k - F_u

A region is a connected part of the core together with the unknown nodes up to 2 t* hops around it. Labels that are
missing at random leave F_k and F_u alike; a missing region has nodes farther from labels than these from each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from residua.graph.graph import Graph

BALLS = 4  # of a block at most, where several regions are missing
LARGEST = 0.5  # share of the labels that a block leaves out at most


@dataclass(frozen=True)
class Missing:
    """Regions without labels.

    Parameters
    ----------
    sizes : ndarray of int
        Nodes of each region.
    share : float
        Share of the unknown nodes that lie in one of them.
    density : float
        Share of all other nodes that are known.
    """

    sizes: np.ndarray
    share: float
    density: float


def remote(graph: Graph, known: np.ndarray) -> tuple[float, float] | None:
    """Shares of unknown and of known nodes without a known neighbour; None unless the first is larger than by chance.

    They are alike for labels that are missing at random. A missing region has nodes far from any label.
    """
    if known.all() or not known.any():
        return None
    A = (graph.adjacency() != 0).astype(float)
    far = A @ known.astype(float) - A.diagonal() * known == 0
    unknown, left_out, pooled = far[~known].mean(), far[known].mean(), far.mean()
    chance = np.sqrt(pooled * (1 - pooled) * (1 / known.sum() + 1 / (~known).sum()))
    return (float(unknown), float(left_out)) if unknown - left_out > max(4 * chance, 0.1) else None


def seen_missing(graph: Graph, known: np.ndarray) -> Missing | None:
    """Return the regions without labels, None where unknown nodes are as near to labels as labels are to each other."""
    return None if remote(graph, known) is None else missing_regions(graph, known)


def missing_regions(graph: Graph, known: np.ndarray) -> Missing:
    """Return the regions without labels; where the pattern has none, all that is unknown, or else a tenth of the nodes.

    Parameters
    ----------
    graph : Graph
        The graph.
    known : (n,) array of bool
        Nodes with a label.
    """
    A, n = graph.adjacency(), len(known)
    if not known.any():
        return Missing(np.array([n]), 1.0, 1.0)
    if known.all():
        return Missing(np.array([max(n // 10, 1)]), 1.0, 1.0)
    hops, apart = _distances(A, known)
    far, zone = _threshold(hops[~known], apart[known]), ~known
    core = ~known & (hops > far)
    if far and core.any():
        zone = ~known & (hops_to(A, core) <= 2 * far)  # corners are far from the core
    _, part = connected_components(A[zone][:, zone], directed=False)
    others = n - zone.sum()
    return Missing(np.bincount(part), float(zone.sum() / (~known).sum()), float(known.sum() / max(others, 1)))


def _threshold(unknown: np.ndarray, known: np.ndarray) -> int:
    """Return the number of hops within which most more known than unknown nodes have a label; 0 where none do."""
    top = int(max(np.max(part[np.isfinite(part)], initial=1) for part in (unknown, known)))
    ahead = [np.mean(known <= t) - np.mean(unknown <= t) for t in range(1, top + 1)]
    best = int(np.argmax(ahead))
    return best + 1 if ahead[best] > 0 else 0


def _distances(A: Any, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return hops (n,) to the nearest known node, and from each known node (n,) to the nearest other one; inf: none."""
    L = np.flatnonzero(known)
    hops, _, source = dijkstra(A, directed=False, indices=L, unweighted=True, min_only=True, return_predecessors=True)
    # A shortest path to another known node crosses from what is nearest to the one to what is nearest to the other.
    edges = A.tocoo()
    crossing = source[edges.row] != source[edges.col]
    i, j = edges.row[crossing], edges.col[crossing]
    apart = np.full(len(known), np.inf)
    np.minimum.at(apart, source[i], hops[i] + 1 + hops[j])
    return hops, apart


def hops_to(A: Any, known: np.ndarray) -> np.ndarray:
    """Return (n,) how many edges of the adjacency A lie between each node and the nearest known one; inf for none."""
    return dijkstra(A, directed=False, indices=np.flatnonzero(known), unweighted=True, min_only=True)


def ball(graph: Graph, known: np.ndarray, count: int, starts: Iterable[int]) -> np.ndarray:
    """Return nodes from the first of ``starts`` outward, on to others not yet reached, until ``count`` are known."""
    A = graph.adjacency()
    left, found = np.ones(graph.n_nodes, bool), 0
    parts: list[np.ndarray] = []
    for node in starts:
        if found >= count:
            break
        if left[node]:
            isolate = graph.degree[node] == 0
            order = np.array([node]) if isolate else breadth_first_order(A, node, False, return_predecessors=False)
            left[order] = False
            found += int(known[order].sum())
            parts.append(order)
    return np.concatenate(parts)


def blocks_like(
    graph: Graph, known: np.ndarray, missing: Missing, count: int, least: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return blocks of labelled nodes, positions (k,) each, that lie together as the nodes of missing regions do.

    Parameters
    ----------
    graph : Graph
        The graph.
    known : (n,) array of bool
        Nodes with a label.
    missing : Missing
        The regions, of this graph or of another one.
    count : int
        How many blocks.
    least : int
        Labels that each block leaves.
    rng : numpy.random.Generator
        Where randomness comes from.
    """
    most = min(int(LARGEST * known.sum()), int(known.sum()) - least)
    return [_block(graph, known, missing, most, rng) for _ in range(count)]


def _block(graph: Graph, known: np.ndarray, missing: Missing, most: int, rng: np.random.Generator) -> np.ndarray:
    """Balls of labels, one for each of some missing regions, larger ones more often; ``most`` labels at most."""
    number = min(BALLS, len(missing.sizes))
    sizes = rng.choice(missing.sizes, number, replace=False, p=missing.sizes / missing.sizes.sum())
    taken, starts, room = np.zeros(graph.n_nodes, bool), rng.permutation(np.flatnonzero(known)), most
    for size in sizes:
        labels = min(max(round(size * missing.density), 1), room)
        if labels < 1:
            break
        rest = known & ~taken
        order = ball(graph, rest, labels, starts[rest[starts]])
        taken[order[rest[order]][:labels]] = True
        room -= labels
    return np.flatnonzero(taken)
