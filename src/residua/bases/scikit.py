"""Any scikit-learn regressor as a base: fitted to all labels for prediction, to folds of them for the residuals.

r_i = y_i - f_k(x_i),    f_k fitted without the fold k of label i
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from residua.bases.base import Base, CorrelationModel, Fit, Outcome, Task
from residua.graph import Graph


class ScikitBase(Base):
    """A scikit-learn regressor or pipeline, cross-fitted.

    Parameters
    ----------
    estimator : regressor
        Its unset random states are set from that of the fit.
    """

    def __init__(self, estimator: Any):
        self.estimator = estimator
        self.name = type(estimator).__name__

    def _fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        X, y = task.X[task.labelled], task.y[task.labelled]
        rng = np.random.default_rng(task.random_state)
        folds = KFold(min(task.folds, len(y)), shuffle=True, random_state=task.random_state)
        residual = np.empty(len(y))
        for train, test in folds.split(X):
            residual[test] = y[test] - _seeded(self.estimator, rng).fit(X[train], y[train]).predict(X[test]).ravel()
        self.estimator = _seeded(self.estimator, rng).fit(X, y)
        return Outcome(residual, residual)

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """Return what the regressor says of each row of X (n, d)."""
        return np.asarray(self.estimator.predict(X), float).ravel()


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """A fresh copy whose unset random states come from ``rng``."""
    copy = clone(estimator)
    unset = [k for k, v in copy.get_params().items() if k.rsplit("__")[-1] == "random_state" and v is None]
    return copy.set_params(**{k: int(rng.integers(2**31 - 1)) for k in sorted(unset)})
