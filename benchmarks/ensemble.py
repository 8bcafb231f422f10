"""Whether five networks should be trained in one batched pass or one after the other: a step of each, in one run."""

from collections.abc import Callable
from itertools import pairwise

import torch
from rich.console import Console
from torch import nn

from benchmarks.common import best_seconds
from residua.regressors.networks import MLP

MEMBERS, COLUMNS = 5, 24
CASES = ((914, (16, 16, 8), 50), (3_234, (16, 16, 8), 50), (3_234, (64, 32), 50), (100_000, (64, 32), 2))


def one_by_one(x: torch.Tensor, widths: tuple[int, ...]) -> Callable[[], None]:
    """Five networks, five optimisers."""
    nets = [MLP(COLUMNS, widths) for _ in range(MEMBERS)]
    optimisers = [torch.optim.Adam(net.parameters(), fused=True) for net in nets]

    def step() -> None:
        for net, optimiser in zip(nets, optimisers, strict=True):
            optimiser.zero_grad()
            net(x).backward(torch.ones(len(x)))
            optimiser.step()

    return step


def batched(x: torch.Tensor, widths: tuple[int, ...]) -> Callable[[], None]:
    """The same layers as batched products."""
    sizes = [COLUMNS, *widths, 1]
    weights = nn.ParameterList(torch.randn(MEMBERS, a, b) for a, b in pairwise(sizes))
    biases = nn.ParameterList(torch.zeros(MEMBERS, 1, b) for b in sizes[1:])
    optimiser = torch.optim.Adam([*weights, *biases], fused=True)

    def step() -> None:
        optimiser.zero_grad()
        h = x.expand(MEMBERS, *x.shape)
        for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            h = torch.baddbmm(bias, h, weight)
            h = h.relu() if k < len(weights) - 1 else h
        h[..., 0].backward(torch.ones(MEMBERS, len(x)))
        optimiser.step()

    return step


def run(console: Console | None = None) -> None:
    console = console or Console()
    console.rule(f"{MEMBERS} networks at once, or one after the other")
    for n, widths, repeats in CASES:
        x = torch.randn(n, COLUMNS)
        times = []
        for make in (one_by_one, batched):
            step = make(x, widths)
            step()
            times.append(best_seconds(lambda step=step, count=repeats: [step() for _ in range(count)]) / repeats)
        console.print(
            f"n = {n:,}, widths {widths}: {times[0] * 1e3:.2f} ms in turn, {times[1] * 1e3:.2f} ms batched: "
            f"{times[0] / times[1]:.2f}",
            highlight=False,
        )
    console.print()


if __name__ == "__main__":
    run()
