"""A training of boosters: two starts of alpha race, alpha follows the out-of-fold residuals, left-out folds stop it.

The optimum in alpha has two basins: features that explain what neighbours share leave little to a correlation, and the
other way round. A start at 0 and one at the alpha of the labels around their mean find one each, and the error at the
left-out folds says after some rounds which of them is the better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from residua.bases.base import CorrelationModel, FoldFields
from residua.bases.stopping import EarlyStopping
from residua.bases.trees.boosting import Boosters, Problem, Settings

Report = Callable[[int, float], None]  # rounds, error


class Independent:
    """Fields of residuals that say nothing of each other: alpha = 0, as for trees without any correlation.

    Parameters
    ----------
    known : ndarray of bool, shape (n, k)
        The labels that each booster learns from.
    """

    def __init__(self, known: np.ndarray):
        self.known, self.alpha = known, np.empty(0)

    def set_alpha(self, alpha: np.ndarray) -> None:
        """Do nothing: there is no correlation."""

    def complete(self, R: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        """Fill columns R (n, k) with zeros where they are not known; return them."""
        R[~(self.known if known is None else known)] = 0.0
        return R.copy()

    def precisions(self) -> np.ndarray:
        """Return ones (n, k) where a column is known, zeros elsewhere."""
        return self.known.astype(float)

    def grams(self, group: np.ndarray, groups: int) -> np.ndarray:
        """Return how many known nodes are in each group, on the diagonals of (k, groups, groups)."""
        counts = [np.bincount(g[known], minlength=groups) for g, known in zip(group.T, self.known.T, strict=True)]
        return np.stack(counts)[:, :, None] * np.eye(groups)


@dataclass(frozen=True)
class Best:
    """Boosters as they were at the best round.

    Parameters
    ----------
    f : ndarray of shape (n, k)
        Predictions of each booster.
    theta : ndarray of shape (k, c)
        Coefficients of its linear part.
    rounds : int
        Trees of each.
    alpha : ndarray of shape (edge types,)
        Correlation at that round.
    """

    f: np.ndarray
    theta: np.ndarray
    rounds: int
    alpha: np.ndarray


class Training:
    """Boosters on their way from one start of alpha.

    Parameters
    ----------
    problem : Problem
        What they learn from.
    correlation : CorrelationModel or None
        The model of their residuals' correlation; None for independent ones.
    settings : Settings
        How trees are grown and for how long.
    correlated : bool
        Whether to start from the alpha of the labels around their mean, not from 0.

    Attributes
    ----------
    best : Best
        The best so far.
    history : list of dict
        Round, error and alpha, one entry a round.
    """

    def __init__(
        self, problem: Problem, correlation: CorrelationModel[Any] | None, settings: Settings, correlated: bool = False
    ):
        self.problem, self.correlation, self.settings = problem, correlation, settings
        known = problem.known
        fields: FoldFields = Independent(known) if correlation is None else correlation.fold_fields(known)
        self.labels = np.flatnonzero(problem.fold >= 0)
        apart = problem.fold[self.labels] >= problem.boosters  # validation labels, which no booster sees
        self.judges = self.labels[apart] if apart.any() else self.labels
        if correlated and correlation is not None:
            y = problem.y[self.labels]
            fields.set_alpha(correlation.rough_alpha(y - y.mean()))
        self.boosters = Boosters(problem, fields, settings)
        self.stopping, self.rounds = EarlyStopping(len(self.judges)), 0
        self.history: list[dict[str, Any]] = []
        self._judge()

    def out_of_fold(self, predicted: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return errors at the labels ``at`` of the booster that has not seen each; the mean where none has.

        ``predicted`` (len(at), k) are what each booster says of them.
        """
        fold, k = self.problem.fold[at], self.problem.boosters
        own = predicted[np.arange(len(at)), np.minimum(fold, k - 1)]
        return self.problem.y[at] - np.where(fold < k, own, predicted.mean(axis=1))

    def _judge(self) -> None:
        squares = self.out_of_fold(self.boosters.corrected(self.judges), self.judges) ** 2
        error = float(np.mean(squares))
        self.history.append({"round": self.rounds, "error": error, "alpha": self.boosters.fields.alpha.tolist()})
        if self.stopping.improved(error, squares):
            b = self.boosters
            self.best = Best(b.f.copy(), b.theta.copy(), self.rounds, b.fields.alpha.copy())

    def steps(self, until: int, late: Callable[[], bool]) -> Iterator[float]:
        """Go on to a round, until errors have not fallen for long, or until late; yields the lowest error of each."""
        settings = self.settings
        while self.rounds < until and self.stopping.since <= settings.patience and not late():
            self.boosters.grow()
            self.rounds += 1
            if self.correlation is not None and self.rounds in settings.refits:
                residual = self.out_of_fold(self.boosters.f[self.labels], self.labels)
                self.boosters.fields.set_alpha(self.correlation.rough_alpha(residual))
                self.boosters.refit_linear_part()
            self._judge()
            yield self.stopping.lowest


def train(
    problem: Problem,
    correlation: CorrelationModel[Any] | None,
    settings: Settings,
    report: Report,
    late: Callable[[], bool] = lambda: False,
) -> Training:
    """Train from both starts for some rounds, and from the better one to the end; from 0 alone without correlation."""
    starts = [Training(problem, correlation, settings)]
    if correlation is not None:
        starts.append(Training(problem, correlation, settings, correlated=True))
    for training in starts:
        for error in training.steps(settings.race, late):
            report(training.rounds, error)
    winner = min(starts, key=lambda training: training.stopping.lowest)
    for error in winner.steps(settings.rounds, late):
        report(winner.rounds, error)
    return winner
