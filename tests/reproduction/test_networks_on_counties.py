"""Networks on the county maps of the paper: the figures that a faithful implementation reaches."""

import numpy as np
import pytest

pytest.importorskip("torch")

from residua import GraphRegressor
from residua.datasets import load_county
from residua.reproduction.splits import random_split

SEEDS = range(3)


@pytest.fixture(scope="module")
def scores(data_folder):
    """Mean test R2 by target and correlation, in the default training."""

    def mean(target, correlation):
        data = load_county(target)
        found = []
        for seed in SEEDS:
            split = random_split(len(data.y), seed)
            model = GraphRegressor("sage", correlation, random_state=seed)
            truth = np.full_like(data.y, np.nan)
            truth[split.test] = data.y[split.test]
            found.append(model.fit(data.X, split.known(data.y), graph=data.graph).score(data.X, truth))
        return float(np.mean(found))

    return mean


def test_election_2012_gains_from_the_neighbours(scores):
    together = scores("election", "learned")
    assert together >= 0.66
    assert together - scores("election", None) >= 0.12


def test_unemployment_2012(scores):
    assert scores("unemployment", "learned") >= 0.74
