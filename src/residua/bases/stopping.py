"""Early stopping, and what its error is at labels that had no say in it.

    t* = argmin_t sum_{j in V} e_j(t)^2,    optimism = sum_i e_i(t*_{-i})^2 / sum_i e_i(t*)^2

e_i(t) error at the validation label i in V after step t, t*_{-i} the best step by the labels outside the fold of i. A
network is kept where its error at V is lowest, by chance too, so that error is too low; at labels that did not choose
the step it is not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from residua.bases.base import State

FOLDS = 20  # at most: parts of the labels, each judged at the step that the others choose


class EarlyStopping:
    """The best step of a training, and the errors of labels at the best step of the others.

    Parameters
    ----------
    labels : int
        Labels that the training is stopped on; 0 to stop it on its loss.
    """

    def __init__(self, labels: int):
        folds = min(FOLDS, labels)
        self.fold = np.arange(labels) % max(folds, 1)
        self.size = np.bincount(self.fold, minlength=folds)
        self.size_of_others = labels - self.size
        self.since, self.lowest = 0, np.inf  # steps since the best, and its error
        self.lowest_of_others = np.full(folds, np.inf)
        self.squares = np.full(labels, np.nan)  # squared errors at the best step of the others

    def improved(self, value: float, squares: np.ndarray) -> bool:
        """Take in the error of a step and the squared errors of the labels, and return whether it is the lowest yet."""
        if len(self.size) > 1:
            sums = np.bincount(self.fold, squares, len(self.size))
            others = (sums.sum() - sums) / self.size_of_others
            better = others < self.lowest_of_others
            if better.any():
                self.lowest_of_others[better] = others[better]
                chosen = better[self.fold]
                self.squares[chosen] = squares[chosen]
        self.since += 1
        if not value < self.lowest:
            return False
        self.since, self.lowest = 0, value
        return True

    @property
    def optimism(self) -> float:
        """Mean square of errors that had no say, over that of the best step; 1 where there is nothing to compare."""
        if len(self.size) < 2 or not self.lowest > 0 or not np.isfinite(self.squares).all():
            return 1.0
        return float(max(self.squares.mean() / self.lowest, 1.0))

    def state(self) -> State:
        """Return enough to go on from."""
        judged = np.array([self.since, self.lowest])
        return {"judged": judged, "lowest_of_others": self.lowest_of_others, "squares": self.squares}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from ``state``."""
        self.since, self.lowest = int(state["judged"][0]), float(state["judged"][1])
        self.lowest_of_others, self.squares = state["lowest_of_others"].copy(), state["squares"].copy()
