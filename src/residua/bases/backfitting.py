"""Any regressor fitted together with the correlation: refitted to the labels without what their neighbours say of them.

    target_i = y_i - E[r_i | r_j, j != i] = f_i + e_i,    e_i = (Gbar r)_i / Gbar_ii,    weight_i = Gbar_ii

r = y - f out-of-fold residuals of the last round, e their leave-one-out errors, Gbar the precision of those that a fit
may know: a fit without fold k is given targets that condition on nothing of fold k. A round is judged by errors at
the folds, each predicted by the fit without it and the residuals of all others; the best round is kept, and the plain
fit is one of them. As the optimum in alpha has two basins, rounds begin from 0 and from the alpha of the labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from residua.bases.base import CorrelationModel

FIRST, MORE = 2, 2  # rounds of each start, and further ones of the better
Predicted = Callable[[int, np.ndarray, np.ndarray | None], np.ndarray]  # fold, targets, weights -> at the fold's labels


@dataclass(frozen=True)
class Round:
    """What one round came to.

    Parameters
    ----------
    residual : ndarray of shape (|L|,)
        Out-of-fold residuals.
    alpha : ndarray of shape (edge types,)
        Their correlation.
    error : float
        Mean square of the corrected errors at the folds.
    target : ndarray of shape (|L|,)
        What a fit to all labels is fitted to.
    weight : ndarray of shape (|L|,) or None
        The weights of that fit.
    """

    residual: np.ndarray
    alpha: np.ndarray
    error: float
    target: np.ndarray
    weight: np.ndarray | None = None


@dataclass
class Backfitting:
    """Rounds of fits without each fold.

    Parameters
    ----------
    y : ndarray of shape (|L|,)
        Labels.
    fold : ndarray of int, shape (|L|,)
        Fold of each.
    labels : ndarray of int, shape (|L|,)
        Positions of the labelled nodes among all n.
    correlation : CorrelationModel
        The model of the residuals' correlation.
    n : int
        Nodes.
    predicted : callable
        Fits without a fold, to targets and with weights (|L|,), and predicts at its labels.
    late : callable
        Whether to begin no further round.
    history : list of dict
        Start, round, error and alpha.
    """

    y: np.ndarray
    fold: np.ndarray
    labels: np.ndarray
    correlation: CorrelationModel[Any]
    n: int
    predicted: Predicted
    late: Callable[[], bool] = lambda: False
    history: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folds = int(self.fold.max()) + 1
        known = np.zeros((self.n, self.folds + 1), bool)  # the last column knows all labels
        known[self.labels] = self.fold[:, None] != np.arange(self.folds + 1)
        self.fields = self.correlation.fold_fields(known)

    def run(self) -> tuple[Round, Round]:
        """Return the plain round, and the best of all."""
        plain = self._judged("0", self._fitted(np.repeat(self.y[:, None], self.folds, axis=1), None), self.y, None)
        starts = [[plain], [self._level()]]
        for name, rounds in zip(("0", "labels"), starts, strict=True):
            self._go_on(name, rounds, FIRST)
        best = min(range(2), key=lambda k: min(r.error for r in starts[k]))
        self._go_on(("0", "labels")[best], starts[best], MORE)
        return plain, min((r for rounds in starts for r in rounds), key=lambda r: r.error)

    def _go_on(self, name: str, rounds: list[Round], count: int) -> None:
        for _ in range(count):
            if self.late():
                return
            last = rounds[-1]
            target, weight = self._targets(last)
            residual = self._fitted(target[:, :-1], weight[:, :-1])
            rounds.append(self._judged(name, residual, target[:, -1], weight[:, -1]))

    def _level(self) -> Round:
        """Return the labels around their level by generalised least squares, at the alpha that they have around it."""
        alpha = self.correlation.rough_alpha(self.y - self.y.mean())
        self.fields.set_alpha(alpha)
        ones = np.where(self.fields.known, 1.0, 0.0)
        pulled = self.fields.complete(ones)[self.labels, -1]
        return Round(self.y - float(pulled @ self.y / pulled.sum()), alpha, np.inf, self.y)

    def _columns(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals (n, folds + 1) completed by what those that a column knows say, and G times them."""
        full = np.zeros(self.fields.known.shape)
        full[self.labels] = residual[:, None]
        full = np.where(self.fields.known, full, 0.0)
        return full, self.fields.complete(full)

    def _targets(self, last: Round) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and weights (|L|, folds + 1) of the fits without each fold, and of that to all labels."""
        self.fields.set_alpha(last.alpha)
        pulled = self._columns(last.residual)[1][self.labels]
        precision = self.fields.precisions()[self.labels]
        error = np.divide(pulled, precision, out=np.zeros_like(pulled), where=precision > 0)
        return (self.y - last.residual)[:, None] + error, precision / precision[:, -1].mean()

    def _fitted(self, target: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return out-of-fold residuals (|L|,) of fits to the targets (|L|, folds)."""
        residual = np.empty(len(self.y))
        for k in range(self.folds):
            at = self.fold == k
            residual[at] = self.y[at] - self.predicted(k, target[:, k], None if weight is None else weight[:, k])
        return residual

    def _judged(self, name: str, residual: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> Round:
        alpha = self.correlation.rough_alpha(residual)
        self.fields.set_alpha(alpha)
        said = self._columns(residual)[0][self.labels, self.fold]
        error = float(np.mean((residual - said) ** 2))
        self.history.append({"start": name, "round": len(self.history), "error": error, "alpha": alpha.tolist()})
        return Round(residual, alpha, error, target, weight)
