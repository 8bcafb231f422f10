"""Networks on a device: all that goes into one moves with it, and what is not there is refused.

This machine has no GPU. The meta device, which has shapes and no numbers, stands for one: torch refuses an operation on
tensors of two devices there as on a GPU.
"""

import numpy as np
import pytest

from residua import GraphRegressor, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")

from torch_geometric.nn import GraphConv  # noqa: E402

from networks import problem  # noqa: E402
from residua.bases.networks.architectures import outputs  # noqa: E402
from residua.bases.networks.device import (  # noqa: E402
    CPU,
    device_or_cpu,
    find_device,
    on_device,
    own_generators,
    precision_on,
    seed_dropout,
)
from residua.bases.networks.stack import stack  # noqa: E402
from residua.bases.networks.training import Run, take_step  # noqa: E402
from residua.bases.registry import NETWORKS, make_base  # noqa: E402

META = torch.device("meta")
NO_GPU = not (torch.cuda.is_available() or torch.backends.mps.is_available())


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop = GraphConv(3, 1), torch.nn.Dropout(0.1)

    def forward(self, x, edge_index, edge_weight):
        return self.conv(self.drop(x), edge_index, edge_weight)


def prepared(kind, device):
    """A base with its scales, a blank network on a device, and what goes into it there."""
    graph, X, y, _ = problem(60)
    base = make_base(kind)
    base.edge_types, width = graph.edge_types, base.width(graph, 3)
    base.x_centre, base.x_spread, base.y_centre, base.y_spread = np.zeros(width), np.ones(width), 0.0, 1.0
    return base._blank(width).to(device), base._inputs(graph, X, y, device)


# PyG's GCNConv asks for the values of edge_index, to add loops, and the meta device has none.
@pytest.mark.parametrize(
    "kind", [*(name for name in NETWORKS if name != "gcn"), Weighted()], ids=lambda kind: str(kind)[:8]
)
def test_x_edges_and_gradients_move_with_the_network(kind):
    net, data = prepared(kind, META)
    assert {t.device for t in (data.x, data.edge_index, *data.edges.values(), *net.parameters())} == {META}
    run = Run(net, 0.01, 0.0, {})
    assert run.device == META
    out = outputs(net, data)
    take_step(run.optimiser, out, {0: (np.arange(5), np.ones(5))})
    assert {p.grad.device for p in net.parameters()} == {META}


def test_a_tensor_left_behind_would_be_noticed():
    net, data = prepared("mlp", META)
    with pytest.raises((RuntimeError, NotImplementedError)):
        net(torch.ones(60, 3), data.edge_index)


def test_stacked_networks_of_rows_move_too():
    (one, data), (two, _) = prepared("mlp", CPU), prepared("mlp", CPU)
    both = stack([one, two]).to(META)
    moved = type(data)(data.x.to(META), data.edge_index.to(META), data.y)
    assert outputs(both, moved, 2).device == META


def test_auto_is_the_cpu_where_there_is_nothing_else_and_a_gpu_where_there_is_one(monkeypatch):
    if NO_GPU:
        assert find_device("auto") == CPU
    asked = []
    monkeypatch.setattr(torch, "zeros", lambda *_, device, **__: asked.append(device.type) or torch.ones(1))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert find_device("auto").type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("auto").type == "mps"
    assert asked == ["cuda", "mps"]


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
@pytest.mark.parametrize("name", ["cuda", "mps", "cuda:3", "meta", "toaster"])
def test_a_device_that_is_not_there_is_refused_with_a_remedy(name):
    graph, X, y, _ = problem(60)
    with pytest.raises(ValueError, match=rf"device='{name}' cannot be used .* use \"auto\" or \"cpu\""):
        GraphRegressor("mlp", device=name).fit(X, y, graph=graph)
    assert device_or_cpu(name) == CPU


def test_single_precision_where_the_device_knows_no_other(monkeypatch):
    assert precision_on(CPU, torch.float64) == torch.float64
    real = torch.zeros

    def single_only(*size, dtype=None, **rest):
        if dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return real(*size, dtype=dtype, **rest)

    monkeypatch.setattr(torch, "zeros", single_only)
    assert precision_on(META, torch.float64) == torch.float32
    double = torch.nn.Linear(2, 1).double()
    with pytest.raises(NotImplementedError, match="no data"), on_device(double, META, torch.float32) as lent:
        assert (lent.weight.dtype, lent.weight.device) == (torch.float32, META)  # and no way back without numbers


@pytest.mark.parametrize("device", ["cpu", "auto", torch.device("cpu")], ids=str)
def test_a_device_changes_no_number_on_the_cpu_and_is_not_kept_in_a_file(device, tmp_path):
    graph, X, y, _ = problem(60)
    plain = GraphRegressor(Network("sage", epochs=5)).fit(X, y, graph=graph)
    model = GraphRegressor(Network("sage", epochs=5), device=device).fit(X, y, graph=graph)
    np.testing.assert_array_equal(model.predict(), plain.predict())
    model.save(tmp_path / "model.residua")


def test_generators_are_given_back_and_dropout_follows_the_seed():
    before = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with own_generators(CPU):
            seed_dropout(CPU, 5)
            drawn.append(torch.rand(3))
    assert torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), before)
