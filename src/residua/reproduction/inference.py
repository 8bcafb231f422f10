"""Do tests and intervals of alpha hold? False alarms on independent noise, coverage on labels of a known alpha.

    y = 1 + X 1 + r at the labels, features X and r ~ N(0, (I - alpha S)^-1) drawn anew for each seed, labels too

Beside the restricted likelihood, by which a model learns, stands the plain one, which takes the fitted coefficients for
known ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri

from residua import Graph, GraphRegressor
from residua.atomic import write_atomically
from residua.field.alpha_interval import profile_interval
from residua.field.conditional import Conditional
from residua.field.likelihood import Likelihood
from residua.field.profile import Profile
from residua.field.search import search
from residua.reproduction.provenance import footer
from residua.reproduction.registry import Options, Result, chosen
from residua.reproduction.runs import Advance, Record, Task, Values, run
from residua.reproduction.summary import markdown_table

BLOCK = 50  # seeds of one task
LEVEL = 0.05
METHODS = ("restricted", "plain")
HEAD = (
    *("graph", "labels", "features", "alpha", "data sets", "p < .05", "covered", "median width", "cannot tell"),
    *("neighbours help", "plain: p < .05", "plain: covered"),
)
NOTES = (
    "p < .05: share of data sets, in per cent, whose likelihood-ratio test finds a correlation at that level: false "
    "alarms where alpha is 0, power elsewhere. Covered: share of the 95 % intervals of alpha that hold its true value. "
    "Median width of the intervals, of 2 at most. Cannot tell: share of fits that say that the labels do not tell "
    "alpha, and keep it at 0. Neighbours help: share of fits of which diagnose() says so.",
    "plain: the same by the plain likelihood against chi-square, as residua did before; a fit that it refuses, since "
    "the likelihood is unbounded, counts as a false alarm that covers nothing.",
    "A test whose level is 5 % has at most 8 % of false alarms among 200 data sets in 98 of 100 such lines.",
)


class Scenario(NamedTuple):
    """A graph, how many of its nodes have a label, how many features there are, and the true alpha."""

    graph: str
    labels: int
    features: int
    alpha: float = 0.0

    @property
    def name(self) -> str:
        """How a task calls it."""
        return f"{self.graph}, {self.labels}, {self.features}, {self.alpha:g}"


def _grid(side: int) -> np.ndarray:
    at = np.arange(side * side).reshape(side, side)
    return np.concatenate([np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()], np.c_[at[:-1].ravel(), at[1:].ravel()]])


def _components(count: int, edges: Sequence[tuple[int, int]], size: int) -> np.ndarray:
    return (np.array(edges) + size * np.arange(count)[:, None, None]).reshape(-1, 2)


GRAPHS: dict[str, Callable[[], np.ndarray]] = {  # the ends of edges
    "grid 10 x 10": lambda: _grid(10),
    "grid 16 x 16": lambda: _grid(16),
    "ring of 50": lambda: np.c_[np.arange(50), (np.arange(50) + 1) % 50],
    "30 paths of four": lambda: _components(30, [(0, 1), (1, 2), (2, 3)], 4),
    "30 squares": lambda: _components(30, [(0, 1), (1, 2), (2, 3), (3, 0)], 4),
    "60 pairs": lambda: _components(60, [(0, 1)], 2),
}
NULL = (
    *(Scenario("grid 10 x 10", *size) for size in ((50, 1), (50, 10), (50, 25), (80, 40), (100, 50))),
    *(Scenario("grid 16 x 16", *size) for size in ((50, 1), (50, 25), (100, 50), (200, 1), (200, 100))),
    *(Scenario(name, 20, 5) for name in ("30 paths of four", "30 squares", "60 pairs")),
    Scenario("60 pairs", 20, 0),
    Scenario("ring of 50", 49, 40),
)
TRUE = tuple(
    Scenario(graph, labels, 2, alpha)
    for graph in ("grid 16 x 16", "30 paths of four", "60 pairs")
    for labels in (50, 20)
    for alpha in (0.9, 0.99, 0.999)
)
SCENARIOS = {scenario.name: scenario for scenario in (*NULL, *TRUE)}


def inference(options: Options, advance: Advance) -> Result:
    """Measure false alarms and coverage of alpha, on simulated data."""
    scenarios = (NULL[0], NULL[-2], TRUE[-1]) if options.quick else tuple(SCENARIOS.values())
    kept = chosen(options.datasets, tuple(GRAPHS), "datasets")
    todo = [
        Task("inference", scenario.name, "both", int(block[0]), f"{len(block)} seeds")
        for scenario in scenarios
        if scenario.graph in kept
        for block in _blocks(options.all_seeds)
    ]
    path, page = (options.folder / f"inference.{kind}" for kind in ("jsonl", "md"))
    body = summary(run(todo, work, path, jobs=options.jobs, advance=advance))
    title = "Do tests and intervals of alpha hold?" + " Smoke test" * options.quick
    markdown = "\n\n".join([f"# {title}", *tables(body), *NOTES, footer()]) + "\n"
    write_atomically(page, lambda file: file.write(markdown.encode()), "writing the account")
    return Result("inference", title, HEAD, [tuple(row) for row in body], markdown, [page, path], NOTES)


def _blocks(seeds: range) -> list[range]:
    return [seeds[k : k + BLOCK] for k in range(0, len(seeds), BLOCK)]


def work(task: Task) -> dict[str, Values]:
    """Fit the data sets of a block of seeds, by either likelihood."""
    scenario, count = SCENARIOS[task.dataset], int(task.setting.split()[0])
    found: list[dict[str, Values]] = []
    for seed in range(task.seed, task.seed + count):
        data = simulate(scenario, seed)
        found.append({"restricted": _restricted(*data), "plain": _plain(*data)})
    return {name: {key: [one[name][key] for one in found] for key in found[0][name]} for name in METHODS}


def simulate(scenario: Scenario, seed: int) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Draw features (n, d) and labels (n,), NaN where unknown, of a scenario's graph."""
    edges = GRAPHS[scenario.graph]()
    graph = Graph.from_edges(edges[:, 0], edges[:, 1], nodes=np.arange(edges.max() + 1))
    rng = np.random.default_rng([seed, scenario.labels, scenario.features, round(1000 * scenario.alpha)])
    n = graph.n_nodes
    X, nothing = rng.standard_normal((n, scenario.features)), np.zeros(n, bool)
    r = Conditional(graph, nothing, scenario.alpha).sample(1, rng)[0] if scenario.alpha else rng.standard_normal(n)
    y = np.full(n, np.nan)
    known = rng.choice(n, scenario.labels, replace=False)
    y[known] = (1 + X.sum(axis=1) + r)[known]
    return graph, X, y


