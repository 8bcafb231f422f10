"""Members of an ensemble trained in one pass are those trained one by one."""

import numpy as np
import pytest

from residua import GraphRegressor, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import problem  # noqa: E402
from residua.bases.networks import base as network_base  # noqa: E402
from residua.bases.networks import stack  # noqa: E402
from residua.bases.networks.architectures import make_network  # noqa: E402


@pytest.mark.parametrize("training", ["joint", "post-hoc"])
@pytest.mark.parametrize(("kind", "ensemble"), [("mlp", 2), ("hops", 5), ("sage", 3)])
def test_members_trained_together_are_those_trained_one_by_one(kind, ensemble, training, monkeypatch):
    graph, X, y, _ = problem(150)
    model = GraphRegressor(Network(kind, epochs=25), training=training, ensemble=ensemble)
    together = model.fit(X, y, graph=graph).base_.states()
    monkeypatch.setattr(stack, "MOST", {})
    alone = model.fit(X, y, graph=graph).base_.states()
    assert len(together) == len(alone) == ensemble
    for one, other in zip(together, alone, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_allclose(one[name], other[name], atol=2e-3)


def test_members_trained_together_stop_each_on_its_own(monkeypatch):
    graph, X, y, _ = problem()
    stopped, train_all = [], network_base.train
    monkeypatch.setattr(network_base, "train", lambda *a: (train_all(*a), stopped.extend(a[2]))[0])
    GraphRegressor(Network("hops", epochs=60, patience=3, learning_rate=0.05), ensemble=4).fit(X, y, graph=graph)
    assert len({learner.stopping.lowest for learner in stopped}) == 4
    assert len({tuple(learner.out_of_sample) for learner in stopped}) == 4
    assert any(learner.stopping.since > 3 for learner in stopped)


@pytest.mark.parametrize("kind", stack.MOST)
def test_a_stack_gives_the_outputs_the_weights_and_the_gradients_of_its_members(kind):
    nets = [make_network(kind, 3, (5, 4), seed) for seed in range(3)]
    x, edge_index = torch.randn(4, 3), torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 3, 0]])
    pile = stack.stack(nets)
    alone, together = torch.stack([net(x, edge_index) for net in nets]), pile(x, edge_index)
    torch.testing.assert_close(together, alone)
    weights = torch.randn_like(alone)
    together.backward(weights)
    alone.backward(weights)
    slopes = stack.stack(nets)
    for value, parameter in zip(slopes.values, pile.values, strict=True):
        value.data = parameter.grad
    for k, net in enumerate(nets):
        torch.testing.assert_close(pile.state_of(k), dict(net.state_dict()))
        torch.testing.assert_close(slopes.state_of(k), {name: p.grad for name, p in net.named_parameters()})


def test_large_networks_are_trained_one_by_one():
    assert stack.worth_stacking("hops", 3_000, (16, 16, 8))
    assert not stack.worth_stacking("hops", 100_000, (16, 16, 8))
    assert not stack.worth_stacking("gcn", 100, (16, 8))
    assert not stack.worth_stacking(torch.nn.Linear(1, 1), 100, (16, 8))
