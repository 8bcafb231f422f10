"""Random splits: every node in one part."""

import numpy as np

from residua.reproduction.splits import random_split


def test_the_parts_of_a_split_are_all_nodes_once():
    split = random_split(101, 3)
    assert [len(split.train), len(split.validation), len(split.test)] == [61, 20, 20]
    assert sorted(np.concatenate([split.train, split.validation, split.test])) == list(range(101))
    known = split.known(np.arange(101.0))
    assert np.isnan(known[split.test]).all()
    assert np.isnan(known[split.validation]).all()
    assert (known[split.train] == split.train).all()


def test_the_parts_of_a_split_tell_apart_what_is_known_and_what_comes_later():
    split = random_split(20, 1)
    y = np.arange(20.0)
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(split.known(y))), split.train)
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(split.later(y))), split.validation)
    assert sorted([*split.train, *split.validation, *split.test]) == list(range(20))
