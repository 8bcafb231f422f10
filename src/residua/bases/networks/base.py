"""Networks behind the interface of a base: standardising, the members of an ensemble and their average."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from residua.bases.base import Base, BatchLoss, CorrelationModel, Fit, Outcome, Task, mean_where, standardisation
from residua.bases.neighbours import neighbour_features
from residua.bases.networks.architectures import ROWWISE, Inputs, make_network, outputs
from residua.bases.networks.checkpoint import Checkpoint, Section, checksum
from residua.bases.networks.device import CPU, device_or_cpu, find_device, on_device, own_generators, precision_on
from residua.bases.networks.edges import edge_arguments, edge_tensors, warn_of_unused
from residua.bases.networks.settings import Network
from residua.bases.networks.stack import stack, worth_stacking
from residua.bases.networks.training import Learner, PaperSchedule, Schedule, SquaredError, train, train_paper
from residua.bases.progress import Report, noted, progress, report_on
from residua.caller import warn
from residua.graph import Graph
from residua.validation import MIN_LABELS

MIN_FOLDS = 4  # members, each with a fold held out, that leave enough labels to learn from


@dataclass(frozen=True)
class Member:
    """One trained network.

    Parameters
    ----------
    net : Module
        The network, with the weights to predict by.
    out_of_sample : ndarray of int
        Labelled nodes that it was not trained on.
    done : bool
        Whether it was trained to the end.
    a : ndarray of shape (edge types,)
        arctanh(alpha) at the end of the training.
    b : float
        log(beta) at the end of training="paper".
    optimism : float
        Mean square of errors at labels that had no say in when to stop, over that at ``out_of_sample``.
    """

    net: torch.nn.Module
    out_of_sample: np.ndarray
    done: bool
    a: np.ndarray
    b: float = 0.0
    optimism: float = 1.0


class NetworkBase(Base):
    """One network, or the average of an ensemble.

    Parameters
    ----------
    settings : Network
        Of every member.
    training : {"joint", "post-hoc", "paper"}
        Through the likelihood; by squared error, the correlation afterwards; or by the paper's mini-batches.
    ensemble : int
        How many members there are.
    device : str or torch.device
        Where they are trained; they rest on the CPU.

    Attributes
    ----------
    members : list of Module
        The trained networks.
    x_centre : ndarray of shape (inputs,)
        Means of what networks see.
    x_spread : ndarray of shape (inputs,)
        Its standard deviations.
    y_centre : float
        Mean of the labels.
    y_spread : float
        Their standard deviation.
    edge_types : tuple of str
        Those of the graph of the fit.
    """

    x_centre: np.ndarray
    x_spread: np.ndarray
    y_centre: float
    y_spread: float
    edge_types: tuple[str, ...]

    def __init__(self, settings: Network, training: str = "joint", ensemble: int = 1, device: Any = "cpu"):
        settings.check()
        self.device = device
        self.settings, self.training, self.ensemble = copy.copy(settings), training, ensemble
        self.name, self.stops_early = settings.name, training != "paper"
        self.members: list[torch.nn.Module] = []

    def _fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        self.edge_types = task.graph.edge_types
        self._refuse(task)
        self.x_centre, self.x_spread = standardisation(self._features(task.graph, task.X))
        self.y_centre, self.y_spread = (float(v[0]) for v in standardisation(task.y[task.labelled][:, None]))
        if self.settings.kind not in ROWWISE:
            warn_of_unused(task.graph, self._edge_arguments(), self.name)
        device = find_device(self.device)
        data = self._inputs(task.graph, task.X, (task.y - self.y_centre) / self.y_spread, device)
        kept = Checkpoint(task.checkpoint, self._mark(task, correlation) if task.checkpoint is not None else "")
        members: list[Member] = []
        history: list[dict[str, Any]] = []
        # Dropout and the like draw from torch's global generator, which is given back as it was.
        with (
            progress(f"training {self.name}", task.verbose) as advance,
            own_generators(device),
            _threads(len(data.x)),
        ):
            for group in self._together(data, task):
                if members and task.late:
                    break
                part = kept.section(str(group[0]))
                report = noted(report_on(advance, group[0], len(group), self.ensemble), group[0], history)
                try:
                    trained = self._train(group, data, task, correlation, part, report)
                except KeyboardInterrupt:  # between two networks
                    if not members:
                        raise
                    trained = []
                members += trained
                if not trained or not trained[-1].done:
                    best = f"{len(members)} networks so far are" if len(members) > 1 else "network so far is"
                    warn(f"training was interrupted; the best {best} kept.")
                    break
        self.members = [member.net.eval() for member in members]
        return replace(self._outcome(members, data, task, correlation), history=tuple(history))

    def _refuse(self, task: Task) -> None:
        """Refuse what no network can learn from."""
        if not self.width(task.graph, task.X.shape[1]):
            raise ValueError(f'X has no columns, which leaves base "{self.name}" nothing to see; use "hops" or "mean".')
        known = task.y[task.labelled]
        if np.ptp(known) == 0:  # labels that differ by rounding only were refused at the door
            raise ValueError(f"y is {known[0]} at all {len(known)} labels; there is nothing to learn.")

    def _outcome(
        self, members: list[Member], data: Inputs, task: Task, correlation: CorrelationModel[Fit] | None
    ) -> Outcome[Fit]:
        residuals = (task.y - self._scaled(data, self.members))[:, task.labelled]
        out_of_sample = np.stack([np.isin(task.labels, member.out_of_sample) for member in members])
        residual = residuals.mean(axis=0)
        optimism = np.array([member.optimism for member in members])
        if correlation is None or self.training == "post-hoc":
            out_of_fold = mean_where(residuals, out_of_sample)
            # Out-of-fold residuals correlate as the labels do. Networks trained jointly have each a level of their own,
            # so theirs are not mixed.
            if out_of_sample.any(axis=0).all():
                residual, residuals = out_of_fold, np.tile(out_of_fold, (len(members), 1))
            return Outcome(residual, out_of_fold, None, residuals, out_of_sample, optimism)
        a = np.mean([member.a for member in members], axis=0)
        if self.training == "paper":
            beta = float(np.exp(np.mean([member.b for member in members]))) / self.y_spread**2
            found = correlation.at(residual, a, beta)
        else:
            found = correlation(residual, start=a)
        return Outcome(residual, np.full_like(residual, np.nan), found, residuals, out_of_sample, optimism)

    def _together(self, data: Inputs, task: Task) -> list[list[int]]:
        """Group the members that are trained in one pass: all where that is faster, else each on its own."""
        fit = len(task.labels) - len(self._out_of_sample(0, task))
        widths = (16, 16, 8) if self.settings.widths is None else self.settings.widths
        whole = self.training != "paper" and self._schedule(fit, 0).batch is None
        kernels = data.x.device == CPU or self.settings.kind in ROWWISE  # that sum over neighbours are the CPU's
        if whole and kernels and worth_stacking(self.settings.kind, len(data.x), widths):
            return [list(range(self.ensemble))]
        return [[k] for k in range(self.ensemble)]

    def _train(
        self,
        group: list[int],
        data: Inputs,
        task: Task,
        correlation: CorrelationModel[Fit] | None,
        kept: Section,
        report: Report,
    ) -> list[Member]:
        """Train some of the members, each with its own weights and its own held-out labels."""
        seeds = [_seed(task, k) for k in group]
        nets = [self._blank(data.x.shape[1], seed, k).train() for k, seed in zip(group, seeds, strict=True)]
        if not any(p.requires_grad for p in nets[0].parameters()):
            raise ValueError(f"base {self.name} has no parameters to train; use a module with some.")
        s, device = self.settings, data.x.device
        if self.training == "paper":
            error = SquaredError(len(task.y), len(task.labels))
            paper: BatchLoss = error if correlation is None else correlation.paper_objective(s.lbfgs)
            batches = PaperSchedule(s.steps, seeds[0], every=100 if s.lbfgs else 10)
            with on_device(nets[0], device, data.x.dtype) as net:
                done = train_paper(net, data, task.labels, paper, batches, report, kept)
            return [Member(nets[0], task.labels[:0], done, paper.a, paper.b)]
        learners = [self._learner(k, task, correlation) for k in group]
        plan = replace(self._schedule(len(learners[0].fit), seeds[0]), deadline=task.deadline)
        with on_device(stack(nets) if len(nets) > 1 else nets[0], device, data.x.dtype) as net:
            done = train(net, data, learners, plan, report, kept)
        for net, learner in zip(nets, learners, strict=True):
            net.load_state_dict(learner.best)
        alphas = [np.arctanh(learner.criterion.alpha) for learner in learners]
        return [
            Member(net, one.out_of_sample, done, a, optimism=one.stopping.optimism)
            for net, one, a in zip(nets, learners, alphas, strict=True)
        ]

    def _learner(self, k: int, task: Task, correlation: CorrelationModel[Fit] | None) -> Learner:
        out_of_sample = self._out_of_sample(k, task)
        fit = np.setdiff1d(task.labels, out_of_sample)
        if correlation is not None and self.training == "joint":
            return Learner(fit, out_of_sample, correlation.objective(np.isin(np.arange(len(task.y)), fit)))
        return Learner(fit, out_of_sample, SquaredError(len(task.y), len(fit)))

    def _out_of_sample(self, k: int, task: Task) -> np.ndarray:
        """Draw the labels that member k is not trained on: a fold where there are enough members for folds."""
        if task.validation is not None:
            return np.flatnonzero(task.validation)
        labels = task.labels
        size = min(round(self.settings.validation * len(labels)), len(labels) - MIN_LABELS)
        if self.ensemble < MIN_FOLDS or not size:
            rng = np.random.default_rng([task.random_state, k])
            rng.integers(2**31)  # the seed of the weights
            return np.sort(rng.choice(labels, size, replace=False))
        order = np.random.default_rng([task.random_state, self.ensemble]).permutation(labels)
        return np.sort(np.array_split(order, self.ensemble)[k])

    def _schedule(self, labels: int, seed: int) -> Schedule:
        """Plan batches where the labels are many and a node's output needs only its own row."""
        s = self.settings
        batches = -(-labels // s.batch_size)
        if s.kind not in ROWWISE or batches < 4:
            return Schedule(s.epochs, s.learning_rate, s.weight_decay, s.patience, seed, judge_apart=s.own)
        epochs, patience = max(s.epochs // batches, 20), max(s.patience // batches, 5)
        return Schedule(min(epochs, s.epochs), s.learning_rate, s.weight_decay, patience, seed, s.batch_size)

    def fine_tuned(self, task: Task, steps: int, learning_rate: float) -> NetworkBase:
        """Return a copy trained on by squared error in batches of 5 % of the labels of ``task``, as the paper does."""
        tuned = copy.copy(self)
        tuned.members = copy.deepcopy(self.members)
        device = device_or_cpu(self.device)
        data = self._inputs(task.graph, task.X, (task.y - self.y_centre) / self.y_spread, device)
        error = SquaredError(len(task.y), len(task.labels))
        with progress(f"fine-tuning {self.name}") as advance, own_generators(device):
            for k, net in enumerate(tuned.members):
                batches = PaperSchedule(steps, _seed(task, k), learning_rate=learning_rate)
                report, kept = report_on(advance, k, 1, len(tuned.members)), Checkpoint(None, "").section("")
                with on_device(net.train(), device, data.x.dtype):
                    done = train_paper(net, data, task.labels, error, batches, report, kept)
                net.eval()
                if not done:
                    warn("fine-tuning was interrupted; what it had reached is kept.")
                    break
        return tuned

    def _mark(self, task: Task, correlation: CorrelationModel[Fit] | None) -> str:
        """Hash what is being trained."""
        settings = {k: v for k, v in self.settings.get_params().items() if k != "kind"}
        settled = (self.name, settings, self.training, self.ensemble, task.random_state, repr(correlation))
        judges = {} if task.validation is None else {"validation": task.validation}
        arrays = {"X": task.X, "y": task.y} | judges | {f"graph.{name}": a for name, a in task.graph.arrays().items()}
        module = ""
        if self.settings.own:
            module = repr(self.settings.kind)
            arrays |= {name: value.cpu().double().numpy() for name, value in self.settings.kind.state_dict().items()}
        return checksum(arrays, f"{torch.__version__} {settled!r} {module}")

    def _blank(self, inputs: int, seed: int = 0, k: int = 0) -> torch.nn.Module:
        """Make a network to be trained; a copy of a module of one's own, with new weights after the first."""
        if not self.settings.own:
            return make_network(self.settings.kind, inputs, self.settings.widths, seed)
        net = copy.deepcopy(self.settings.kind).to(CPU)
        if k:
            torch.default_generator.manual_seed(seed)
            for part in net.modules():
                getattr(part, "reset_parameters", lambda: None)()
        return net

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """Return the mean of the members' predictions (n,)."""
        return self.predict_members(graph, X).mean(axis=0)

    def predict_members(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """Return the predictions (members, n) of each member."""
        return self._scaled(self._inputs(graph, X, np.empty(0), device_or_cpu(self.device)), self.members)

    @torch.no_grad()
    def _scaled(self, data: Inputs, nets: list[torch.nn.Module]) -> np.ndarray:
        """Return predictions (nets, n) in the units of the labels."""
        found = []
        for net in nets:
            with on_device(net.eval(), data.x.device, data.x.dtype):
                found.append(outputs(net, data).cpu().double().numpy())
        return self.y_centre + self.y_spread * np.vstack(found)

    def _inputs(self, graph: Graph, X: np.ndarray, y: np.ndarray, device: torch.device = CPU) -> Inputs:
        x = (self._features(graph, X) - self.x_centre) / self.x_spread
        # Single precision, unless a module of one's own has another; once trained, that of the copies of it.
        own = (self.members or [self.settings.kind])[0].parameters() if self.settings.own else ()
        dtype = next((p.dtype for p in own if p.is_floating_point()), torch.float32)
        dtype = precision_on(device, dtype)
        edge_index, edges = edge_tensors(graph, self._edge_arguments(), dtype)
        edges = {name: values.to(device) for name, values in edges.items()}
        return Inputs(torch.as_tensor(x, dtype=dtype).to(device), edge_index.to(device), y, edges)

    def _edge_arguments(self) -> tuple[str, ...]:
        return edge_arguments(self.settings.kind) if self.settings.own else ()

    def _features(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        if self.settings.kind != "hops":
            return X
        return neighbour_features(graph, X, self.settings.hops, True, self.edge_types)

    def width(self, graph: Graph, columns: int) -> int:
        """Return how many features a network sees of a graph whose nodes have ``columns``."""
        types = len(graph.edge_types)
        return columns * (1 + self.settings.hops * types) + 2 * types if self.settings.kind == "hops" else columns

    def states(self) -> list[dict[str, np.ndarray]]:
        """Return the weights of each member, by name."""
        return [{name: value.numpy() for name, value in net.state_dict().items()} for net in self.members]

    def layout(self, inputs: int) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Return shape and type of each weight of a member, by name; of a named kind, without making any."""
        with torch.device("meta"):
            state = self._blank(inputs).state_dict()
        return {
            name: (tuple(t.shape), torch.empty(0, dtype=t.dtype, device="cpu").numpy().dtype)
            for name, t in state.items()
        }

    def restore(self, states: list[Mapping[str, np.ndarray]]) -> None:
        """Make members with these weights."""
        self.members = [self._blank(len(self.x_centre)).eval() for _ in states]
        for net, state in zip(self.members, states, strict=True):
            net.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, strict=True)


def _seed(task: Task, k: int) -> int:
    """Seed of member k."""
    return int(np.random.default_rng([task.random_state, k]).integers(2**31))


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
