"""Weights and attributes of edges reach a module that takes them, and what does not is said."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.data")

from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.nn import GCN, GCNConv, GraphSAGE  # noqa: E402

import residua  # noqa: E402
from networks import plain_module  # noqa: E402
from residua import Graph, GraphRegressor, Network  # noqa: E402
from residua.bases.networks.edges import edge_arguments, edge_tensors  # noqa: E402

N = 40


class Seen(torch.nn.Module):
    """Keeps what it was called with; learns nothing of it."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)
        self.calls = []

    def __deepcopy__(self, memo):  # what the trained copy is called with is to be seen here
        return self


class Weight(Seen):
    def forward(self, x, edge_index, edge_weight=None):
        self.calls.append((edge_index, edge_weight))
        return self.linear(x)


class Attributes(Seen):
    def forward(self, x, edge_index, edge_attr):
        self.calls.append((edge_index, edge_attr))
        return self.linear(x)


class Neither(Seen):
    def forward(self, x, edge_index):
        return self.linear(x)


def ring(weighted=True, attributes=True, seed=0):
    """PyG data of a ring, in both directions, whose attributes differ between them."""
    rng = np.random.default_rng(seed)
    i = np.arange(N)
    index = np.c_[np.stack([i, (i + 1) % N]), np.stack([(i + 1) % N, i])]
    order = rng.permutation(2 * N)
    data = Data(x=torch.tensor(rng.standard_normal((N, 2))), edge_index=torch.tensor(index[:, order]))
    data.y = torch.tensor(rng.standard_normal(N))
    if weighted:
        data.edge_weight = torch.tensor(np.tile(rng.uniform(1, 2, N), 2)[order])
    if attributes:
        data.edge_attr = torch.tensor(rng.standard_normal((2 * N, 3)))
    return data


def as_dict(index, values):
    return {(int(a), int(b)): np.asarray(v) for (a, b), v in zip(np.asarray(index).T, np.asarray(values), strict=True)}


def fitted(module, data):
    residua.GraphRegressor(Network(module, epochs=2)).fit(data.x, data.y, graph=Graph.from_pyg(data))
    return module.calls[-1]


def test_edge_weight_reaches_a_module_that_takes_it():
    data = ring(attributes=False)
    index, weight = fitted(Weight(), data)
    expected = as_dict(data.edge_index, data.edge_weight)
    assert {pair: pytest.approx(w, rel=1e-6) for pair, w in expected.items()} == as_dict(index, weight)


def test_edge_attr_of_pyg_reaches_a_module_that_takes_it_each_direction_its_own():
    data = ring(weighted=False)
    index, attributes = fitted(Attributes(), data)
    assert attributes.dtype == torch.float32
    expected, got = as_dict(data.edge_index, data.edge_attr), as_dict(index, attributes)
    assert expected.keys() == got.keys()
    for pair, values in expected.items():
        np.testing.assert_allclose(got[pair], values, rtol=1e-6)


def test_a_direction_that_is_not_listed_has_the_attributes_of_the_other():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.tensor([5.0, 7.0]), num_nodes=3)
    graph = Graph.from_pyg(data)
    index, found = edge_tensors(graph, ("edge_attr",), torch.float64)
    assert as_dict(index, found["edge_attr"]) == {(0, 1): 5, (1, 0): 5, (1, 2): 7, (2, 1): 7}


def test_without_attributes_edge_attr_is_the_weight_by_edge_type():
    graph = Graph.from_edges([0, 1, 0], [1, 2, 1], weight=[2.0, 3.0, 5.0], type=["road", "road", "rail"])
    index, found = edge_tensors(graph, ("edge_attr", "edge_weight"), torch.float64)
    got = as_dict(index, found["edge_attr"])
    assert {pair: values.tolist() for pair, values in got.items()} == {
        (0, 1): [2, 5],
        (1, 0): [2, 5],
        (1, 2): [3, 0],
        (2, 1): [3, 0],
    }
    assert as_dict(index, found["edge_weight"]) == {(0, 1): 7, (1, 0): 7, (1, 2): 3, (2, 1): 3}


def test_the_weights_change_what_a_network_of_pyg_says():
    """One GCN layer, by dense algebra: D^-1/2 (A + I) D^-1/2 X w."""
    data = ring(attributes=False)
    conv = GCNConv(2, 1).double()
    base = residua.bases.registry.make_base(conv)
    base.x_centre, base.x_spread, base.y_centre, base.y_spread = np.zeros(2), np.ones(2), 0.0, 1.0
    base.members = [conv.eval()]
    graph = Graph.from_pyg(data)
    looped = graph.adjacency().toarray() + np.eye(N)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    S = scale[:, None] * looped * scale
    expected = S @ data.x.numpy() @ conv.lin.weight.detach().numpy().T + conv.bias.detach().numpy()
    np.testing.assert_allclose(base.predict(graph, data.x.numpy()), expected[:, 0], rtol=1e-10)


