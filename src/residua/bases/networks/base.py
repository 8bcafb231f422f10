"""Networks behind the interface of a base: settings, standardising, the members of an ensemble and their average."""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from residua.bases.base import NETWORKS, Base, Correlate, Outcome, Task, mean_where
from residua.bases.neighbours import neighbour_features
from residua.bases.networks.architectures import make_network
from residua.bases.networks.checkpoint import Checkpoint, Part
from residua.bases.networks.progress import Advance, progress
from residua.bases.networks.stack import stack, worth_stacking
from residua.bases.networks.training import Inputs, Learner, Schedule, SquaredError, outputs, train, train_paper
from residua.graph import Graph
from residua.validation import MIN_LABELS, check_count

MIN_FOLDS = 4  # members, each with a fold held out, that leave enough labels to learn from


class Network(BaseEstimator):
    """Settings of a network base, where the defaults of ``GraphRegressor(base="sage")`` do not do.

    Parameters
    ----------
    kind : "mlp", "hops", "gcn", "sage", "sage-gcn", "sage-max", "sage-pool", or a torch module called as
        module(x, edge_index)
    widths : sizes of the layers before the linear output; the paper's by default
    hops : how far the features of "hops" are averaged
    epochs, learning_rate, weight_decay, patience : of the full-batch training
    validation : share of the labels held out to stop it
    batch_size : rows in a batch of "mlp" and "hops", used where there are at least four batches of labels
    steps : of training="paper"
    lbfgs : training="paper" brings alpha and beta to their optimum every 100 steps, in place of a step every 10
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
        batch_size: int = 8192,
        steps: int = 1500,
        lbfgs: bool = False,
    ):
        self.kind = kind
        self.widths = widths
        self.hops = hops
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.validation = validation
        self.batch_size = batch_size
        self.steps = steps
        self.lbfgs = lbfgs

    def check(self) -> None:
        """Refuse what cannot be trained."""
        if not isinstance(self.kind, torch.nn.Module) and self.kind not in NETWORKS:
            known = ", ".join(f'"{kind}"' for kind in NETWORKS)
            raise ValueError(f"kind={self.kind!r} is unknown; use {known} or a torch module.")
        for name, least in (("hops", 0), ("epochs", 1), ("patience", 0), ("batch_size", 1), ("steps", 1)):
            check_count(getattr(self, name), name, least)
        if self.widths is not None and (isinstance(self.widths, str) or not np.iterable(self.widths)):
            raise ValueError(f"widths={self.widths!r} is not a list of layer sizes; give one such as (64, 32).")
        for width in () if self.widths is None else self.widths:
            check_count(width, "widths", 1)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and 0 <= self.validation < 1):
            raise ValueError(
                f"learning_rate={self.learning_rate}, weight_decay={self.weight_decay}, validation={self.validation}: "
                "the first must be positive, the second not negative, the third a share from 0 to below 1."
            )


@dataclass(frozen=True)
class Member:
    """One trained network."""

    net: torch.nn.Module
    out_of_sample: np.ndarray  # positions of labels that it was not trained on
    done: bool  # trained to the end
    a: np.ndarray = field(default_factory=lambda: np.empty(0))  # arctanh(alpha) at the end of the training
    b: float = 0.0  # log(beta), of training="paper"


class NetworkBase(Base):
    """One network, or the average of an ensemble."""

    x_centre: np.ndarray
    x_spread: np.ndarray
    y_centre: float
    y_spread: float
    edge_types: tuple[str, ...]

    def __init__(self, settings: Network, training: str = "joint", ensemble: int = 1):
        settings.check()
        self.settings, self.training, self.ensemble = copy.copy(settings), training, ensemble
        self.name = settings.kind if isinstance(settings.kind, str) else type(settings.kind).__name__
        self.members: list[torch.nn.Module] = []

    def fit(self, task: Task, correlate: Correlate | None) -> Outcome:
        self.edge_types = task.graph.edge_types
        self._refuse(task)
        self.x_centre, self.x_spread = _standard(self._features(task.graph, task.X))
        self.y_centre, self.y_spread = (float(v[0]) for v in _standard(task.y[task.labelled][:, None]))
        data = self._inputs(task.graph, task.X, (task.y - self.y_centre) / self.y_spread)
        labels = np.flatnonzero(task.labelled)
        kept = Checkpoint(task.checkpoint, self._mark(task, correlate) if task.checkpoint is not None else "")
        members: list[Member] = []
        # Dropout and the like draw from torch's global generator, which is given back as it was.
        with progress(f"training {self.name}") as advance, torch.random.fork_rng(devices=[]), _threads(len(data.x)):
            for group in self._together(data, labels, task):
                part = kept.part(str(group[0]))
                try:
                    trained = self._train(group, data, labels, task, correlate, part, advance)
                except KeyboardInterrupt:  # between two networks
                    if not members:
                        raise
                    trained = []
                members += trained
                if not trained or not trained[-1].done:
                    few = "the best network so far is"
                    many = few if len(members) == 1 else f"the best {len(members)} networks so far are"
                    warnings.warn(f"training was interrupted; {many} kept.", UserWarning, stacklevel=3)
                    break
        self.members = [member.net.eval() for member in members]
        return self._outcome(members, data, labels, task, correlate)

    def _refuse(self, task: Task) -> None:
        """What no network can learn from."""
        if not self.width(task.graph, task.X.shape[1]):
            raise ValueError(f'X has no columns, which leaves base "{self.name}" nothing to see; use "hops" or "mean".')
        known = task.y[task.labelled]
        if np.ptp(known) <= 1e-13 * np.abs(known).max():
            raise ValueError(f"y is {known[0]} at all {len(known)} labels; there is nothing to learn.")

    def _outcome(
        self, members: list[Member], data: Inputs, labels: np.ndarray, task: Task, correlate: Correlate | None
    ) -> Outcome:
        residuals = (task.y - self._scaled(data, [member.net for member in members]))[:, labels]
        out_of_sample = np.stack([np.isin(labels, member.out_of_sample) for member in members])
        residual = residuals.mean(axis=0)
        out_of_fold = mean_where(residuals, out_of_sample)
        joint = correlate is not None and self.training != "post-hoc"
        # Out-of-fold residuals correlate as the labels do. Networks trained jointly have each a level of their own,
        # so theirs are not mixed.
        if not joint and out_of_sample.any(axis=0).all():
            residual, residuals = out_of_fold, np.tile(out_of_fold, (len(members), 1))
        found = None
        if correlate is not None and joint:
            a = np.mean([member.a for member in members], axis=0)
            if self.training == "paper":
                beta = float(np.exp(np.mean([member.b for member in members]))) / self.y_spread**2
                found = correlate.at(residual, a, beta)
            else:
                found = correlate(residual, start=a)
        return Outcome(
            residual, np.full(len(labels), np.nan) if joint else out_of_fold, found, residuals, out_of_sample
        )

    def _together(self, data: Inputs, labels: np.ndarray, task: Task) -> list[list[int]]:
        """Members that are trained in one pass: all where that is faster, else each on its own."""
        fit = len(labels) - len(self._out_of_sample(0, labels, task.random_state))
        widths = (16, 16, 8) if self.settings.widths is None else self.settings.widths
        whole = self.training != "paper" and self._schedule(fit, 0).batch is None
        if whole and worth_stacking(self.settings.kind, len(data.x), widths):
            return [list(range(self.ensemble))]
        return [[k] for k in range(self.ensemble)]

    def _train(
        self,
        group: list[int],
        data: Inputs,
        labels: np.ndarray,
        task: Task,
        correlate: Correlate | None,
        kept: Part,
        advance: Advance,
    ) -> list[Member]:
        """Some of the members, each with its own weights and its own held-out labels."""
        seeds = [int(np.random.default_rng([task.random_state, k]).integers(2**31)) for k in group]
        nets = [self._blank(data.x.shape[1], seed, k).train() for k, seed in zip(group, seeds, strict=True)]
        if not any(p.requires_grad for p in nets[0].parameters()):
            raise ValueError(f"base {self.name} has no parameters to train; use a module with some.")

        def report(step: int, steps: int, error: float) -> None:
            advance((group[0] + len(group) * (step + 1) / steps) / self.ensemble, f"error {error:.3g}")

        s = self.settings
        if self.training == "paper":
            paper = correlate.paper_objective(s.lbfgs) if correlate else None
            every = 100 if s.lbfgs else 10
            done = train_paper(nets[0], data, labels, paper, s.steps, seeds[0], report, kept, every=every)
            return [Member(nets[0], labels[:0], done, *((paper.a, paper.b) if paper else ()))]
        learners = [self._learner(k, labels, task, correlate) for k in group]
        plan = self._schedule(len(learners[0].fit), seeds[0])
        done = train(stack(nets) if len(nets) > 1 else nets[0], data, learners, plan, report, kept)
        for net, learner in zip(nets, learners, strict=True):
            net.load_state_dict(learner.best)
        alphas = [np.arctanh(learner.criterion.alpha) for learner in learners]
        return [Member(net, one.out_of_sample, done, a) for net, one, a in zip(nets, learners, alphas, strict=True)]

    def _learner(self, k: int, labels: np.ndarray, task: Task, correlate: Correlate | None) -> Learner:
        out_of_sample = self._out_of_sample(k, labels, task.random_state)
        fit = np.setdiff1d(labels, out_of_sample)
        if correlate is not None and self.training == "joint":
            return Learner(fit, out_of_sample, correlate.objective(np.isin(np.arange(len(task.y)), fit)))
        return Learner(fit, out_of_sample, SquaredError(len(task.y), len(fit)))

    def _out_of_sample(self, k: int, labels: np.ndarray, random_state: int) -> np.ndarray:
        """Labels that member k is not trained on: a fold of its own where there are enough members for folds."""
        size = min(round(self.settings.validation * len(labels)), len(labels) - MIN_LABELS)
        if self.ensemble < MIN_FOLDS or not size:
            rng = np.random.default_rng([random_state, k])
            rng.integers(2**31)  # the seed of the weights
            return np.sort(rng.choice(labels, size, replace=False))
        order = np.random.default_rng([random_state, self.ensemble]).permutation(labels)
        return np.sort(np.array_split(order, self.ensemble)[k])

    def _schedule(self, labels: int, seed: int) -> Schedule:
        """Batches where the labels are many and a node's output needs its own row alone."""
        s = self.settings
        batches = -(-labels // s.batch_size)
        if s.kind not in ("mlp", "hops") or batches < 4:
            own = isinstance(s.kind, torch.nn.Module)
            return Schedule(s.epochs, s.learning_rate, s.weight_decay, s.patience, seed, judge_apart=own)
        epochs, patience = max(s.epochs // batches, 20), max(s.patience // batches, 5)
        return Schedule(min(epochs, s.epochs), s.learning_rate, s.weight_decay, patience, seed, s.batch_size)

    def fine_tuned(self, task: Task, steps: int, learning_rate: float) -> NetworkBase:
        """A copy trained on by squared error in batches of 5 % of the labels of ``task``, as the paper does."""
        tuned = copy.copy(self)
        tuned.members = copy.deepcopy(self.members)
        data = self._inputs(task.graph, task.X, (task.y - self.y_centre) / self.y_spread)
        labels = np.flatnonzero(task.labelled)
        with progress(f"fine-tuning {self.name}") as advance, torch.random.fork_rng(devices=[]):
            for k, net in enumerate(tuned.members):
                seed = int(np.random.default_rng([task.random_state, k]).integers(2**31))

                def report(step: int, steps: int, error: float, k: int = k) -> None:
                    advance((k + (step + 1) / steps) / len(tuned.members), f"error {error:.3g}")

                kept = Checkpoint(None, "").part("")
                done = train_paper(net.train(), data, labels, None, steps, seed, report, kept, learning_rate)
                net.eval()
                if not done:
                    warnings.warn("fine-tuning was interrupted; what it had reached is kept.", stacklevel=3)
                    break
        return tuned

    def _mark(self, task: Task, correlate: Correlate | None) -> str:
        """What is being trained, as a short text."""
        mark = hashlib.sha256()
        settings = {k: v for k, v in self.settings.get_params().items() if k != "kind"}
        told = (self.name, settings, self.training, self.ensemble, task.random_state, repr(correlate))
        mark.update(f"{torch.__version__} {told!r}".encode())
        arrays = [task.X, task.y, *(task.graph.arrays().values())]
        if isinstance(self.settings.kind, torch.nn.Module):
            mark.update(repr(self.settings.kind).encode())
            arrays += [value.double().numpy() for value in self.settings.kind.state_dict().values()]
        for array in arrays:
            mark.update(f"{array.shape} {array.dtype}".encode())
            mark.update(np.ascontiguousarray(array).tobytes())
        return mark.hexdigest()

    def _blank(self, inputs: int, seed: int = 0, k: int = 0) -> torch.nn.Module:
        """A network to be trained; of a module of one's own a copy, for members after the first with new weights."""
        if not isinstance(self.settings.kind, torch.nn.Module):
            return make_network(self.settings.kind, inputs, self.settings.widths, seed)
        net = copy.deepcopy(self.settings.kind)
        if k:
            torch.default_generator.manual_seed(seed)
            for part in net.modules():
                getattr(part, "reset_parameters", lambda: None)()
        return net

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.predict_members(graph, X).mean(axis=0)
        return found

    def predict_members(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        return self._scaled(self._inputs(graph, X, np.empty(0)), self.members)

    def _scaled(self, data: Inputs, nets: list[torch.nn.Module]) -> np.ndarray:
        """(nets, n) predictions in the units of the labels."""
        return self.y_centre + self.y_spread * np.stack([_evaluated(net, data) for net in nets])

    def _inputs(self, graph: Graph, X: np.ndarray, y: np.ndarray) -> Inputs:
        x = (self._features(graph, X) - self.x_centre) / self.x_spread
        return Inputs(torch.as_tensor(x, dtype=self._dtype), _edge_index(graph), y)

    @property
    def _dtype(self) -> torch.dtype:
        """Single precision, unless a module of one's own has another."""
        own = self.settings.kind.parameters() if isinstance(self.settings.kind, torch.nn.Module) else iter(())
        return next((p.dtype for p in own if p.is_floating_point()), torch.float32)

    def _features(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        if self.settings.kind != "hops":
            return X
        return neighbour_features(graph, X, self.settings.hops, True, self.edge_types)

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


# Below this many rows a second thread of torch costs more to wake than it saves.
ONE_THREAD = 10_000


@contextmanager
def _threads(rows: int) -> Iterator[None]:
    """One thread of torch for few rows; as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if rows <= ONE_THREAD else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def _evaluated(net: torch.nn.Module, data: Inputs) -> np.ndarray:
    return outputs(net.eval(), data)[0].double().numpy()


def _standard(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre, spread = values.mean(axis=0), values.std(axis=0)
    return centre, np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)


def _edge_index(graph: Graph) -> torch.Tensor:
    A = graph.adjacency().tocoo()
    return torch.as_tensor(np.stack([A.row, A.col]), dtype=torch.int64)
