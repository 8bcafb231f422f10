"""Least squares in which groups of coefficients may have a prior: ridge, its strength by restricted likelihood.

    y = Z theta + r,   minimise (y - Z theta)' Gbar (y - Z theta) + sum_j theta_j^2 / tau_j

tau_j is the prior variance of a coefficient in units of the noise's, infinite for one that is free. Z is worked with
in a basis W = Z T: what the free columns span, orthonormal, then the others without it, times the roots of their
variances. Least squares without any prior is the case in which all are free.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from residua.linalg.rows import TINY, Rows
from residua.linalg.variance_components import Grams, restricted_variances


class Basis(NamedTuple):
    """Columns in which coefficients are sought."""

    columns: np.ndarray  # W (n, k)
    combine: np.ndarray  # T (d, k), W = Z T
    rank: int  # how many of them are of free coefficients; they come first

    @property
    def prior(self) -> np.ndarray:
        """Precision (k,) that the prior adds to that of each coefficient of W: 0 or 1."""
        return (np.arange(self.columns.shape[1]) >= self.rank).astype(float)


class LeastSquares(NamedTuple):
    """Penalised least squares, in units of the noise."""

    q: float  # the least value
    theta: np.ndarray  # (k,) coefficients of W
    root: np.ndarray  # (k, k) lower triangle L of D Q D + E = L L', see ``least_squares``
    variance: np.ndarray  # (k,) tau of each coefficient of W, infinite where it is free

    @property
    def scale(self) -> np.ndarray:
        """D (k,): the roots of the variances, 1 where there is none."""
        return np.where(np.isinf(self.variance), 1.0, np.sqrt(self.variance))

    @property
    def inverse(self) -> np.ndarray:
        """Covariance (k, k) of the coefficients: (W' Gbar W + 1 / tau)^-1."""
        inner = cho_solve((self.root, True), np.eye(len(self.root)), check_finite=False)
        return self.scale[:, None] * inner * self.scale

    @property
    def logdet(self) -> float:
        """Log-determinant of W' Gbar W + 1 / tau, times the product of the finite tau."""
        return float(2 * np.log(np.abs(self.root.diagonal())).sum())

    @property
    def prior_logdet(self) -> float:
        """The same without the columns of free coefficients."""
        part = self.root[np.isfinite(self.variance)]
        return float(np.linalg.slogdet(part @ part.T)[1])


def basis(rows: Rows, Z: np.ndarray, variance: np.ndarray) -> Basis:
    """Return W and T of columns Z (n, d) whose coefficients have prior variances (d,)."""
    free = np.isinf(variance)
    if free.all():
        W, T = rows.column_basis(Z)
        return Basis(W, T, W.shape[1])
    W, T = rows.column_basis(Z[:, free])
    root = np.sqrt(variance[~free])
    B = Z[:, ~free] * root
    over = rows.gram(W, B)
    combine = np.zeros((Z.shape[1], W.shape[1] + B.shape[1]))
    rank = W.shape[1]
    combine[free, :rank] = T
    combine[np.ix_(free, np.arange(rank, combine.shape[1]))] = -T @ over
    combine[np.flatnonzero(~free), np.arange(rank, combine.shape[1])] = root
    return Basis(np.column_stack([W, B - W @ over]), combine, rank)


def unit_variances(rows: Rows, Z: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return prior variances (d,) that give each group of columns of Z (n, d) unit size; infinite in group 0."""
    out, squares = np.full(len(groups), np.inf), rows.inner(Z, Z)
    for group in np.unique(groups[groups > 0]):
        size = squares[groups == group].sum()
        out[groups == group] = 1 / size if size > TINY else 1.0
    return out


class RowsFit(NamedTuple):
    """Columns Z (n, d) fitted to y (n,) with independent noise."""

    coefficients: np.ndarray  # (d,), of least norm for columns of unit norm where free ones are not told apart
    leverage: np.ndarray  # (n,) diagonal of the hat matrix
    prior_variance: np.ndarray  # (d,) in units of the noise's, infinite in group 0
    rank: int  # of the free columns


def fit_rows(rows: Rows, Z: np.ndarray, y: np.ndarray, groups: np.ndarray) -> RowsFit:
    """Fit y (n,) by the columns of Z (n, d); coefficients of a group above 0 share a prior variance, which is found."""
    variance = unit_variances(rows, Z, groups)
    W, T, rank = basis(rows, Z, variance)
    power = int(np.frexp(rows.max(np.abs(y).max(initial=0.0)))[1])  # of two, which changes no digit
    y = np.ldexp(y, -power)
    Q = np.empty((1 + W.shape[1], 1 + W.shape[1]))
    Q[1:, 1:], Q[0, 0] = rows.gram(W, W), rows.sum(y @ y)
    Q[0, 1:] = Q[1:, 0] = rows.gram(W, y)
    own = np.r_[np.zeros(rank, int), groups[groups > 0]]
    found = least_squares(Q, own, max(int(rows.sum(len(y))) - rank, 1))
    variance[np.isfinite(variance)] *= found.variance[rank:]
    return RowsFit(np.ldexp(T @ found.theta, power), np.einsum("ij,ij->i", W @ found.inverse, W), variance, rank)


def least_squares(Q: np.ndarray, groups: np.ndarray, m: int, precision: float | None = None) -> LeastSquares:
    """Fit y by columns W of a basis, given their inner products; variances of groups by restricted likelihood.

    Parameters
    ----------
    Q : ndarray of shape (1 + k, 1 + k)
        ``R' Gbar R`` of R = [y, W].
    groups : ndarray of int, shape (k,)
        Group of each column, 0 for those of free coefficients, which come first.
    m : int
        Degrees of freedom of y beyond the free coefficients.
    precision : float or None
        Of the noise, where it is known: the inverse of its variance in units of Q.
    """
    variance = np.full(len(groups), np.inf)
    if groups.any():
        variance[groups > 0] = restricted_variances(_without_free(Q, groups), groups[groups > 0], m, precision)
    return solved(Q, variance)


def solved(Q: np.ndarray, variance: np.ndarray) -> LeastSquares:
    """Fit y by columns W, given Q as in ``least_squares`` and prior variances (k,)."""
    if not len(variance):  # the search for an alpha asks hundreds of times
        return LeastSquares(float(Q[0, 0]), variance, Q[1:, 1:], variance)
    prior = np.isfinite(variance)
    D = np.where(prior, np.sqrt(np.where(prior, variance, 0.0)), 1.0)
    H = D[:, None] * Q[1:, 1:] * D + np.diag(prior.astype(float))
    size = np.where(prior, np.sqrt(H.diagonal()), 1.0)  # large ones do not make small ones look like rounding
    root = size[:, None] * _root(H / np.outer(size, size))
    theta = D * cho_solve((root, True), D * Q[1:, 0], check_finite=False)
    return LeastSquares(float(Q[0, 0] - Q[0, 1:] @ theta), theta, root, variance)


def _without_free(Q: np.ndarray, groups: np.ndarray) -> Grams:
    """Inner products of y and the columns that have a prior, the others' coefficients left out of account."""
    free = 1 + np.flatnonzero(groups == 0)
    rest = np.r_[0, 1 + np.flatnonzero(groups)]
    half = solve_triangular(_root(Q[np.ix_(free, free)]), Q[np.ix_(free, rest)], lower=True, check_finite=False)
    Q = Q[np.ix_(rest, rest)] - half.T @ half
    return Grams(Q[1:, 1:], Q[1:, 0], float(Q[0, 0]))


def _root(square: np.ndarray) -> np.ndarray:
    """The lower triangle L with ``L L' = square``, whose eigenvalues below rounding count as large as that."""
    with suppress(np.linalg.LinAlgError):
        root = np.linalg.cholesky(square)
        if (root.diagonal() > 1e-5 * root.diagonal().max(initial=0)).all():
            return root
    values, vectors = np.linalg.eigh(square)
    values = np.maximum(values, 1e-12 * values.max(initial=0))
    return np.linalg.qr((vectors * np.sqrt(values)).T)[1].T
