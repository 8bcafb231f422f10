"""Early stopping, and what its error is at labels that had no say in it.

    t* = argmin_t sum_{j in V} e_j(t)^2,    optimism = sum_i e_i(t*_{-i})^2 / sum_i e_i(t*)^2

e_i(t) error at the validation label i in V after step t, t*_{-i} the best step by the labels outside the fold of i. A
network is kept where its error at V is lowest, by chance too, so that error is too low; at labels that did not choose
the step it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from residua.arrays import as_flags
from residua.bases.base import State
from residua.graph.alignment import has_ids
from residua.validation import MIN_LABELS

FOLDS = 20  # at most: parts of the labels, each judged at the step that the others choose


def validation_nodes(validation: Any, n: int | None = None) -> np.ndarray:
    """Return positions of the nodes of ``validation``, which is flags (n,) in order or a tuple of positions."""
    if isinstance(validation, tuple):
        return np.asarray(validation, int)
    if has_ids(validation):
        raise ValueError("validation is indexed by ids; give it in order: validation.loc[graph.nodes].to_numpy().")
    flags = as_flags(validation, "validation")
    if flags.dtype != bool or flags.shape != (len(flags) if n is None else n,):
        raise ValueError(
            f"validation has shape {flags.shape} and dtype {flags.dtype}; give a share of the labels, or flags "
            f"{'(n,)' if n is None else (n,)} that are True at the nodes to stop on."
        )
    return np.flatnonzero(flags)


def validation_labels(validation: Any, labels: np.ndarray, n: int) -> np.ndarray:
    """Return those of ``labels``, positions of nodes out of n, that are among the nodes of ``validation``."""
    chosen = np.intersect1d(labels, validation_nodes(validation, n))
    if not len(chosen) or len(labels) - len(chosen) < MIN_LABELS:
        raise ValueError(
            f"validation chooses {len(chosen)} of {len(labels)} labels; y must have labels at the nodes to learn from "
            f"(at least {MIN_LABELS}) and at those of validation: np.where(known | validation, y, np.nan)."
        )
    return chosen


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
        self.since, self.lowest = 0, np.inf  # steps since the best, and its error
        self.lowest_of_others = np.full(folds, np.inf)
        self.squares = np.full(labels, np.nan)  # squared errors at the best step of the others

    def improved(self, value: float, squares: np.ndarray) -> bool:
        """Take in the error of a step and the squared errors of the labels, and return whether it is the lowest yet."""
        if len(self.size) > 1:
            sums = np.bincount(self.fold, squares, len(self.size))
            others = (sums.sum() - sums) / (self.size.sum() - self.size)
            better = others < self.lowest_of_others
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
