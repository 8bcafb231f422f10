"""Training of network bases: full batch by squared error or through the likelihood, or the paper's mini-batches.

A criterion gives the loss and its gradient with respect to the residuals at the training labels, so the network sees
one ordinary backward pass; what those residuals say of the validation labels comes free with it. Ctrl-C ends a
training and keeps what it has reached.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn


class Criterion(Protocol):
    """A loss of residuals."""

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]: ...
    def correction(self) -> np.ndarray: ...
    def refit(self, r: np.ndarray) -> None: ...


class SquaredError:
    """Mean squared residual: no correlation, no correction."""

    def __init__(self, n: int):
        self.n = n

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        return float(np.mean(r**2)), 2 * r / len(r)

    def correction(self) -> np.ndarray:
        return np.zeros(self.n)

    def refit(self, r: np.ndarray) -> None:
        """Nothing to fit."""


@dataclass(frozen=True)
class Inputs:
    """What a network is fed, standardised."""

    x: Tensor  # (n, d)
    edge_index: Tensor  # (2, entries)
    y: np.ndarray  # (n,), NaN where unknown


@dataclass(frozen=True)
class Schedule:
    """How long and how fast."""

    epochs: int
    learning_rate: float
    weight_decay: float
    patience: int
    refit_every: int = 10


Report = Callable[[int, int, float], None]  # step, steps, error


def train(
    net: nn.Module,
    data: Inputs,
    fit: np.ndarray,
    held: np.ndarray,
    criterion: Criterion,
    plan: Schedule,
    report: Report,
) -> bool:
    """Train on the nodes ``fit`` and stop on the nodes ``held`` (positions); False after Ctrl-C.

    The network is left in the best state seen.
    """
    optimiser = torch.optim.Adam(net.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
    best, lowest, since = copy.deepcopy(net.state_dict()), np.inf, 0
    done = False
    try:
        for epoch in range(plan.epochs):
            out = outputs(net, data)
            prediction = out.detach().double().numpy()
            r = data.y[fit] - prediction[fit]
            value, slope = criterion.loss(r)
            error = _held_out_error(data.y, prediction + criterion.correction(), held, value)
            report(epoch, plan.epochs, error)
            since = 0 if error < lowest else since + 1
            if error < lowest:
                best, lowest = copy.deepcopy(net.state_dict()), error
            if since > plan.patience:
                break
            optimiser.zero_grad()
            _backward(out, fit, -slope)
            optimiser.step()
            if (epoch + 1) % plan.refit_every == 0:
                criterion.refit(r)
        done = True
    except KeyboardInterrupt:
        pass
    net.load_state_dict(best)
    return done


def train_paper(
    net: nn.Module,
    data: Inputs,
    fit: np.ndarray,
    criterion: Any,
    steps: int,
    rng: np.random.Generator,
    lbfgs: bool,
    report: Report,
) -> bool:
    """Algorithm 2 of the paper: batches of 5 % of the labels, Adam 1e-3; alpha, beta every 10 steps (100: L-BFGS)."""
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    size = max(1, round(0.05 * len(fit)))
    every = 100 if lbfgs else 10
    try:
        for step in range(steps):
            batch = np.sort(rng.choice(fit, size, replace=False))
            out = outputs(net, data)
            rest = data.y - out.detach().double().numpy()
            if criterion is None:
                slope = 2 * rest[batch] / size
            else:
                _, slope = criterion.batch_loss(batch, rest[batch])
            report(step, steps, float(np.mean(rest[batch] ** 2)))
            optimiser.zero_grad()
            _backward(out, batch, -slope)
            optimiser.step()
            if criterion is not None and (step + 1) % every == 0:
                criterion.minimise(rest[fit]) if lbfgs else criterion.step(rest[fit])
    except KeyboardInterrupt:
        return False
    return True


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


def _backward(out: Tensor, rows: np.ndarray, slope: np.ndarray) -> None:
    """Send ``slope``, the gradient of the loss at ``rows`` of the output, through the network."""
    gradient = torch.zeros_like(out)
    gradient[torch.as_tensor(rows)] = torch.as_tensor(slope, dtype=out.dtype)
    out.backward(gradient)
