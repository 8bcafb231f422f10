"""The paper's ten data sets under short names."""

import numpy as np
import pytest

from residua.reproduction import sets, transductive
from residua.reproduction.runs import QUICK, Task


def test_spins_are_new_for_every_seed_and_roads_the_same(data_folder):
    assert (sets.load("ising+", 0).y != sets.load("ising+", 1).y).any()
    assert sets.load("anaheim", 0) is sets.load("anaheim", 1)


def test_what_rounding_leaves_of_zero_counts_as_positive():
    y, prediction = np.array([1.0, 1.0, -1.0, -1.0]), np.array([0.0, -1e-12, -1e-12, -0.5])
    assert sets.score("ising+", y, prediction) == 0.75
    assert sets.score("income", y, y / 2) == pytest.approx(0.75)  # R2


@pytest.mark.parametrize("name", sets.SETS)
def test_labels_can_be_propagated_on_every_set(name, data_folder):
    results = transductive.work(Task("table1", name, "LP", 0, QUICK))
    assert -1 < results["LP"]["score"] < 1
