"""Several networks of one shape as one: a batched product a layer in place of a call for each network.

    h_k = relu(h_k W_k + b_k)   or   relu(mean(h_k W_k) + b_k + h_k R_k)   for all networks k at once

Networks of a few thousand multiplications spend their time on calls; together they take a fraction of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

# Kinds that can be stacked, and the rows times units above which one network at a time is as fast: its arrays no
# longer fit in the caches.
MOST = {"mlp": 350_000, "hops": 350_000, "sage": 150_000}


def worth_stacking(kind: Any, rows: int, widths: Sequence[int]) -> bool:
    """Return whether networks of this kind and these widths, on so many rows, are faster together."""
    return isinstance(kind, str) and rows * sum(widths) <= MOST.get(kind, -1)


def stack(members: Sequence[Any]) -> Stack:
    """Return one network that is all of ``members``, of a kind in ``MOST``."""
    return (StackedSAGE if hasattr(members[0].layers[0], "lin_l") else Stack)(members)


class Stack(nn.Module):
    """Networks of linear layers of the same widths, trained side by side and independent of one another.

    Parameters
    ----------
    members : sequence of Module
        The networks.
    """

    def __init__(self, members: Sequence[Any]):
        super().__init__()
        self.count, self.depth = len(members), len(members[0].layers)
        states = [net.state_dict() for net in members]
        self.names = list(states[0])
        # A weight is (networks, inputs, outputs), a bias (networks, 1, outputs).
        self.values = nn.ParameterList(torch.stack([_laid_out(state[name]) for state in states]) for name in self.names)

    def _value(self, name: str) -> Tensor:
        return self.values[self.names.index(name)]

    def _linear(self, name: str, h: Tensor) -> Tensor:
        return torch.baddbmm(self._value(f"{name}.bias"), h, self._value(f"{name}.weight"))

    def _layer(self, i: int, h: Tensor, edge_index: Tensor) -> Tensor:
        return self._linear(f"layers.{i}", h)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return outputs (networks, n) for x (n, inputs)."""
        h = x.expand(self.count, *x.shape)
        for i in range(self.depth):
            h = self._layer(i, h, edge_index).relu()
        return self._linear("out", h).squeeze(-1)

    def state_of(self, k: int) -> dict[str, Tensor]:
        """Return the weights of network k, as that network has them."""
        found = zip(self.names, (value.detach()[k] for value in self.values), strict=True)
        return {name: value.T if name.endswith("weight") else value[0] for name, value in found}


class StackedSAGE(Stack):
    """Networks of ``MeanSAGE`` layers."""

    def _layer(self, i: int, h: Tensor, edge_index: Tensor) -> Tensor:
        from residua.bases.networks.layers import neighbours_of  # needs PyTorch Geometric, which other kinds do not

        n, name = h.shape[1], f"layers.{i}"
        outgoing = torch.bmm(h, self._value(f"{name}.lin_l.weight"))
        side_by_side = outgoing.transpose(0, 1).reshape(n, -1)
        mean = neighbours_of(edge_index, n).mean(side_by_side).view(n, self.count, -1).transpose(0, 1)
        return mean + torch.baddbmm(self._value(f"{name}.lin_l.bias"), h, self._value(f"{name}.lin_r.weight"))


def _laid_out(value: Tensor) -> Tensor:
    return value.T if value.ndim == 2 else value[None]
