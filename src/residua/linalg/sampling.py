"""Exact Gaussian draws with precision ``I - alpha S``, one solve each, and variances from them.

    I - alpha S = sum over edges |m| v v' + diag(c),   v = e_i s_i - sgn(m) e_j s_j,   m = alpha w,   c >= 0

so b = sum over edges sqrt|m| v z_e + sqrt(c) z, which ``noise`` of a matrix gives, has covariance I - alpha S, and
(I - alpha S)^-1 b its inverse. The variance of node i is then Rao-Blackwellised: given its neighbours it is known,

    var_i = 1/a_ii + mean over draws of (sum_j a_ij x_j / a_ii)^2,   j != i.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from residua.linalg.logdet.strategy import Estimate
from residua.linalg.operator import Shifted


def inverse_diagonal(A: Shifted, draws: Iterable[np.ndarray]) -> Estimate:
    """Return the diagonal of ``A^-1`` with its standard error, from draws (n, k) with precision A, some at a time."""
    diagonal = A.diagonal()[:, None]
    count, total, total_square = 0, np.zeros(A.n_local), np.zeros(A.n_local)
    for X in draws:
        squares = ((A @ X) / diagonal - X) ** 2  # of the conditional means -sum_j a_ij x_j / a_ii
        count += squares.shape[1]
        total += squares.sum(axis=1)
        total_square += np.einsum("ij,ij->i", squares, squares)
    mean = total / count
    spread = np.maximum(total_square / count - mean**2, 0.0)
    return Estimate(1 / diagonal[:, 0].astype(float) + mean, np.sqrt(spread / (count - 1)))
