"""Gamma = I - alpha S as a linear operator of GPyTorch, differentiable in alpha."""

from __future__ import annotations

import torch
from linear_operator.operators import LinearOperator


class Gamma(LinearOperator):
    """What linear_operator asks of a matrix: a product, a shape, a transpose and a diagonal."""

    def __init__(self, alpha, S):
        super().__init__(alpha, S)
        self.alpha, self.S = alpha, S

    def _matmul(self, rhs):
        return rhs - self.alpha * (self.S @ rhs)

    def _size(self):
        return self.S.shape

    def _transpose_nonbatch(self):
        return self

    def _diagonal(self):
        return torch.ones(self.S.shape[0], dtype=self.S.dtype)
