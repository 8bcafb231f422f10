"""Each label as predicted from all the others, without a refit.

    at i in L:  error (P y)_i / P_ii,  variance 1 / (beta P_ii),    P = Gbar - Gbar Z H^-1 Z' Gbar
    Gbar = G_LL - G_LU G_UU^-1 G_UL,   H = Z' Gbar Z + diag(1 / tau)

Z design of a linear mean fitted with the correlation (else P = Gbar), tau prior variances of its coefficients. Gbar of
labels seen through noise is that of ``residua.field.noise``, and the variance has the label's own noise in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from residua.linalg import Sparse
from residua.linalg.factor import factor_seconds, identity_minus, pair_sums

if TYPE_CHECKING:
    from residua.field.conditional import Conditional

# One factorisation and its selected inverse, which takes about four times as long.
EXACT_SECONDS = 0.5
MAX_PAIRS = 2e7


@dataclass(frozen=True)
class LeaveOneOut:
    """Each label as predicted from all the others."""

    error: np.ndarray  # (|L|,) label minus its prediction
    variance: np.ndarray  # (|L|,), infinite where no other label speaks of it


def leave_one_out(given: Conditional, r: np.ndarray) -> LeaveOneOut:
    """Return errors and variances at L for residuals r (n,), known at L."""
    pulled = given.pulled(r)
    precision = given.schur_diagonal - (given.coefficients.leverage if given.coefficients else 0.0)
    lone = precision <= 1e-9  # the only label of its component: nothing else speaks of it
    safe = np.where(lone, 1, precision)
    return LeaveOneOut(np.where(lone, r[given.L], pulled / safe), np.where(lone, np.inf, 1 / (given.beta * safe)))


def schur_diagonal(given: Conditional) -> np.ndarray:
    """Return diag(Gbar) at L: what the others leave of the precision of each label."""
    own, gain = given.G.diagonal()[given.L], given.channel.gain
    if gain is not None:
        own = gain * (1 - gain * (1 - own))
    if not given.n_hidden:
        return own
    taken, K = None, given.channel.precision
    if given.exact:
        taken = _exact(given) if K is None else _by_variance(given, own, K)
    taken = _sampled(given) if taken is None else taken
    floor = 0.0 if given.improper else 1 - np.abs(given.alpha).max()  # the smallest eigenvalue of G
    if gain is not None:  # that of Gbar: no variance is above the largest of G's inverse and the noise together
        floor = gain * floor / (gain + floor * (1 - gain))
    return np.maximum(own - taken, floor)


def _sampled(given: Conditional) -> np.ndarray:
    """diag(G_LU G_UU^-1 G_UL) as the mean over draws of (G x)_L^2; with noise, of alpha M S C x."""
    G = given.G.astype(given.draws.precision.dtype.type)
    total = np.zeros(len(given.L))
    for X in given.draws:
        full = np.zeros((given.graph.n_nodes, X.shape[1]), G.dtype)
        full[given.U] = given.channel.scaled(X, given.U)
        total += (given.channel.reach(G, full) ** 2).sum(axis=1)
    return total / given.draws.count


def _by_variance(given: Conditional, own: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the same from the variances of nodes that are all seen through noise: Gbar_ii = K_i - K_i^2 var_i."""
    variance = np.zeros(given.graph.n_nodes)
    variance[given.U] = given.hidden_variance.value
    return own - K * (1 - K * variance[given.L])


def _exact(given: Conditional) -> np.ndarray | None:
    """diag(G_LU G_UU^-1 G_UL), from the selected inverse on all pairs of U with a common labelled neighbour.

    None where labelled hubs make those pairs too many.
    """
    rows = given.channel.coupling(given.G, given.U)
    if (np.diff(rows.indptr).astype(float) ** 2).sum() > MAX_PAIRS:
        return None
    room = identity_minus(given.G_UU, abs(rows).T @ abs(rows))
    pattern = Sparse(room.indptr, room.indices, None, np.ones(len(given.U)))
    if not given.exact_forced and factor_seconds(pattern, EXACT_SECONDS) > EXACT_SECONDS:
        return None
    return pair_sums(rows, given.factor(room, cholmod=False).inverse)
