"""Boosters in lock step, each blind to one fold of the labels, whose residuals are correlated along edges.

    f_k <- f_k + rate * s * C v,    A v = C' Gbar r_k,    s = (C v)' Gbar r_k / (C v)' Gbar (C v)

f_k prediction of booster k, r_k = y - f_k at the labels that it learns from, Gbar their precision with all other nodes
marginalised out, C the indicators of the leaves of a tree grown on the slopes Gbar r_k, A = C' G C their gram matrix
over all nodes: generalised least squares of the leaf values if the residuals elsewhere were known, then one exact step
along it. A fold's labels judge the booster that did not see them, by its prediction plus what its residuals say there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from residua.bases.base import FoldFields
from residua.bases.trees.kernels import find_leaves, grow


@dataclass(frozen=True)
class Settings:
    """How trees are grown and for how long.

    Parameters
    ----------
    rate : float
        Share of the best step that is taken.
    leaves : int
        Leaves of a tree.
    least : int
        Labels in a leaf at least.
    ridge : float
        Added to the number of labels in a leaf.
    rounds : int
        Trees of one booster at most.
    patience : int
        Rounds without a lower error after which boosting ends.
    race : int
        Rounds after which the worse of two starts is left.
    refits : tuple of int
        Rounds after which alpha is brought up to date; the last is the distance of further ones.
    """

    rate: float = 0.1
    leaves: int = 8
    least: int = 10
    ridge: float = 1.0
    rounds: int = 500
    patience: int = 30
    race: int = 40
    refits: tuple[int, ...] = (10, 20, 40, 80, 160, 320)


@dataclass(frozen=True)
class Problem:
    """What boosters learn from.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, d)
        Columns of every node.
    categorical : ndarray of bool, shape (d,)
        Columns without an order.
    Z : ndarray of shape (n, c)
        Columns of a linear part, a constant first.
    y : ndarray of shape (n,)
        Labels, NaN where unknown.
    fold : ndarray of int, shape (n,)
        Which booster must not see a label; -1 where there is none, and k or more where none may see it.
    boosters : int
        How many there are.
    """

    codes: np.ndarray
    categorical: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    fold: np.ndarray
    boosters: int

    @property
    def known(self) -> np.ndarray:
        """(n, k) bool: labels that each booster learns from."""
        seen = (self.fold >= 0) & (self.fold < self.boosters)
        return seen[:, None] & (self.fold[:, None] != np.arange(self.boosters))


class Trees:
    """Trees of k boosters, as many of each.

    Attributes
    ----------
    feature : list of ndarray of shape (k, splits)
        Column that each split asks, -1 for none; one entry a round, here and below.
    tables : list of ndarray of shape (k, splits, 256)
        Codes that go left.
    children : list of ndarray of shape (k, splits, 2)
        A split where not negative, else leaf -c - 1.
    values : list of ndarray of shape (k, leaves)
        What each leaf adds.
    """

    def __init__(self) -> None:
        self.feature: list[np.ndarray] = []
        self.tables: list[np.ndarray] = []
        self.children: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def append(self, splits: list[tuple[np.ndarray, np.ndarray, np.ndarray]], values: np.ndarray) -> None:
        """Add one tree for each booster."""
        for kept, found in zip((self.feature, self.tables, self.children), zip(*splits, strict=True), strict=True):
            kept.append(np.stack(found))
        self.values.append(values)


class Boosters:
    """Boosters in lock step under one alpha.

    Parameters
    ----------
    problem : Problem
        What they learn from.
    fields : FoldFields
        What their residuals say elsewhere.
    settings : Settings
        How trees are grown.

    Attributes
    ----------
    f : ndarray of shape (n, k)
        Predictions of each booster, without any correction.
    theta : ndarray of shape (k, c)
        Coefficients of each one's linear part.
    trees : Trees
        Their trees.
    """

    def __init__(self, problem: Problem, fields: FoldFields, settings: Settings):
        self.problem, self.fields, self.settings = problem, fields, settings
        n, k = len(problem.y), problem.boosters
        self.known, self.trees = problem.known, Trees()
        self.rows = [np.flatnonzero(mask) for mask in self.known.T]
        self.f, self.theta = np.zeros((n, k)), np.zeros((k, problem.Z.shape[1]))
        self.full, self.pulled = np.zeros((n, k)), np.zeros((n, k))  # residuals completed, and G times them
        self.refit_linear_part()

    def refit_linear_part(self) -> None:
        """Move the coefficients of the linear part to their generalised least squares, at the alpha of now."""
        Z, R = self.problem.Z, self._residuals()
        for k, known in enumerate(self.known.T):
            part = np.where(known[:, None], Z, 0.0)
            pulled = self.fields.complete(part, np.repeat(known[:, None], Z.shape[1], axis=1))[known]
            step = np.linalg.lstsq(Z[known].T @ pulled, pulled.T @ R[known, k], rcond=1e-10)[0]
            self.theta[k] += step
            self.f[:, k] += Z @ step
        self.full = np.where(self.known, self._residuals(), self.full)
        self.pulled = self.fields.complete(self.full)

    def _residuals(self) -> np.ndarray:
        return np.where(self.known, np.nan_to_num(self.problem.y)[:, None] - self.f, 0.0)

    def corrected(self, at: np.ndarray) -> np.ndarray:
        """Return predictions (len(at), k) with what each booster's residuals say of the nodes ``at``."""
        return self.f[at] + self.full[at]

    def grow(self) -> None:
        """Add one tree to each booster."""
        p, s = self.problem, self.settings
        columns, leaf = np.arange(p.codes.shape[1]), np.empty(self.f.shape, np.int64)
        splits = []
        for k, rows in enumerate(self.rows):
            slope, found = np.ascontiguousarray(self.pulled[:, k]), np.empty(len(leaf), np.int64)
            splits.append(grow(p.codes, rows, slope, columns, p.categorical, s.leaves, float(s.least), s.ridge))
            find_leaves(p.codes, *splits[-1], found)
            leaf[:, k] = found
        values = self._leaf_values(leaf)
        step = np.take_along_axis(values.T, leaf, axis=0)
        taken = np.where(self.known, step, 0.0)
        pulled = self.fields.complete(taken)
        # One exact step along the leaf values: (C v)' Gbar r / (C v)' Gbar (C v), times the rate.
        slope, curvature = ((taken * G * self.known).sum(axis=0) for G in (self.pulled, pulled))
        length = s.rate * np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0)
        self.f += length * step
        self.full -= length * taken
        self.pulled -= length * pulled
        self.trees.append(splits, values * length[:, None])

    def _leaf_values(self, leaf: np.ndarray) -> np.ndarray:
        """Return leaf values (k, leaves) by least squares, as if residuals where no label is were known."""
        leaves = self.settings.leaves
        grams = self.fields.grams(leaf, leaves) + self.settings.ridge * np.eye(leaves)
        sums = [np.bincount(leaf[rows, k], self.pulled[rows, k], leaves) for k, rows in enumerate(self.rows)]
        return np.linalg.solve(grams, np.stack(sums)[:, :, None])[:, :, 0]
