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
from residua.validation import other_units

SINGLE = 1e30  # boosted trees keep gradients in single precision, which ends at 1e38 and at its inverse


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
        _check_single(self.estimator, y)
        rng = np.random.default_rng(task.random_state)
        folds = KFold(min(task.folds, len(y)), shuffle=True, random_state=task.random_state)
        residual = np.empty(len(y))
        for train, test in folds.split(X):
            residual[test] = y[test] - seeded(self.estimator, rng).fit(X[train], y[train]).predict(X[test]).ravel()
        self.estimator = seeded(self.estimator, rng).fit(X, y)
        return Outcome(residual, residual)

    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """Return what the regressor says of each row of X (n, d)."""
        return np.asarray(self.estimator.predict(X), float).ravel()


def _check_single(estimator: Any, y: np.ndarray) -> None:
    """Refuse labels whose differences scikit-learn's boosted trees would take for zero, or for infinite."""
    single = any(kind.__name__ == "BaseHistGradientBoosting" for kind in type(estimator).__mro__)
    spread = float(np.ptp(y))
    if single and spread and not 1 / SINGLE < spread < SINGLE:
        remedy = other_units(spread, "y")
        raise ValueError(f"y varies by {spread:.2g}, which boosted trees do not see in single precision; {remedy}")


def seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """A fresh copy whose unset random states come from ``rng``, those of splitters such as ``KFold`` too."""
    copy = clone(estimator, safe=False)  # a deep copy where it has no parameters
    parameters = copy.get_params() if hasattr(copy, "get_params") else {}
    unset = [k for k, v in parameters.items() if k.rsplit("__")[-1] == "random_state" and v is None]
    if unset:
        copy.set_params(**{k: int(rng.integers(2**31 - 1)) for k in sorted(unset)})
    for _, part in sorted(parameters.items(), key=lambda item: item[0]):
        # A splitter has no get_params; clone has made a copy of it. Without shuffling it needs no seed.
        random = hasattr(part, "split") and getattr(part, "random_state", 0) is None and getattr(part, "shuffle", True)
        if random:
            part.random_state = int(rng.integers(2**31 - 1))
    return copy
