"""One fit by the settings of an estimator: check, fit the base, fit the correlation.

y = base(X) + r,    r ~ N(0, Gamma^-1)
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from residua.bases.base import Base, Outcome, Task
from residua.bases.registry import find_base, make_base
from residua.field import CorrelationFit, Correlator
from residua.field.fitted import FittedField, design_of
from residua.field.fixed_beta import fixed_beta
from residua.field.kinds import AUTO, FIELDS, NORMALISED, check_field, field_graph
from residua.field.noise import Noise
from residua.field.out_of_sample import with_out_of_sample_beta
from residua.graph import Graph
from residua.linalg import Strategy
from residua.targets import read_targets
from residua.validation import (
    check_choice,
    check_count,
    check_fitted,
    check_known_values,
    check_noise,
    check_together,
    check_validation,
)

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
    """A graph, checked features of its nodes with their names, labels, which errors call ``called``; how to train.

    At the end weights of the labels, and the variances of their noise.
    """

    graph: Graph
    X: Any
    y: Any
    names: np.ndarray | None
    called: str = "y"
    validation: Any = None
    verbose: bool = False
    deadline: float = np.inf
    weight: Any = None
    noise: Any = None


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
    noise = _noise(model, data, labelled)
    correlate = None
    if model.correlation == "learned":
        key = kind.encode() + labelled.tobytes()
        key += b"" if noise is None else noise.relative.tobytes() + bytes([noise.learned])
        correlate = shared.get(key) or Correlator(graph, labelled, model.logdet, model.random_state, kind, noise)
        shared[key] = correlate
    outcome = base.fit(task, correlate)
    fit = outcome.correlation
    if fit is not None:
        alpha, stderr, beta = fit.alpha, fit.alpha_stderr, fit.beta
    else:
        alpha, stderr = (dict.fromkeys(graph.edge_types, v) for v in (1.0 if model.correlation else 0.0, 0.0))
        beta = fixed_beta(outcome.residual, field_graph(graph, kind), y, alpha, design_of(base, X))
    variances = None if noise is None else _variances(noise, fit, labelled)
    options: Any = {"random_state": model.random_state, "kind": kind, "spread_setting": model.spread}
    field = FittedField(graph, X, y, base, outcome, alpha, stderr, beta, data.names, **options, noise=variances)
    field = with_out_of_sample_beta(field)
    log.info("fitted %s to %s: %r in %.3g s", type(model).__name__, data.called, field, time.perf_counter() - begin)
    for what, how in (field.correlation.methods if field.correlation else {}).items():
        log.debug("%s: %s", what, how)
    return field


def _noise(model: Settings, data: Data, labelled: np.ndarray) -> Noise | None:
    """Return what is known of the noise of the labels; None for labels without."""
    found = check_noise(data.weight, data.noise, data.graph, labelled, data.called[1:])
    if found is None or not np.nanmax(found[0]) > 0:
        return None
    given = "sample_weight" if data.weight is not None else "noise_variance"
    if model.correlation != "learned":
        raise ValueError(
            f'{given} needs correlation="learned", and correlation is {model.correlation!r}: without a field that '
            "neighbours share there is nothing to tell noise from."
        )
    if model.spread != "constant":
        raise ValueError(
            f'{given} and spread={model.spread!r} both say where errors are larger; use spread="constant" with noise.'
        )
    kind = find_base(model.base).kind
    if kind == "linear" or (kind == "regressor" and model.training == "post-hoc"):
        return Noise(found[0][labelled], found[1])
    remedy = 'training="post-hoc"' if kind == "regressor" else 'a linear base ("linear", "splines", "mean")'
    more = "" if kind == "regressor" else ', or a scikit-learn regressor with training="post-hoc"'
    raise ValueError(f"{given} is not known to the training of base {model.base!r:.60}; use {remedy}{more}.")


def _variances(noise: Noise, fit: CorrelationFit | None, labelled: np.ndarray) -> np.ndarray | None:
    """Return the noise variances (n,) of the labels, NaN elsewhere; None where the labels have none."""
    factor = fit.noise_variance if fit is not None and noise.learned else 1.0
    if not factor:
        return None
    out = np.full(len(labelled), np.nan)
    out[labelled] = factor * noise.relative
    return out


def fine_tuned(
    model: Settings, field: FittedField, X: Any, y: Any, graph: Any, steps: int, learning_rate: float
) -> FittedField:
    """Return the field of networks that have gone on learning from the labels y (n,) of another graph.

    Parameters
    ----------
    model : GraphRegressor
        The model.
    field : FittedField
        What it has fitted.
    X, y, graph : array, array, Graph
        Features of the other graph, its known labels, NaN where unknown, and the graph.
    steps : int
        Steps of Adam.
    learning_rate : float
        Learning rate of Adam.
    """
    check_count(steps, "steps", 1)
    X, y = check_together(graph, X, y=y)
    graph, X = field.check_alike(graph, X)
    y, labelled = check_known_values(y, graph, "y")
    base = field.base.fine_tuned(Task(graph, X, y, labelled, model.folds, field.random_state), steps, learning_rate)
    members = (y - base.predict_members(graph, X))[:, labelled]
    unknown, in_sample = np.full(labelled.sum(), np.nan), np.zeros(members.shape, bool)
    alpha, beta = field.alpha_and_beta_on(graph)
    stderr = {t: field.alpha_stderr[t] for t in graph.edge_types}
    outcome: Outcome = Outcome(members.mean(axis=0), unknown, members=members, out_of_sample=in_sample)
    options: Any = {"random_state": field.random_state, "kind": field.kind, "spread_setting": model.spread}
    return FittedField(graph, X, y, base, outcome, alpha, stderr, beta, field.feature_names, **options)


def features_as_given(field: FittedField) -> Any:
    """Return the features of a fit as another fit takes them: named where they were, None where there were none."""
    if not field.n_features:
        return None
    named = isinstance(field.X, np.ndarray) and field.feature_names is not None
    return pd.DataFrame(field.X, columns=field.feature_names) if named else field.X


def field_attribute(name: str, missing: str = "") -> Any:
    """Return a property of a model that reads the attribute of this name of its fitted field."""

    def read(model: Any) -> Any:
        if model.targets_ is not None:
            return read_targets(model.targets_, name)
        check_fitted(model)
        value = getattr(model.field_, name)
        if value is None and missing:
            raise AttributeError(missing)
        return dict(value) if isinstance(value, Mapping) else value

    return property(read)
