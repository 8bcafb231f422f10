"""Linear bases, fitted by generalised least squares together with the correlation.

y = Z theta + r,    Z = [1, (x - centre) / spread]
"""

from __future__ import annotations

import numpy as np

from residua.bases.base import Base, CorrelationModel, Fit, Outcome, Task, standardisation
from residua.graph import Graph
from residua.linalg.ridge import fit_rows
from residua.linalg.rows import Rows


class LinearBase(Base):
    """A mean of no column ("zero"), a constant ("mean"), or a constant and the features ("linear").

    Parameters
    ----------
    name : {"zero", "mean", "linear"}
        Which of them.

    Attributes
    ----------
    coefficients : ndarray of shape (columns,)
        theta, of standardised features.
    centre : ndarray of shape (d,)
        Means of the features at labelled nodes.
    spread : ndarray of shape (d,)
        Their standard deviations; 1 for a feature that is constant at labelled nodes, and the largest number for one
        that is constant but for rounding, which makes its column zero.
    """

    centre: np.ndarray
    spread: np.ndarray

    def __init__(self, name: str):
        self.name = name
        self.coefficients = np.empty(0)

    def design(self, X: np.ndarray) -> np.ndarray:
        """Return Z (n, columns)."""
        if self.name == "zero":
            return np.empty((len(X), 0))
        ones = np.ones((len(X), 1))
        return ones if self.name == "mean" else np.column_stack([ones, (X - self.centre) / self.spread])

    @property
    def groups(self) -> np.ndarray:
        """Groups (columns,) of coefficients that share a prior variance; 0 for coefficients without a prior."""
        return np.zeros(self.features.shape, int)

    @property
    def features(self) -> np.ndarray:
        """The feature (columns,) that each column is made of, -1 for the constant."""
        return np.arange(-1, len(self.centre))[: self.design(np.zeros((1, len(self.centre)))).shape[1]]

    def data_units(self) -> np.ndarray:
        """Return M (columns, columns), by which ``M theta`` are the coefficients of the features as they were given."""
        if len(self.coefficients) != len(self.centre) + 1:  # a constant, or bends, which have no such units
            return np.eye(len(self.coefficients))
        M = np.diag(np.concatenate([[1.0], 1 / self.spread]))
        M[0, 1:] = -self.centre / self.spread
        return M

    def _fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        rows, known, y = task.graph.rows, task.X[task.labelled], task.y[task.labelled]
        self.fit_columns(known, rows)
        Z, groups, count = self.design(known), self.groups, rows.count(task.labelled)
        fit = correlation(y, Z, groups=groups) if correlation is not None else None
        level = rows.sum(y.sum()) / count if Z.shape[1] else 0.0  # taken out before it is rounded
        independent = fit_rows(rows, Z, y - level, groups)
        if independent.rank >= count:
            raise ValueError(
                f"the mean fits all {count} labels exactly with {Z.shape[1]} column(s), which leaves no residual to "
                "learn from: there are as many features as labels; use fewer, or a base such as Ridge."
            )
        error = (y - level - Z @ independent.coefficients) / np.maximum(1 - independent.leverage, 1e-6)
        independent.coefficients[:1] += level
        learned = independent if fit is None else fit
        self.coefficients, self.prior_variance = learned.coefficients, learned.prior_variance
        return Outcome(y - Z @ self.coefficients, error, fit)

    def fit_columns(self, known: np.ndarray, rows: Rows) -> None:
        """Learn centre and spread from features (|L|, d) at labelled nodes."""
        # What is constant at the labels is no second constant, nor is the rounding of its centre a feature.
        centre, spread = standardisation(known, rows, constant=np.finfo(float).max)
        highest, lowest = (sign * rows.max((sign * known).max(axis=0, initial=-np.inf)) for sign in (1, -1))
        self.centre, self.spread = np.where(highest == lowest, [highest, np.ones_like(spread)], [centre, spread])

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """Return ``Z theta`` (n,)."""
        return self.design(X) @ self.coefficients

    def contributions(self, X: np.ndarray) -> np.ndarray | None:
        """Return what each feature adds to the predictions (n, d), relative to their average."""
        own = self.features
        if own.max(initial=-1) < 0:
            return None
        moved = self.design(X) * self.coefficients
        moved -= moved.mean(axis=0)
        return np.column_stack([moved[:, own == j].sum(axis=1) for j in range(own.max() + 1)])
