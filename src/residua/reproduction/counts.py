"""Counts as rates with noise of known variance, beside a Poisson model that knows the truth.

    c_i ~ Poisson(E_i exp(mu + f_i)),   f ~ N(0, (beta (I - alpha S))^-1),   E from 3 to 30,000
    y_i = a transform of c_i / E_i,   y_i = g_i + eps_i,   var eps_i known from E_i or c_i

A linear model of y with ``noise_variance`` learns alpha and beta. The Poisson model is given mu, alpha and beta; its
posterior is approximated at its mode (Laplace). Both predict rates and counts of counties without a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri, xlogy

from residua import Graph, GraphRegressor
from residua.atomic import write_atomically
from residua.datasets import load_elect80
from residua.field.conditional import Conditional
from residua.linalg.factor import Factor
from residua.reproduction.provenance import footer
from residua.reproduction.registry import Options, Result
from residua.reproduction.runs import Advance, Record, Task, Values, run
from residua.reproduction.summary import markdown_table

ALPHA, SPREAD, LEVEL = 0.99, 0.4, -0.1  # of the field: alpha, standard deviation, and mu
EXPECTED = 3.0, 30_000.0
SMALL, LARGE = 30.0, 3_000.0  # expected counts below and above which coverage is shown
KNOWN = 0.6  # share of labels
COVERAGE = 0.9
QUICK_NODES = 300
STEPS = 50  # of Newton's method


class Counts(NamedTuple):
    """One simulated map."""

    graph: Graph
    beta: float
    expected: np.ndarray  # (n,)
    rate: np.ndarray  # (n,) true
    cases: np.ndarray  # (n,)
    known: np.ndarray  # (n,) bool


class Forecast(NamedTuple):
    """What a model says of each node: its mean rate, and the ends of an interval for its rate."""

    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Transform(NamedTuple):
    """Counts on a scale where their noise has a known variance, and the way back to rates."""

    label: Callable[[np.ndarray, np.ndarray], np.ndarray]
    variance: Callable[[np.ndarray, np.ndarray], np.ndarray]
    rate: Callable[[np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray, np.ndarray], np.ndarray]  # rate, of a Gaussian mean and standard deviation


def _log_label(c: np.ndarray, E: np.ndarray) -> np.ndarray:
    return np.log((c + 0.5) / E)


def _log_variance(c: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Return 1 over what is expected at the rate of all: by its own count, one low by chance would count less."""
    known = np.isfinite(c)
    return 1 / (E * (c[known].sum() / E[known].sum()))


ROOT: dict[str, Any] = {
    "variance": lambda c, E: 1 / E,
    "rate": lambda z: np.maximum(z, 0.0) ** 2 / 4,
    "mean": lambda m, s: (m**2 + s**2) / 4,
}
TRANSFORMS = {
    "square root": Transform(lambda c, E: 2 * np.sqrt((c + 0.25) / E), **ROOT),
    "Freeman-Tukey": Transform(lambda c, E: np.sqrt(c / E) + np.sqrt((c + 1) / E), **ROOT),
    "log": Transform(_log_label, _log_variance, np.exp, lambda m, s: np.exp(m + s**2 / 2)),
}
POISSON = "Poisson, mu, alpha and beta known"
WITHOUT = ", without variances"
METHODS = (POISSON, *TRANSFORMS, *(name + WITHOUT for name in TRANSFORMS))
HEAD = (
    *("model", "deviance", "ratio", "ratio, small", "covered, small", "covered, large", "covered, all"),
    *("width, small", "width, large", "R2 of log rates, small", "R2, large"),
)
NOTES = (
    f"{KNOWN:.0%} of the counts are known. Deviance: mean Poisson deviance of the other counties' counts under the "
    "predicted mean rate; ratio: over that of the Poisson model. Covered: share, in per cent, of the true rates of "
    f"these counties inside their {COVERAGE:.0%} intervals, where {SMALL:g} cases or fewer are expected (small), "
    f"{LARGE:,.0f} or more (large). Width: mean length of the intervals, in log rate.",
    "Without variances each label counts as if it were exact: the intervals are those of labels, the same for a county "
    "of three cases and one of thirty thousand.",
)


def counts(options: Options, advance: Advance) -> Result:
    """Measure deviance and coverage on simulated counts."""
    todo = [Task("counts", "elect80 map", "all", seed, options.setting) for seed in options.all_seeds]
    path, page = (options.folder / f"counts.{kind}" for kind in ("jsonl", "md"))
    body = summary(run(todo, work, path, jobs=options.jobs, advance=advance))
    title = "Counts of populations from small to large" + " (smoke test)" * options.quick
    setting = f"Simulated on the map of 3,107 counties, {options.mean_of}."
    markdown = "\n\n".join([f"# {title}", setting, markdown_table(HEAD, body), *NOTES, footer()]) + "\n"
    write_atomically(page, lambda file: file.write(markdown.encode()), "writing the account")
    return Result("counts", title, HEAD, [tuple(row) for row in body], markdown, [page, path], NOTES)


