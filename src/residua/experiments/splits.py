"""Which labels are known: random 60 % for learning, the rest half for validation and half for the test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Split:
    """Positions of nodes; the three parts together are all of them."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def known(self, y: np.ndarray) -> np.ndarray:
        """Y where the label may be learned from, NaN elsewhere."""
        out = np.full(len(y), np.nan)
        out[self.train] = y[self.train]
        return out


def random_split(n: int, seed: int, share: float = 0.6) -> Split:
    """The paper's split of n nodes."""
    order = np.random.default_rng(seed).permutation(n)
    train = round(share * n)
    half = train + (n - train) // 2
    return Split(np.sort(order[:train]), np.sort(order[train:half]), np.sort(order[half:]))
