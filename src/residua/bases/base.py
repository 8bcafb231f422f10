"""Base regressors: what the features say of a node, before its neighbours are asked.

A base sees the graph and the features of all nodes, learns from the labelled ones, and predicts every node. It
returns residuals fit to learn a correlation from: a flexible base gives out-of-fold ones, since
its in-sample residuals shrink to nothing. A linear base is fitted together with the correlation, by generalised
least squares, when it is handed a ``correlate`` function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from residua.graph import Graph


class Correlate(Protocol):
    """What a base is handed to fit itself together with the correlation."""

    def __call__(self, y: np.ndarray, design: np.ndarray | None = None, start: np.ndarray | None = None) -> Any:
        """The correlation of y (|L|,), and the coefficients of a linear mean; near arctanh(alpha) = ``start``."""

    def objective(self, labelled: np.ndarray) -> Any:
        """A training loss on the residuals at ``labelled``, a part of the labelled nodes."""

    def paper_objective(self, lbfgs: bool = False) -> Any:
        """The paper's own updates on all labelled nodes."""

    def at(self, y: np.ndarray, a: np.ndarray, beta: float) -> Any:
        """The correlation of y (|L|,) with alpha = tanh(a) and beta as a training left them."""


@dataclass(frozen=True)
class Task:
    """What there is to learn from."""

    graph: Graph
    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,), NaN where unknown
    labelled: np.ndarray  # (n,) bool
    folds: int
    random_state: int
    checkpoint: Any = None  # a file, or None


@dataclass(frozen=True)
class Outcome:
    """What a base leaves over at the labelled nodes."""

    residual: np.ndarray  # (|L|,) label minus base prediction, as corrections use it
    base_out_of_fold_error: (
        np.ndarray
    )  # (|L|,) out-of-sample error of the base on its own, without any correlation; NaN if not known
    correlation: Any = None  # of a base that was fitted together with it
    members: np.ndarray | None = None  # (members, |L|) residuals of each network of an ensemble
    out_of_sample: np.ndarray | None = None  # (members, |L|) bool: labels that it was not trained on

    @property
    def out_of_sample_residual(self) -> np.ndarray | None:
        """(|L|,) residuals at labels that a network was not trained on, NaN at others; None for other bases."""
        return (
            None if self.members is None or self.out_of_sample is None else mean_where(self.members, self.out_of_sample)
        )


