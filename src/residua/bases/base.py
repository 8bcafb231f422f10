"""What a base regressor is: the features' word on a node, before its neighbours are asked.

    y = base(X) + r,    r the residual that neighbours share

A base sees the graph and the features of all nodes, learns from the labelled ones, and predicts every node. It leaves
residuals from which a correlation can be learned: a flexible base gives out-of-fold ones, since its in-sample residuals
shrink to nothing. A linear base and a network may fit themselves together with the correlation. What they ask of it is
written down here as protocols, so that bases know nothing of the field and the field nothing of bases.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from residua.graph import Graph
from residua.linalg.rows import LOCAL, Rows

State = dict[str, np.ndarray]  # of a training, by name: enough to go on from


class Resumable(Protocol):
    """What a checkpoint can keep."""

    def state(self) -> State:
        """Return what a later training has to know to go on as this one would have."""

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from ``state``."""


class TrainingLoss(Resumable, Protocol):
    """A loss of the residuals r (k,) at the labels that a network learns from.

    Attributes
    ----------
    alpha : ndarray of shape (edge types,)
        Correlation of the residuals that the loss holds them to; empty for none.
    """

    alpha: np.ndarray

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient (k,)."""

    def slope(self, at: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the gradient at the labels numbered ``at``, whose residuals are now r; others are as in ``loss``."""

    def correction(self) -> np.ndarray:
        """Return what the residuals of the last ``loss`` say of each node (n,)."""

    def refit(self, r: np.ndarray) -> None:
        """Bring the correlation up to date with r."""


