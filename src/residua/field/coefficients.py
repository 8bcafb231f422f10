"""The coefficients of a linear mean given known residuals: generalised least squares and its uncertainty.

    theta = (Z' Gbar Z)^-1 Z' Gbar r,    Cov theta = (beta Z' Gbar Z)^-1

Z design at L, Gbar precision of the residuals at L for beta = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from residua.linalg.workspace import Workspace, cached_property

if TYPE_CHECKING:
    from residua.field.conditional import Conditional

Design = np.ndarray | Callable[[], np.ndarray]


class Coefficients(Workspace):
    """What a conditional distribution owes to the coefficients of its mean.

    Parameters
    ----------
    conditional : Conditional
        The distribution of unknown residuals given known ones.
    columns : ndarray of shape (n, d), or callable
        Columns of the mean. A function is called when they are first needed, which is after draws took their memory.
    """

    def __init__(self, conditional: Conditional, columns: Design):
        self.conditional, self.columns = conditional, columns

    @cached_property
    def design(self) -> np.ndarray:
        """(n, k) combinations of the columns that are orthonormal at the labelled nodes; k is the rank there."""
        # What the columns span at the labelled nodes counts, not their units or how many there are.
        columns = self.columns() if callable(self.columns) else self.columns
        return columns @ self.conditional.rows.column_basis(columns[self.conditional.L])[1]

    @cached_property
    def lever(self) -> np.ndarray:
        """How far a change of each coefficient moves the prediction, (n, k); 0 at L."""
        mean = self.conditional.conditional_mean(self.design)
        return np.where(self.conditional.labelled[:, None], 0.0, self.design - mean)

    @cached_property
    def products(self) -> np.ndarray:
        """Gbar Z, shape (|L|, k)."""
        return (self.conditional.G @ (self.design - self.lever))[self.conditional.L]

    @cached_property
    def root(self) -> np.ndarray:
        """Rows B with B'B the covariance of the coefficients."""
        rows, L = self.conditional.rows, self.conditional.L
        values, vectors = rows.agree(tuple(np.linalg.eigh(rows.gram(self.design[L], self.products))))
        values = np.maximum(values, 1e-12 * values.max(initial=0))  # known to rounding
        return (vectors / np.sqrt(values * self.conditional.beta)).T

    def mean_of(self, r: np.ndarray) -> np.ndarray:
        """Return the part (n,) of r (n,), known at L, that the design explains."""
        pulled = self.conditional.rows.gram(self.products, r[self.conditional.L])
        theta: np.ndarray = self.conditional.beta * self.root.T @ (self.root @ pulled)
        return self.design @ theta

    @cached_property
    def leverage(self) -> np.ndarray:
        """diag(Gbar Z (Z' Gbar Z)^-1 Z' Gbar), shape (|L|,)."""
        return self.conditional.beta * ((self.products @ self.root.T) ** 2).sum(axis=1)

    @property
    def variance(self) -> np.ndarray:
        """What their uncertainty adds to the variance of each node, (n,)."""
        return ((self.lever @ self.root.T) ** 2).sum(axis=1)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return (count, n) draws of what their uncertainty adds to the prediction."""
        return rng.standard_normal((count, len(self.root))) @ self.root @ self.lever.T