def test_what_a_module_does_not_take_is_said():
    with pytest.warns(
        UserWarning, match=r"have weights and attributes, which base Neither .* takes edge_weight and edge_attr"
    ):
        residua.GraphRegressor(Network(Neither(), epochs=2)).fit(ring().x, ring().y, graph=Graph.from_pyg(ring()))
    with pytest.warns(UserWarning, match="have attributes, which base Weight does not look at; a module"):
        fitted(Weight(), ring())
    data = ring(attributes=False)
    with pytest.warns(UserWarning, match=r"have weights, which base sage does not look at \(the correlation uses"):
        GraphRegressor(Network("sage", epochs=2)).fit(data.x, data.y, graph=Graph.from_pyg(data))


def test_loops_that_weigh_more_are_no_weights_of_edges():
    i = np.arange(N)
    loops = Graph.from_edges(np.r_[i, i], np.r_[(i + 1) % N, i], weight=np.repeat([1.0, 2.0], N))
    data = ring(False, False)
    GraphRegressor(Network("sage", epochs=2)).fit(data.x, data.y, graph=loops)


def test_models_of_pyg_take_what_their_layers_support():
    assert edge_arguments(GCN(2, 4, 1, 1)) == ("edge_weight",)
    assert edge_arguments(GraphSAGE(2, 4, 1, 1)) == ()
    assert edge_arguments(plain_module()) == ()


def test_a_module_that_asks_for_more_is_refused():
    class Greedy(Neither):
        def forward(self, x, edge_index, batch):
            return self.linear(x)

    data = ring(False, False)
    with pytest.raises(ValueError, match="base Greedy asks for 'batch'; a module is called with x, edge_index and"):
        GraphRegressor(Greedy()).fit(data.x, data.y, graph=Graph.from_pyg(data))


def test_attributes_that_contradict_each_other_or_do_not_fit_are_refused():
    twice = Data(edge_index=torch.tensor([[0, 0], [1, 1]]), edge_attr=torch.tensor([1.0, 2.0]), num_nodes=2)
    with pytest.raises(ValueError, match=r"edge_attr differs between rows of edge_index that list \(0, 1\)"):
        Graph.from_pyg(twice)
    short = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.tensor([1.0]), num_nodes=3)
    with pytest.raises(ValueError, match="edge_attr has 1 entries"):
        Graph.from_pyg(short)
    hetero = HeteroData(town={"num_nodes": 3})
    hetero["town", "road", "town"].edge_index = torch.tensor([[0, 1], [1, 2]])
    hetero["town", "road", "town"].edge_attr = torch.ones(2, 1)
    with pytest.warns(UserWarning, match="edge_attr of HeteroData is not used"):
        assert Graph.from_pyg(hetero).edge_attr is None


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(5, 1)

    def forward(self, x, edge_index, edge_attr):
        gathered = x.new_zeros(len(x), 3).index_add(0, edge_index[1], edge_attr)
        return self.out(torch.cat([x, gathered], dim=1))


def test_attributes_are_kept_in_a_model_file_and_asked_for_by_another_graph(tmp_path):
    data, other = ring(weighted=False), ring(weighted=False, seed=1)
    model = GraphRegressor(Network(Own(), epochs=5)).fit(data.x, data.y, graph=Graph.from_pyg(data))
    model.save(tmp_path / "own.residua")
    loaded = residua.load(tmp_path / "own.residua", module=Own())
    np.testing.assert_array_equal(loaded.graph_.edge_attr, model.graph_.edge_attr)
    np.testing.assert_array_equal(loaded.predict(), model.predict())
    X, graph = other.x, Graph.from_pyg(other)
    np.testing.assert_array_equal(loaded.predict(X, graph=graph), model.predict(X, graph=graph))


def test_attributes_that_a_grown_graph_does_not_keep_are_said():
    graph = Graph.from_edges(["a", "b"], ["b", "c"]).with_edge_attr(["a", "b"], ["b", "c"], [1.0, 2.0])
    with pytest.warns(UserWarning, match="edge_attr is not kept where a graph grows; set that of all edges anew"):
        grown = graph.with_nodes(edges=[("c", "d")])
    assert grown.edge_attr is None
    again = grown.with_edge_attr(["a", "b", "c"], ["b", "c", "d"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(again.edge_attr[:, 0], [1, 1, 2, 2, 3, 3])
    assert graph.with_features(np.ones((3, 1))).edge_attr is graph.edge_attr


def test_a_module_that_takes_a_whole_data_object_is_refused_with_the_way_out():
    class TakesData(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 1)

        def forward(self, data):
            return self.linear(data.x)

    graph = Graph.from_edges(np.arange(9), (np.arange(9) + 1) % 9)
    X, y = np.random.default_rng(0).standard_normal((9, 2)), np.arange(9.0) ** 2
    with pytest.raises(
        ValueError, match=r"TakesData has forward\(self, data\), and a module is called as module\(x, ed"
    ):
        GraphRegressor(TakesData()).fit(X, y, graph=graph)
    with pytest.raises(ValueError, match=r"has forward\(self, input\).* `return self.inner\(x\)`"):
        GraphRegressor(torch.nn.Sequential(torch.nn.Linear(2, 1))).fit(X, y, graph=graph)

    class Inside(torch.nn.Module):  # the remedy
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 1)

        def forward(self, x, edge_index):
            return self.inner(x)

    assert GraphRegressor(Inside()).fit(X, y, graph=graph).predict().shape == (9,)
