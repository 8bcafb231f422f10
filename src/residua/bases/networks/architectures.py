"""Networks as base regressors: the paper's architectures, on PyTorch Geometric's layers.

    MLP: in - 16 - 16 - 8 - 1;   GNN: conv 16 - conv 8 - linear 1;   ReLU between        (paper, section 4)

Every network is called as ``module(x, edge_index)`` and returns one number a node, as may a module of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import relu


class MLP(nn.Module):
    """Fully connected layers; the graph is not looked at.

    Parameters
    ----------
    inputs : int
        Features of a node.
    widths : sequence of int
        Sizes of the layers before the linear output.
    """

    def __init__(self, inputs: int, widths: Sequence[int] = (16, 16, 8)):
        super().__init__()
        sizes = [inputs, *widths]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """Return one number a node (n,) for x (n, inputs)."""
        for layer in self.layers:
            x = relu(layer(x))
        return self.out(x).squeeze(-1)


class GNN(nn.Module):
    """Graph convolutions of one kind, then a linear output.

    Parameters
    ----------
    inputs : int
        Features of a node.
    kind : {"gcn", "sage", "sage-gcn", "sage-max", "sage-pool"}
        What a layer gathers from neighbours.
    widths : sequence of int
        Sizes of the layers before the linear output.
    """

    def __init__(self, inputs: int, kind: str = "sage", widths: Sequence[int] = (16, 8)):
        super().__init__()
        sizes = [inputs, *widths]
        self.layers = nn.ModuleList(_convolution(kind, a, b) for a, b in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return one number a node (n,) for x (n, inputs)."""
        for layer in self.layers:
            x = relu(layer(x, edge_index))
        return self.out(x).squeeze(-1)


def _convolution(kind: str, inputs: int, outputs: int) -> nn.Module:
    try:
        from residua.bases.networks import layers
    except ImportError as error:
        raise ImportError(f'base="{kind}" needs PyTorch Geometric ({error}); install residua[gnn].') from None
    kinds: dict[str, Callable[[int, int], nn.Module]] = {
        "gcn": layers.GCN,
        "sage": layers.MeanSAGE,
        "sage-gcn": layers.SelfSAGE,
        "sage-max": layers.MaxSAGE,
        "sage-pool": partial(layers.MaxSAGE, project=True),
    }
    return kinds[kind](inputs, outputs)


ROWWISE = ("mlp", "hops")  # a node's output needs its own row alone


def make_network(kind: str, inputs: int, widths: Sequence[int] | None, seed: int) -> nn.Module:
    """Return a freshly initialised network whose weights depend on ``seed`` alone."""
    given = {} if widths is None else {"widths": widths}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return MLP(inputs, **given) if kind in ROWWISE else GNN(inputs, kind, **given)
