"""One fit by the settings of an estimator: check, fit the base, fit the correlation.

y = base(X) + r,    r ~ N(0, Gamma^-1)
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from residua.bases.base import Base, Task
from residua.bases.registry import make_base
from residua.field import Correlator
from residua.field.fitted import FittedField, design_of
from residua.field.fixed_beta import fixed_beta
from residua.field.kinds import AUTO, FIELDS, NORMALISED, check_field, field_graph
from residua.field.out_of_sample import with_out_of_sample_beta
from residua.graph import Graph
from residua.linalg import Strategy
from residua.validation import check_choice, check_count, check_known_values, check_validation

log = logging.getLogger(__name__)


class Settings(Protocol):
    """The parameters of ``GraphRegressor``."""

    base: Any
    correlation: str | None
    field: str
    training: str
    ensemble: int
    logdet: str | Strategy
    folds: int
    random_state: int
    checkpoint: str | os.PathLike[str] | None
    device: str
    spread: str


def check_parameters(model: Settings) -> Base:
    """Check the settings of a model, and return its base, which is not fitted yet."""
    check_choice(model.correlation, ("learned", "propagate", None), "correlation")
    check_field(model.field, auto=True)
    if model.field == AUTO and model.checkpoint is not None:
        raise ValueError('checkpoint is one file, and field="auto" trains for each field; name one, or leave it out.')
    check_count(model.folds, "folds", 2)
    check_count(model.random_state, "random_state", 0)
    check_choice(model.training, ("joint", "post-hoc", "paper"), "training")
    check_count(model.ensemble, "ensemble", 1)
    check_choice(model.spread, ("learned", "constant"), "spread")
    if not isinstance(model.logdet, str | Strategy):
        raise ValueError(f'logdet={model.logdet!r:.40} is unknown; use "auto", Eigen(), Cholesky() or Lanczos().')
    return make_base(model.base, model.training, model.ensemble, model.device)


class Data(NamedTuple):
    """A graph, checked features of its nodes with their names, labels, which errors call ``called``; how to train."""

    graph: Graph
    X: Any
    y: Any
    names: np.ndarray | None
    called: str = "y"
    validation: Any = None
    verbose: bool = False
    deadline: float = np.inf


def learn(model: Settings, base: Base, data: Data, shared: dict[bytes, Correlator]) -> FittedField:
    """Fit one target by the settings of a model; ``shared`` keeps what targets known at the same nodes share.

    Of the kinds of fields that there are to choose from, each has a base of its own, and that with the higher
    leave-one-out log score is returned.
    """
    if model.field != AUTO or model.correlation is None or len(data.graph.edge_types) > 1:
        kind = NORMALISED if model.field == AUTO else model.field
        return _learn(model, base, data, shared, kind)
    bases = [base, check_parameters(model)]
    tried = {kind: _learn(model, base, data, shared, kind) for kind, base in zip(FIELDS, bases, strict=True)}
    scores = {kind: field.prediction.log_score for kind, field in tried.items()}
    return replace(tried[max(scores, key=lambda kind: scores[kind])], log_scores=scores)


def _learn(model: Settings, base: Base, data: Data, shared: dict[bytes, Correlator], kind: str) -> FittedField:
    """Fit one target with a field of one kind."""
    begin, graph, X = time.perf_counter(), data.graph, data.X
    y, labelled = check_known_values(data.y, graph, data.called)
    if data.validation is not None and not base.stops_early:
        raise ValueError(f'base "{base.name}" has no training to stop early; leave validation out.')
    judges = None if data.validation is None else check_validation(data.validation, graph, labelled)
    task = Task(graph, X, y, labelled, model.folds, model.random_state, model.checkpoint, judges)
    task = replace(task, verbose=data.verbose, deadline=data.deadline)
    correlate = None
    if model.correlation == "learned":
        key = kind.encode() + labelled.tobytes()
        correlate = shared.get(key) or Correlator(graph, labelled, model.logdet, model.random_state, kind)
        shared[key] = correlate
    outcome = base.fit(task, correlate)
    fit = outcome.correlation
    if fit is not None:
        alpha, stderr, beta = fit.alpha, fit.alpha_stderr, fit.beta
    else:
        alpha, stderr = (dict.fromkeys(graph.edge_types, v) for v in (1.0 if model.correlation else 0.0, 0.0))
        beta = fixed_beta(outcome.residual, field_graph(graph, kind), y, alpha, design_of(base, X))
    options: Any = {"random_state": model.random_state, "kind": kind, "spread_setting": model.spread}
    field = FittedField(graph, X, y, base, outcome, alpha, stderr, beta, data.names, **options)
    field = with_out_of_sample_beta(field)
    log.info("fitted %s to %s: %r in %.3g s", type(model).__name__, data.called, field, time.perf_counter() - begin)
    for what, how in (field.correlation.methods if field.correlation else {}).items():
        log.debug("%s: %s", what, how)
    return field