def mean_where(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Means over rows of those ``chosen``, both (k, n); NaN where there are none."""
    count = chosen.sum(axis=0)
    return np.where(count > 0, (values * chosen).sum(axis=0) / np.maximum(count, 1), np.nan)


class Base(ABC):
    """A base regressor."""

    name: str

    @abstractmethod
    def fit(self, task: Task, correlate: Correlate | None) -> Outcome:
        """Learn from ``task``; together with the correlation where ``correlate`` is given and the base can."""

    @abstractmethod
    def predict(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """(n,) predictions for every node."""

    def predict_members(self, graph: Graph, X: np.ndarray) -> np.ndarray:
        """(members, n) predictions whose mean is ``predict``: of each network of an ensemble; else one."""
        return self.predict(graph, X)[None]

    def fine_tuned(self, task: Task, steps: int, learning_rate: float) -> Base:
        """A copy whose training has gone on with the labels of ``task``."""
        raise ValueError(f'base "{self.name}" cannot be fine-tuned, only networks can; fit it anew on the labels.')

    def design(self, X: np.ndarray) -> np.ndarray | None:
        """Columns of a mean linear in its coefficients; None for a base that is not."""
        return None


class LinearBase(Base):
    """``y = Z theta``: no column ("zero"), a constant ("mean"), or a constant and the features ("linear")."""

    def __init__(self, name: str):
        self.name = name
        self.coefficients = np.empty(0)

    def design(self, X: np.ndarray) -> np.ndarray:
        if self.name == "zero":
            return np.empty((len(X), 0))
        ones = np.ones((len(X), 1))
        return ones if self.name == "mean" else np.column_stack([ones, (X - self.centre) / self.spread])

    def fit(self, task, correlate):
        known = task.X[task.labelled]
        self.centre = known.mean(axis=0)
        spread = known.std(axis=0)
        self.spread = np.where(spread > 1e-12 * np.abs(self.centre), spread, 1.0)
        Z, y = self.design(task.X)[task.labelled], task.y[task.labelled]
        fit = correlate(y, Z) if correlate else None
        theta, _, rank, _ = np.linalg.lstsq(Z, y, rcond=1e-10)
        if rank >= len(y):
            raise ValueError(
                f"the mean fits all {len(y)} labels exactly with {Z.shape[1]} column(s), which leaves no residual to "
                "learn from: there are as many features as labels; use fewer, or a base such as Ridge."
            )
        self.coefficients = fit.coefficients if fit else theta
        return Outcome(y - Z @ self.coefficients, _left_out(y - Z @ theta, Z), fit)

    def predict(self, graph, X):
        return self.design(X) @ self.coefficients


def _left_out(residual: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Least-squares residuals with each label left out in turn, by the leverages of Z."""
    if not Z.shape[1]:
        return residual
    left, size, _ = np.linalg.svd(Z, full_matrices=False)
    leverage = (left[:, size > 1e-10 * size[0]] ** 2).sum(axis=1)
    return residual / np.maximum(1 - leverage, 1e-6)


class ScikitBase(Base):
    """Any scikit-learn regressor: fitted to all labels for prediction, to folds of them for the residuals."""

    def __init__(self, estimator: Any):
        self.estimator = estimator
        self.name = type(estimator).__name__

    def fit(self, task, correlate):
        X, y = task.X[task.labelled], task.y[task.labelled]
        rng = np.random.default_rng(task.random_state)
        folds = KFold(min(task.folds, len(y)), shuffle=True, random_state=task.random_state)
        residual = np.empty(len(y))
        for train, test in folds.split(X):
            residual[test] = y[test] - _seeded(self.estimator, rng).fit(X[train], y[train]).predict(X[test]).ravel()
        self.estimator = _seeded(self.estimator, rng).fit(X, y)
        return Outcome(residual, residual)

    def predict(self, graph, X):
        return np.asarray(self.estimator.predict(X), float).ravel()


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """A fresh copy whose unset random states come from ``rng``."""
    copy = clone(estimator)
    unset = [k for k, v in copy.get_params().items() if k.rsplit("__")[-1] == "random_state" and v is None]
    return copy.set_params(**{k: int(rng.integers(2**31 - 1)) for k in sorted(unset)})


LINEAR = ("zero", "mean", "linear")
NETWORKS = ("mlp", "hops", "gcn", "sage", "sage-gcn", "sage-max", "sage-pool")


def make_base(base: Any, training: str = "joint", ensemble: int = 1) -> Base:
    """The base named or given by ``base``."""
    if isinstance(base, str) and base in LINEAR:
        return LinearBase(base)
    if not isinstance(base, type):
        settings = type(base).__module__ == "residua.bases.networks.base"
        if settings or (isinstance(base, str) and base in NETWORKS) or hasattr(base, "state_dict"):
            return _make_network(base, training, ensemble)
        if all(hasattr(base, method) for method in ("fit", "predict", "get_params")):
            return ScikitBase(base)
    known = ", ".join(f'"{name}"' for name in (*LINEAR, *NETWORKS))
    raise ValueError(f"base={base!r} is unknown; use {known}, a scikit-learn regressor or a torch module.")


def _make_network(base: Any, training: str, ensemble: int) -> Base:
    try:
        from residua.bases.networks.base import Network, NetworkBase
    except ImportError as error:
        raise ImportError(
            f'base={base!r} needs PyTorch ({error}); pip install "residua[gnn]", or use base="linear", which does not.'
        ) from None
    return NetworkBase(base if isinstance(base, Network) else Network(base), training, ensemble)
