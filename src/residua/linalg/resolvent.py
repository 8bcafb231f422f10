"""The resolvent ``B' (I - a A)^-1 B`` for many a, from one block Lanczos run on A and without eigenvalues.

    R' [(I - a T)^-1]_11 R = sum_s P_s' G_s,      G_s = E_s^-1 P_s,   P_1 = R,   P_s+1 = a C_s+1 G_s
    E_s = I - a T_ss - a^2 C_s E_s-1^-1 C_s'

T is block tridiagonal with C below its diagonal, B = V_1 R. This is ``L D L'`` of I - a T by blocks, linear in the
steps. Each step adds a positive term, so the last ones tell what is still missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from residua.linalg.lanczos import BlockLanczos

SPENT = 1e-24  # a term that is smaller than this part of the sum before it: what follows is below rounding
NUMBERS = 2_000_000  # in the blocks of all a at once


class Resolvent(NamedTuple):
    """The resolvent at several a."""

    values: np.ndarray  # (g, k, k)
    terms: np.ndarray  # (steps, g, k) diagonals of what each step has added


def resolvents(krylov: BlockLanczos, alphas: np.ndarray) -> Resolvent:
    """Return the resolvent at each of ``alphas`` (g,), as many at once as fit in memory."""
    width = max(1, NUMBERS // max(krylov.R.size, krylov.R.shape[1] ** 2, 1))
    parts = [_batch(krylov, alphas[first : first + width]) for first in range(0, len(alphas), width)]
    return Resolvent(*(np.concatenate(part, axis) for part, axis in zip(zip(*parts, strict=True), (0, 1), strict=True)))


def squared_resolvent(krylov: BlockLanczos, a: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ``B' (I - a A)^-1 B`` and ``B' (I - a A)^-2 B``, the latter by substitution back through the steps."""
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    first = _batch(krylov, np.array([a]), kept).values[0]
    second, below = np.zeros_like(first), np.zeros_like(first[:0])
    for across, G in reversed(kept):
        below = G + a * across @ below if len(below) else G
        second += below.T @ below
    return first, second


def _batch(krylov: BlockLanczos, alphas: np.ndarray, kept: list | None = None) -> Resolvent:
    """Run the recursion for all of ``alphas``, each until its terms vanish; of the first, ``kept`` has each step."""
    k, live = krylov.R.shape[1], np.arange(len(alphas))
    values, terms = np.zeros((len(alphas), k, k)), np.zeros((krylov.steps, len(alphas), k))
    a, P, carried = alphas[:, None, None], np.broadcast_to(krylov.R, (len(alphas), *krylov.R.shape)), 0.0
    for s, D in enumerate(krylov.diagonal):
        C = krylov.off[s + 1]
        right = np.concatenate([np.broadcast_to(C.T, (len(P), *C.T.shape)), P], axis=2)
        pivot = np.eye(len(D)) - a * D - carried
        solved = right / pivot if len(D) == 1 else np.linalg.solve(pivot, right)
        G = solved[:, :, len(C) :]
        values[live] += P.transpose(0, 2, 1) @ G
        terms[s, live] = np.einsum("gij,gij->gj", P, G)
        if kept is not None:
            kept.append((solved[0, :, : len(C)], G[0]))
        going = (terms[s, live] > SPENT * np.diagonal(values[live], axis1=1, axis2=2)).any(axis=1)
        if not going.all():
            live, a, solved = live[going], a[going], solved[going]
            if not len(live):
                break
        product = a * (C @ solved)
        carried, P = a * product[:, :, : len(C)], product[:, :, len(C) :]
    return Resolvent(values, terms)
