"""Splits of nodes: what they hide, and how far it is from what stays known."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import ks_2samp
from sklearn.model_selection import cross_val_score

import residua
from graphs import CASES, grid
from residua import GraphRegressor
from residua.model_selection import (
    BlockedNodes,
    DistanceMatchedNodes,
    GroupedNodes,
    RandomNodes,
    held_out,
    hops_to,
)

MAP = grid(30, 30, share=1.0)


def missing_region(seed=0):
    """Known nodes of a grid whose left third and some single nodes have no label."""
    rng = np.random.default_rng(seed)
    known = rng.random(MAP.n) < 0.9
    known[np.arange(MAP.n) % 30 < 10] = False
    return known


def splits(graph, known=None):
    groups = np.arange(graph.n_nodes) // 30
    found = [RandomNodes(graph, 3), BlockedNodes(graph, 3), GroupedNodes(graph, groups, 3)]
    return found if known is None or known.all() else [*found, DistanceMatchedNodes(graph, 3)]


@pytest.mark.parametrize("by", ["nodes", "rows"])
def test_parts_do_not_meet_and_have_known_labels_alone(by):
    known = missing_region()
    y = np.where(known, 1.0, np.nan)
    nodes = np.random.default_rng(1).permutation(MAP.n) if by == "nodes" else np.arange(MAP.n)
    X = nodes if by == "nodes" else np.zeros((MAP.n, 2))
    for cv in splits(MAP.graph, known):
        parts = list(cv.split(X, y[nodes]))
        assert len(parts) == cv.get_n_splits() == 3
        for train, test in parts:
            assert len(np.intersect1d(train, test)) == 0
            assert len(train) >= 3
            assert len(test) >= 2
            assert known[nodes[train]].all()
            assert known[nodes[test]].all()
        again = list(cv.split(X, y[nodes]))
        for one, other in zip(parts, again, strict=True):
            assert_array_equal(one[1], other[1])
        assert not np.array_equal(parts[0][1], parts[1][1])


def test_a_quarter_is_hidden_and_all_else_is_learned_from():
    for cv in splits(MAP.graph)[:2]:
        for train, test in cv.split(np.arange(MAP.n)):
            assert len(test) == MAP.n // 4
            assert len(train) == MAP.n - MAP.n // 4


def test_splits_are_those_of_a_comparison():
    known = missing_region()
    for kind, cv in (("random", RandomNodes), ("blocked", BlockedNodes)):
        hidden = [h for h, _ in cv(MAP.graph, 2, 0.3, random_state=5).hide(known)]
        for k in range(2):
            assert_array_equal(hidden[k], held_out(MAP.graph, known, kind, 0.3, np.random.default_rng([5, k])))


def test_groups_are_hidden_whole():
    graph, known = MAP.graph, missing_region()
    groups = pd.Series(np.arange(MAP.n) // 30, index=graph.nodes)
    for train, test in GroupedNodes(graph, groups.sample(frac=1, random_state=0)).split(
        graph.nodes, np.where(known, 0.0, np.nan)
    ):
        assert len(np.intersect1d(groups.iloc[train], groups.iloc[test])) == 0
        assert 0.25 * known.sum() <= len(test) <= 0.25 * known.sum() + 30


def hops_by_search(graph, known, start):
    """Hops from one node to the nearest known one, by search."""
    A, seen, frontier, hops = graph.adjacency().toarray() > 0, {start}, {start}, 0
    while frontier:
        if known[list(frontier)].any():
            return hops
        frontier = set(np.flatnonzero(A[list(frontier)].any(axis=0))) - seen
        seen, hops = seen | frontier, hops + 1
    return np.inf


@pytest.mark.parametrize("name", ["path", "star", "isolate", "two components", "component without label", "weighted"])
def test_hops_to_the_nearest_known_node(name):
    case = CASES[name]
    expected = [hops_by_search(case.graph, case.labelled, k) for k in range(case.n)]
    assert_array_equal(hops_to(case.graph.adjacency(), case.labelled), expected)


@pytest.mark.parametrize("seed", range(3))
def test_hidden_nodes_are_as_far_from_labels_as_unknown_ones(seed):
    known = missing_region(seed)
    A, nodes = MAP.graph.adjacency(), np.flatnonzero(known)
    wanted = hops_to(A, known)[~known]

    def distances(cv):
        found = []
        for train, test in cv.split(nodes):
            left = np.zeros(MAP.n, bool)
            left[nodes[train]] = True
            found.append(hops_to(A, left)[nodes[test]])
        return np.concatenate(found)

    matched, random = (distances(kind(MAP.graph, 10, 0.3, seed)) for kind in (DistanceMatchedNodes, RandomNodes))
    assert abs(matched.mean() - wanted.mean()) < 0.15 * wanted.mean()
    assert ks_2samp(matched, wanted).statistic < 0.12
    assert ks_2samp(random, wanted).statistic > 0.4


def test_a_score_of_a_missing_region_is_lower_where_distances_are_matched():
    """The user's own line."""
    data = residua.datasets.load_elect80()
    graph = data.graph.with_features(data.X)
    known = (data.nodes["longitude"] > -95).to_numpy()  # the west is missing
    model = GraphRegressor("linear")
    scores = {
        cv: cross_val_score(model, graph.nodes[known], data.y[known], cv=cv(graph, 3), params={"graph": graph}).mean()
        for cv in (RandomNodes, DistanceMatchedNodes)
    }
    assert scores[DistanceMatchedNodes] < scores[RandomNodes] - 0.1


def test_what_cannot_be_split_is_refused():
    graph, nodes = MAP.graph, np.arange(MAP.n)
    with pytest.raises(ValueError, match=r"n_splits=0 is below 1"):
        next(RandomNodes(graph, 0).split(nodes))
    with pytest.raises(ValueError, match=r"share=1.0 is not between 0 and 1"):
        next(RandomNodes(graph, share=1.0).split(nodes))
    with pytest.raises(ValueError, match="4 nodes have a label; at least 5 are needed"):
        next(BlockedNodes(graph).split(nodes[:4]))
    with pytest.raises(ValueError, match="every node that a label reaches has one"):
        next(DistanceMatchedNodes(graph).split(nodes))
    with pytest.raises(ValueError, match="groups has 3 entries but graph has 900 nodes"):
        next(GroupedNodes(graph, ["a", "b", "c"]).split(nodes))
    with pytest.raises(ValueError, match="hiding 1 of 1 groups leaves 0 labels"):
        next(GroupedNodes(graph, np.zeros(MAP.n)).split(nodes))
    with pytest.raises(ValueError, match="groups is missing at 1 nodes"):
        next(GroupedNodes(graph, np.where(nodes == 4, np.nan, nodes % 7)).split(nodes))
    with pytest.raises(ValueError, match=r"X has shape \(5, 2\) but graph has 900 nodes; name nodes by id"):
        next(RandomNodes(graph).split(np.zeros((5, 2))))
    lone = grid(6, 6, share=1.0).graph
    A = np.zeros((38, 38))
    A[:36, :36] = lone.adjacency().toarray()
    A[36, 37] = A[37, 36] = 1
    known = np.arange(35)
    with pytest.warns(UserWarning, match="2 unknown nodes lie in components without a label"):
        next(DistanceMatchedNodes(residua.Graph.from_scipy(A)).split(known))
