"""Networks as bases: the paper's illustrations, seeds, ensembles, fine-tuning."""

import copy

import numpy as np
import pytest

import residua
from graphs import grid
from residua import Graph, GraphRegressor, Network
from residua.bases.base import mean_where

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import Own, dropout, fitted, problem  # noqa: E402
from residua.bases.networks import base as network_base  # noqa: E402


def test_figure_1_correlation_tells_apart_what_a_network_cannot():
    """Two triangles and a bridge: our choice of a symmetric graph, since the paper's source does not list its edges.

    It shows that the effect exists, not that the figure is reproduced. Of three symmetric graphs tried, with three
    label vectors and two seeds each, this one gives both signs in 6 of 6 runs, a ladder in 4 and a path in none: with
    four labels the most likely alpha can have the wrong sign.
    """
    source, target = [0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]
    graph = Graph.from_edges(source, target, nodes=np.arange(6))
    truth = np.array([1.0, 0.75, 0.5, 0.25, -0.25, -1.0])  # falling; most interior ones positive
    y = np.where(np.isin(np.arange(6), [0, 2, 3, 5]), truth, np.nan)
    settings = Network("sage", epochs=200, validation=0)
    alone, learned = (
        GraphRegressor(settings, correlation).fit(graph.degree[:, None], y, graph=graph).predict()
        for correlation in (None, "learned")
    )
    assert alone[1] == pytest.approx(alone[4], abs=1e-6)
    assert learned[1] > 0.1
    assert learned[4] < -0.1


def ising(coupling, side=35, field=0.10, sweeps=200, seed=0):
    """Coordinates (n, 2) in -1 .. 1 and spins (n,), drawn by a heat bath on the two colours of a checkerboard.

    P(s) ~ exp(J sum_ij s_i s_j + sum_i h_i s_i),   h = field x_1 x_2
    """
    rng = np.random.default_rng(seed)
    ticks = np.linspace(-1, 1, side)
    x, z = np.meshgrid(ticks, ticks, indexing="ij")
    colour = np.add.outer(np.arange(side), np.arange(side)) % 2
    spin = rng.choice([-1.0, 1.0], (side, side))
    for sweep in range(2 * sweeps):
        padded = np.pad(spin, 1)
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        up = rng.random(spin.shape) < 1 / (1 + np.exp(-2 * (coupling * around + field * x * z)))
        spin = np.where(colour == sweep % 2, np.where(up, 1.0, -1.0), spin)
    return np.column_stack([x.ravel(), z.ravel()]), spin.ravel()


def ising_accuracy(coupling, correlation, seed):
    """Share of right signs at unknown nodes, and alpha."""
    X, spin = ising(coupling, seed=seed)
    case = grid(35, 35, share=0.6, seed=seed)
    model = GraphRegressor("sage", correlation, random_state=seed)
    model.fit(X, np.where(case.labelled, spin, np.nan), graph=case.graph)
    return np.mean(np.sign(model.predict())[case.U] == spin[case.U]), model.alpha_["edge"]


@pytest.mark.parametrize("seed", [0, 1])
def test_spins_that_repel_are_learned_and_mislead_propagation(seed):
    plain, _ = ising_accuracy(-0.35, None, seed)
    propagated, _ = ising_accuracy(-0.35, "propagate", seed)
    learned, alpha = ising_accuracy(-0.35, "learned", seed)
    assert propagated < plain
    assert learned > 0.72
    assert alpha < -0.85


@pytest.mark.parametrize("seed", [0, 1])
def test_spins_that_attract_are_learned(seed):
    assert ising_accuracy(0.35, "learned", seed)[0] > 0.73


@pytest.mark.parametrize("base", ["sage", "hops"])
@pytest.mark.parametrize("training", ["joint", "post-hoc", "paper"])
def test_a_seed_gives_the_same_numbers_twice_and_another_seed_others(base, training):
    settings = Network(base, epochs=15, steps=15)
    first, second, other = (
        fitted(settings, training=training, random_state=seed).predict(return_std=True) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)


def test_global_generators_are_left_alone():
    module = Own()
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fitted(module)
    fitted("sage")
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert np.array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_dropout_follows_the_seed_whatever_the_global_generator_says():
    module = Own(dropout=0.5)
    first = fitted(module).predict()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        np.testing.assert_array_equal(fitted(module).predict(), first)


def test_an_ensemble_is_the_average_of_its_members():
    model = fitted(ensemble=3)
    base = copy.copy(model.base_)
    alone = []
    for member in model.base_.members:
        base.members = [member]
        alone.append(base.predict(model.graph_, model.X_))
    assert not np.allclose(alone[0], alone[1])
    np.testing.assert_allclose(model.base_.predict(model.graph_, model.X_), np.mean(alone, axis=0))


@pytest.mark.parametrize("correlation", [None, "learned"])
def test_fine_tuning_learns_what_is_new_on_another_graph_and_leaves_the_first_model(correlation):
    graph, X, y, _ = problem(600)
    model = GraphRegressor(Network("mlp", epochs=60), correlation, ensemble=2).fit(X, y, graph=graph)
    before = model.predict()
    other, Z, known, _ = problem(600, seed=9)
    shifted = np.tanh(Z[:, 0]) + Z[:, 1] * Z[:, 2] + 2.0
    known = np.where(np.isnan(known), np.nan, shifted)
    tuned = model.fine_tune(Z, known, graph=other)
    if correlation is None:  # with it, the first model learns the shift from the residuals
        assert tuned.score(Z, shifted) > model.score(Z, shifted, known=known, graph=other)
    assert squared_error(tuned.base_.predict(other, Z), shifted) < 0.5 * squared_error(
        model.base_.predict(other, Z), shifted
    )
    np.testing.assert_array_equal(model.predict(), before)
    assert tuned.alpha_ == model.alpha_
    np.testing.assert_array_equal(tuned.predict(), model.fine_tune(Z, known, graph=other).predict())


