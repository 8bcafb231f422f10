"""The paper's ten data sets under short names."""

import pytest

from residua.reproduction import sets, transductive
from residua.reproduction.runs import QUICK, Task


def test_spins_are_new_for_every_seed_and_roads_the_same(data_folder):
    assert (sets.load("ising+", 0).y != sets.load("ising+", 1).y).any()
    assert sets.load("anaheim", 0) is sets.load("anaheim", 1)


@pytest.mark.parametrize("name", sets.SETS)
def test_labels_can_be_propagated_on_every_set(name, data_folder):
    results = transductive.work(Task("table1", name, "LP", 0, QUICK))
    assert -1 < results["LP"]["score"] < 1