def _restricted(graph: Graph, X: np.ndarray, y: np.ndarray) -> Values:
    """What a model says of alpha."""
    model = GraphRegressor("linear" if X.shape[1] else "mean")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*labels do not tell alpha")
        model.fit(X if X.shape[1] else None, y, graph=graph)
    diagnosis, fit = model.diagnose(), model.correlation_
    assert fit is not None
    low, high = diagnosis.alpha_interval["edge"]
    help_ = diagnosis.verdict.startswith("The neighbours help")
    return {**_rounded(fit.p_value, low, high), "untold": int(diagnosis.untold), "help": int(help_)}


def _plain(graph: Graph, X: np.ndarray, y: np.ndarray) -> Values:
    """What the plain likelihood says of it."""
    known = ~np.isnan(y)
    Z = np.column_stack([np.ones(len(y)), X])[known]
    profile = Profile(Likelihood(graph, known), y[known], Z, restricted=False)
    try:
        a, profile = search(profile)
        gain = profile.omega(np.zeros(1)) - profile.omega(a)
        low, high = profile_interval(profile, a, 0, float(chdtri(1, LEVEL)))
    except ValueError:  # the likelihood is unbounded
        return _rounded(0.0, 1.0, 1.0)
    return _rounded(float(chdtrc(1, max(gain, 0.0))), low, high)


def _rounded(p: float, low: float, high: float) -> Values:
    return {"p": float(f"{p:.3g}"), "low": round(low, 6), "high": round(high, 6)}


def joined(records: Sequence[Record]) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """What was found, by scenario, method and quantity, an array over seeds."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in records:
        for method, values in record.results.items():
            mine = found.setdefault(record.task.dataset, {}).setdefault(method, {})
            for key, numbers in values.items():
                mine.setdefault(key, []).extend(numbers)
    return {
        name: {method: {key: np.array(v) for key, v in values.items()} for method, values in methods.items()}
        for name, methods in found.items()
    }


def covered(values: dict[str, np.ndarray], alpha: float) -> np.ndarray:
    """(seeds,) bool: intervals that hold the true alpha."""
    return (values["low"] <= alpha) & (alpha <= values["high"])


def summary(records: Sequence[Record]) -> list[list[str]]:
    """One line for each scenario."""
    body = []
    for name, methods in joined(records).items():
        scenario, (ours, plain) = SCENARIOS[name], (methods[method] for method in METHODS)
        shares = [ours["p"] < LEVEL, covered(ours, scenario.alpha)]
        more = [ours["untold"], ours["help"], plain["p"] < LEVEL, covered(plain, scenario.alpha)]
        width = f"{np.median(ours['high'] - ours['low']):.3f}"
        cells = [*map(_per_cent, shares), width, *map(_per_cent, more)]
        facts = [scenario.graph, str(scenario.labels), str(scenario.features), f"{scenario.alpha:g}"]
        body.append([*facts, str(len(ours["p"])), *cells])
    return body


def _per_cent(found: np.ndarray) -> str:
    return f"{100 * np.mean(found):.1f}"


def tables(body: Sequence[Sequence[str]]) -> list[str]:
    """The tables in Markdown, each with its heading: of independent noise, and of a true correlation."""
    parts = []
    for heading, null in (("Independent noise", True), ("A true correlation", False)):
        lines = [row for row in body if (row[3] == "0") == null]
        parts += [f"## {heading}", markdown_table(HEAD, lines)] if lines else []
    return parts
