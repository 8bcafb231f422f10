"""The authors' Ising spins: single fields of the grid in random order, a million of them (Metropolis).

    flip s_i with probability min(1, exp(-2 s_i (h_i + J sum of the neighbours)))

s spins, h field, J coupling.
"""

from __future__ import annotations

import numpy as np

from residua.datasets import Dataset
from residua.linalg.kernels.compiled import compiled
from residua.reproduction.datasets.ising import FIELD, local_field, spin_dataset
from residua.reproduction.julia import Julia, below, number

STEPS = 1_000_000


def authors_ising(random: Julia, size: int, coupling: float) -> Dataset:
    """Draw the spins that the authors' code draws from these random numbers."""
    spins = _metropolis(random.words, random.at, local_field(size), float(coupling), STEPS)
    notes = (
        f"Generated: coupling {coupling:g}, field {FIELD:g} times the product of the coordinates, {STEPS:,} Metropolis "
        "steps with Julia's random numbers.",
    )
    return spin_dataset(spins.T.ravel(), coupling, notes, "Drawn as in the authors' code.")  # Julia goes down columns


@compiled
def _metropolis(words, at, field, coupling, steps):
    n = len(field)
    mask = 1
    while mask < n - 1:
        mask = 2 * mask + 1
    s = np.zeros((n, n))
    for j in range(n):
        for i in range(n):
            s[i, j] = 1 - 2 * below(words, at, 2, 1)
    for _ in range(steps):
        i = below(words, at, n, mask)
        j = below(words, at, n, mask)
        around = 0.0
        if i > 0:
            around += s[i - 1, j]
        if j > 0:
            around += s[i, j - 1]
        if i < n - 1:
            around += s[i + 1, j]
        if j < n - 1:
            around += s[i, j + 1]
        rise = 2 * (around * coupling + field[i, j]) * s[i, j]
        # A number is drawn only where it decides: the next ones depend on that.
        if rise <= 0 or number(words, at) < np.exp(-rise):
            s[i, j] = -s[i, j]
    return s
