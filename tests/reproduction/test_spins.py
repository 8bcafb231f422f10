"""The law of spins, given some of them, against all states of a small grid written out."""

from itertools import product

import numpy as np
from numpy.testing import assert_allclose

from residua.reproduction import spins
from residua.reproduction.datasets.ising import grid_graph
from residua.reproduction.runs import Task


def exact_means(known, coupling, field):
    size = round(len(known) ** 0.5)
    axis = np.linspace(-1, 1, size)
    A = grid_graph(size).adjacency().toarray()
    states = np.array(list(product([-1.0, 1.0], repeat=len(known))))
    states = states[(np.isnan(known) | (states == known)).all(axis=1)]
    energy = coupling * np.einsum("si,ij,sj->s", states, A, states) / 2 + states @ (
        field * np.outer(axis, axis).ravel()
    )
    weight = np.exp(energy)
    return weight @ states / weight.sum()


def test_mean_spins_are_those_of_all_states_written_out():
    known = np.full(9, np.nan)
    known[[0, 5, 7]] = 1.0, -1.0, 1.0
    for coupling in (0.35, -0.35):
        found = spins.mean_spins(known, coupling, field=0.5, draws=20_000)
        expected = exact_means(known, coupling, 0.5)
        stderr = np.sqrt((1 - expected**2) / 20_000)
        assert (np.abs(found - expected) <= 4.5 * stderr + 1e-12).all()
        assert_allclose(found[[0, 5, 7]], [1, -1, 1])
        assert np.abs(expected[np.isnan(known)]).max() > 0.2


def test_the_law_tells_more_spins_than_a_coin():
    found = [spins.work(Task("best", "ising-", spins.LAW, seed))[spins.LAW] for seed in (1, 2)]
    scores, later = ([values[key] for values in found] for key in ("score", "told"))
    assert 0.65 < min(scores) <= max(scores) < 0.9
    assert sum(later) > sum(scores)  # who knows more spins predicts better
