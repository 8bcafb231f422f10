"""Training of network bases: by squared error or through the likelihood, or the paper's mini-batches.

A criterion gives the loss and its gradient with respect to the residuals at the training labels, so the network sees
one ordinary backward pass; what those residuals say of the validation labels comes free with it, unless a module may
behave otherwise in training than in prediction. Ctrl-C ends a training and keeps what it has reached. Whatever is
random in a step depends only on the seed and the step's number, so a training goes on from a checkpoint as if it had
never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from residua.bases.base import BatchLoss, Resumable, State, TrainingLoss
from residua.bases.networks.architectures import Inputs, outputs
from residua.bases.networks.checkpoint import Section, under
from residua.bases.networks.device import CPU, seed_dropout
from residua.bases.networks.stack import Stack
from residua.bases.progress import Report
from residua.bases.stopping import EarlyStopping


class SquaredError:
    """Mean squared residual at labels: no correlation, no correction.

    Parameters
    ----------
    n : int
        Nodes of the graph.
    labels : int
        Labels that a network learns from.
    """

    alpha = a = np.empty(0)
    b = 0.0

    def __init__(self, n: int, labels: int):
        self.n, self.labels = n, labels

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean of r^2 and its gradient."""
        return float(np.mean(r**2)), 2 * r / self.labels

    def slope(self, at: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the gradient at some of the labels."""
        return 2 * r / self.labels

    def batch_slope(self, batch: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the gradient of the mean of r^2 over a batch."""
        return 2 * r / len(r)

    def correction(self) -> np.ndarray:
        """Return zeros: residuals say nothing of other nodes."""
        return np.zeros(self.n)

    def refit(self, r: np.ndarray) -> None:
        """Do nothing: there is no correlation."""

    update = refit

    def state(self) -> State:
        """Return nothing: there is nothing to keep."""
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Do nothing: nothing was kept."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Parameters
    ----------
    epochs : int
        Steps at most, or passes over the labels in batches.
    learning_rate : float
        Of Adam.
    weight_decay : float
        Of Adam.
    patience : int
        Epochs without a lower error after which the training ends.
    seed : int
        Of all that is random in a step.
    batch : int or None
        Rows at a time, for a network that looks at one row at a time; None for all.
    judge_apart : bool
        Whether networks are judged without dropout and the like, at the cost of a second pass.
    refit_first : int
        The step after which the correlation is first fitted.
    refit_every : int
        Steps between further fits of it.
    deadline : float
        CPU second of this process after which no further step is taken.
    """

    epochs: int
    learning_rate: float
    weight_decay: float
    patience: int
    seed: int
    batch: int | None = None
    judge_apart: bool = False
    refit_first: int = 10
    refit_every: int = 25
    deadline: float = np.inf


@dataclass(frozen=True)
class PaperSchedule:
    """The authors' mini-batches.

    Parameters
    ----------
    steps : int
        Batches to learn from.
    seed : int
        Of all that is random in a step.
    every : int
        Steps between two updates of the correlation.
    learning_rate : float
        Of Adam.
    share : float
        Share of the labels in a batch.
    """

    steps: int
    seed: int
    every: int = 10
    learning_rate: float = 1e-3
    share: float = 0.05


class Learner:
    """What is one network's own in a training: its labels, its loss, the best that it has reached.

    Parameters
    ----------
    fit : ndarray of int
        Nodes whose labels it learns from.
    out_of_sample : ndarray of int
        Labelled nodes that it stops on.
    criterion : TrainingLoss
        Its loss.
    """

    def __init__(self, fit: np.ndarray, out_of_sample: np.ndarray, criterion: TrainingLoss):
        self.fit, self.out_of_sample, self.criterion = fit, out_of_sample, criterion
        self.stopping, self.error = EarlyStopping(len(out_of_sample)), np.inf
        self.best: dict[str, Tensor] = {}

    def state(self) -> State:
        """Return enough to go on from."""
        return {
            **{f"stopping.{name}": value for name, value in self.stopping.state().items()},
            **{f"best.{name}": value.cpu().numpy() for name, value in self.best.items()},
            **{f"criterion.{name}": value for name, value in self.criterion.state().items()},
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from ``state``."""
        self.stopping.restore(under(state, "stopping."))
        self.best = _tensors(state, "best.")
        self.criterion.restore(under(state, "criterion."))

    def follow(self, y: np.ndarray, prediction: np.ndarray) -> Followed:
        """Return the residuals of a prediction (n,) at the labels it learns from, and the loss's gradient there."""
        r = y[self.fit] - prediction[self.fit]
        return r, self.criterion.loss(r)[1]

    def judge(self, y: np.ndarray, prediction: np.ndarray, run: Run, k: int) -> Followed:
        """Return the same, and keep the weights of network k if they are the best so far."""
        r = y[self.fit] - prediction[self.fit]
        if not np.isfinite(r).all():
            if self.stopping.lowest == np.inf:
                raise ValueError(
                    f"the network gives numbers that are not finite after {run.step} steps of learning_rate="
                    f"{run.learning_rate}; take a smaller one, or look for them in a module of your own."
                )
            self.stopping.since = NEVER
            return r, np.zeros_like(r)
        self.error, slope = self.criterion.loss(r)
        squares = np.empty(0)
        if len(self.out_of_sample):
            corrected = prediction[self.out_of_sample] + self.criterion.correction()[self.out_of_sample]
            squares = (y[self.out_of_sample] - corrected) ** 2
            self.error = float(np.mean(squares))
        if self.stopping.improved(self.error, squares):
            self.best = run.weights(k)
        return r, slope


NEVER = 10**12  # steps since the best of a network that will get no better


class Run:
    """What a training has reached: enough to go on from, in another process too.

    Parameters
    ----------
    net : Module
        A network, or a ``Stack`` of them.
    learning_rate : float
        Of Adam.
    weight_decay : float
        Of Adam.
    parts : mapping of str to Resumable
        What else a checkpoint keeps.
    """

    def __init__(self, net: nn.Module, learning_rate: float, weight_decay: float, parts: Mapping[str, Resumable]):
        self.net, self.learning_rate, self.parts, self.step, self.done = net, learning_rate, parts, 0, False
        self.device = next((p.device for p in net.parameters()), CPU)
        # Adam in one kernel: small networks spend most of a step on the calls of the plain one.
        fused = self.device.type in ("cpu", "cuda")
        self.optimiser = Adam(net.parameters(), learning_rate, weight_decay=weight_decay, fused=fused)

    def weights(self, k: int) -> dict[str, Tensor]:
        """Return a copy of the weights of network k."""
        state = self.net.state_of(k) if isinstance(self.net, Stack) else self.net.state_dict()
        return {name: value.clone() for name, value in state.items()}

    def state(self) -> State:
        """Return enough to go on from."""
        adam = self.optimiser.state_dict()["state"]
        return {
            "run": np.array([self.step, self.done]),
            **{f"net.{name}": value.cpu().numpy() for name, value in self.net.state_dict().items()},
            **{f"adam.{i}.{name}": value.cpu().numpy() for i, entry in adam.items() for name, value in entry.items()},
            **{f"{key}.{name}": a for key, part in self.parts.items() for name, a in part.state().items()},
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from ``state``; of an empty one, begin."""
        if not state:
            return
        self.step, self.done = int(state["run"][0]), bool(state["run"][1:].any())
        self.net.load_state_dict(_tensors(state, "net."))
        adam = {i: _tensors(state, f"adam.{i}.") for i, _ in enumerate(self.net.parameters())}
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": adam})
        for key, part in self.parts.items():
            part.restore(under(state, f"{key}."))

    def repeat(self, advance: Callable[[], bool], kept: Section) -> bool:
        """Call ``advance`` until it returns False, from where ``kept`` left off; return False after Ctrl-C."""
        self.restore(kept.state())
        try:
            while not self.done and advance():  # one that has ended is not judged again, from another start of CG
                self.step += 1
                kept.offer(self.state)
            self.done = True
            kept.offer(self.state, now=True)
        except KeyboardInterrupt:
            return False
        return True


def _tensors(state: Mapping[str, np.ndarray], prefix: str) -> dict[str, Tensor]:
    return {name: torch.tensor(a) for name, a in under(state, prefix).items()}


def train(net: nn.Module, data: Inputs, learners: list[Learner], plan: Schedule, report: Report, kept: Section) -> bool:
    """Train a network, or a ``Stack`` of them with one learner each, until none gets better; return False after Ctrl-C.

    The learners hold the best states seen.
    """
    run = Run(net, plan.learning_rate, plan.weight_decay, {str(k): learner for k, learner in enumerate(learners)})
    for k, learner in enumerate(learners):
        learner.best = run.weights(k)

    def learning() -> list[int]:
        if run.step and time.process_time() > plan.deadline:
            return []
        return [k for k, learner in enumerate(learners) if learner.stopping.since <= plan.patience]

    def advance() -> bool:
        if not learning():
            return False
        if plan.judge_apart:
            with torch.no_grad():  # without dropout and the like
                found = _predictions(outputs(net.eval(), data, len(learners)))
            net.train()
            for k in learning():
                learners[k].judge(data.y, found[k], run, k)
        seed_dropout(run.device, plan.seed + run.step)
        with torch.set_grad_enabled(plan.batch is None):
            out = outputs(net, data, len(learners))
        found = _predictions(out)
        if plan.judge_apart:
            followed = {k: learners[k].follow(data.y, found[k]) for k in learning()}
        else:
            followed = {k: learners[k].judge(data.y, found[k], run, k) for k in learning()}
        report(run.step, plan.epochs, float(np.mean([learner.error for learner in learners])))
        if run.step == plan.epochs or not learning():
            return False
        if plan.batch is None:
            _full_step(run, learners, out, followed, plan)
        else:
            _batch_steps(run, learners[0], data, followed[0][0], plan.seed, plan.batch)
        return True

    return run.repeat(advance, kept)


Followed = tuple[np.ndarray, np.ndarray]  # residuals at the training labels, and the gradient of the loss there


def _predictions(out: Tensor) -> np.ndarray:
    return out.detach().cpu().double().numpy()


def _full_step(run: Run, learners: list[Learner], out: Tensor, followed: dict[int, Followed], plan: Schedule) -> None:
    """Take one step of all networks that learn, and refit their correlations now and then."""
    take_step(run.optimiser, out, {k: (learners[k].fit, -slope) for k, (_, slope) in followed.items()})
    if run.step + 1 == plan.refit_first or (run.step + 1) % plan.refit_every == 0:
        for k, (r, _) in followed.items():
            learners[k].criterion.refit(r)


def _batch_steps(run: Run, learner: Learner, data: Inputs, r: np.ndarray, seed: int, size: int) -> None:
    """Take an epoch of steps on some labels each: their residuals are new, others' as old as an epoch at most."""
    learner.criterion.refit(r)
    learner.criterion.loss(r)
    order = np.random.default_rng(seed + run.step).permutation(len(learner.fit))
    for part in np.array_split(order, -(-len(order) // size)):
        rows = learner.fit[part]
        out = outputs(run.net, Inputs(data.x[torch.as_tensor(rows, device=run.device)], data.edge_index, data.y))
        slope = learner.criterion.slope(part, data.y[rows] - _predictions(out)[0])
        take_step(run.optimiser, out, {0: (np.arange(len(rows)), -slope * (len(learner.fit) / len(part)))})


def train_paper(
    net: nn.Module, data: Inputs, fit: np.ndarray, loss: BatchLoss, plan: PaperSchedule, report: Report, kept: Section
) -> bool:
    """Train by Algorithm 2 of the paper: a network on batches of the labels ``fit``, alpha and beta now and then.

    Returns False after Ctrl-C.
    """
    run = Run(net, plan.learning_rate, 0.0, {"0.criterion": loss})
    size = max(1, round(plan.share * len(fit)))

    def advance() -> bool:
        if run.step >= plan.steps:
            return False
        batch = np.sort(np.random.default_rng([plan.seed, run.step]).choice(fit, size, replace=False))
        seed_dropout(run.device, plan.seed + run.step)
        out = outputs(net, data)
        r = data.y - _predictions(out)[0]
        report(run.step, plan.steps, float(np.mean(r[batch] ** 2)))
        take_step(run.optimiser, out, {0: (batch, -loss.batch_slope(batch, r[batch]))})
        if (run.step + 1) % plan.every == 0:
            loss.update(r[fit])
        return True

    return run.repeat(advance, kept)


def take_step(optimiser: Optimizer, out: Tensor, slopes: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> None:
    """Send the gradients of the losses at rows of the outputs (networks, n) through the networks, and step."""
    gradient = torch.zeros(out.shape, dtype=out.dtype)
    for k, (rows, slope) in slopes.items():
        gradient[k, torch.as_tensor(rows)] = torch.as_tensor(slope, dtype=out.dtype)
    for group in optimiser.param_groups:  # zero_grad notes for a profiler that it ran, which takes as long as Adam
        for p in group["params"]:
            p.grad = None
    out.backward(gradient.to(out.device))
    optimiser.step()
