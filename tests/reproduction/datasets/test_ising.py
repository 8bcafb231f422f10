"""Spins on a grid: drawn from the exact distribution."""

from itertools import product

import numpy as np
import pytest

import residua
from residua.datasets import simulate_ising
from residua.metrics import sign_accuracy
from residua.reproduction.datasets.ising import draw_spins


@pytest.fixture(scope="module")
def ising():
    return simulate_ising()


def test_ising_has_the_size_of_the_paper(ising):
    assert (ising.graph.n_nodes, ising.graph.n_edges) == (1225, 2380)
    assert set(ising.y) == {-1.0, 1.0}
    assert ising.y.dtype == np.float64


def test_ising_features_are_coordinates_from_minus_one_to_one(ising):
    assert ising.X.shape == (1225, 2)
    assert ising.X.loc[0].tolist() == [-1.0, -1.0]
    assert ising.X.loc[1224].tolist() == [1.0, 1.0]
    assert ising.X.loc[1].tolist() == pytest.approx([-1.0, -1 + 2 / 34])


@pytest.mark.parametrize("size", [2, 3, 4, 35])
def test_grid_joins_neighbours_without_wrapping_round(size):
    data = simulate_ising(size, sweeps=1)
    edges = data.graph.adjacency().tocoo()
    place = data.nodes.to_numpy()
    assert data.graph.n_edges == 2 * size * (size - 1)
    assert (abs(place[edges.row] - place[edges.col]).sum(axis=1) == 1).all()


def test_spins_depend_on_the_seed_alone(ising):
    assert (simulate_ising().y == ising.y).all()
    assert (simulate_ising(random_state=1).y != ising.y).any()


def enumerated(field, coupling):
    """Exact means of every spin and of every product of two, by summing over all configurations."""
    n = field.size
    spins = np.array(list(product([-1.0, 1.0], repeat=n)))
    grid = spins.reshape(-1, *field.shape)
    bonds = (grid[:, 1:] * grid[:, :-1]).sum(axis=(1, 2)) + (grid[:, :, 1:] * grid[:, :, :-1]).sum(axis=(1, 2))
    weight = np.exp(coupling * bonds + spins @ field.ravel())
    weight /= weight.sum()
    return weight @ spins, np.einsum("s,si,sj->ij", weight, spins, spins)


@pytest.mark.parametrize("coupling", [0.35, -0.35])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4)])
def test_spins_follow_the_exact_distribution(coupling, shape):
    field = np.linspace(-0.4, 0.7, shape[0] * shape[1]).reshape(shape)
    n = 20_000
    grids = np.broadcast_to(field, (n, *shape))
    spins = draw_spins(grids, coupling, 40, np.random.default_rng(5)).reshape(n, -1)
    mean, second = enumerated(field, coupling)
    error = np.sqrt((1 - mean**2) / n)
    assert (abs(spins.mean(axis=0) - mean) < 4.5 * error).all()
    assert (abs(spins.T @ spins / n - second) < 4.5 / np.sqrt(n)).all()


@pytest.mark.parametrize(("coupling", "reference"), [(0.35, 0.787), (-0.35, 0.291)])
def test_label_propagation_reaches_the_reference_on_ising(coupling, reference):
    scores = []
    for seed in range(10):
        data = simulate_ising(coupling=coupling, random_state=seed)
        order = np.random.default_rng(seed).permutation(len(data.y))
        labelled, test = order[:735], order[980:]
        values = np.full(len(data.y), np.nan)
        values[labelled] = data.y[labelled]
        scores.append(sign_accuracy(data.y[test], residua.propagate(values, data.graph)[test]))
    # Both the reference and this mean have a standard error of about 0.01.
    assert np.mean(scores) == pytest.approx(reference, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1}, "size=1 is below 2"),
        ({"size": 3.5}, "size=3.5 is not a whole number"),
        ({"coupling": np.nan}, "coupling=nan"),
        ({"field": np.inf}, "field=inf"),
        ({"sweeps": 0}, "sweeps=0 is below 1"),
        ({"random_state": None}, "random_state=None is not a whole number"),
    ],
)
def test_bad_arguments_of_ising_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate_ising(**arguments)
