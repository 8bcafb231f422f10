"""Trips on the links of a road network: as networkx counts them, ties shared, far ones left out."""

import networkx as nx
import numpy as np
import pytest

from residua.datasets import routes


def random_roads(seed, n=90, m=320, times=(1.0, 2.0, 3.0)):
    """Directed links between n junctions, with so few different times that many routes are equally fast."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(n * (n - 1), size=m, replace=False)
    tail, rest = np.divmod(pairs, n - 1)
    return tail, rest + (rest >= tail), rng.choice(times, size=m)


def enumerated(tail, head, time, limit):
    """Trips by listing every fastest route of every pair of junctions."""
    roads = nx.DiGraph()
    roads.add_weighted_edges_from(zip(tail, head, time, strict=True))
    found = dict.fromkeys(roads.edges, 0.0)
    for s, distances in nx.all_pairs_dijkstra_path_length(roads):
        for t, distance in distances.items():
            if 0 < distance <= limit:
                listed = list(nx.all_shortest_paths(roads, s, t, weight="weight"))
                for route in listed:
                    for link in nx.utils.pairwise(route):
                        found[link] += 1 / len(listed)
    return np.array([found[link] for link in zip(tail, head, strict=True)])


@pytest.mark.parametrize("seed", [0, 1])
def test_trips_of_any_length_are_betweenness(seed):
    tail, head, time = random_roads(seed)
    roads = nx.DiGraph()
    roads.add_weighted_edges_from(zip(tail, head, time, strict=True))
    expected = nx.edge_betweenness_centrality(roads, normalized=False, weight="weight")
    found = routes.trips(tail, head, time, np.array([np.inf]))[:, 0]
    assert found == pytest.approx([expected[link] for link in zip(tail, head, strict=True)], rel=1e-10, abs=1e-10)


def test_far_trips_are_left_out():
    tail, head, time = random_roads(2, n=25, m=70)
    limits = np.array([1.0, 4.0, np.inf])
    found = routes.trips(tail, head, time, limits)
    assert (found[:, 0] < found[:, 1]).any()
    assert (found[:, 1] < found[:, 2]).any()
    for column, limit in zip(found.T, limits, strict=True):
        assert column == pytest.approx(enumerated(tail, head, time, limit), rel=1e-10, abs=1e-10)


def test_times_that_are_equal_but_for_rounding_share_a_trip():
    tail, head = np.array([0, 1, 0, 2]), np.array([1, 3, 2, 3])
    found = routes.trips(tail, head, np.array([0.1, 0.2, 0.3, 1e-17]), np.array([np.inf]))[:, 0]
    assert 0.1 + 0.2 != 0.3
    assert found == pytest.approx([1.5, 1.5, 1.5, 1.5])


def test_junctions_out_of_reach_of_each_other_send_no_trip():
    tail, head = np.array([0, 2]), np.array([1, 3])
    assert routes.trips(tail, head, np.ones(2), np.array([np.inf]))[:, 0].tolist() == [1.0, 1.0]
