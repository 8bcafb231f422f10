"""Any scikit-learn regressor as a base: fitted to all labels for prediction, to folds of them for the residuals.

r_i = y_i - f_k(x_i),    f_k fitted without the fold k of label i

Jointly with the correlation it is refitted some times, to the labels without what their neighbours say of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from residua.bases.backfitting import Backfitting
from residua.bases.base import Base, CorrelationModel, Fit, Outcome, Task
from residua.bases.neighbours import NeighbourFeatures
from residua.features import take_rows
from residua.graph import Graph
from residua.validation import other_units

SINGLE = 1e30  # boosted trees keep gradients in single precision, which ends at 1e38 and at its inverse


class ScikitBase(Base):
    """A scikit-learn regressor or pipeline, cross-fitted.

    Parameters
    ----------
    estimator : regressor
        Its unset random states are set from that of the fit.
    joint : bool
        Whether it is fitted together with the correlation, by backfitting; else the correlation comes afterwards.
    """

    takes_tables = True

    def __init__(self, estimator: Any, joint: bool = False):
        self.estimator, self.joint = estimator, joint
        self.name = type(estimator).__name__

    def _fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        surroundings, self.estimator = split_pipeline(self.estimator)
        table = task.X
        for _, step in surroundings:
            table = _transformed(step, table, task.graph, fit=True)
        X, y = take_rows(table, task.labelled), task.y[task.labelled]
        _check_single(self.estimator, y)
        rng = np.random.default_rng(task.random_state)
        folds = KFold(min(task.folds, len(y)), shuffle=True, random_state=task.random_state)
        if self.joint and correlation is not None:
            outcome = self._backfit(task, X, correlation, folds, rng)
        else:
            residual = np.empty(len(y))
            for train, test in folds.split(X):
                fitted = seeded(self.estimator, rng).fit(take_rows(X, train), y[train])
                residual[test] = y[test] - fitted.predict(take_rows(X, test)).ravel()
            self.estimator = seeded(self.estimator, rng).fit(X, y)
            outcome = Outcome(residual, residual)
        self.estimator = joined_pipeline(surroundings, self.estimator)
        return outcome

    def _backfit(
        self, task: Task, X: Any, correlation: CorrelationModel[Fit], folds: KFold, rng: np.random.Generator
    ) -> Outcome[Fit]:
        y, blank = task.y[task.labelled], self.estimator
        fold = np.empty(len(y), int)
        for k, (_, left_out) in enumerate(folds.split(X)):
            fold[left_out] = k
        weigh = weight_argument(blank)

        def fitted(at: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> Any:
            weights = {} if weigh is None or weight is None else {weigh: weight[at]}
            return seeded(blank, rng).fit(take_rows(X, at), target[at], **weights)

        def predicted(k: int, target: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
            return fitted(fold != k, target, weight).predict(take_rows(X, fold == k)).ravel()

        found = Backfitting(y, fold, task.labels, correlation, len(task.y), predicted, lambda: task.late)
        plain, best = found.run()
        self.estimator = fitted(np.ones(len(y), bool), best.target, best.weight)
        fit = correlation(best.residual, start=np.arctanh(best.alpha))
        return Outcome(best.residual, plain.residual, fit, history=tuple(found.history))

    def predict(self, graph: Graph, X: Any) -> np.ndarray:
        """Return what the regressor says of each row of X (n, d)."""
        surroundings, regressor = split_pipeline(self.estimator, fitted=True)
        for _, step in surroundings:
            X = _transformed(step, X, graph)
        return np.asarray(regressor.predict(X), float).ravel()


Steps = list[tuple[str, Any]]


def split_pipeline(estimator: Any, fitted: bool = False) -> tuple[Steps, Any]:
    """Return the steps of a pipeline up to its last ``NeighbourFeatures``, copies unless ``fitted``, and what follows.

    Surroundings are those in the whole graph, so these steps see the features of all nodes, and no label.
    """
    steps = estimator.steps if isinstance(estimator, Pipeline) else []
    last = max((k for k, (_, step) in enumerate(steps) if isinstance(step, NeighbourFeatures)), default=-1)
    if last < 0:
        return [], estimator
    if last == len(steps) - 1:
        raise ValueError("base is a pipeline that ends with NeighbourFeatures; let a regressor follow it.")
    first = steps[: last + 1] if fitted else [(name, clone(step)) for name, step in steps[: last + 1]]
    return first, Pipeline(steps[last + 1 :])


def joined_pipeline(first: Steps, regressor: Any) -> Any:
    """Return the pipeline that ``split_pipeline`` took apart."""
    return Pipeline([*first, *regressor.steps]) if first else regressor


def _transformed(step: Any, X: Any, graph: Graph, fit: bool = False) -> Any:
    if isinstance(step, str | None):  # "passthrough"
        return X
    known = {"graph": graph} if isinstance(step, NeighbourFeatures) else {}
    return (step.fit_transform if fit else step.transform)(X, **known)


def weight_argument(estimator: Any) -> str | None:
    """Return the name by which ``fit`` of a regressor or a pipeline takes weights; None where it takes none."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


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
