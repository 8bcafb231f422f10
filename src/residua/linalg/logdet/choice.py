"""Which strategy computes a log-determinant: exact where that is cheap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from residua.linalg.factor import factor_seconds
from residua.linalg.logdet.exact import Cholesky, Eigen
from residua.linalg.logdet.strategy import Strategy
from residua.linalg.operator import Matrix, weighted_sum

# Dense eigenvalues of 700 nodes take about 50 ms, once; a fit factors some thirty times.
EIGEN_NODES = 700
FACTOR_SECONDS = 0.1


def auto(terms: Sequence[Matrix], probabilistic: Strategy) -> Strategy:
    """Return an exact strategy where that is cheap, else ``probabilistic``."""
    n = terms[0].shape[0]
    if len(terms) == 1:
        if n <= EIGEN_NODES:
            return Eigen()
        return Cholesky() if factor_seconds(terms[0], FACTOR_SECONDS) <= FACTOR_SECONDS else probabilistic
    # Several terms need the gradient too: a dense inverse, or a selected one, which takes five factorisations.
    dense = 1.5e-10 * n**3
    sparse = 5 * factor_seconds(weighted_sum(list(terms), np.ones(len(terms))), FACTOR_SECONDS)
    if min(dense, sparse) > FACTOR_SECONDS:
        return probabilistic
    return Eigen() if dense < sparse else Cholesky()
