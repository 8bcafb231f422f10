"""Small problems and modules for the tests of networks."""

import numpy as np
import torch

from graphs import small_world
from residua import GraphRegressor, Network
from residua.bases.networks.architectures import Inputs, make_network


def problem(n=300, seed=0, types=1):
    case = small_world(n, 6, seed=seed, types=types)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    truth = np.tanh(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return case.graph, X, np.where(case.labelled, truth, np.nan), truth


def dropout():
    torch.manual_seed(3)
    return Drop()


class Drop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.3))
        self.out = torch.nn.Linear(4, 1)

    def forward(self, x, edge_index):
        return self.out(self.inner(x))


class Own(torch.nn.Module):
    """A module of one's own, with a buffer, dropout, a column as output, and a name that a file must not mistake."""

    def __init__(self, inputs=2, width=4, dropout=0.1):
        from torch_geometric.nn import SAGEConv

        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # its weights must not hang on which tests ran before
            self.first = SAGEConv(inputs, width)
            self.norm = torch.nn.BatchNorm1d(width)
            self.drop = torch.nn.Dropout(dropout)
            self.T = torch.nn.Linear(width, 1)

    def forward(self, x, edge_index):
        return self.T(self.drop(torch.relu(self.norm(self.first(x, edge_index)))))


def plain_module(inputs=2):
    """The paper's network in double precision, where two ways to the same number agree to many digits."""
    return make_network("sage", inputs, None, seed=0).double()


def small(n=80, seed=0):
    """A graph, features and labels of which some are unknown."""
    case = small_world(n=n, degree=6, share=0.6, seed=seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X @ [1.0, -0.5] + rng.normal(size=n)
    return case.graph, X, np.where(case.labelled, y, np.nan)


def fitted(base="sage", correlation="learned", epochs=25, **parameters):
    graph, X, y = small()
    base = base if isinstance(base, Network) else Network(base, epochs=epochs)
    return GraphRegressor(base, correlation, **parameters).fit(X, y, graph=graph)


def inputs(graph, X, y, dtype=torch.float64):
    """What a network is fed, put together without the package."""
    A = graph.adjacency().tocoo()
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    known = ~np.isnan(y)
    scaled = (y - y[known].mean()) / y[known].std()
    return Inputs(torch.tensor(x, dtype=dtype), torch.tensor(np.stack([A.row, A.col]), dtype=torch.int64), scaled)
