"""Networks as base regressors: the paper's architectures, on PyTorch Geometric's layers.

    MLP: in - 16 - 16 - 8 - 1;   GNN: conv 16 - conv 8 - linear 1;   ReLU between        (paper, section 4)

Every network is called as ``module(x, edge_index)`` and returns one number a node; a module of one's own may take
``edge_weight`` and ``edge_attr`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from residua.extras import needs


class Layers(nn.Module):
    """Layers of one kind with ReLU between them, then a linear output.

    Parameters
    ----------
    layer : callable
        Makes a layer of a number of inputs and one of outputs.
    sizes : sequence of int
        Features of a node, then the widths of the layers before the output.
    """

    def __init__(self, layer: Callable[[int, int], nn.Module], sizes: Sequence[int]):
        super().__init__()
        self.layers = nn.ModuleList(layer(a, b) for a, b in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return one number a node (n,) for x (n, inputs)."""
        for layer in self.layers:
            x = relu(layer(x) if isinstance(layer, nn.Linear) else layer(x, edge_index))
        return self.out(x).squeeze(-1)


def _convolution(kind: str) -> Callable[[int, int], nn.Module]:
    """Return what makes a layer that gathers from neighbours."""
    try:
        from residua.bases.networks import layers
    except ImportError as error:
        raise ImportError(needs(f'base="{kind}"', "PyTorch Geometric", "gnn", error)) from None
    kinds: dict[str, Callable[[int, int], nn.Module]] = {
        "gcn": layers.GCN,
        "sage": layers.MeanSAGE,
        "sage-gcn": layers.SelfSAGE,
        "sage-max": layers.MaxSAGE,
        "sage-pool": partial(layers.MaxSAGE, project=True),
    }
    return kinds[kind]


ROWWISE = ("mlp", "hops")  # a node's output needs only its own row


def make_network(kind: str, inputs: int, widths: Sequence[int] | None, seed: int) -> nn.Module:
    """Return a freshly initialised network whose weights depend only on ``seed``; the paper's widths by default."""
    layer, default = (nn.Linear, (16, 16, 8)) if kind in ROWWISE else (_convolution(kind), (16, 8))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Layers(layer, [inputs, *(default if widths is None else widths)])


@dataclass(frozen=True)
class Inputs:
    """What a network is fed, standardised.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        Features.
    edge_index : Tensor of shape (2, entries)
        Edges, in both directions.
    y : ndarray of shape (n,)
        Labels, NaN where unknown.
    edges : mapping of str to Tensor
        What else a module takes of the entries of ``edge_index``, by the name of the argument.
    """

    x: Tensor
    edge_index: Tensor
    y: np.ndarray
    edges: Mapping[str, Tensor] = field(default_factory=dict)


def outputs(net: nn.Module, data: Inputs, count: int = 1) -> Tensor:
    """Return the outputs (count, n) of a network, or of the ``count`` networks of a stack: one number a node."""
    out = net(data.x, data.edge_index, **data.edges)
    if out.numel() != count * len(data.x):
        raise ValueError(
            f"base {type(net).__name__} returned a tensor of shape {tuple(out.shape)} for {len(data.x)} nodes; "
            "return one number a node."
        )
    return out.reshape(count, -1)
