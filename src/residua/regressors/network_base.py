"""Networks behind the interface of a base: settings, standardising, several starts and their average."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from residua.graph import Graph
from residua.regressors.base import Base, Correlate, Outcome, Task
from residua.regressors.neighbours import neighbour_features
from residua.regressors.networks import KINDS, make_network
from residua.regressors.progress import Advance, progress
from residua.regressors.training import Criterion, Inputs, Schedule, SquaredError, outputs, train, train_paper
from residua.validation import MIN_LABELS, check_count


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

    def check(self) -> None:
        """Refuse what cannot be trained."""
        if not isinstance(self.kind, torch.nn.Module) and self.kind not in KINDS:
            known = ", ".join(f'"{kind}"' for kind in KINDS)
            raise ValueError(f"kind={self.kind!r} is unknown; use {known} or a torch module.")
        for name, least in (("hops", 0), ("epochs", 1), ("patience", 0), ("steps", 1)):
            check_count(getattr(self, name), name, least)
        for width in () if self.widths is None else self.widths:
            check_count(width, "widths", 1)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and 0 <= self.validation < 1):
            raise ValueError(
                f"learning_rate={self.learning_rate}, weight_decay={self.weight_decay}, validation={self.validation}: "
                "the first must be positive, the second not negative, the third a share from 0 to below 1."
            )


class NetworkBase(Base):
    """One network, or the average of several starts."""

    x_centre: np.ndarray
    x_spread: np.ndarray
    y_centre: float
    y_spread: float

    def __init__(self, settings: Network, training: str = "joint", ensemble: int = 1):
        settings.check()
        self.settings, self.training, self.ensemble = copy.copy(settings), training, ensemble
        self.name = settings.kind if isinstance(settings.kind, str) else type(settings.kind).__name__
        self.members: list[torch.nn.Module] = []

    def fit(self, task: Task, correlate: Correlate | None) -> Outcome:
        self.x_centre, self.x_spread = _standard(self._features(task.graph, task.X))
        self.y_centre, self.y_spread = (float(v[0]) for v in _standard(task.y[task.labelled][:, None]))
        data = self._inputs(task.graph, task.X, (task.y - self.y_centre) / self.y_spread)
        labels = np.flatnonzero(task.labelled)
        self.members, total, count = [], np.zeros(len(task.y)), np.zeros(len(task.y))
        # Dropout and the like draw from torch's global generator, which is given back as it was.
        with progress(f"training {self.name}") as advance, torch.random.fork_rng(devices=[]):
            for k in range(self.ensemble):
                net, held, done = self._member(k, data, labels, task, correlate, advance)
                self.members.append(net.eval())
                total[held] += _evaluated(net, data)[held]
                count[held] += 1
                if not done:
                    kept = "the best network so far is" if k == 0 else f"the best {k + 1} networks so far are"
                    warnings.warn(f"training was interrupted; {kept} kept.", UserWarning, stacklevel=3)
                    break
        residual = (task.y - self.predict(task.graph, task.X))[labels]
        with np.errstate(invalid="ignore"):
            held_out = (task.y - self.y_centre - self.y_spread * total / count)[labels]
        joint = correlate is not None and self.training != "post-hoc"
        return Outcome(residual, np.full(len(labels), np.nan) if joint else held_out, held_out=held_out)

    def _member(
        self, k: int, data: Inputs, labels: np.ndarray, task: Task, correlate: Correlate | None, advance: Advance
    ) -> tuple[torch.nn.Module, np.ndarray, bool]:
        """Start number k with its own weights; its own held-out labels; whether it was trained to the end."""
        rng = np.random.default_rng([task.random_state, k])
        seed = int(rng.integers(2**31))
        torch.default_generator.manual_seed(seed)
        net = self._blank(data.x.shape[1], seed).train()

        def report(step: int, steps: int, error: float) -> None:
            advance((k + (step + 1) / steps) / self.ensemble, f"error {error:.3g}")

        s = self.settings
        if self.training == "paper":
            paper = correlate.paper_objective() if correlate else None
            return net, labels[:0], train_paper(net, data, labels, paper, s.steps, rng, lbfgs=False, report=report)
        size = min(round(s.validation * len(labels)), len(labels) - MIN_LABELS)
        held = np.sort(rng.choice(labels, size, replace=False))
        fit = np.setdiff1d(labels, held)
        criterion: Criterion = SquaredError(len(task.y))
        if correlate is not None and self.training == "joint":
            criterion = correlate.objective(np.isin(np.arange(len(task.y)), fit))
        plan = Schedule(s.epochs, s.learning_rate, s.weight_decay, s.patience)
        return net, held, train(net, data, fit, held, criterion, plan, report)

    def _blank(self, inputs: int, seed: int = 0) -> torch.nn.Module:
        """A network to be trained; of a module of one's own, a copy."""
        if isinstance(self.settings.kind, torch.nn.Module):
            return copy.deepcopy(self.settings.kind)
        return make_network(self.settings.kind, inputs, self.settings.widths, seed)

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        data = self._inputs(graph, X, np.empty(0))
        return self.y_centre + self.y_spread * np.mean([_evaluated(net, data) for net in self.members], axis=0)

    def _inputs(self, graph: Graph, X: np.ndarray, y: np.ndarray) -> Inputs:
        x = (self._features(graph, X) - self.x_centre) / self.x_spread
        return Inputs(torch.as_tensor(x, dtype=self._dtype), _edge_index(graph), y)

    @property
    def _dtype(self) -> torch.dtype:
        """Single precision, unless a module of one's own has another."""
        own = self.settings.kind.parameters() if isinstance(self.settings.kind, torch.nn.Module) else iter(())
        return next((p.dtype for p in own if p.is_floating_point()), torch.float32)

    def _features(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        return neighbour_features(graph, X, self.settings.hops, degree=True) if self.settings.kind == "hops" else X

    def width(self, graph: Graph, columns: int) -> int:
        """How many features a network sees of a graph whose nodes have ``columns``."""
        types = len(graph.edge_types)
        return columns * (1 + self.settings.hops * types) + 2 * types if self.settings.kind == "hops" else columns

    def states(self) -> list[dict[str, np.ndarray]]:
        """The weights of each member, by name."""
        return [{name: value.numpy() for name, value in net.state_dict().items()} for net in self.members]

    def layout(self, inputs: int) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Shape and type of each weight of a member, by name; of a named kind, without making any."""
        with torch.device("meta"):
            state = self._blank(inputs).state_dict()
        return {
            name: (tuple(t.shape), torch.empty(0, dtype=t.dtype, device="cpu").numpy().dtype)
            for name, t in state.items()
        }

    def restore(self, states: list[Mapping[str, np.ndarray]]) -> None:
        """Members with these weights."""
        self.members = []
        for state in states:
            net = self._blank(len(self.x_centre))
            net.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, strict=True)
            self.members.append(net.eval())


@torch.no_grad()
def _evaluated(net: torch.nn.Module, data: Inputs) -> np.ndarray:
    return outputs(net.eval(), data).double().numpy()


def _standard(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre, spread = values.mean(axis=0), values.std(axis=0)
    return centre, np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)


def _edge_index(graph: Graph) -> torch.Tensor:
    A = graph.adjacency().tocoo()
    return torch.as_tensor(np.stack([A.row, A.col]), dtype=torch.int64)
