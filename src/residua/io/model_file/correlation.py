"""A fitted correlation in a model file: its numbers, and what it takes to rebuild its likelihood when asked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from residua.bases.base import mean_where
from residua.bases.trees.base import TreesBase
from residua.field import CorrelationFit
from residua.field.fitted import FittedField
from residua.field.kinds import LAPLACIAN, highest_degree
from residua.field.noise import Noise
from residua.field.observed import Observed
from residua.io.model_file.container import damaged
from residua.io.model_file.values import Arrays, Table, plain_or_none
from residua.linalg import Cholesky, Eigen, Lanczos, Strategy
from residua.validation import one_line

STRATEGIES: dict[str, type[Strategy]] = {kind.__name__: kind for kind in (Cholesky, Eigen, Lanczos)}
PRECISIONS = {"float32": np.float32, "float64": np.float64}
MAX_LOG_RATIO = 690.0  # of noise to the field: its exponential is a float, and so is its inverse
MAX_STEPS, MAX_PROBES = 4000, 512  # of a quadratic form and a log-determinant: further than any fit goes
SCALARS = ("beta", "beta_stderr", "log_likelihood", "p_value")
NOISE = ("noise_variance", "noise_stderr")  # where they were learned
LATER = {  # which files of version 0.1 do not have
    "restricted_log_likelihood": math.nan,
    "log_likelihood_mc_error": 0.0,
    "bartlett_factor": 1.0,
}


def pack_correlation(fit: CorrelationFit, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays["correlation.coefficients"] = fit.coefficients
    arrays["correlation.covariance"] = fit.coefficient_covariance
    return {
        **{name: getattr(fit, name) for name in (*SCALARS, *LATER, "alpha_mc_error", "n_labelled", "note")},
        "methods": dict(fit.methods),
        "effort": _pack_effort(fit.source, arrays) if isinstance(fit.source, Observed) else None,
        **({} if fit.noise_variance is None else {name: getattr(fit, name) for name in NOISE}),
    }


def unpack_correlation(table: Table, field: FittedField, arrays: Arrays) -> CorrelationFit:
    """Return the correlation of a file; ``field`` is all that the fit knows besides."""
    methods, n_labelled = table.need("methods", Table), table.need("n_labelled", int)
    if n_labelled != field.labelled.sum() or any(type(text) is not str for text in methods.values()):
        raise damaged("correlation does not fit the labels")
    design = field.base.design(field.X)
    columns, prior = 0 if design is None else design.shape[1], field.base.prior_variance
    effort = table.need("effort", Table, type(None))
    scalars = {name: table.number(name) for name in SCALARS}
    scalars |= {name: table.number(name) if name in table else default for name, default in LATER.items()}
    if not 1 <= scalars["bartlett_factor"] < math.inf:
        raise damaged(f"bartlett_factor is {scalars['bartlett_factor']}")
    # Files of version 0.1.0 hold a beta that is not corrected for the coefficients of the mean.
    factor = field.beta / scalars["beta"]
    scalars |= {name: table.number(name) for name in NOISE if name in table}
    return CorrelationFit(
        **scalars | {"beta": field.beta, "beta_stderr": scalars["beta_stderr"] * factor},
        alpha=dict(field.alpha),
        alpha_stderr=dict(field.alpha_stderr),
        n_labelled=n_labelled,
        alpha_mc_error=table.numbers("alpha_mc_error", field.graph.edge_types),
        methods=dict(methods),
        note=table.need("note", str) if "note" in table else "",
        highest_degree=highest_degree(field.graph) if field.kind == LAPLACIAN else None,
        coefficients=arrays.take("correlation.coefficients", (columns,)),
        coefficient_covariance=arrays.take("correlation.covariance", (columns, columns)) / factor,
        prior_variance=np.full(columns, np.inf) if prior is None else prior,
        source=None if effort is None else _unpack_effort(effort, field, design, "bartlett_factor" in table, arrays),
    )


def _unpack_effort(
    table: Table, field: FittedField, design: np.ndarray | None, restricted: bool, arrays: Arrays
) -> Observed:
    """Return what the correlation was learned from."""
    strategy = unpack_strategy(table.need("strategy", Table))
    steps, probes = (table.need(name, int, type(None)) for name in ("steps", "probes"))
    most = getattr(strategy, "probes", None) or MAX_PROBES
    if not 0 <= (steps or 0) <= MAX_STEPS or not 0 <= (probes or 0) <= most:
        raise damaged(f"effort is {one_line(table, 80)}")
    L = field.labelled
    values, Z = (_correlated(field), None) if design is None else (field.y[L], design[L])
    done = () if probes is None or not isinstance(strategy, Lanczos) else (probes, strategy.steps)
    groups = getattr(field.base, "groups", None)
    krylov = -1 if steps is None else steps
    seen = Observed(field.field_graph, L, values, Z, strategy, done, krylov, restricted, groups)
    if "log_noise_ratio" not in table:
        return seen
    learned, t = table.need("noise_learned", bool), table.number("log_noise_ratio")
    relative = arrays.take("correlation.noise", (int(L.sum()),))
    if not abs(t) < MAX_LOG_RATIO or (relative < 0).any():
        raise damaged(f"log_noise_ratio is {t}, or a variance is negative")
    return replace(seen, noise=Noise(relative, learned), t=t)


def _correlated(field: FittedField) -> np.ndarray:
    """Return the residuals (|L|,) whose correlation was learned: of boosters, out of fold."""
    members, unseen = field.outcome.members, field.outcome.out_of_sample
    if not isinstance(field.base, TreesBase) or members is None or unseen is None:
        return field.outcome.residual
    return mean_where(members, unseen)


def _pack_effort(seen: Observed, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    strategy, probes = seen.strategy, None  # probes and steps that it has come to
    if isinstance(strategy, Lanczos):
        probes, strategy = seen.effort[0], replace(strategy, steps=seen.effort[1])
    steps = None if seen.krylov_steps < 0 else seen.krylov_steps
    packed: dict[str, Any] = {"strategy": pack_strategy(strategy), "steps": steps, "probes": probes}
    if seen.noise is not None:
        arrays["correlation.noise"] = seen.noise.relative
        packed |= {"noise_learned": seen.noise.learned, "log_noise_ratio": seen.t}
    return packed


def pack_strategy(strategy: Strategy) -> dict[str, Any]:
    """Return a way to compute log-determinants, by its name and fields."""
    if type(strategy) not in STRATEGIES.values():
        raise ValueError(f'logdet={strategy!r:.80} cannot be saved; use "auto" or one of {", ".join(STRATEGIES)}.')
    values = {name: plain_or_none(value, f"logdet {name}") for name, value in vars(strategy).items() if name != "dtype"}
    dtype = {"dtype": np.dtype(strategy.dtype).name} if isinstance(strategy, Lanczos) else {}
    return {"strategy": type(strategy).__name__, **values, **dtype}


def unpack_strategy(table: Table) -> Strategy:
    fields = {name: value for name, value in table.items() if name not in ("strategy", "dtype")}
    if any(type(value) not in (int, bool, type(None)) or (value or 0) < 0 for value in fields.values()):
        raise damaged(f"logdet is {one_line(table, 80)}")
    if "dtype" in table:
        fields["dtype"] = PRECISIONS[table["dtype"]]
    return STRATEGIES[table["strategy"]](**fields)
