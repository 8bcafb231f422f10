"""Exact Gaussian draws with precision ``I - alpha S``, one solve each, and variances from them.

    I - alpha S = sum over edges |m| v v' + diag(c),   v = e_i s_i - sgn(m) e_j s_j,   m = alpha w,   c >= 0

so b = sum over edges sqrt|m| v z_e + sqrt(c) z has covariance I - alpha S, and (I - alpha S)^-1 b its inverse.
The variance of node i is then Rao-Blackwellised: given its neighbours it is known,

    var_i = 1/a_ii + mean over draws of (sum_j a_ij x_j / a_ii)^2,   j != i.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from residua.linalg.logdet.exact import Estimate
from residua.linalg.operator import Shifted


def precision_noise(A: Shifted, count: int, rng: np.random.Generator) -> np.ndarray:
    """(n, count) columns with mean zero and covariance A."""
    return A.noise(rng)(count)


def conditional_squares(A: Shifted, X: np.ndarray) -> np.ndarray:
    """Squares (n, k) of the conditional means ``-sum_j a_ij x_j / a_ii``, j != i, for draws X (n, k)."""
    diagonal = A.diagonal()[:, None]
    return ((A @ X) / diagonal - X) ** 2


def inverse_diagonal(A: Shifted, X: np.ndarray | Iterable[np.ndarray]) -> Estimate:
    """Diagonal of ``A^-1`` with its standard error, from draws X (n, k) with precision A, at once or some at a time."""
    if isinstance(X, np.ndarray):
        squares = conditional_squares(A, X)
        error = squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1])
        return Estimate(1 / A.diagonal() + squares.mean(axis=1), error)
    count, total, total_square = 0, np.zeros(A.shape[0]), np.zeros(A.shape[0])
    for tile in X:
        squares = conditional_squares(A, tile)
        count += squares.shape[1]
        total += squares.sum(axis=1)
        total_square += np.einsum("ij,ij->i", squares, squares)
    mean = total / count
    spread = np.maximum(total_square / count - mean**2, 0.0)
    return Estimate(1 / A.diagonal().astype(float) + mean, np.sqrt(spread / (count - 1)))
