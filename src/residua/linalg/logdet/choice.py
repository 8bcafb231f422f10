"""Which strategy computes a log-determinant: exact where that is cheap, by the seconds that a whole fit would take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from residua.linalg.factor import refactor_seconds
from residua.linalg.logdet.exact import Cholesky, Eigen
from residua.linalg.logdet.strategy import Strategy
from residua.linalg.operator import Matrix, weighted_sum

EIGEN_NODES = 700  # dense eigenvalues of so many take about 50 ms, once
FACTORS, FURTHER_FACTORS = 50, 20  # that a fit of one term asks for; where it knows about where to look
EXACT_SECONDS = 0.5  # of a fit, for numbers without chance: not worth a thought
# With several terms, seconds for a value and its gradient: a selected inverse takes as long as five factors; probes
# take a Lanczos run, a solve for each, and more of both before the fit is done.
INVERSE, PROBE_STEPS = 6.0, 6_000


def auto(terms: Sequence[Matrix], probabilistic: Strategy) -> Strategy:
    """Return an exact strategy where that is cheap, else ``probabilistic``."""
    n = terms[0].shape[0]
    if len(terms) == 1:
        if n <= EIGEN_NODES:
            return Eigen()
        return Cholesky() if exact_seconds(terms[0]) <= EXACT_SECONDS else probabilistic
    nnz = sum(S.nnz for S in terms)
    dense = 1.2e-10 * n**3 + 1e-7 * nnz
    sparse = INVERSE * refactor_seconds(weighted_sum(list(terms), np.ones(len(terms))))
    if min(dense, sparse) > probe_seconds(n, nnz, PROBE_STEPS):
        return probabilistic
    return Eigen() if dense < sparse else Cholesky()


def exact_instead(terms: Sequence[Matrix], effort: Sequence[int]) -> Strategy | None:
    """Return an exact strategy where that is cheaper than so many probes and steps; None where it is not."""
    if len(terms) > 1 or not effort:
        return None
    S, steps = terms[0], int(effort[0]) * int(effort[1])
    return Cholesky() if exact_seconds(S, FURTHER_FACTORS) < probe_seconds(S.shape[0], S.nnz, steps) else None


def exact_seconds(S: Matrix, factors: int = FACTORS) -> float:
    """Estimate a fit of one term by so many sparse factors."""
    return 2e-7 * S.nnz + factors * refactor_seconds(S)


def probe_seconds(n: int, nnz: int, steps: int) -> float:
    """Estimate so many Lanczos steps of one probe, on S and on its part."""
    return 1.4 * steps * (5e-10 * nnz + 1.5e-9 * n)
