"""Layers on the sparse kernels are those of PyTorch Geometric."""

import os
import subprocess
import sys

import numpy as np
import pytest

from residua import Graph, GraphRegressor, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")

from torch_geometric.nn import GCNConv, SAGEConv  # noqa: E402

from residua.bases.networks.layers import GCN, MaxSAGE, MeanSAGE, SelfSAGE, neighbours_of  # noqa: E402
from residua.linalg import operator  # noqa: E402

EDGES = {
    "both directions": ([0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 3, 0]),
    "one direction": ([0, 1, 2, 2], [1, 2, 0, 3]),
    "twice the same": ([0, 0, 1], [1, 1, 0]),
    "none": ([], []),
}


class _WithLoops(SAGEConv):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, root_weight=False)

    def forward(self, x, edge_index):
        return super().forward(x, torch.cat([edge_index, torch.arange(len(x)).expand(2, -1)], dim=1))


LAYERS = {
    "mean": (SAGEConv, MeanSAGE),
    "max": (lambda *sizes: SAGEConv(*sizes, aggr="max"), MaxSAGE),
    "pool": (
        lambda *sizes: SAGEConv(*sizes, aggr="max", project=True),
        lambda *sizes: MaxSAGE(*sizes, project=True),
    ),
    "gcn": (GCNConv, GCN),
    "gcn of GraphSAGE": (_WithLoops, SelfSAGE),
}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 2), (2, 3), (16, 8)])
@pytest.mark.parametrize("learns", [True, False])
def test_layers_are_those_of_pyg_in_value_and_gradient(kind, name, inputs, outputs, learns):
    torch.manual_seed(0)
    theirs, ours = (make(inputs, outputs).double() for make in LAYERS[kind])
    with torch.no_grad():
        for value in theirs.parameters():
            value += torch.randn_like(value) / 3  # PyG begins with zero biases
    ours.load_state_dict(theirs.state_dict())
    edge_index = torch.tensor(np.array(EDGES[name], int).reshape(2, -1))
    # With ties; not at 0, where PyTorch gives a part of the gradient to nobody. ReLU would pass none of it on.
    x = torch.randn(5, inputs, dtype=torch.float64).round(decimals=1).relu() + 1
    found = []
    for layer in (theirs, ours):
        here = x.clone().requires_grad_(learns)
        out = layer(here, edge_index)
        (out**3).sum().backward()
        found.append([out.detach(), here.grad, *(p.grad for p in layer.parameters())])
    for a, b in zip(*found, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, rtol=1e-6, atol=1e-7)  # degrees are float32


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_pass_gradcheck(kind):
    torch.manual_seed(1)
    layer = LAYERS[kind][1](4, 2).double()
    edge_index = torch.tensor(EDGES["one direction"])
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: layer(v, edge_index), (x,))


def test_an_input_that_does_not_learn_is_gathered_once_unless_it_changes_or_another_way():
    x, edge_index = torch.arange(12.0).reshape(4, 3), torch.tensor(EDGES["both directions"])
    neighbours = neighbours_of(edge_index, 4)
    mean = neighbours.mean(x)
    assert neighbours.mean(x) is mean
    x += 1
    assert torch.allclose(neighbours.mean(x), mean + 1)
    assert not torch.allclose(neighbours.maximum(x), mean + 1)
    assert torch.allclose(neighbours.mean(x), mean + 1)


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_predict_in_inference_mode_and_learn_afterwards(kind):
    layers, edge_index = [LAYERS[kind][1](3, 3) for _ in range(2)], torch.tensor(EDGES["both directions"])
    x = torch.randn(4, 3)

    def predicted():
        return layers[1](layers[0](x, edge_index), edge_index)

    with torch.inference_mode():
        found = predicted()
    again = predicted()
    again.sum().backward()
    assert torch.allclose(found, again)


@pytest.mark.parametrize("kind", LAYERS)
def test_not_a_number_reaches_the_same_nodes_as_in_pyg(kind):
    theirs, ours = (make(3, 2) for make in LAYERS[kind])
    ours.load_state_dict(theirs.state_dict())
    x, edge_index = torch.ones(5, 3), torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 4]])
    x[1, 0] = torch.nan
    assert ours(x, edge_index).isnan().equal(theirs(x, edge_index).isnan())


def test_an_input_of_a_maximum_that_changes_before_the_gradient_is_noticed():
    x = torch.randn(4, 3, requires_grad=True)
    h = 1 * x
    out = neighbours_of(torch.tensor(EDGES["both directions"]), 4).maximum(h)
    h.mul_(-1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_maxima_of_many_entries_are_those_of_few(monkeypatch):
    rng = np.random.default_rng(0)
    edge_index = torch.from_numpy(rng.integers(50, size=(2, 400)))
    x = torch.from_numpy(rng.integers(4, size=(50, 6)).astype(float))
    found = []
    for limit in (operator.SMALL_PRODUCT, 0):  # in one thread, and dealt to several
        monkeypatch.setattr(operator, "SMALL_PRODUCT", limit)
        here = x.clone().requires_grad_()
        out = neighbours_of(edge_index.clone(), 50).maximum(here)
        (out * torch.arange(6)).sum().backward()
        found.append((out.detach(), here.grad))
    for few, many in zip(*found, strict=True):
        assert torch.equal(few, many)


FORK = """
import os, numpy as np, residua
graph = residua.Graph.from_edges(np.arange(59), np.arange(1, 60))
def fit():
    X = np.sin(np.arange(120.0)).reshape(60, 2)
    model = residua.GraphRegressor(residua.Network("sage-max", epochs=3)).fit(X, X[:, 0], graph=graph)
fit()
child = os.fork()
if not child:
    fit()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_small_network_of_maxima_wakes_no_threads_so_that_a_process_can_fork():
    """In a process that may have two threads: with one there is none to wake."""
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, env=environment, timeout=120)


def test_a_node_without_edges_averages_to_zero():
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(5))
    A = graph.adjacency().tocoo()
    near = neighbours_of(torch.as_tensor(np.stack([A.row, A.col]), dtype=torch.int64), 5)
    x = torch.arange(1.0, 6.0)[:, None]
    for gathered in (near.mean(x), near.maximum(x.clone())):
        assert (gathered[3:] == 0).all()
        assert (gathered[:3] > 0).all()
    y = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
    model = GraphRegressor(Network("sage", epochs=3), None).fit(np.arange(5.0)[:, None], y, graph=graph)
    assert np.isfinite(model.predict()).all()
