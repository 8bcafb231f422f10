"""beta from labels that networks had no part in learning from.

    beta = |V| / (c q_V),    q_V = r_L' Gbar_L r_L - r_T' Gbar_T r_T,    c = optimism * (1 - ambiguity) * tails

r residuals of one network at the labels L, T those that it learned from, V the others; Gbar_T is the precision at T
with all other nodes marginalised out, so q_V is the misfit of the residuals at V given those at T, and beta q_V is
chi-squared with |V| degrees of freedom. Residuals at T are too small: the network has followed their noise. Those at V
are too small by the optimism of early stopping, and too large for the average of several networks by its ambiguity: the
variance of their predictions around it over the mean squared error of one (Krogh and Vedelsby, 1995). Where errors have
longer tails than a Gaussian, the variance is mostly that of a few large ones, and intervals of 90 % are too wide; tails
goes half the way from the mean square of standardised errors to what their 90 % quantile says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from residua.field.conditional import Conditional
from residua.field.fitted import FittedField

# The variance of the estimated variance, relative to it, times the number of labels: 2 for independent Gaussian errors,
# about twice that for networks, whose errors are larger at some nodes and whose optimism is itself estimated.
RELATIVE_VARIANCE = 4.0
LEVEL = 0.9  # of the quantile that tails are told by
FEW = 20  # labels that tell tails half as well as many do
DRAWS = 16  # where variances are not exact: the shape of errors over them needs no more


def with_out_of_sample_beta(field: FittedField) -> FittedField:
    """Return the fitted field with beta from labels that its networks did not learn from, where there are such."""
    outcome: Any = field.outcome  # a dataclass, whatever base it is of
    if outcome.members is None or outcome.out_of_sample is None or not outcome.out_of_sample.any():
        return field
    count = int(outcome.out_of_sample.any(axis=0).sum())
    variance, error_scale = _unseen(field, outcome.members, outcome.out_of_sample)
    # An interval from a variance that is itself estimated has to be wider, or it covers too little on average.
    beta = 1 / (variance + RELATIVE_VARIANCE / count * max(variance, 1 / field.beta))
    fit = outcome.correlation
    if fit is not None:
        methods = fit.methods | {"beta": f"from {count:,} labels that a network did not learn from"}
        stderr = float(np.sqrt(RELATIVE_VARIANCE / count)) * beta
        outcome = replace(outcome, correlation=replace(fit, beta=beta, beta_stderr=stderr, methods=methods))
    return replace(field, beta=beta, outcome=outcome, error_scale=error_scale)


def _unseen(field: FittedField, members: np.ndarray, hidden: np.ndarray) -> tuple[float, float]:
    """Return 1 / beta and the root of c, as residuals ``members`` (k, |L|) at labels ``hidden`` (k, |L|) tell them."""
    known = Conditional(field.field_graph, field.labelled, field.alpha, draws=DRAWS, random_state=field.random_state)
    residual = np.full((field.graph.n_nodes, len(members)), np.nan)
    residual[known.L] = members.T
    full = known.conditional_mean(residual)
    pulled = known.G @ full
    misfit = known.rows.inner(full, pulled)
    degrees, square = np.zeros((2, len(members)))
    for k, V in enumerate(known.L[each] for each in hidden):
        given = Conditional(field.field_graph, _without(field.labelled, V), field.alpha)
        learned = given.conditional_mean(residual[:, k])
        misfit[k] -= given.rows.inner(learned[:, None], given.G @ learned[:, None])[0]
        degrees[k] = len(V) - _new_levels(known, given)
        square[k] = np.sum((residual[V, k] - learned[V]) ** 2)
    optimism = np.ones(len(members)) if field.outcome.optimism is None else field.outcome.optimism
    misfit = np.maximum(misfit, 0)  # of rounding
    ambiguity = _ambiguity(field, full.T, float(square @ optimism / hidden.sum()))
    spared = 1 - ambiguity
    # An error at a label that several members did not learn from is the mean of theirs, and spared some of it already.
    already = 1 - ambiguity * _share_of_ambiguity(hidden)
    mean_optimism = float(square @ optimism / square.sum()) if square.any() else 1.0
    variance = float(misfit @ optimism / max(degrees.sum(), 1))
    tails = _tails(known, pulled, hidden)
    return variance * spared * tails, float(np.sqrt(mean_optimism * spared / already))


def _share_of_ambiguity(hidden: np.ndarray) -> float:
    """Return how much of the ambiguity of all k members the average of those is spared that did not learn a label.

    (1 - 1/c) / (1 - 1/k) for c members: nothing for one, all for all.
    """
    k, counts = len(hidden), hidden.sum(axis=0)
    return float(np.mean(1 - 1 / counts[counts > 0])) / (1 - 1 / k) if k > 1 else 0.0


def _without(labelled: np.ndarray, V: np.ndarray) -> np.ndarray:
    rest = labelled.copy()
    rest[V] = False
    return rest


def _new_levels(known: Conditional, given: Conditional) -> int:
    """Return how many free levels of propagation, one a component, have labels among ``known`` but not ``given``."""
    if not known.improper:
        return 0
    return int(known.graph.count_components(known.labelled) - known.graph.count_components(given.labelled))


def _tails(known: Conditional, pulled: np.ndarray, hidden: np.ndarray) -> float:
    """Return what to multiply a variance by for intervals of ``LEVEL``; ``pulled`` (n, k) is G times the residuals."""
    precision = known.schur_diagonal
    safe = precision > 1e-9  # else the only label of its component
    errors = pulled[known.L] / np.sqrt(np.where(safe, precision, 1))[:, None]  # leave-one-out, of equal variance
    scores = np.abs(errors[hidden.T & safe[:, None]])
    size = float(np.sqrt(np.mean(scores**2))) if len(scores) else 0.0
    if not size > 0:
        return 1.0
    quantile = float(np.quantile(scores, LEVEL) / ndtri((1 + LEVEL) / 2))
    return float((quantile / size) ** (len(scores) / (len(scores) + FEW)))  # squared, and half the way


def _ambiguity(field: FittedField, corrections: np.ndarray, single: float) -> float:
    """Return the share of one network's squared error, ``single``, that the average of all of them is spared.

    ``corrections`` (k, n) are those of each network. At unlabelled nodes, which none has learned from.
    """
    count = len(corrections)
    if count == 1 or field.labelled.all() or not single > 0:
        return 0.0
    each = field.base.predict_members(field.graph, field.X) + corrections
    variance = each[:, ~field.labelled].var(axis=0).mean()
    return min(float(variance) / single, 1 - 1 / count)  # as far as independent errors go
