"""Training of network bases: by squared error or through the likelihood, or the paper's mini-batches.

A criterion gives the loss and its gradient with respect to the residuals at the training labels, so the network sees
one ordinary backward pass; what those residuals say of the validation labels comes free with it, unless a module may
behave otherwise in training than in prediction. Ctrl-C ends a training and keeps what it has reached. Whatever is
random in a step depends on the seed and the step's number alone, so a training goes on from a checkpoint as if it had
never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from residua.bases.networks.checkpoint import Part, State
from residua.bases.networks.stack import Stack


class Criterion(Protocol):
    """A loss of residuals."""

    alpha: np.ndarray

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]: ...
    def slope(self, at: np.ndarray, r: np.ndarray) -> np.ndarray: ...
    def correction(self) -> np.ndarray: ...
    def refit(self, r: np.ndarray) -> None: ...
    def state(self) -> State: ...
    def restore(self, state: Mapping[str, np.ndarray]) -> None: ...


class SquaredError:
    """Mean squared residual of ``labels`` nodes among n: no correlation, no correction."""

    alpha = np.empty(0)

    def __init__(self, n: int, labels: int):
        self.n, self.labels = n, labels

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        return float(np.mean(r**2)), 2 * r / self.labels

    def slope(self, at: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The gradient at some of the labels."""
        return 2 * r / self.labels

    def correction(self) -> np.ndarray:
        return np.zeros(self.n)

    def refit(self, r: np.ndarray) -> None:
        """Nothing to fit."""

    def state(self) -> State:
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Nothing to restore."""


@dataclass(frozen=True)
class Inputs:
    """What a network is fed, standardised."""

    x: Tensor  # (n, d)
    edge_index: Tensor  # (2, entries)
    y: np.ndarray  # (n,), NaN where unknown


@dataclass(frozen=True)
class Schedule:
    """How long and how fast; ``batch`` rows at a time for a network that looks at one row at a time, None for all."""

    epochs: int
    learning_rate: float
    weight_decay: float
    patience: int
    seed: int
    batch: int | None = None
    judge_apart: bool = False  # without dropout and the like, at the cost of a second pass
    refit_first: int = 10
    refit_every: int = 25


Report = Callable[[int, int, float], None]  # step, steps, error


class Learner:
    """What is one network's own in a training: its labels, its loss, the best that it has reached.

    Parameters
    ----------
    fit, out_of_sample : positions of the labels it learns from, and of those it stops on
    criterion : its loss
    """

    def __init__(self, fit: np.ndarray, out_of_sample: np.ndarray, criterion: Any):
        self.fit, self.out_of_sample, self.criterion = fit, out_of_sample, criterion
        self.since, self.lowest = 0, np.inf
        self.error = np.inf  # of the last judgement
        self.best: dict[str, Tensor] = {}

    def follow(self, y: np.ndarray, prediction: np.ndarray) -> Followed:
        """Residuals of a prediction (n,) at the labels it learns from, and the gradient of the loss there."""
        r = y[self.fit] - prediction[self.fit]
        return r, self.criterion.loss(r)[1]

    def judge(self, y: np.ndarray, prediction: np.ndarray, weights: Callable[[], dict[str, Tensor]]) -> Followed:
        """The same, and keep the weights if they are the best so far."""
        r = y[self.fit] - prediction[self.fit]
        if not np.isfinite(r).all():
            if self.lowest == np.inf:
                raise FloatingPointError
            self.since = NEVER
            return r, np.zeros_like(r)
        value, slope = self.criterion.loss(r)
        if len(self.out_of_sample):
            corrected = prediction[self.out_of_sample] + self.criterion.correction()[self.out_of_sample]
            value = float(np.mean((y[self.out_of_sample] - corrected) ** 2))
        self.error = value
        self.since = 0 if value < self.lowest else self.since + 1
        if value < self.lowest:
            self.best, self.lowest = weights(), value
        return r, slope

    def state(self) -> State:
        criterion = self.criterion.state() if self.criterion else {}
        return {
            "judged": np.array([self.since, self.lowest]),
            **{f"best.{name}": value.numpy() for name, value in self.best.items()},
            **{f"criterion.{name}": value for name, value in criterion.items()},
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.since, self.lowest = int(state["judged"][0]), float(state["judged"][1])
        self.best = _tensors(state, "best.")
        if self.criterion:
            self.criterion.restore(_under(state, "criterion."))


NEVER = 10**12  # steps since the best of a network that will get no better


class Run:
    """What a training has reached: enough to go on from, in another process too."""

    def __init__(self, net: nn.Module, optimiser: torch.optim.Optimizer, learners: list[Learner]):
        self.net, self.optimiser, self.learners, self.step = net, optimiser, learners, 0
        for k, learner in enumerate(learners):
            learner.best = self.weights(k)

    def weights(self, k: int) -> dict[str, Tensor]:
        """A copy of the weights of network k."""
        state = self.net.state_of(k) if isinstance(self.net, Stack) else self.net.state_dict()
        return {name: value.clone() for name, value in state.items()}

    def state(self) -> State:
        adam = self.optimiser.state_dict()["state"]
        return {
            "run": np.array([self.step]),
            **{f"net.{name}": value.numpy() for name, value in self.net.state_dict().items()},
            **{f"adam.{i}.{name}": value.numpy() for i, entry in adam.items() for name, value in entry.items()},
            **{f"{k}.{name}": a for k, learner in enumerate(self.learners) for name, a in learner.state().items()},
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        if not state:
            return
        self.step = int(state["run"][0])
        self.net.load_state_dict(_tensors(state, "net."))
        adam: dict[int, dict[str, Tensor]] = {}
        for name, value in _tensors(state, "adam.").items():
            number, _, what = name.partition(".")
            adam.setdefault(int(number), {})[what] = value
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": adam})
        for k, learner in enumerate(self.learners):
            learner.restore(_under(state, f"{k}."))


def _under(state: Mapping[str, np.ndarray], prefix: str) -> State:
    return {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}


def _tensors(state: Mapping[str, np.ndarray], prefix: str) -> dict[str, Tensor]:
    return {name: torch.tensor(a) for name, a in _under(state, prefix).items()}


def train(net: nn.Module, data: Inputs, learners: list[Learner], plan: Schedule, report: Report, kept: Part) -> bool:
    """Train a network, or a ``Stack`` of them with one learner each, until none gets better; False after Ctrl-C.

    The learners hold the best states seen.
    """
    run = Run(net, _adam(net, plan.learning_rate, plan.weight_decay), learners)
    run.restore(kept.state())
    try:
        while _learning(run, plan):
            if plan.judge_apart:
                _judge(run, data, plan, _undisturbed(net, data, len(learners)))
            torch.default_generator.manual_seed(plan.seed + run.step)  # of dropout
            with torch.set_grad_enabled(plan.batch is None):
                out = outputs(net, data, len(learners))
            followed = (_follow if plan.judge_apart else _judge)(run, data, plan, out)
            report(run.step, plan.epochs, float(np.mean([learner.error for learner in learners])))
            if run.step == plan.epochs or not _learning(run, plan):
                break
            _step(run, data, plan, out, followed)
            run.step += 1
            kept.offer(run.state)
        kept.offer(run.state, now=True)
    except KeyboardInterrupt:
        return False
    return True


Followed = tuple[np.ndarray, np.ndarray]  # residuals at the training labels, and the gradient of the loss there


def _learning(run: Run, plan: Schedule) -> list[int]:
    """Networks that may still get better."""
    return [k for k, learner in enumerate(run.learners) if learner.since <= plan.patience]


def _undisturbed(net: nn.Module, data: Inputs, count: int) -> Tensor:
    """Outputs without dropout and the like."""
    with torch.no_grad():
        out = outputs(net.eval(), data, count)
    net.train()
    return out


def _judge(run: Run, data: Inputs, plan: Schedule, out: Tensor) -> dict[int, Followed]:
    """Keep the networks that are the best so far; what the loss says to each that is still learning."""
    prediction = out.detach().double().numpy()
    try:
        return {k: run.learners[k].judge(data.y, prediction[k], partial(run.weights, k)) for k in _learning(run, plan)}
    except FloatingPointError:
        raise ValueError(
            f"the network gives numbers that are not finite after {run.step} steps of learning_rate="
            f"{plan.learning_rate}; take a smaller one, or look for them in a module of your own."
        ) from None


def _follow(run: Run, data: Inputs, plan: Schedule, out: Tensor) -> dict[int, Followed]:
    prediction = out.detach().double().numpy()
    return {k: run.learners[k].follow(data.y, prediction[k]) for k in _learning(run, plan)}


def _step(run: Run, data: Inputs, plan: Schedule, out: Tensor, followed: dict[int, Followed]) -> None:
    """One step of all networks, or an epoch of one in batches."""
    if plan.batch is None:
        take_step(run.optimiser, out, {k: (run.learners[k].fit, -slope) for k, (_, slope) in followed.items()})
        if run.step + 1 == plan.refit_first or (run.step + 1) % plan.refit_every == 0:
            for k, (r, _) in followed.items():
                run.learners[k].criterion.refit(r)
        return
    learner, (r, _) = run.learners[0], followed[0]
    learner.criterion.refit(r)
    learner.criterion.loss(r)
    for part in _batches(len(learner.fit), plan.batch, plan.seed + run.step):
        _batch_step(run, data, learner, part)


def _batch_step(run: Run, data: Inputs, learner: Learner, part: np.ndarray) -> None:
    """A step on some of the labels: their residuals are new, those of the others as old as an epoch at most."""
    rows = learner.fit[part]
    out = outputs(run.net, Inputs(data.x[torch.as_tensor(rows)], data.edge_index, data.y))
    r = data.y[rows] - out[0].detach().double().numpy()
    slope = learner.criterion.slope(part, r) * (len(learner.fit) / len(part))
    take_step(run.optimiser, out, {0: (np.arange(len(rows)), -slope)})


def _batches(count: int, size: int, seed: int) -> Iterator[np.ndarray]:
    order = np.random.default_rng(seed).permutation(count)
    yield from np.array_split(order, -(-count // size))


def train_paper(
    net: nn.Module,
    data: Inputs,
    fit: np.ndarray,
    criterion: Any,
    steps: int,
    seed: int,
    report: Report,
    kept: Part,
    rate: float = 1e-3,
    every: int = 10,
) -> bool:
    """Algorithm 2 of the paper: batches of 5 % of the labels; alpha, beta once ``every`` so many steps."""
    optimiser = _adam(net, rate)
    size = max(1, round(0.05 * len(fit)))
    run = Run(net, optimiser, [Learner(fit, fit[:0], criterion)])
    run.restore(kept.state())
    try:
        while run.step < steps:
            batch = np.sort(np.random.default_rng([seed, run.step]).choice(fit, size, replace=False))
            torch.default_generator.manual_seed(seed + run.step)
            out = outputs(net, data)
            rest = data.y - out[0].detach().double().numpy()
            slope = 2 * rest[batch] / size if criterion is None else criterion.batch_slope(batch, rest[batch])
            report(run.step, steps, float(np.mean(rest[batch] ** 2)))
            take_step(optimiser, out, {0: (batch, -slope)})
            run.step += 1
            if criterion is not None and run.step % every == 0:
                criterion.update(rest[fit])
            kept.offer(run.state)
        kept.offer(run.state, now=True)
    except KeyboardInterrupt:
        return False
    return True


def _adam(net: nn.Module, rate: float, decay: float = 0.0) -> torch.optim.Optimizer:
    """Adam in one kernel: small networks spend most of a step on the calls of the plain one."""
    return torch.optim.Adam(net.parameters(), lr=rate, weight_decay=decay, fused=True)


def outputs(net: nn.Module, data: Inputs, count: int = 1) -> Tensor:
    """(count, n) one number a node, of each of ``count`` networks."""
    out = net(data.x, data.edge_index)
    if out.numel() != count * len(data.x):
        raise ValueError(
            f"base {type(net).__name__} returned a tensor of shape {tuple(out.shape)} for {len(data.x)} nodes; "
            "return one number a node."
        )
    return out.reshape(count, -1)


def take_step(
    optimiser: torch.optim.Optimizer, out: Tensor, slopes: Mapping[int, tuple[np.ndarray, np.ndarray]]
) -> None:
    """Send the gradients of the losses at rows of the outputs (networks, n) through the networks, and step."""
    gradient = torch.zeros_like(out)
    for k, (rows, slope) in slopes.items():
        gradient[k, torch.as_tensor(rows)] = torch.as_tensor(slope, dtype=out.dtype)
    optimiser.zero_grad()
    out.backward(gradient)
    optimiser.step()
