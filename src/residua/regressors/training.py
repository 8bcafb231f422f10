"""Training of network bases: by squared error or through the likelihood, or the paper's mini-batches.

A criterion gives the loss and its gradient with respect to the residuals at the training labels, so the network sees
one ordinary backward pass; what those residuals say of the validation labels comes free with it, unless a module may
behave otherwise in training than in prediction. Ctrl-C ends a training and keeps what it has reached. Whatever is
random in a step depends on the seed and the step's number alone, so a training goes on from a checkpoint as if it had
never stopped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from residua.regressors.checkpoint import Part, State


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


class Run:
    """What a training has reached: enough to go on from, in another process too."""

    def __init__(self, net: nn.Module, optimiser: torch.optim.Optimizer, criterion: Any):
        self.net, self.optimiser, self.criterion = net, optimiser, criterion
        self.step, self.since, self.lowest = 0, 0, np.inf
        self.error = np.inf  # of the last judgement
        self.best = copy.deepcopy(net.state_dict())

    def judge(self, error: float) -> None:
        """Keep the network if it is the best so far."""
        self.error = error
        self.since = 0 if error < self.lowest else self.since + 1
        if error < self.lowest:
            self.best, self.lowest = copy.deepcopy(self.net.state_dict()), error

    def state(self) -> State:
        adam = self.optimiser.state_dict()["state"]
        criterion = self.criterion.state() if self.criterion else {}
        return {
            "run": np.array([self.step, self.since, self.lowest]),
            **{f"net.{name}": value.numpy() for name, value in self.net.state_dict().items()},
            **{f"best.{name}": value.numpy() for name, value in self.best.items()},
            **{f"adam.{i}.{name}": value.numpy() for i, entry in adam.items() for name, value in entry.items()},
            **{f"criterion.{name}": value for name, value in criterion.items()},
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        if not state:
            return
        self.step, self.since, self.lowest = int(state["run"][0]), int(state["run"][1]), float(state["run"][2])
        self.net.load_state_dict(_tensors(state, "net."))
        self.best = _tensors(state, "best.")
        adam: dict[int, dict[str, Tensor]] = {}
        for name, value in _tensors(state, "adam.").items():
            number, _, what = name.partition(".")
            adam.setdefault(int(number), {})[what] = value
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": adam})
        if self.criterion:
            self.criterion.restore(_under(state, "criterion."))


def _under(state: Mapping[str, np.ndarray], prefix: str) -> State:
    return {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}


def _tensors(state: Mapping[str, np.ndarray], prefix: str) -> dict[str, Tensor]:
    return {name: torch.tensor(a) for name, a in _under(state, prefix).items()}


def train(
    net: nn.Module,
    data: Inputs,
    fit: np.ndarray,
    held: np.ndarray,
    criterion: Criterion,
    plan: Schedule,
    report: Report,
    kept: Part,
) -> bool:
    """Train on the nodes ``fit`` and stop on the nodes ``held`` (positions); False after Ctrl-C.

    The network is left in the best state seen.
    """
    run = Run(net, _adam(net, plan.learning_rate, plan.weight_decay), criterion)
    run.restore(kept.state())
    done = False
    try:
        while run.since <= plan.patience:
            if plan.judge_apart:
                _judge(run, data, fit, held, plan)
            torch.default_generator.manual_seed(plan.seed + run.step)  # of dropout
            with torch.set_grad_enabled(plan.batch is None):
                out = outputs(net, data)
            r, slope = (_follow if plan.judge_apart else _judge)(run, data, fit, held, plan, out)
            report(run.step, plan.epochs, run.error)
            if run.since > plan.patience or run.step == plan.epochs:
                break
            due = run.step + 1 == plan.refit_first or (run.step + 1) % plan.refit_every == 0
            if plan.batch is None:
                take_step(run.optimiser, out, fit, -slope)
                if due:
                    criterion.refit(r)
            else:
                criterion.refit(r)
                criterion.loss(r)
                for part in _batches(len(fit), plan.batch, plan.seed + run.step):
                    _batch_step(run.optimiser, net, data, fit, part, criterion)
            run.step += 1
            kept.offer(run.state)
        kept.offer(run.state, now=True)
        done = True
    except KeyboardInterrupt:
        pass
    net.load_state_dict(run.best)
    return done


Followed = tuple[np.ndarray, np.ndarray]  # residuals at the training labels, and the gradient of the loss there


def _judge(
    run: Run, data: Inputs, fit: np.ndarray, held: np.ndarray, plan: Schedule, out: Tensor | None = None
) -> Followed:
    """Keep the network if it is the best so far; by its outputs in training, or else without dropout and the like."""
    if out is None:
        with torch.no_grad():
            out = outputs(run.net.eval(), data)
        run.net.train()
    prediction = out.detach().double().numpy()
    r = data.y[fit] - prediction[fit]
    if not np.isfinite(r).all():
        if run.lowest == np.inf:
            raise ValueError(
                f"the network gives numbers that are not finite after {run.step} steps of learning_rate="
                f"{plan.learning_rate}; take a smaller one, or look for them in a module of your own."
            )
        run.since = plan.patience + 1
        return r, np.zeros_like(r)
    value, slope = run.criterion.loss(r)
    run.judge(_held_out_error(data.y, prediction + run.criterion.correction(), held, value))
    return r, slope


def _follow(run: Run, data: Inputs, fit: np.ndarray, held: np.ndarray, plan: Schedule, out: Tensor) -> Followed:
    """Loss and gradient alone."""
    r = data.y[fit] - out.detach().double().numpy()[fit]
    return r, run.criterion.loss(r)[1]


def _batch_step(
    optimiser: torch.optim.Optimizer, net: nn.Module, data: Inputs, fit: np.ndarray, part: np.ndarray, criterion: Any
) -> None:
    """A step on some of the labels: their residuals are new, those of the others as old as an epoch at most."""
    rows = fit[part]
    out = outputs(net, Inputs(data.x[torch.as_tensor(rows)], data.edge_index, data.y))
    r = data.y[rows] - out.detach().double().numpy()
    slope = criterion.slope(part, r) * (len(fit) / len(part))
    take_step(optimiser, out, np.arange(len(rows)), -slope)


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
    run = Run(net, optimiser, criterion)
    run.restore(kept.state())
    try:
        while run.step < steps:
            batch = np.sort(np.random.default_rng([seed, run.step]).choice(fit, size, replace=False))
            torch.default_generator.manual_seed(seed + run.step)
            out = outputs(net, data)
            rest = data.y - out.detach().double().numpy()
            slope = 2 * rest[batch] / size if criterion is None else criterion.batch_slope(batch, rest[batch])
            report(run.step, steps, float(np.mean(rest[batch] ** 2)))
            take_step(optimiser, out, batch, -slope)
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


def outputs(net: nn.Module, data: Inputs) -> Tensor:
    """(n,) one number a node."""
    out = net(data.x, data.edge_index)
    if out.numel() != len(data.x):
        raise ValueError(
            f"base {type(net).__name__} returned a tensor of shape {tuple(out.shape)} for {len(data.x)} nodes; "
            "return one number a node."
        )
    return out.reshape(-1)


def _held_out_error(y: np.ndarray, prediction: np.ndarray, held: np.ndarray, value: float) -> float:
    """Mean squared error where labels are held out; the training loss where none are."""
    return float(np.mean((y[held] - prediction[held]) ** 2)) if len(held) else value


def take_step(optimiser: torch.optim.Optimizer, out: Tensor, rows: np.ndarray, slope: np.ndarray) -> None:
    """Send ``slope``, the gradient of the loss at ``rows`` of the output, through the network, and step."""
    gradient = torch.zeros_like(out)
    gradient[torch.as_tensor(rows)] = torch.as_tensor(slope, dtype=out.dtype)
    optimiser.zero_grad()
    out.backward(gradient)
    optimiser.step()
