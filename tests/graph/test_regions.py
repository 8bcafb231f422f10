"""Regions without labels are found where there are some, and blocks of labels are like them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components

from graphs import CASES, grid, small_world
from residua.graph.regions import Missing, _distances, blocks_like, missing_regions, remote, seen_missing


def without(case, rows, columns, side):
    """A grid without labels in a rectangle."""
    known = np.ones(case.n, bool)
    known[np.add.outer(np.arange(*rows) * side, np.arange(*columns)).ravel()] = False
    return known


@pytest.mark.parametrize("name", ["path", "star", "isolate", "two components", "component without label", "weighted"])
def test_labels_are_as_far_apart_as_each_is_from_the_others(name):
    case = CASES[name]
    A = case.graph.adjacency()
    hops, apart = _distances(A, case.labelled)
    for k in case.L:
        others = case.labelled.copy()
        others[k] = False
        alone = _distances(A, others)[0][k] if others.any() else np.inf
        assert apart[k] == alone
    assert_array_equal(hops[case.L], 0)


def test_each_missing_region_is_found_with_its_size():
    case = grid(20, 20)
    known = without(case, (0, 8), (0, 5), 20) & without(case, (12, 18), (10, 20), 20)
    found = seen_missing(case.graph, known)
    assert sorted(found.sizes) == [40, 60]
    assert found.share == 1
    assert found.density == 1


def test_nodes_that_are_missing_at_random_beside_a_region_are_no_part_of_it():
    case = grid(40, 40)
    at_random = np.random.default_rng(0).random(case.n) < 0.8
    known = at_random & without(case, (0, 15), (0, 15), 40)
    found = seen_missing(case.graph, known)
    large = found.sizes[found.sizes > 20]
    assert len(large) == 1
    assert 200 <= large[0] <= 260
    assert found.share < 0.6
    assert_allclose(found.density, 0.8, atol=0.06)


def test_labels_missing_at_random_are_no_region():
    for share in (0.05, 0.3, 0.75, 0.95):
        for seed in range(20):
            for case in (grid(20, 20, share, seed), small_world(400, 6, share=share, seed=seed)):
                assert seen_missing(case.graph, case.labelled) is None


def test_a_graph_without_unknown_nodes_or_without_labels_has_no_region_that_is_seen():
    case = grid(6, 6)
    for known in (np.ones(36, bool), np.zeros(36, bool)):
        assert remote(case.graph, known) is None
        assert missing_regions(case.graph, known).share == 1


def test_blocks_are_connected_and_as_large_as_the_regions():
    case = grid(30, 30)
    known = without(case, (0, 10), (0, 12), 30)
    blocks = blocks_like(case.graph, known, seen_missing(case.graph, known), 12, 3, np.random.default_rng(1))
    assert len(blocks) == 12
    A = case.graph.adjacency()
    for block in blocks:
        assert len(block) == 120
        assert known[block].all()
        through = np.union1d(block, np.flatnonzero(~known))
        parts = connected_components(A[through][:, through], directed=False)[1]
        assert len(np.unique(parts[np.isin(through, block)])) == 1


def test_blocks_of_several_regions_have_a_ball_for_each_and_leave_half_of_the_labels():
    case = grid(30, 30)
    known = without(case, (0, 6), (0, 6), 30) & without(case, (20, 26), (20, 26), 30)
    for block in blocks_like(case.graph, known, seen_missing(case.graph, known), 5, 3, np.random.default_rng(1)):
        assert len(block) == 72
    huge = Missing(np.array([800]), 1.0, 1.0)
    for block in blocks_like(case.graph, known, huge, 3, 3, np.random.default_rng(1)):
        assert len(block) == known.sum() // 2
