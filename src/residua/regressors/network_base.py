"""Networks behind the interface of a base: settings, standardising, several starts and their average."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from residua.graph import Graph
from residua.regressors.base import Base, Correlate, Outcome, Task
from residua.regressors.neighbours import neighbour_features
from residua.regressors.networks import make_network
from residua.regressors.training import Inputs, Schedule, SquaredError, train, train_paper


class Network(BaseEstimator):
    """Settings of a network base, where the defaults of ``GraphRegressor(base="sage")`` do not do.

    Parameters
    ----------
    kind : "mlp", "hops", "gcn", "sage", "sage-max", "sage-pool", or a torch module called as module(x, edge_index)
    widths : sizes of the layers before the linear output; the paper's by default
    hops : how far the features of "hops" are averaged
    epochs, learning_rate, weight_decay, patience : of the full-batch training
    validation : share of the labels held out to stop it
    steps : of training="paper"
    """

    def __init__(
        self,
        kind: Any = "sage",
        widths: Any = None,
        hops: int = 2,
        epochs: int = 500,
        learning_rate: float = 0.01,
        weight_decay: float = 1e-3,
        patience: int = 100,
        validation: float = 0.15,
        steps: int = 1500,
    ):
        self.kind = kind
        self.widths = widths
        self.hops = hops
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.validation = validation
        self.steps = steps


class NetworkBase(Base):
    """One network, or the average of several starts."""

    def __init__(self, settings: Network, training: str = "joint", ensemble: int = 1):
        self.settings, self.training, self.ensemble = settings, training, ensemble
        self.name = settings.kind if isinstance(settings.kind, str) else type(settings.kind).__name__
        self.members: list[torch.nn.Module] = []

    def fit(self, task: Task, correlate: Correlate | None) -> Outcome:
        features = self._features(task.graph, task.X)
        self.x_centre, self.x_spread = _standard(features)
        self.y_centre, self.y_spread = (float(v[0]) for v in _standard(task.y[task.labelled][:, None]))
        x = torch.as_tensor((features - self.x_centre) / self.x_spread, dtype=torch.float32)
        data = Inputs(x, _edge_index(task.graph), (task.y - self.y_centre) / self.y_spread)
        labels = np.flatnonzero(task.labelled)
        self.members, total, count = [], np.zeros(len(task.y)), np.zeros(len(task.y))
        for k in range(self.ensemble):
            net, held = self._member(k, data, labels, task, correlate)
            self.members.append(net)
            total[held] += self._outputs(net, data)[held]
            count[held] += 1
        residual = (task.y - self.predict(task.graph, task.X))[labels]
        with np.errstate(invalid="ignore"):
            held_out = (task.y - self.y_centre - self.y_spread * total / count)[labels]
        joint = correlate is not None and self.training != "post-hoc"
        return Outcome(residual, np.full(len(labels), np.nan) if joint else held_out, held_out=held_out)

    def _member(
        self, k: int, data: Inputs, labels: np.ndarray, task: Task, correlate: Correlate | None
    ) -> tuple[torch.nn.Module, np.ndarray]:
        """Start number k, with its own weights and its own held-out labels, which are returned too."""
        rng = np.random.default_rng([task.random_state, k])
        generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        if isinstance(self.settings.kind, str):
            net = make_network(self.settings.kind, data.x.shape[1], self.settings.widths, generator)
        else:
            net = copy.deepcopy(self.settings.kind)
        if self.training == "paper":
            criterion = correlate.paper_objective() if correlate else None
            return train_paper(net, data, labels, criterion, self.settings.steps, rng, lbfgs=False), labels[:0]
        held = np.sort(rng.choice(labels, round(self.settings.validation * len(labels)), replace=False))
        fit = np.setdiff1d(labels, held)
        mask = np.zeros(len(task.y), bool)
        mask[fit] = True
        joint = correlate is not None and self.training == "joint"
        criterion = correlate.objective(mask) if joint else SquaredError(len(task.y))
        s = self.settings
        plan = Schedule(s.epochs, s.learning_rate, s.weight_decay, s.patience)
        return train(net, data, fit, held, criterion, plan, lambda *_: None), held

    @staticmethod
    @torch.no_grad()
    def _outputs(net: torch.nn.Module, data: Inputs) -> np.ndarray:
        return net(data.x, data.edge_index).double().numpy().reshape(-1)

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        features = (self._features(graph, X) - self.x_centre) / self.x_spread
        data = Inputs(torch.as_tensor(features, dtype=torch.float32), _edge_index(graph), np.empty(0))
        outputs = [self._outputs(net, data) for net in self.members]
        return self.y_centre + self.y_spread * np.mean(outputs, axis=0)

    def _features(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        return neighbour_features(graph, X, self.settings.hops, degree=True) if self.settings.kind == "hops" else X


def _standard(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre, spread = values.mean(axis=0), values.std(axis=0)
    return centre, np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)


def _edge_index(graph: Graph) -> torch.Tensor:
    A = graph.adjacency().tocoo()
    return torch.as_tensor(np.stack([A.row, A.col]), dtype=torch.int64)
