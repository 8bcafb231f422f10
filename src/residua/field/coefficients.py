"""The coefficients of a linear mean given known residuals: generalised least squares and its uncertainty.

    theta = H^-1 Z' Gbar y,    Cov theta = (beta H)^-1,    H = Z' Gbar Z + diag(1 / tau)

Z design at L, Gbar precision of the residuals at L for beta = 1, tau prior variances of the coefficients in units of
1 / beta: infinite for coefficients without a prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from residua.linalg.ridge import basis
from residua.linalg.workspace import Workspace, cached_property

if TYPE_CHECKING:
    from residua.field.conditional import Conditional


@dataclass(frozen=True, eq=False)
class Design:
    """A mean that is linear in its coefficients.

    Parameters
    ----------
    columns : ndarray of shape (n, d) or callable
        Its columns at every node. A function of no arguments is called when they are first needed, which is after draws
        took their memory.
    prior_variance : ndarray of shape (d,), optional
        Of the coefficients, in units of 1 / beta; infinite for one without a prior, as all are by default.
    coefficients : ndarray of shape (d,), optional
        Those with which residuals were made, needed only where some have a prior.
    """

    columns: np.ndarray | Callable[[], np.ndarray]
    prior_variance: np.ndarray | None = None
    coefficients: np.ndarray | None = None

    def matrix(self) -> np.ndarray:
        """Return the columns (n, d)."""
        return self.columns() if callable(self.columns) else self.columns

    def variance(self, d: int) -> np.ndarray:
        """Return the prior variances of d coefficients."""
        return np.full(d, np.inf) if self.prior_variance is None else self.prior_variance

    @property
    def misfit(self) -> float:
        """What the prior adds to the quadratic form of the residuals, for beta = 1."""
        return float((self.in_units_of_the_prior**2).sum())

    @property
    def in_units_of_the_prior(self) -> np.ndarray:
        """The coefficients that have a prior, over its standard deviation; 0 where that is 0."""
        if self.coefficients is None or self.prior_variance is None:
            return np.empty(0)
        there = np.isfinite(self.prior_variance)
        root = np.sqrt(self.prior_variance[there])
        return np.where(root > 0, self.coefficients[there] / np.where(root > 0, root, 1.0), 0.0)


class Coefficients(Workspace):
    """What a conditional distribution owes to the coefficients of its mean.

    Parameters
    ----------
    conditional : Conditional
        The distribution of unknown residuals given known ones.
    given : Design
        The mean.
    """

    def __init__(self, conditional: Conditional, given: Design):
        self.conditional, self.given = conditional, given

    @cached_property
    def _combined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # What the columns span at the labelled nodes counts, not their units or how many there are.
        columns = self.given.matrix()
        found = basis(self.conditional.rows, columns[self.conditional.L], self.given.variance(columns.shape[1]))
        return columns @ found.combine, found.combine, found.prior

    @property
    def design(self) -> np.ndarray:
        """Combinations (n, k) of the columns.

        Those of coefficients without a prior are orthonormal at the labelled nodes, as many as their rank there; of the
        others the prior variance is 1.
        """
        return self._combined[0]

    @property
    def combine(self) -> np.ndarray:
        """Which combinations, (d, k)."""
        return self._combined[1]

    @property
    def prior(self) -> np.ndarray:
        """Precision (k,) that the prior adds to that of each of them: 0 or 1."""
        return self._combined[2]

    @cached_property
    def lever(self) -> np.ndarray:
        """How far a change of each coefficient moves the prediction, (n, k); 0 where it is known exactly."""
        known = ~self.conditional.channel.hidden(self.conditional.labelled)
        return np.where(known[:, None], 0.0, self.design - self.conditional.conditional_mean(self.design))

    @cached_property
    def products(self) -> np.ndarray:
        """Gbar Z, shape (|L|, k)."""
        return self.conditional.pulled(self.design, self.design - self.lever)

    @cached_property
    def root(self) -> np.ndarray:
        """Rows B with B'B the covariance of the coefficients."""
        rows, L = self.conditional.rows, self.conditional.L
        H = rows.gram(self.design[L], self.products) + np.diag(self.prior)
        size = np.where(self.prior > 0, np.sqrt(H.diagonal()), 1.0)  # large ones leave small ones above rounding
        values, vectors = rows.agree(tuple(np.linalg.eigh(H / np.outer(size, size))))
        values = np.maximum(values, 1e-12 * values.max(initial=0))  # known to rounding
        return (vectors / np.sqrt(values * self.conditional.beta)).T / size

    def mean_of(self, r: np.ndarray) -> np.ndarray:
        """Return the part (n,) of r (n,), known at L, that the design explains beyond the coefficients it has."""
        pulled = self.conditional.rows.gram(self.products, r[self.conditional.L])
        if self.given.coefficients is not None:  # which the prior draws to 0, not the change
            pulled[self.prior > 0] -= self.given.in_units_of_the_prior
        theta: np.ndarray = self.conditional.beta * self.root.T @ (self.root @ pulled)
        return self.design @ theta

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (d, d) of the coefficients of the columns as they were given."""
        half = self.root @ self.combine.T
        return half.T @ half

    @cached_property
    def leverage(self) -> np.ndarray:
        """diag(Gbar Z H^-1 Z' Gbar), shape (|L|,)."""
        return self.conditional.beta * ((self.products @ self.root.T) ** 2).sum(axis=1)

    @property
    def variance(self) -> np.ndarray:
        """What their uncertainty adds to the variance of each node, (n,)."""
        return ((self.lever @ self.root.T) ** 2).sum(axis=1)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return (count, n) draws of what their uncertainty adds to the prediction."""
        return rng.standard_normal((count, len(self.root))) @ self.root @ self.lever.T