def work(task: Task) -> dict[str, Values]:
    """Simulate one map and score every model on it."""
    data = simulate(task.seed, QUICK_NODES if task.setting else None)
    return {name: scored(data, forecast(data, name)) for name in METHODS}


def simulate(seed: int, nodes: int | None = None) -> Counts:
    """Draw populations, rates and counts; of the first ``nodes`` of the map only, where that is given."""
    graph = load_elect80().graph
    if nodes is not None:
        graph = Graph.from_scipy(graph.adjacency()[:nodes, :nodes])
    rng, n = np.random.default_rng([seed, 18]), graph.n_nodes
    unlabelled = Conditional(graph, np.zeros(n, bool), ALPHA)
    beta = float(np.mean(unlabelled.variance().value)) / SPREAD**2
    f = unlabelled.sample(1, rng)[0] / np.sqrt(beta)
    low, high = np.log(EXPECTED)
    expected = np.exp(rng.uniform(low, high, n))
    rate = np.exp(LEVEL + f)
    return Counts(graph, beta, expected, rate, rng.poisson(expected * rate).astype(float), rng.random(n) < KNOWN)


def forecast(data: Counts, name: str) -> Forecast:
    """Return what a model of this name says."""
    if name == POISSON:
        return _poisson(data)
    transform = TRANSFORMS[name.removesuffix(WITHOUT)]
    c = np.where(data.known, data.cases, np.nan)
    noise = None if name.endswith(WITHOUT) else transform.variance(c, data.expected)
    model = GraphRegressor("mean").fit(None, transform.label(c, data.expected), graph=data.graph, noise_variance=noise)
    mean, std = model.predict(return_std=True)
    ends = model.predict_interval(coverage=COVERAGE)
    return Forecast(transform.mean(mean, std), *(transform.rate(end) for end in ends))


def _poisson(data: Counts) -> Forecast:
    """Return Laplace's approximation to the posterior of the true model."""
    S = next(iter(data.graph.operators.values())).to_scipy()
    Q = data.beta * (sp.eye_array(S.shape[0]) - ALPHA * S)
    c, weight = np.where(data.known, data.cases, 0.0), np.where(data.known, data.expected, 0.0)
    # From the observed rates: where populations are large, steps from zero overshoot.
    f = np.where(data.known, np.log((data.cases + 0.5) / data.expected) - LEVEL, 0.0)
    for _ in range(STEPS):
        rate = weight * np.exp(LEVEL + f)
        factor = Factor(sp.csc_array(Q + sp.diags_array(rate)))
        step = factor.solve(c - rate - Q @ f)
        f = f + step
        if np.abs(step).max() < 1e-9:
            break
    variance = factor.inverse.diagonal()
    centre, margin = LEVEL + f, ndtri((1 + COVERAGE) / 2) * np.sqrt(variance)
    return Forecast(np.exp(centre + variance / 2), np.exp(centre - margin), np.exp(centre + margin))


def scored(data: Counts, found: Forecast) -> Values:
    """Return scores at the counties without a label."""
    hidden = ~data.known
    c, mean = data.cases[hidden], np.maximum((data.expected * found.mean)[hidden], 1e-12)
    deviance = 2 * (xlogy(c, c / mean) - (c - mean))
    inside = ((found.lower <= data.rate) & (data.rate <= found.upper))[hidden]
    floor = 1e-3  # of a rate, whose logarithm is to be had
    width = np.log(np.maximum(found.upper, floor) / np.maximum(found.lower, floor))[hidden]
    truth, log_mean = np.log(data.rate)[hidden], np.log(np.maximum(found.mean, floor))[hidden]
    out = {"deviance": float(deviance.mean()), "inside": float(inside.mean())}
    parts = {"small": data.expected[hidden] <= SMALL, "large": data.expected[hidden] >= LARGE}
    for name, part in parts.items():
        error = np.sum((truth - log_mean)[part] ** 2) / np.sum((truth - truth.mean())[part] ** 2)
        out |= {f"inside {name}": float(inside[part].mean()), f"width {name}": float(width[part].mean())}
        out |= {f"r2 {name}": float(1 - error), f"deviance {name}": float(deviance[part].mean())}
    return {key: float(f"{value:.6g}") for key, value in out.items()}


def summary(records: Sequence[Record]) -> list[list[str]]:
    """One line for each model, means over maps."""

    def mean(name: str, key: str) -> float:
        return float(np.mean([record.results[name][key] for record in records]))

    body = []
    for name in METHODS:
        ratios = [f"{mean(name, key) / mean(POISSON, key):.3f}" for key in ("deviance", "deviance small")]
        shares = [f"{100 * mean(name, key):.1f}" for key in ("inside small", "inside large", "inside")]
        rest = [f"{mean(name, key):.3f}" for key in ("width small", "width large", "r2 small", "r2 large")]
        body.append([name, f"{mean(name, 'deviance'):.1f}", *ratios, *shares, *rest])
    return body
