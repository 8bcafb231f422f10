"""How many of the fastest routes through a road network use a link.

    b_e(T) = sum over junctions s, t with 0 < d(s, t) <= T of  r_st(e) / r_st

d(s, t) the time of the fastest route from s to t, r_st the number of routes that take it, r_st(e) of those through e:
the traffic on e if every junction sent one trip to all others that are no more than T away. For every T it is
betweenness, added up from the far end of each source's routes (U. Brandes, J. Math. Sociol. 25, 2001).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from residua.linalg.kernels.compiled import compiled

SOURCES = 64  # whose distances are in memory at once
EQUAL = 1e-9  # times that differ by less, relatively, are equal


def trips(
    tail: np.ndarray, head: np.ndarray, time: np.ndarray, limits: np.ndarray, zones: np.ndarray | None = None
) -> np.ndarray:
    """Count trips on every link if each junction sends one to all others within a limit.

    Parameters
    ----------
    tail, head : array of int, shape (m,)
        Junctions that the links lead from and to, numbered from 0.
    time : array, shape (m,)
        Travel time of each link, above 0.
    limits : array, shape (k,)
        The longest trips that count, in the unit of ``time``; may be infinite.
    zones : array of int, optional
        Junctions where trips begin and end but do not pass.

    Returns
    -------
    array, shape (m, k)
        Trips on each link within each limit.
    """
    zones = np.empty(0, int) if zones is None else zones
    n = int(max(tail.max(), head.max())) + 1
    arrival = np.arange(n)  # a zone is arrived at by another junction than it is left by, so nothing passes
    arrival[zones] = n + np.arange(len(zones))
    head = arrival[head]
    by_head = np.argsort(head, kind="stable")
    tail, time = tail[by_head], time[by_head]
    first = np.searchsorted(head[by_head], np.arange(n + len(zones) + 1))
    roads = sp.csc_array((time, tail, first), shape=(n + len(zones), n + len(zones)))
    found = np.zeros((len(tail), len(limits)))
    for start in range(0, n, SOURCES):
        sources = np.arange(start, min(start + SOURCES, n))
        distance = dijkstra(roads, indices=sources)
        longest = distance[np.isfinite(distance)].max()
        if time.min() <= EQUAL * longest:
            raise ValueError(f"time has {time.min():g} beside a trip of {longest:g}; use links that take longer.")
        _add_trips(distance, sources, arrival, first, tail, time, limits, found)
    result = np.empty_like(found)
    result[by_head] = found
    return result


@compiled
def _add_trips(distance, sources, arrival, first, tail, time, limits, found):
    """Add the trips of sources at ``distance`` (sources, n) from all junctions; links are grouped by their heads."""
    for k in range(len(sources)):
        source, d = sources[k], distance[k]
        order = np.argsort(d)[: np.isfinite(d).sum()]
        routes = np.zeros(len(d))
        routes[source] = 1.0
        for v in order[1:]:
            for e in range(first[v], first[v + 1]):
                if d[tail[e]] + time[e] <= d[v] * (1 + EQUAL):
                    routes[v] += routes[tail[e]]
        onward = np.zeros((len(d), len(limits)))  # trips that go on from a junction, and one that ends there
        for v in order[:0:-1]:
            if v != arrival[source]:
                onward[v] += d[v] <= limits * (1 + EQUAL)
            for e in range(first[v], first[v + 1]):
                if d[tail[e]] + time[e] <= d[v] * (1 + EQUAL):
                    share = onward[v] * (routes[tail[e]] / routes[v])
                    found[e] += share
                    onward[tail[e]] += share