class BatchLoss(Resumable, Protocol):
    """The paper's loss: mini-batches of labels for the network, all labels for the correlation.

    Attributes
    ----------
    a : ndarray of shape (edge types,)
        arctanh of alpha.
    b : float
        Logarithm of beta.
    """

    a: np.ndarray
    b: float

    def batch_slope(self, batch: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the gradient (k,) at the nodes ``batch`` (k,), whose residuals are r (k,)."""

    def update(self, r: np.ndarray) -> None:
        """Move alpha and beta, given residuals r at all labels."""


class FoldFields(Protocol):
    """Fields of the residuals of k models at once, each of which knows other labels; they share alpha.

    Attributes
    ----------
    alpha : ndarray of shape (edge types,)
        Correlation of the residuals; empty for none.
    known : ndarray of bool, shape (n, k)
        The labels that each model knows.
    """

    alpha: np.ndarray
    known: np.ndarray

    def set_alpha(self, alpha: np.ndarray) -> None:
        """Go over to another alpha (edge types,)."""

    def complete(self, R: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        """Fill columns R (n, k) with conditional means where they are not known (n, k); return G times them."""

    def precisions(self) -> np.ndarray:
        """Return diag(Gbar) (n, k): what the others leave of the precision of each known residual; 0 elsewhere."""

    def grams(self, group: np.ndarray, groups: int) -> np.ndarray:
        """Return ``C' G C`` (k, groups, groups), C the indicators of the groups (n, k) of nodes."""


class FittedCorrelation(Protocol):
    """What a base reads of a correlation that was fitted together with it.

    Attributes
    ----------
    coefficients : ndarray of shape (columns,)
        Those of the linear mean, by generalised least squares.
    prior_variance : ndarray of shape (columns,)
        What was learned of their prior: infinite for a coefficient without one.
    """

    @property
    def coefficients(self) -> np.ndarray: ...

    @property
    def prior_variance(self) -> np.ndarray: ...


Fit = TypeVar("Fit", bound=FittedCorrelation)
Fit_co = TypeVar("Fit_co", bound=FittedCorrelation, covariant=True)


class CorrelationModel(Protocol[Fit_co]):
    """What a base asks of the model of its residuals' correlation, to fit itself together with it."""

    def __call__(
        self,
        y: np.ndarray,
        design: np.ndarray | None = None,
        start: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> Fit_co:
        """Fit the correlation of y (|L|,) around a linear mean, near arctanh(alpha) = ``start`` where that is given.

        Coefficients of a group above 0 share a prior variance, which is learned too.
        """

    def objective(self, labelled: np.ndarray) -> TrainingLoss:
        """Return a training loss on the residuals at ``labelled``, a part of the labelled nodes."""

    def paper_objective(self, lbfgs: bool = False) -> BatchLoss:
        """Return the paper's own updates on all labelled nodes."""

    def fold_fields(self, known: np.ndarray) -> FoldFields:
        """Return the fields of models that know the labels ``known`` (n, k) each, alpha 0 to begin with."""

    def rough_alpha(self, r: np.ndarray) -> np.ndarray:
        """Return the likeliest alpha (edge types,) of residuals r (|L|,) around a level, for the way of a training."""

    def at(self, y: np.ndarray, a: np.ndarray, beta: float) -> Fit_co:
        """Return the correlation of y (|L|,) with alpha = tanh(a) and beta as a training left them."""


@dataclass(frozen=True)
class Task:
    """What there is to learn from.

    Parameters
    ----------
    graph : Graph
        All nodes, labelled or not.
    X : ndarray of shape (n, d)
        Their features; for a base that takes tables, a DataFrame or a sparse matrix where one was given.
    y : ndarray of shape (n,)
        Their labels, NaN where unknown.
    labelled : ndarray of shape (n,)
        True where the label is known.
    folds : int
        Folds of a cross-fitting.
    random_state : int
        Seed of everything random.
    checkpoint : path or None
        File in which a training is kept.
    validation : ndarray of bool, shape (n,), optional
        Labels that no training learns from and all stop on.
    verbose : bool
        Whether to print how a training goes.
    deadline : float, optional
        CPU second of this process at which a training ends with the best that it has.
    """

    graph: Graph
    X: Any
    y: np.ndarray
    labelled: np.ndarray
    folds: int
    random_state: int
    checkpoint: str | os.PathLike[str] | None = None
    validation: np.ndarray | None = None
    verbose: bool = False
    deadline: float = np.inf

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.process_time() > self.deadline

    @property
    def labels(self) -> np.ndarray:
        """The positions (|L|,) of the labelled nodes."""
        return np.flatnonzero(self.labelled)


@dataclass(frozen=True)
class Outcome(Generic[Fit_co]):
    """What a base leaves over at the labelled nodes.

    Parameters
    ----------
    residual : ndarray of shape (|L|,)
        Label minus base prediction, as corrections use it.
    base_out_of_fold_error : ndarray of shape (|L|,)
        Out-of-sample error of the base without any correlation; NaN where it is not known.
    correlation : CorrelationFit or None
        The correlation of the residuals, where one was asked for.
    members : ndarray of shape (members, |L|), optional
        Residuals of each network of an ensemble.
    out_of_sample : ndarray of shape (members, |L|), optional
        True at labels that the member was not trained on.
    optimism : ndarray of shape (members,), optional
        How many times the squared errors at those labels are larger where they had no say in when to stop a training;
        not kept in model files.
    history : tuple of dict
        How a training went: its step or round, the error that it is stopped on, and what else there is to tell;
        not kept in model files.
    """

    residual: np.ndarray
    base_out_of_fold_error: np.ndarray
    correlation: Fit_co | None = None
    members: np.ndarray | None = None
    out_of_sample: np.ndarray | None = None
    optimism: np.ndarray | None = None
    history: tuple[dict[str, Any], ...] = ()


def mean_where(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the means over rows of those ``chosen``, both (k, n); NaN where there are none."""
    count = chosen.sum(axis=0)
    return np.where(count > 0, (values * chosen).sum(axis=0) / np.maximum(count, 1), np.nan)


def standardisation(values: np.ndarray, rows: Rows = LOCAL, constant: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of columns over all rows; ``constant`` where one is constant to rounding.

    They are computed in units of a power of two, which changes no digit: squares of 1e155 or 1e-200 are no floats.
    """
    count = rows.sum(len(values))
    power = np.frexp(rows.max(np.abs(values).max(axis=0, initial=0.0)))[1]
    if (power >= np.finfo(float).maxexp - 1).any():
        raise ValueError("X has numbers near 1e308, whose differences are no floats; divide its columns by 1000.")
    values = np.ldexp(values, -power)
    centre = rows.sum(values.sum(axis=0)) / count
    spread = np.sqrt(rows.sum(((values - centre) ** 2).sum(axis=0)) / count)
    spread = np.ldexp(np.where(spread > 4e-15 * np.abs(centre), spread, 0.0), power)
    return np.ldexp(centre, power), np.where(spread > 0, spread, constant)


class Base(ABC):
    """A base regressor.

    Attributes
    ----------
    name : str
        How it is called in tables and messages.
    stops_early : bool
        Whether its training is stopped by errors at labels that it did not learn from.
    takes_tables : bool
        Whether it takes a table as it is given: a DataFrame with text, dates and missing values, a sparse matrix.
    coefficients : ndarray of shape (columns,)
        Those of a mean that is linear in them; empty for any other base.
    prior_variance : ndarray of shape (columns,) or None
        Of those coefficients, in units of 1 / beta: infinite for one without a prior; None where none has one.
    """

    name: str
    stops_early: bool = False
    takes_tables: bool = False
    coefficients: np.ndarray = np.empty(0)
    prior_variance: np.ndarray | None = None

    def fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        """Learn from ``task``, and leave residuals with their correlation where a model of it is given.

        A base that fits itself together with the correlation brings it along; for any other it is fitted here, to the
        residuals.
        """
        outcome = self._fit(task, correlation)
        if correlation is None or outcome.correlation is not None:
            return outcome
        return replace(outcome, correlation=correlation(outcome.residual))

    @abstractmethod
    def _fit(self, task: Task, correlation: CorrelationModel[Fit] | None) -> Outcome[Fit]:
        """Learn from ``task``; together with the correlation, if it is given and the base can."""

    @abstractmethod
    def predict(self, graph: Graph, X: Any) -> np.ndarray:
        """Return predictions (n,) for every node."""

    def predict_members(self, graph: Graph, X: Any) -> np.ndarray:
        """Return predictions (members, n) whose mean is ``predict``: of each network of an ensemble, else one."""
        return self.predict(graph, X)[None]

    def fine_tuned(self, task: Task, steps: int, learning_rate: float) -> Base:
        """Return a copy whose training has gone on with the labels of ``task``."""
        raise ValueError(f'base "{self.name}" cannot be fine-tuned, only networks can; fit it anew on the labels.')

    def design(self, X: Any) -> np.ndarray | None:
        """Return the columns (n, c) of a mean that is linear in its coefficients; None for any other base."""
        return None

    def contributions(self, X: Any) -> np.ndarray | None:
        """Return what each feature adds to the predictions of the rows of X, (n, d); None for a base that cannot say.

        The rows' average prediction and what their features add make up their predictions.
        """
        return None
