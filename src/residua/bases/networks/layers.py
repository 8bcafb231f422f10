"""What networks gather from neighbours, on the sparse kernels.

    mean = D^-1 A x        smooth = C^-1/2 (A + I) C^-1/2 x        maximum_ik = max over j with A(i, j) > 0 of x_jk

A(i, j) = edges from j to i, D its row sums; C those of A + I, where loops of A are left out. PyTorch Geometric gathers
one row an edge and scatters it again; one pass over the rows of A does both, several times faster. Gradients are the
same with A' in place of A.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear
from torch.utils.weak import WeakIdKeyDictionary

from residua.linalg.kernels.maximum import row_maxima, spread_to_maxima
from residua.linalg.operator import Sparse

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # PyG's own import warns of torch.jit
    from torch_geometric.nn import GCNConv, MessagePassing, SAGEConv

Pair = tuple[Sparse, Sparse]  # a matrix, and its transpose for gradients


class Neighbours:
    """Whom each node of a graph gathers from; the graph is given as an edge index (2, entries)."""

    def __init__(self, edge_index: Tensor, n: int):
        self.made_for = n, edge_index._version
        source, target = edge_index.numpy()
        self.A = sp.csr_array((np.ones(len(source), np.float32), (target, source)), shape=(n, n))
        with torch.inference_mode(False):  # kept, and met by gradients later
            self.degree = torch.as_tensor(self.A.sum(axis=1), dtype=torch.float32)[:, None]
            self.weight = 1 / self.degree.clamp(min=1)  # D^-1; 1 where nobody is gathered from
        self._fixed: Any = WeakIdKeyDictionary()

    @cached_property
    def edges(self) -> Pair:
        """A."""
        return _pair(self.A, np.ones(self.A.shape[0], np.float32))

    @cached_property
    def smoothing(self) -> Pair:
        """C^-1/2 (A + I) C^-1/2; of A, loops of a node with itself are left out."""
        looped = sp.csr_array(self.A + sp.diags_array(1 - self.A.diagonal()))
        looped.sort_indices()
        return _pair(looped, np.sqrt(1 / looped.sum(axis=1)))

    def mean(self, x: Tensor) -> Tensor:
        """(n, d) averages of x (n, d)."""
        return self._gathered(x, "mean", lambda: self._mean(x))

    def mean_with_self(self, x: Tensor) -> Tensor:
        """(n, d) averages of x (n, d) over neighbours and the node, ``(D + I)^-1 (A + I) x``."""
        degree = self.degree.to(x.dtype)
        return self._gathered(x, "mean with self", lambda: (x + degree * self._mean(x)) / (degree + 1))

    def smooth(self, x: Tensor) -> Tensor:
        """(n, d) sums of x (n, d) over neighbours and the node, weighted by degrees as in a GCN."""
        return self._gathered(x, "smooth", lambda: _Product.apply(x, self.smoothing))

    def maximum(self, x: Tensor) -> Tensor:
        """(n, d) maxima of x (n, d), column by column; 0 where there is no neighbour."""
        return self._gathered(x, "maximum", lambda: _Maximum.apply(x, self.edges))

    def _mean(self, x: Tensor) -> Tensor:
        return _Product.apply(x, self.edges) * self.weight.to(x.dtype)

    def _gathered(self, x: Tensor, way: str, gather: Callable[[], Tensor]) -> Tensor:
        """Gather an input that does not learn once: a layer gathers in one way, and no other sees its input."""
        if x.requires_grad or torch.is_inference_mode_enabled():  # tensors of inference mode have no version
            return gather()
        found = self._fixed.get(x)
        if found is None or found[0] != (way, x._version):
            found = self._fixed[x] = (way, x._version), gather()
        return found[1]


_known: Any = WeakIdKeyDictionary()  # one for each edge index still in use


def neighbours_of(edge_index: Tensor, n: int) -> Neighbours:
    """Made once for each edge index."""
    found = _known.get(edge_index)
    if found is None or found.made_for != (n, edge_index._version):
        found = _known[edge_index] = Neighbours(edge_index, n)
    return found


def _pair(A: sp.csr_array, scale: np.ndarray) -> Pair:
    backward = A.T.tocsr()
    backward.sort_indices()
    forward = _sparse(A, scale)
    symmetric = np.array_equal(A.indices, backward.indices) and np.array_equal(A.data, backward.data)
    return forward, forward if symmetric else _sparse(backward, scale)


def _sparse(A: sp.csr_array, scale: np.ndarray) -> Sparse:
    return Sparse(A.indptr, A.indices, None if (A.data == 1).all() else A.data, scale.astype(np.float32))


class _Product(Function):
    """A matrix times x; the gradient is its transpose times that of the product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Pair) -> Tensor:
        ctx.transpose = matrix[1]
        return _product(matrix[0], x.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _product(ctx.transpose, gradients[0]), None


class _Maximum(Function):
    """Neighbours that share a maximum share its gradient, as in PyTorch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Pair) -> Tensor:
        ctx.transpose = edges[1]
        out, reached = map(torch.from_numpy, row_maxima(edges[0], _array(x)))
        ctx.save_for_backward(x, out, reached)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, out, reached = ctx.saved_tensors
        shares = (gradients[0] / reached.clamp(min=1)).numpy()
        return torch.from_numpy(spread_to_maxima(ctx.transpose, _array(x), _array(out), shares)), None


def _array(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(x.detach().numpy())


def _product(A: Sparse, x: Tensor) -> Tensor:
    values = x.numpy()
    return torch.from_numpy(A.astype(values.dtype.type) @ values)


class _OnKernels(MessagePassing):
    """A layer of PyG, to rounding, with the same weights; on the CPU by the sparse kernels."""

    on_kernels: Callable[[Tensor, Neighbours], Tensor]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """(n, outputs) of x (n, inputs)."""
        if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
            return super().forward(x, edge_index)
        return self.on_kernels(x, neighbours_of(edge_index, len(x)))


class MeanSAGE(_OnKernels, SAGEConv):
    """PyG's ``SAGEConv(aggr="mean")``."""

    def on_kernels(self, x: Tensor, near: Neighbours) -> Tensor:
        return _then_linear(near.mean, x, self.lin_l.weight, self.lin_l.bias) + self.lin_r(x)


class MaxSAGE(_OnKernels, SAGEConv):
    """PyG's ``SAGEConv(aggr="max")``; with ``project`` of a layer's output."""

    def __init__(self, inputs: int, outputs: int, project: bool = False):
        super().__init__(inputs, outputs, aggr="max", project=project)

    def on_kernels(self, x: Tensor, near: Neighbours) -> Tensor:
        return self.lin_l(near.maximum(self.lin(x).relu() if self.project else x)) + self.lin_r(x)


class _MeanWithSelf(SAGEConv):
    """PyG's layer with loops for edges."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs, root_weight=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        loops = torch.arange(len(x), device=x.device).expand(2, -1)
        return super().forward(x, torch.cat([edge_index, loops], dim=1))


class SelfSAGE(_OnKernels, _MeanWithSelf):
    """GraphSAGE's own GCN: a weight for the mean of a node and its neighbours."""

    def on_kernels(self, x: Tensor, near: Neighbours) -> Tensor:
        return _then_linear(near.mean_with_self, x, self.lin_l.weight, self.lin_l.bias)


class GCN(_OnKernels, GCNConv):
    """PyG's ``GCNConv``."""

    def on_kernels(self, x: Tensor, near: Neighbours) -> Tensor:
        return _then_linear(near.smooth, x, self.lin.weight, self.bias)


def _then_linear(gather: Callable[[Tensor], Tensor], x: Tensor, W: Tensor, bias: Tensor) -> Tensor:
    """``gather(x) W' + bias`` for a linear gather: of the fewer columns, or once where x does not learn."""
    if x.requires_grad and len(W) < x.shape[1]:
        return gather(linear(x, W)) + bias
    return linear(gather(x), W, bias)