def squared_error(prediction, truth):
    return np.mean((prediction - truth) ** 2)


def test_only_networks_can_be_fine_tuned():
    graph, X, y, _ = problem(80)
    with pytest.raises(ValueError, match='base "linear" cannot be fine-tuned'):
        GraphRegressor("linear").fit(X, y, graph=graph).fine_tune(X, y, graph=problem(80, seed=1)[0])
    with pytest.raises(ValueError, match="steps=0"):
        GraphRegressor(Network("mlp", epochs=2)).fit(X, y, graph=graph).fine_tune(X, y, graph=graph, steps=0)


def test_edge_types_go_by_name_on_another_graph(tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    source, target = np.arange(n), (np.arange(n) + 1) % n
    far = (np.arange(n) + 7) % n
    ends = np.concatenate([source, source]), np.concatenate([target, far])
    kind = np.repeat(["rail", "road"], n)
    here = Graph.from_edges(*ends, type=kind, nodes=np.arange(n))
    back = np.argsort(kind)[::-1]
    there = Graph.from_edges(ends[0][back], ends[1][back], type=kind[back], nodes=np.arange(n))
    assert here.edge_types != there.edge_types
    X = rng.standard_normal((n, 2))
    y = np.where(rng.random(n) < 0.6, X[target, 0] - X[far, 1], np.nan)
    model = GraphRegressor(Network("hops", epochs=40)).fit(X, y, graph=here)
    model.save(tmp_path / "m")
    for one in (model, residua.load(tmp_path / "m")):
        np.testing.assert_allclose(one.base_.predict(there, X), one.base_.predict(here, X))
    only = Graph.from_edges(source, target, type=np.repeat(["road"], n), nodes=np.arange(n))
    assert np.isfinite(model.predict(X, y, graph=only)).all()
    sea = Graph.from_edges(source, target, type=np.repeat(["sea"], n))
    features = residua.NeighbourFeatures().fit(X, graph=here)
    with pytest.raises(ValueError, match=r"edge types \['sea'\], which fit has not seen"):
        features.transform(X, graph=sea)


def test_errors_left_out_are_those_of_each_network_by_itself():
    """Jointly trained networks differ by a level each; the spread of levels is no error of the model."""
    side = 14
    house = np.arange(side * side).reshape(side, side)
    grid = Graph.from_edges(
        np.concatenate([house[:, :-1].ravel(), house[:-1].ravel()]),
        np.concatenate([house[:, 1:].ravel(), house[1:].ravel()]),
    )
    rng = np.random.default_rng(0)
    X = rng.standard_normal((side * side, 2))
    truth = X[:, 0] + 3 * np.sin(house // side / 4).ravel() + 3 * np.cos(house % side / 4).ravel()
    y = np.where(rng.random(side * side) < 0.6, truth, np.nan)
    model = GraphRegressor(Network("mlp", epochs=150), ensemble=5).fit(X, y, graph=grid)
    assert model.diagnose().r2_corrected == pytest.approx(model.score(X, truth), abs=0.04)


def test_later_members_of_a_module_of_ones_own_have_weights_of_their_own():
    graph, X, y, _ = problem(80)
    base = Network(dropout(), epochs=1, learning_rate=1e-9)
    first, second = GraphRegressor(base, ensemble=2).fit(X, y, graph=graph).base_.members
    given = dropout().out.weight
    assert torch.allclose(first.out.weight, given, atol=1e-6)
    assert not torch.allclose(second.out.weight, given, atol=1e-2)


@pytest.mark.parametrize("ensemble", [1, 5])
@pytest.mark.parametrize("training", ["joint", "post-hoc"])
def test_a_member_learns_from_no_label_that_counts_as_out_of_its_sample(training, ensemble, monkeypatch):
    made = []

    class Noted(network_base.Learner):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(network_base, "Learner", Noted)
    graph, X, y, _ = problem(120)
    base = Network("mlp", epochs=2)
    model = GraphRegressor(base, training=training, ensemble=ensemble).fit(X, y, graph=graph)
    labels = np.flatnonzero(~np.isnan(y))
    for learner, unseen in zip(made, model.outcome_.out_of_sample, strict=True):
        np.testing.assert_array_equal(labels[unseen], learner.out_of_sample)
        np.testing.assert_array_equal(labels[~unseen], learner.fit)
        assert unseen.any()


def test_enough_members_hold_out_folds_and_give_out_of_fold_residuals():
    graph, X, y, _ = problem()
    labels = ~np.isnan(y)
    for training, out_of_fold in (("post-hoc", True), ("joint", False)):
        model = GraphRegressor(Network("mlp", epochs=20), training=training, ensemble=5).fit(X, y, graph=graph)
        held_out = mean_where(model.outcome_.members, model.outcome_.out_of_sample)
        assert np.isfinite(held_out).all()
        everyone = (y - model.base_.predict(graph, X))[labels]
        np.testing.assert_allclose(model.outcome_.residual, held_out if out_of_fold else everyone)
        assert np.mean(held_out**2) > np.mean(everyone**2)
    few = GraphRegressor(Network("mlp", epochs=20), ensemble=2).fit(X, y, graph=graph)
    assert 0 < few.outcome_.out_of_sample.any(axis=0).sum() < labels.sum()
