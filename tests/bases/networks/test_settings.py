"""Settings of networks, and modules of one's own."""

import copy

import numpy as np
import pytest

from residua import GraphRegressor, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import Own, fitted, problem, small  # noqa: E402
from residua.bases.registry import NETWORKS  # noqa: E402

CORRELATIONS = ["learned", "propagate", None]


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_a_module_of_ones_own_is_copied_and_trained(correlation):
    module = Own()
    before = copy.deepcopy(module.state_dict())
    model = fitted(module, correlation)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.training
    assert model.base_.members[0] is not module
    assert not torch.equal(model.base_.members[0].T.weight, module.T.weight)
    mean, std = model.predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std[np.isnan(model.y_)] > 0).all()


@pytest.mark.parametrize("base", NETWORKS)
def test_every_kind_learns_what_a_node_and_its_neighbours_say(base):
    graph, X, _ = small(n=200)
    signal = X @ [1.0, -0.5]
    truth = signal + graph.adjacency() @ signal / graph.degree
    y = np.where(np.arange(200) % 3 > 0, truth, np.nan)
    model = GraphRegressor(Network(base, epochs=150), correlation=None).fit(X, y, graph=graph)
    # A GCN cannot weigh a node against its neighbours.
    assert model.score(X, truth) > (0.4 if "gcn" in base else 0.7)


def test_widths_are_those_asked_for():
    shapes = [tuple(p.shape) for p in fitted(Network("mlp", widths=(5, 3), epochs=2)).base_.members[0].parameters()]
    assert shapes == [(5, 2), (5,), (3, 5), (3,), (1, 3), (1,)]


@pytest.mark.parametrize(
    ("base", "parameters", "message"),
    [
        ("sage", {"training": "jointly"}, "training='jointly' is unknown; use one of 'joint', 'post-hoc', 'paper'"),
        ("sage", {"ensemble": 0}, "ensemble=0 is below 1"),
        ("sage", {"ensemble": 1.5}, "ensemble=1.5 is not a whole number"),
        (Network("sage-mean"), {}, "kind='sage-mean' is unknown; use \"mlp\""),
        (Network("sage", epochs=0), {}, "epochs=0 is below 1"),
        (Network("mlp", widths=(4, 0)), {}, "widths=0 is below 1"),
        (Network("mlp", validation=1.0), {}, "validation=1.0: the first"),
        (Network("mlp", learning_rate=-1.0), {}, "learning_rate=-1.0"),
    ],
)
def test_wrong_settings_are_named(base, parameters, message):
    graph, X, y = small()
    with pytest.raises(ValueError, match=message):
        GraphRegressor(base, **parameters).fit(X, y, graph=graph)


def test_a_module_that_returns_other_than_one_number_a_node_is_named():
    class Two(Own):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index).repeat(1, 2)

    with pytest.raises(ValueError, match=r"base Two returned a tensor of shape \(80, 2\) for 80 nodes"):
        fitted(Two())


class Unchanged(torch.nn.Module):
    """Returns what it is given."""

    def forward(self, x, edge_index):
        return x


@pytest.mark.parametrize(
    ("base", "X", "y", "message"),
    [
        ("sage", np.empty((80, 0)), None, "X has no columns"),
        ("mlp", None, 3.0, "y is 3.0 at all"),
        (Network("mlp", widths=8), None, None, "widths=8 is not a list"),
        (Unchanged(), None, None, "no parameters to train"),
    ],
    ids=["no columns", "constant", "widths", "no parameters"],
)
def test_what_cannot_be_trained_is_named(base, X, y, message):
    graph, features, labels, _ = problem(80)
    X, y = features if X is None else X, labels if y is None else np.where(np.isnan(labels), np.nan, y)
    with pytest.raises(ValueError, match=message):
        GraphRegressor(base).fit(X, y, graph=graph)
