"""Boosted trees as a base: grown through the likelihood, each booster blind to a fold, and their average.

Two kinds of boosters, with and without a linear part, are averaged: a linear part helps on most data and hurts on some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from residua.bases.base import Base, CorrelationModel, Fit, Outcome, Task, mean_where, standardisation
from residua.bases.progress import progress
from residua.bases.trees.bins import Bins
from residua.bases.trees.boosting import Problem, Settings
from residua.bases.trees.columns import Columns
from residua.bases.trees.kernels import CODES, add_contributions, add_trees
from residua.bases.trees.training import Training, train
from residua.graph import Graph

LABELS_A_COLUMN = 5  # that a linear part needs, or it is left out


@dataclass(frozen=True)
class Ensemble:
    """Fitted boosters: m of them, each a linear part and t trees.

    Parameters
    ----------
    theta : ndarray of shape (m, 1 + columns)
        Coefficients of a constant and of standardised numbers.
    feature : ndarray of shape (m, t, splits)
        Column that a split asks, -1 for none.
    tables : ndarray of bool, shape (m, t, splits, 256)
        Codes that go left.
    children : ndarray of shape (m, t, splits, 2)
        A split where not negative, else leaf -c - 1.
    values : ndarray of shape (m, t, leaves)
        What each leaf adds; zeros beyond a booster's last tree.
    """

    theta: np.ndarray
    feature: np.ndarray
    tables: np.ndarray
    children: np.ndarray
    values: np.ndarray

    def predict(self, codes: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return predictions (m, n) for codes (n, d) and the columns Z (n, 1 + columns) of the linear part."""
        out = self.theta @ Z.T
        for k in range(len(out)):
            add_trees(codes, self.feature[k], self.tables[k], self.children[k], self.values[k], out[k])
        return out

    def contributions(self, codes: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return what each column adds to the mean prediction of the boosters (n, d), relative to the rows' average."""
        linear = Z[:, 1:] * self.theta[:, 1:].mean(axis=0)
        out = np.ascontiguousarray((linear - linear.mean(axis=0)) * len(self.theta))
        for k in range(len(self.theta)):
            add_contributions(codes, self.feature[k], self.tables[k], self.children[k], self.values[k], out)
        return out / len(self.theta)


class TreesBase(Base):
    """Boosted trees, averaged over boosters that were each blind to one fold.

    Parameters
    ----------
    joint : bool
        Whether they learn through the likelihood; else by squared error, the correlation afterwards.
    settings : Settings
        How trees are grown and for how long.

    Attributes
    ----------
    columns : Columns
        How a table becomes numbers.
    bins : Bins
        Where columns are cut.
    ensemble : Ensemble
        The boosters.
    x_centre, x_spread : ndarray of shape (d,)
        Means and standard deviations of the columns of numbers, for the linear part.
    y_centre, y_spread : float
        Mean of the labels and their standard deviation.
    history : list of dict
        Linear part or not, round, error and alpha, one entry a round.
    """

    name, stops_early, takes_tables = "trees", True, True
    columns: Columns
    bins: Bins
    ensemble: Ensemble
    x_centre: np.ndarray
    x_spread: np.ndarray
    y_centre: float
    y_spread: float

    def __init__(self, joint: bool = True, settings: Settings | None = None):
        self.joint, self.settings = joint, settings or Settings()
        self.history: list[dict[str, Any]] = []

    def _fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        self.columns = Columns.of(task.X)
        X, y = self.columns.numbers(task.X), task.y
        self.bins = Bins.of(X, self.columns.categorical)
        there = np.isfinite(X)
        average = np.divide(np.where(there, X, 0.0).sum(axis=0), np.maximum(there.sum(axis=0), 1))
        self.x_centre, self.x_spread = standardisation(np.where(there, X, average))
        self.y_centre, self.y_spread = (float(v[0]) for v in standardisation(y[task.labelled][:, None]))
        trainings = self._trained(replace(task, X=X), correlation if self.joint else None)
        self.ensemble = _joined(trainings, 1 + X.shape[1])
        members = np.concatenate([(y[:, None] - self._scaled(t.best.f))[task.labelled].T for t in trainings])
        unseen = np.concatenate([~t.problem.known[task.labelled].T for t in trainings])
        out_of_fold = mean_where(members, unseen)
        if correlation is None or not self.joint:
            return Outcome(out_of_fold, out_of_fold, history=tuple(self.history))
        a = np.arctanh(np.mean([t.best.alpha for t in trainings], axis=0))
        optimism = np.concatenate([np.full(t.problem.boosters, t.stopping.optimism) for t in trainings])
        unknown = np.full_like(out_of_fold, np.nan)
        fit = correlation(out_of_fold, start=a)
        return Outcome(members.mean(axis=0), unknown, fit, members, unseen, optimism, tuple(self.history))

    def _trained(self, task: Task, correlation: CorrelationModel[Fit] | None) -> list[Training]:
        """Train boosters without a linear part, and with one where there are labels enough for its coefficients."""
        codes, Z = self.bins.codes(task.X), self._linear(task.X)
        fold, k = _folds(task)
        y = (task.y - self.y_centre) / self.y_spread
        widths = [1] + [Z.shape[1]] * (LABELS_A_COLUMN * Z.shape[1] <= len(task.labels))
        trainings: list[Training] = []
        with progress("boosting trees", task.verbose) as advance:
            for width in widths:
                problem = Problem(codes, self.bins.categorical, np.ascontiguousarray(Z[:, :width]), y, fold, k)

                def report(rounds: int, error: float, done: int = len(trainings)) -> None:
                    share = (done + rounds / self.settings.rounds) / len(widths)
                    advance(share, f"error {error * self.y_spread**2:.3g}")

                trainings.append(train(problem, correlation, self.settings, report, lambda: task.late))
                self.history += [{"linear": width > 1, **entry} for entry in trainings[-1].history]
        return trainings

    def _linear(self, X: np.ndarray) -> np.ndarray:
        """Return the columns (n, 1 + d) of the linear part; a missing number is an average one, a category nothing."""
        numbers = np.where(np.isnan(X) | self.bins.categorical, 0.0, (X - self.x_centre) / self.x_spread)
        return np.column_stack([np.ones(len(X)), numbers])

    def _scaled(self, f: np.ndarray) -> np.ndarray:
        return self.y_centre + self.y_spread * f

    def predict(self, graph: Graph, X: Any) -> np.ndarray:
        """Return the mean of the boosters' predictions (n,)."""
        return self.predict_members(graph, X).mean(axis=0)

    def predict_members(self, graph: Graph, X: Any) -> np.ndarray:
        """Return the predictions (m, n) of each booster."""
        numbers = self.columns.numbers(X)
        return self._scaled(self.ensemble.predict(self.bins.codes(numbers), self._linear(numbers)))

    def contributions(self, X: Any) -> np.ndarray:
        """Return what each feature adds to the predictions (n, d), relative to their average: the splits on its way."""
        numbers = self.columns.numbers(X)
        return self.y_spread * self.ensemble.contributions(self.bins.codes(numbers), self._linear(numbers))


def _folds(task: Task) -> tuple[np.ndarray, int]:
    """Return the fold (n,) of each label, -1 where there is none, and how many folds; those of validation come last."""
    fold, labels = np.full(len(task.y), -1), task.labels
    if task.validation is not None:
        labels = labels[~task.validation[labels]]
    parts = KFold(min(task.folds, len(labels)), shuffle=True, random_state=task.random_state)
    for k, (_, left_out) in enumerate(parts.split(labels)):
        fold[labels[left_out]] = k
    if task.validation is not None:
        fold[task.validation] = parts.get_n_splits()
    return fold, parts.get_n_splits()


def _joined(trainings: list[Training], columns: int) -> Ensemble:
    """Return the boosters of all trainings up to their best rounds, those of fewer rounds with trees of nothing."""
    rounds = max(max(t.best.rounds for t in trainings), 1)
    k, settings = trainings[0].problem.boosters, trainings[0].settings
    shape = len(trainings) * k, rounds, settings.leaves - 1
    theta, feature = np.zeros((shape[0], columns)), np.full(shape, -1, np.int16)
    tables, children = np.zeros((*shape, CODES), bool), np.zeros((*shape, 2), np.int16)
    values = np.zeros((*shape[:2], settings.leaves))
    for j, t in enumerate(trainings):
        rows, trees = slice(j * k, (j + 1) * k), t.boosters.trees
        theta[rows, : t.best.theta.shape[1]] = t.best.theta
        for i in range(t.best.rounds):
            feature[rows, i], tables[rows, i] = trees.feature[i], trees.tables[i]
            children[rows, i], values[rows, i] = trees.children[i], trees.values[i]
    return Ensemble(theta, feature, tables, children, values)
