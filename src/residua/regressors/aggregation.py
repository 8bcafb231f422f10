"""The mean over neighbours inside a network, on the sparse kernel.

    mean = D^-1 A x,   its gradient A' D^-1 g        A(i, j) = edges from j to i, D row sums

PyTorch Geometric gathers one row an edge and scatters it again; one sparse product does both, several times faster.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.utils.weak import WeakIdKeyDictionary

from residua.numerics.operator import Sparse

with warnings.catch_warnings():  # PyG's own import warns of torch.jit
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GCNConv, SAGEConv

__all__ = ["GCNConv", "MeanSAGE", "SAGEConv"]


class Neighbours:
    """Who is averaged at each node of a graph given as an edge index (2, entries)."""

    def __init__(self, edge_index: Tensor, n: int):
        self.made_for = n, edge_index._version
        source, target = edge_index.numpy()
        A = sp.csr_array((np.ones(len(source), np.float32), (target, source)), shape=(n, n))
        A.sum_duplicates()
        backward = A.T.tocsr()
        backward.sort_indices()
        self.sums = _sparse(A)
        symmetric = np.array_equal(A.indices, backward.indices) and np.array_equal(A.data, backward.data)
        self.backward_sums = self.sums if symmetric else _sparse(backward)
        self.weight = torch.as_tensor(1 / np.maximum(A.sum(axis=1), 1), dtype=torch.float32)[:, None]
        self._fixed: Any = WeakIdKeyDictionary()

    def mean(self, x: Tensor) -> Tensor:
        """(n, d) averages of x (n, d); of an input that does not learn, computed once."""
        if x.requires_grad:
            return _Mean.apply(x, self)
        if x not in self._fixed or self._fixed[x][0] != x._version:
            self._fixed[x] = x._version, _Mean.apply(x, self)
        return self._fixed[x][1]


_known: Any = WeakIdKeyDictionary()  # one for each edge index still in use


def neighbours_of(edge_index: Tensor, n: int) -> Neighbours:
    """Made once for each edge index."""
    found = _known.get(edge_index)
    if found is None or found.made_for != (n, edge_index._version):
        found = _known[edge_index] = Neighbours(edge_index, n)
    return found


def _sparse(A: sp.csr_array) -> Sparse:
    return Sparse(A.indptr, A.indices, None if (A.data == 1).all() else A.data, np.ones(A.shape[0], np.float32))


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, neighbours: Neighbours) -> Tensor:
        ctx.neighbours = neighbours
        return _product(neighbours.sums, x.detach()) * neighbours.weight.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weighted = gradients[0] * ctx.neighbours.weight.to(gradients[0].dtype)
        return _product(ctx.neighbours.backward_sums, weighted), None


def _product(A: Sparse, x: Tensor) -> Tensor:
    values = x.numpy()
    return torch.from_numpy(A.astype(values.dtype.type) @ values)


class MeanSAGE(SAGEConv):
    """PyG's ``SAGEConv(aggr="mean")``, to rounding, with the same weights; on the CPU by the sparse kernel."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """(n, outputs) of x (n, inputs)."""
        if x.device.type != "cpu":
            return super().forward(x, edge_index)
        neighbours = neighbours_of(edge_index, len(x))
        W, bias = self.lin_l.weight, self.lin_l.bias
        if x.requires_grad and self.out_channels < self.in_channels:  # average the fewer columns
            return neighbours.mean(linear(x, W)) + bias + self.lin_r(x)
        return linear(neighbours.mean(x), W, bias) + self.lin_r(x)
