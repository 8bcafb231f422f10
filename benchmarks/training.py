"""Training a network through the likelihood against the same network trained alone.

step   one full-batch step, forward, loss, backward, Adam: with the correlation over without, on PyG's own layers,
       and with the correlation on residua's layers over PyG's without
fit    a whole fit on a county map at the same number of steps, and against the paper's training as published:
       Lanczos from 128 probes, 32 steps, run anew at each of its 150 steps on alpha
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from torch import nn
from torch_geometric.nn import SAGEConv

import residua
from benchmarks.common import best_of_each, best_seconds, correlated_residuals, watts_strogatz
from residua import Graph, GraphRegressor, Lanczos, Network
from residua.bases.base import TrainingLoss
from residua.bases.networks.architectures import Inputs, make_network, outputs
from residua.bases.networks.training import SquaredError, take_step
from residua.field.training_loss import Objective
from residua.linalg.logdet.strategy import Estimate, Ratio, Strategy
from residua.reproduction.splits import random_split

FEATURES = 6


class Plain(nn.Module):
    """The paper's network on PyG's layers."""

    def __init__(self, inputs: int):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([SAGEConv(inputs, 16), SAGEConv(16, 8)])
        self.out = nn.Linear(8, 1)

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.out(x).squeeze(-1)


@dataclass(frozen=True)
class Rerun(Strategy):
    """As published: plain Lanczos, run anew whenever alpha has moved."""

    probes: int = 128
    steps: int = 32

    def prepare(self, terms, subset=None):
        return _Rerun(Lanczos(self.probes, self.steps, control_variates=False), terms, subset)


class _Rerun(Ratio):
    exact = False
    method = "plain Lanczos, run anew for each alpha"

    def __init__(self, strategy, terms, subset):
        self.make = lambda: strategy.prepare(terms, subset)
        self.alpha = None

    def _at(self, alpha: np.ndarray) -> Ratio:
        if self.alpha is None or not np.array_equal(alpha, self.alpha):
            self.alpha, self.inner = alpha.copy(), self.make()
        return self.inner

    def value(self, alpha) -> Estimate:
        return self._at(alpha).value(alpha)

    def gradient(self, alpha) -> Estimate:
        return self._at(alpha).gradient(alpha)


def problem(n: int) -> tuple[Graph, Inputs, np.ndarray]:
    """A small world of n nodes, correlated labels, 60 % of them known."""
    graph = Graph.from_edges(*watts_strogatz(n))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES))
    y = np.tanh(X[:, 0]) + X[:, 1] + correlated_residuals(graph, 0.9, 1.0, 0.6)
    A = graph.adjacency().tocoo()
    edge_index = torch.as_tensor(np.stack([A.row, A.col]), dtype=torch.int64)
    return graph, Inputs(torch.as_tensor(X, dtype=torch.float32), edge_index, y), ~np.isnan(y)


def step_seconds(net: nn.Module, data: Inputs, labelled: np.ndarray, criterion: TrainingLoss, count: int) -> float:
    """Seconds of one step, alpha as it has been learned from the first residuals."""
    rows = np.flatnonzero(labelled)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01, fused=True)

    def step() -> np.ndarray:
        out = outputs(net, data)
        r = data.y[rows] - out[0].detach().double().numpy()[rows]
        _, slope = criterion.loss(r)
        take_step(optimiser, out, {0: (rows, -slope)})
        return r

    criterion.refit(step())
    step()
    return best_seconds(lambda: [step() for _ in range(count)]) / count


def run_steps(n: int, count: int, console: Console) -> None:
    graph, data, labelled = problem(n)
    alone, together = SquaredError(n, int(labelled.sum())), Objective(graph, labelled)
    ours = make_network("sage", FEATURES, None, 0)
    plain = step_seconds(Plain(FEATURES), data, labelled, alone, count)
    both = step_seconds(Plain(FEATURES), data, labelled, together, count)
    fast = step_seconds(ours, data, labelled, alone, count)
    fast_both = step_seconds(ours, data, labelled, together, count)
    console.print(
        f"n = {n:,}: PyG's layers {plain * 1e3:.2f} ms a step, through the likelihood {both / plain:.2f} times that;\n"
        f"   residua's layers {fast / plain:.2f}, through the likelihood {fast_both / plain:.2f} times PyG alone "
        f"({fast_both / fast:.2f} times residua's alone)",
        highlight=False,
    )


def county_map() -> residua.datasets.Dataset:
    """The election map where its files are, else the packaged one."""
    here = os.environ.get("RESIDUA_DATA")
    return residua.datasets.load_county("election") if here else residua.datasets.load_elect80()


def run_fits(console: Console, steps: int = 500, share: int = 15) -> None:
    data = county_map()
    y = random_split(data.graph.n_nodes, 0).known(data.y)

    def fit(base, correlation="learned"):
        return lambda: GraphRegressor(base, correlation).fit(data.X, y, graph=data.graph)

    def fixed(kind) -> Network:
        return Network(kind, epochs=steps, patience=10**9)

    fit(Network("sage", epochs=2))()
    own = fixed(Plain(data.X.shape[1]))
    plain, joint = best_of_each(fit(fixed("sage"), None), fit(fixed("sage")))
    pyg, pyg_joint, default = best_of_each(fit(own, None), fit(own), fit("sage"), rounds=3)
    begin = time.perf_counter()
    paper = Network("sage", steps=1500 // share)
    GraphRegressor(paper, training="paper", logdet=Rerun()).fit(data.X, y, graph=data.graph)
    published = share * (time.perf_counter() - begin)
    console.print(
        f"{data.name}, {steps} steps: on PyG's layers plain fit {pyg:.2f} s, C-GNN {pyg_joint / pyg:.2f} times that;\n"
        f"   on residua's layers plain fit {plain:.2f} s, C-GNN {joint:.2f} s: {joint / plain:.2f} times that, "
        f"{joint / pyg:.2f} times the plain fit on PyG's layers\n"
        f"   default C-GNN, stopped early: {default:.2f} s; the paper's training as published {published:.0f} s "
        f"(1/{share} of it timed): {published / default:.0f} times the default, {published / joint:.0f} times "
        f"{steps} steps\n",
        highlight=False,
    )


def run(console: Console | None = None) -> None:
    console = console or Console()
    console.rule("Training through the likelihood")
    run_steps(3_234, 100, console)
    run_steps(1_000_000, 3, console)
    run_fits(console)


if __name__ == "__main__":
    run()
