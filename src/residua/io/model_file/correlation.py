"""A fitted correlation in a model file: its numbers, and what it takes to rebuild its likelihood when asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from residua.bases.base import Base, Outcome
from residua.field import CorrelationFit, Likelihood
from residua.field.profile import MAX_PROBES, Profile
from residua.graph import Graph
from residua.io.model_file.container import damaged
from residua.io.model_file.values import (
    Arrays,
    Table,
    need,
    number,
    numbers,
    plain_or_none,
    read_number,
    read_numbers,
)
from residua.linalg import Cholesky, Eigen, Lanczos, Strategy
from residua.linalg.logdet.stochastic import StochasticRatio
from residua.validation import one_line

STRATEGIES: dict[str, type[Strategy]] = {kind.__name__: kind for kind in (Cholesky, Eigen, Lanczos)}
PRECISIONS = {"float32": np.float32, "float64": np.float64}
SCALARS = ("beta", "beta_stderr", "log_likelihood", "p_value")


def pack_correlation(fit: CorrelationFit, arrays: dict[str, np.ndarray]) -> Table:
    arrays["correlation.coefficients"] = fit.coefficients
    arrays["correlation.covariance"] = fit.coefficient_covariance
    return {
        **{name: number(getattr(fit, name)) for name in SCALARS},
        "alpha_mc_error": numbers(fit.alpha_mc_error),
        "n_labelled": fit.n_labelled,
        "methods": dict(fit.methods),
        "effort": None if fit.profile is None else _pack_effort(Effort.of(fit.profile)),
    }


def unpack_correlation(
    table: Table, alpha: dict[str, float], stderr: dict[str, float], seen: Seen, arrays: Arrays
) -> CorrelationFit:
    methods, n_labelled = need(table, "methods", dict), need(table, "n_labelled", int)
    if n_labelled != len(seen.y) or any(type(text) is not str for text in methods.values()):
        raise damaged("correlation does not fit the labels")
    columns = 0 if seen.design is None else seen.design.shape[1]
    effort = need(table, "effort", dict, type(None))
    return CorrelationFit(
        **{name: read_number(table.get(name)) for name in SCALARS},
        alpha=alpha,
        alpha_stderr=stderr,
        n_labelled=n_labelled,
        alpha_mc_error=read_numbers(table, "alpha_mc_error", seen.graph.edge_types),
        methods=methods,
        coefficients=arrays.take("correlation.coefficients", (columns,)),
        coefficient_covariance=arrays.take("correlation.covariance", (columns, columns)),
        profile=None if effort is None else cast(Profile, SavedProfile(seen, _unpack_effort(effort))),
    )


@dataclass(frozen=True, eq=False)
class Seen:
    """What a correlation was fitted to."""

    graph: Graph
    labelled: np.ndarray  # (n,) bool
    y: np.ndarray  # (|L|,)
    design: np.ndarray | None  # (|L|, c) of a linear base

    @classmethod
    def by(cls, base: Base, graph: Graph, X: np.ndarray, y: np.ndarray, outcome: Outcome) -> Seen:
        labelled, design = ~np.isnan(y), base.design(X)
        if design is None:
            return cls(graph, labelled, outcome.residual, None)
        return cls(graph, labelled, y[labelled], design[labelled])


@dataclass(frozen=True)
class Effort:
    """How far a fit went: its log-determinants, steps of its quadratic form (None: a solve each), probes."""

    strategy: Strategy
    steps: int | None
    probes: int | None

    @classmethod
    def of(cls, profile: Profile | SavedProfile) -> Effort:
        if isinstance(profile, SavedProfile):
            return profile.effort
        form, ratio = profile.form, profile.likelihood.ratio
        run = 0 if form.run is None else form.run.steps
        strategy, probes = profile.likelihood.strategy, None
        if isinstance(ratio, StochasticRatio):
            strategy, probes = replace(ratio.strategy, steps=ratio.steps), ratio.probes
        return cls(strategy, None if form.rule is None else run, probes)


@dataclass(frozen=True, eq=False)
class SavedProfile:
    """Stands for the ``Profile`` of a loaded fit, which is rebuilt when an interval first asks for it."""

    seen: Seen
    effort: Effort

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "profile":
            raise AttributeError(name)
        return getattr(self.profile, name)

    @cached_property
    def profile(self) -> Profile:
        """As the fit left it: just as many steps and probes give the same numbers."""
        likelihood = Likelihood(self.seen.graph, self.seen.labelled, self.effort.strategy)
        profile = Profile(likelihood, self.seen.y, self.seen.design)
        steps, probes = self.effort.steps, self.effort.probes or 0
        form, ratio = profile.form, likelihood.ratio
        if steps is None:
            form.rule = None
        while form.rule and form.run and form.run.steps < (steps or 0) and not form.run.exhausted:
            if len(form.rule.values) > 4 * form.MAX_SIZE:
                break  # further than any fit goes
            form.rule = form.run.more_steps(min(8, (steps or 0) - form.run.steps))
        if isinstance(ratio, StochasticRatio) and probes > ratio.probes:
            ratio.add_probes(probes)
        return profile


def _pack_effort(effort: Effort) -> Table:
    return {"strategy": pack_strategy(effort.strategy), "steps": effort.steps, "probes": effort.probes}


def _unpack_effort(table: Table) -> Effort:
    strategy = unpack_strategy(need(table, "strategy", dict))
    steps, probes = need(table, "steps", int, type(None)), need(table, "probes", int, type(None))
    if (steps or 0) < 0 or not 0 <= (probes or 0) <= (getattr(strategy, "probes", None) or MAX_PROBES):
        raise damaged(f"effort is {one_line(table, 80)}")
    return Effort(strategy, steps, probes)


def pack_strategy(strategy: Strategy) -> Table:
    """A way to compute log-determinants, by its name and fields."""
    if type(strategy) not in STRATEGIES.values():
        raise ValueError(
            f'logdet={one_line(repr(strategy), 80)} cannot be saved; use "auto" or one of {", ".join(STRATEGIES)}.'
        )
    fields = dict(vars(strategy))
    if "dtype" in fields:
        fields["dtype"] = np.dtype(fields["dtype"]).name
    values = {name: plain_or_none(value, f"logdet {name}") for name, value in fields.items()}
    return {"strategy": type(strategy).__name__, **values}


def unpack_strategy(table: Table) -> Strategy:
    fields = {name: value for name, value in table.items() if name not in ("strategy", "dtype")}
    if any(type(value) not in (int, bool, type(None)) or (value or 0) < 0 for value in fields.values()):
        raise damaged(f"logdet is {one_line(table, 80)}")
    if "dtype" in table:
        fields["dtype"] = PRECISIONS[table["dtype"]]
    return STRATEGIES[table["strategy"]](**fields)
