"""Which labels are known: random 60 % for learning, the rest half for validation and half for the test.

With seeds 1 to 10 a fixed data set is split as by the authors: the same nodes, from the same random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from residua.reproduction.julia import Julia


@dataclass(frozen=True)
class Split:
    """Positions of nodes; the three parts together are all of them."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def known(self, y: np.ndarray) -> np.ndarray:
        """Y where the label may be learned from, NaN elsewhere."""
        return only(y, self.train)

    def later(self, y: np.ndarray) -> np.ndarray:
        """Y where the label is conditioned on once the model has been chosen, NaN elsewhere."""
        return only(y, self.validation)


def only(y: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Y at the positions ``where``, NaN elsewhere."""
    out = np.full(len(y), np.nan)
    out[where] = y[where]
    return out


def random_split(n: int, random: int | Julia, share: float = 0.6) -> Split:
    """Draw the paper's split of n nodes, by a seed or by a generator that something was drawn from before."""
    order = (random if isinstance(random, Julia) else Julia(random)).permutation(n)
    train = math.ceil(share * n)
    half = train + (n - train) // 2
    return Split(np.sort(order[:train]), np.sort(order[train:half]), np.sort(order[half:]))
