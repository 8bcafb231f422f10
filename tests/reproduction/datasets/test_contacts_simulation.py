"""The generated contact network: counts and shape of the real one."""

import numpy as np
import pandas as pd
import pytest

from residua.datasets import simulate_contacts


def opposite_edges(data):
    edges = data.graph.adjacency().tocoo()
    return int((data.y[edges.row] != data.y[edges.col]).sum()) // 2


@pytest.mark.parametrize("seed", range(5))
def test_simulated_contacts_have_the_counts_of_the_paper(seed):
    data = simulate_contacts(seed)
    assert (data.graph.n_nodes, data.graph.n_edges) == (1888, 2096)
    assert opposite_edges(data) == 2007
    assert data.graph.describe().components == 1
    assert data.graph.describe().self_loops == 0
    assert 0.3 < (data.y > 0).mean() < 0.7


def test_simulated_contacts_say_that_they_are_generated(contacts):
    assert "Generated" in contacts.notes[0]
    assert "Generated" in contacts.source
    assert repr(contacts) == "Dataset('contacts-simulated': 1,888 nodes, 2,096 edges, 6 features)"


def test_contact_features_are_one_race_each_and_standardised_behaviour(contacts):
    assert list(contacts.X.columns) == [f"race_{k}" for k in range(1, 6)] + ["behaviour"]
    assert (contacts.X.iloc[:, :5].sum(axis=1) == 1).all()
    assert contacts.X["behaviour"].mean() == pytest.approx(0)
    assert contacts.X["behaviour"].std() == pytest.approx(1)
    missing = contacts.nodes["behav"] < 0
    assert missing.any()
    assert contacts.X["behaviour"][missing].to_numpy() == pytest.approx(0)
    assert f"missing for {missing.sum():,} people" in " ".join(contacts.notes)


def test_a_few_people_have_many_partners_and_most_have_one(contacts):
    degree = contacts.graph.degree
    assert np.median(degree) == 1
    assert degree.max() > 30


def test_simulated_contacts_depend_on_the_seed_alone(contacts):
    again, other = simulate_contacts(), simulate_contacts(1)
    pd.testing.assert_frame_equal(again.X, contacts.X)
    assert (again.y == contacts.y).all()
    assert (other.y != contacts.y).any()
