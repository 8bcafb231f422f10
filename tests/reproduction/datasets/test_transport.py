"""Roads: edge types, features and trips."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from residua.datasets import load_transport
from residua.reproduction.datasets import transport


@pytest.mark.parametrize(("name", "follows", "shares"), [("anaheim", 2206, 1675), ("chicago", 8096, 7008)])
def test_edge_types_have_the_counts_of_the_paper_and_share_no_edge(request, name, follows, shares):
    graph = request.getfixturevalue(name).graph
    report = graph.describe()
    assert report.edges == {"follows": follows, "shares": shares}
    assert (report.components, report.self_loops, report.weighted) == (1, 0, False)
    assert graph.adjacency("follows").multiply(graph.adjacency("shares")).nnz == 0


def test_edges_join_the_links_they_should(chicago):
    ends = chicago.nodes[["tail", "head"]].to_numpy()
    follows, shares = (chicago.graph.adjacency(name).tocoo() for name in ("follows", "shares"))
    tail, head = ends.T
    assert ((head[follows.row] == tail[follows.col]) | (tail[follows.row] == head[follows.col])).all()
    assert ((head[shares.row] == head[shares.col]) ^ (tail[shares.row] == tail[shares.col])).all()


@pytest.mark.parametrize(("name", "streets"), [("anaheim", 280), ("chicago", 1088)])
def test_opposite_directions_of_a_street_can_be_a_type_of_their_own(request, name, streets):
    data = request.getfixturevalue(name)
    graph = load_transport(name, opposite=True).graph
    opposite = graph.adjacency("opposite").tocoo()
    tail, head = data.nodes[["tail", "head"]].to_numpy().T
    assert graph.describe().edges["opposite"] == streets
    assert ((head[opposite.row] == tail[opposite.col]) & (tail[opposite.row] == head[opposite.col])).all()
    together = graph.adjacency("follows") + graph.adjacency("opposite")
    assert abs(together - data.graph.adjacency("follows")).max() == 0
    assert abs(graph.adjacency("shares") - data.graph.adjacency("shares")).max() == 0


@pytest.mark.parametrize("name", ["anaheim", "chicago"])
def test_trips_add_features_and_change_nothing_else(request, name, standardised):
    plain, more = request.getfixturevalue(name), load_transport(name, trips=True)
    added = [f"trips_{reach}" for reach in (2, 4, 8, 16, "all")]
    assert list(more.X.columns) == [*plain.X.columns, *added]
    assert standardised(more.X[added])
    pd.testing.assert_frame_equal(more.X[list(plain.X.columns)], plain.X)
    pd.testing.assert_frame_equal(more.nodes, plain.nodes)
    assert (more.y == plain.y).all()
    assert abs(more.graph.adjacency("follows") - plain.graph.adjacency("follows")).max() == 0


def test_trips_do_not_know_the_traffic(chicago, monkeypatch, rng):
    expected = load_transport("chicago", trips=True).X
    read = transport._read_links
    monkeypatch.setattr(transport, "_read_links", lambda network: read(network).assign(volume=rng.permuted(chicago.y)))
    changed = load_transport("chicago", trips=True)
    assert (changed.y != chicago.y).mean() > 0.9
    pd.testing.assert_frame_equal(changed.X, expected)


def test_trips_are_the_betweenness_of_links_on_a_map_without_ways_through_zones(data_folder, monkeypatch):
    links = transport._read_links(transport.NETWORKS["anaheim"])
    links["free_flow_time"] = (100 * links["free_flow_time"]).round()  # networkx shares trips only if sums are exact
    monkeypatch.setattr(transport, "_read_links", lambda network: links)
    X = load_transport("anaheim", trips=True).X
    roads = nx.DiGraph()
    for tail, head, time in zip(links["tail"], links["head"], links["free_flow_time"], strict=True):
        roads.add_edge(tail, ("to", head) if head <= 38 else head, weight=time)
    junctions = [*range(1, 417)]
    arrivals = [("to", junction) if junction <= 38 else junction for junction in junctions]
    to_its_own = _trips_of_zones_to_themselves(roads)
    counts = nx.edge_betweenness_centrality_subset(roads, junctions, arrivals, normalized=False, weight="weight")
    found = [counts[link] - to_its_own.get(link, 0) for link in roads.edges]
    expected = np.sqrt(np.maximum(found, 0))
    expected = pd.Series(expected, [f"{a}-{b[1] if isinstance(b, tuple) else b}" for a, b in roads.edges])
    scaled = (expected - expected.mean()) / expected.std()
    assert X["trips_all"].to_numpy() == pytest.approx(scaled.loc[list(X.index)].to_numpy(), abs=1e-6)


def test_time_spent_on_links_is_that_of_all_trips_within_reach(data_folder):
    network = transport.NETWORKS["chicago"]
    links = transport._read_links(network)
    roads = nx.DiGraph()
    roads.add_weighted_edges_from(links[["tail", "head", "free_flow_time"]].itertuples(index=False))
    times = [list(found.values()) for _, found in nx.all_pairs_dijkstra_path_length(roads)]
    times, mean = np.concatenate(times), links["free_flow_time"].mean()
    spent = transport._trips(links, network).pow(2).mul(links["free_flow_time"], axis=0).sum()
    assert spent.to_numpy() == pytest.approx([times[times <= reach * mean].sum() for reach in (2, 4, 8, 16, np.inf)])


def _trips_of_zones_to_themselves(roads):
    """By link: networkx counts the trips of a zone to its own arrival too."""
    found = {}
    for zone in range(1, 39):
        if nx.has_path(roads, zone, ("to", zone)):
            listed = list(nx.all_shortest_paths(roads, zone, ("to", zone), weight="weight"))
            for route in listed:
                for link in nx.utils.pairwise(route):
                    found[link] = found.get(link, 0) + 1 / len(listed)
    return found


def test_trips_need_times_above_0(data_folder, monkeypatch):
    read = transport._read_links
    monkeypatch.setattr(transport, "_read_links", lambda network: read(network).assign(free_flow_time=0.0))
    assert load_transport("anaheim").X["free_flow_time"].eq(0).all()
    with pytest.raises(ValueError, match=r"link 1-117 has free-flow time 0; trips=True needs times above 0"):
        load_transport("anaheim", trips=True)


def test_links_are_ordered_and_named_by_their_ends(anaheim, chicago):
    for data, first in ((anaheim, 1), (chicago, 388)):
        ends = [(int(tail), int(head)) for tail, head in data.nodes[["tail", "head"]].to_numpy()]
        assert ends == sorted(ends)
        assert min(min(pair) for pair in ends) == first
        assert list(data.graph.nodes) == [f"{tail}-{head}" for tail, head in ends]


def test_road_features_and_volume_are_standardised(anaheim, chicago, standardised):
    assert list(anaheim.X.columns) == ["capacity", "length", "free_flow_time", "speed"]
    assert standardised(anaheim.X)
    assert standardised(anaheim.y)
    assert standardised(chicago.X.drop(columns="speed"))
    assert (chicago.X["speed"] == 0).all()
    assert any("speed is 0 on every link" in note for note in chicago.notes)


def test_a_link_has_the_numbers_of_the_file(anaheim):
    """Volumes of 1-117 and 2-87 in the file, in units of the standard deviation."""
    y = pd.Series(anaheim.y, index=anaheim.graph.nodes)
    spread = (9662.5 - 7074.9) / (y["2-87"] - y["1-117"])
    assert f"standard deviation {spread:.6g}" in anaheim.notes[2]


def test_chicago_has_midpoints_and_anaheim_none(anaheim, chicago):
    assert list(anaheim.nodes.columns) == ["tail", "head"]
    assert list(chicago.nodes.columns) == ["tail", "head", "x", "y"]
    follows = chicago.graph.adjacency("follows").tocoo()
    place = chicago.nodes[["x", "y"]].to_numpy()
    spread = place.std()
    assert np.median(np.linalg.norm(place[follows.row] - place[follows.col], axis=1)) < 0.2 * spread


def test_unknown_city_is_named():
    with pytest.raises(ValueError, match="city='boston' is unknown; use one of 'anaheim', 'chicago'"):
        load_transport("boston")
