"""Trips on the links of a road network: as networkx counts them, ties shared, far ones left out."""

import itertools

import networkx as nx
import numpy as np
import pytest

from residua.reproduction.datasets import routes


def random_roads(seed, n=90, m=320, times=(1.0, 2.0, 3.0)):
    """Directed links between n junctions, with so few different times that many routes are equally fast."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(n * (n - 1), size=m, replace=False)
    tail, rest = np.divmod(pairs, n - 1)
    return tail, rest + (rest >= tail), rng.choice(times, size=m)


def enumerated(tail, head, time, limit, zones=()):
    """Trips by listing every fastest route of every pair of junctions, other zones taken off the map."""
    roads = nx.DiGraph()
    roads.add_weighted_edges_from(zip(tail, head, time, strict=True))
    found = dict.fromkeys(roads.edges, 0.0)
    for s, t in itertools.permutations(roads, 2):
        open_roads = roads.subgraph(set(roads) - set(zones) | {s, t})
        if not nx.has_path(open_roads, s, t):
            continue
        listed = list(nx.all_shortest_paths(open_roads, s, t, weight="weight"))
        if nx.path_weight(open_roads, listed[0], "weight") <= limit:
            for link in itertools.chain.from_iterable(map(nx.utils.pairwise, listed)):
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


@pytest.mark.parametrize("names", list(itertools.permutations(range(4))))
def test_times_that_are_equal_but_for_rounding_share_a_trip(names):
    tail, head = np.array(names)[[0, 1, 0, 2]], np.array(names)[[1, 3, 2, 3]]
    found = routes.trips(tail, head, np.array([0.1, 0.2, 0.15, 0.15]), np.array([np.inf]))[:, 0]
    assert 0.1 + 0.2 != 0.15 + 0.15
    assert found == pytest.approx([1.5, 1.5, 1.5, 1.5])


def test_a_trip_as_long_as_the_limit_but_for_rounding_counts():
    time = np.full(3, 0.7)
    assert time.mean() < 0.7
    assert routes.trips(np.arange(3), np.arange(1, 4), time, time.mean(keepdims=True))[:, 0].tolist() == [1, 1, 1]


def test_junctions_out_of_reach_of_each_other_send_no_trip():
    tail, head = np.array([0, 2]), np.array([1, 3])
    assert routes.trips(tail, head, np.ones(2), np.array([np.inf]))[:, 0].tolist() == [1.0, 1.0]


def test_no_trip_passes_a_zone():
    tail, head, time = random_roads(3, n=30, m=110)
    zones = np.array([0, 7, 8])
    limits = np.array([4.0, np.inf])
    found = routes.trips(tail, head, time, limits, zones)
    for column, limit in zip(found.T, limits, strict=True):
        assert column == pytest.approx(enumerated(tail, head, time, limit, zones), rel=1e-10, abs=1e-10)
    assert (found[:, 1] != routes.trips(tail, head, time, limits)[:, 1]).any()


def test_a_link_too_short_to_tell_from_rounding_is_refused():
    with pytest.raises(ValueError, match="time has 1e-12 beside a trip of 1; use links that take longer"):
        routes.trips(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 1e-12]), np.array([np.inf]))
