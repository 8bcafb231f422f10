"""How far "auto" is from the best of what it chooses from: a grid of graphs, each strategy forced, CPU seconds.

    python -m benchmarks.choices [--largest 100000] [--graphs "map;path"] [--write]

Log-determinants by Eigen, Cholesky and Lanczos, each with the quadratic form by recursion and by solves. A forced fit
has a process of its own, which ends at ten times what "auto" took: it is slower then, whatever it would have taken.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import residua
from benchmarks import records
from benchmarks.common import watts_strogatz
from benchmarks.people import hidden, joined, nearest
from residua.field import quadratic_form
from residua.graph import Graph

EIGEN_NODES = 3_000  # dense eigenvalues of more take minutes
ENDED_AT, AT_LEAST = 10, 3  # times what auto took, and seconds, after which a forced fit is ended
FORMS = {"recursion": np.inf, "solves": 0.0, "auto": quadratic_form.EVALUATIONS}  # what a further alpha is said to cost
Edges = tuple[np.ndarray, np.ndarray]


def _map(n: int, rng: np.random.Generator) -> Edges:
    at = np.arange(n // (side := int(n**0.5)) * side).reshape(-1, side)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    source, target = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    return source, target


def _power_law(n: int, rng: np.random.Generator) -> Edges:
    """Each node is joined to three older ones, drawn by their edges."""
    ends = np.empty(6 * n, np.int64)
    ends[:6] = 0, 1, 1, 2, 2, 0
    for node in range(3, n):
        filled = 6 * (node - 2)
        ends[filled : filled + 6 : 2], ends[filled + 1 : filled + 6 : 2] = node, ends[rng.integers(0, filled, 3)]
    pairs = np.unique(np.sort(ends[: 6 * (n - 2)].reshape(-1, 2), axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _stars(n: int, rng: np.random.Generator) -> Edges:
    leaves = np.setdiff1d(np.arange(n), np.arange(0, n, 100))
    return leaves, leaves // 100 * 100


def _components(n: int, rng: np.random.Generator) -> Edges:
    """Small worlds of fifty nodes."""
    source, target = watts_strogatz(50, 6)
    first = 50 * np.arange(n // 50)[:, None]
    return (first + source).ravel(), (first + target).ravel()


GRAPHS: dict[str, Callable[[int, np.random.Generator], Edges]] = {
    "map": _map,
    "small world": lambda n, rng: watts_strogatz(n),
    "power law": _power_law,
    "path": lambda n, rng: (np.arange(n - 1), np.arange(1, n)),
    "stars": _stars,
    "many components": _components,
}
WIDTHS = 19, 15, 11, 7, 11, 11, 6, 20  # of what is printed
NEAREST = "nearest neighbours"


class Case(NamedTuple):
    """A graph of n nodes, so many features and edge types."""

    graph: str
    n: int
    columns: int
    types: int

    def data(self) -> tuple[Graph, np.ndarray, np.ndarray]:
        """Return a graph, features and labels, of which 40 % are hidden; neighbours resemble each other."""
        rng = np.random.default_rng([self.n, self.columns, self.types])
        if self.graph == NEAREST:
            graph = nearest(rng.random((self.n, 2)))
            S = graph.operators["edge"].to_scipy().tocoo()
            once = S.row < S.col
            source, target = S.row[once], S.col[once]
        else:
            source, target = GRAPHS[self.graph](self.n, rng)
        kind = None if self.types == 1 else rng.integers(0, self.types, len(source))
        graph = joined(source, target, self.n, kind)
        X = rng.standard_normal((self.n, self.columns))
        field = noise = rng.standard_normal(self.n)
        for _ in range(40):
            noise = sum(S @ noise[:, None] for S in graph.operators.values())[:, 0]
            field = field + noise
        return graph, X, hidden(X.sum(axis=1) + field + 0.3 * rng.standard_normal(self.n))


def cases(largest: int, graphs: list[str]) -> Iterator[Case]:
    """Every graph at every size; few and many columns, and several types, where they are cheap enough to compare."""
    for name in graphs:
        for n in (size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= largest):
            yield Case(name, n, 10, 1)
            if n <= 10_000:
                yield from (Case(name, n, 1, 1), Case(name, n, 100, 1))
            if n <= 1_000:
                yield from (Case(name, n, 3, 2), Case(name, n, 3, 5))


def strategies(case: Case) -> dict[str, tuple[Any, str]]:
    """Return what can be forced, by name: a log-determinant and a quadratic form."""
    ratios = {"Cholesky": residua.Cholesky(), "Lanczos": residua.Lanczos()}
    if case.n <= EIGEN_NODES:
        ratios["Eigen"] = residua.Eigen()
    forms = ("recursion", "solves") if case.types == 1 else ("solves",)
    return {f"{ratio}, {form}": (ratios[ratio], form) for ratio in ratios for form in forms}


def seconds(data: tuple[Graph, np.ndarray, np.ndarray], logdet: Any, form: str, limit: float) -> float:
    """CPU seconds of a fit in a process of its own; infinite past ``limit``."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        warnings.simplefilter("ignore")
        quadratic_form.EVALUATIONS = FORMS[form]  # type: ignore[assignment]
        start = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(start + 3 * limit) + 1,) * 2)
        times = [_fit(data, logdet)]
        if times[0] < limit:  # once more: the first loads kernels
            times.append(_fit(data, logdet))
        sender.send(min(times))

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        taken = receiver.recv()
    except EOFError:  # ended at its limit
        taken = np.inf
    process.join()
    return taken if taken <= limit else np.inf


def warm_up() -> None:
    """Load every kernel before processes are forked, which then have them."""
    for types in (1, 2):
        case = Case("small world", 1_000, 2, types)
        data = case.data()
        for logdet, form in strategies(case).values():
            quadratic_form.EVALUATIONS = FORMS[form]  # type: ignore[assignment]
            _fit(data, logdet)
    quadratic_form.EVALUATIONS = FORMS["auto"]  # type: ignore[assignment]


def _fit(data: tuple[Graph, np.ndarray, np.ndarray], logdet: Any) -> float:
    graph, X, y = data
    start = time.process_time()
    residua.GraphRegressor("linear", logdet=logdet).fit(X, y, graph=graph)
    return time.process_time() - start


def measure(case: Case) -> dict[str, Any]:
    """Seconds of auto, and of everything that can be forced."""
    data = case.data()
    auto = seconds(data, "auto", "auto", 600.0)
    limit = max(ENDED_AT * auto, AT_LEAST)
    forced = {name: seconds(data, *pair, limit) for name, pair in strategies(case).items()}
    best = min(forced, key=lambda name: forced[name])
    found = {name: taken for name, taken in forced.items() if np.isfinite(taken)}
    # Auto itself is among what it is compared with: it may combine two, and a tie is noise.
    return {**case._asdict(), "auto": auto, "best": best, "ratio": auto / min(forced[best], auto), "forced": found}


def run(largest: int, graphs: list[str], write: bool = False, console: Console | None = None) -> list[dict[str, Any]]:
    console, found = console or Console(width=110), []
    warm_up()
    for case in cases(largest, graphs):
        row = measure(case)
        found.append(row)
        fastest = min(row["forced"].values(), default=row["auto"])
        cells = f"auto {row['auto']:.3f}", f"best {fastest:.3f}", f"{row['ratio']:.2f}", row["best"]
        about = case.graph, f"{case.n:,} nodes", f"{case.columns} columns", f"{case.types} types"
        console.print(
            *(f"{cell:<{width}}" for cell, width in zip((*about, *cells), WIDTHS, strict=True)), highlight=False
        )
    ratios = np.array([row["ratio"] for row in found])
    text = f"auto / best: {np.median(ratios):.2f} at the median, {ratios.max():.2f} at worst, of {len(found)} cases"
    console.print(text)
    if write:
        command = f"python -m benchmarks.choices --largest {largest} --write"
        header = ["graph", "nodes", "columns", "types", "auto (CPU s)", "best (CPU s)", "auto / best", "best by"]
        lines = [
            [
                *(row["graph"], f"{row['n']:,}", str(row["columns"]), str(row["types"]), f"{row['auto']:.3f}"),
                *(f"{min(row['forced'].values(), default=row['auto']):.3f}", f"{row['ratio']:.2f}", row["best"]),
            ]
            for row in found
        ]
        page = f"# What auto chooses\n\n`{command}`. {text}.\n\n{records.table(header, lines)}"
        records.write("choices", records.about(command) | {"cases": found}, page)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000, help="nodes; 1000000 takes an hour")
    parser.add_argument("--graphs", default=";".join([*GRAPHS, NEAREST]), help="names, separated by semicolons")
    parser.add_argument("--write", action="store_true", help="docs/results/choices.md and .json")
    given = parser.parse_args()
    run(given.largest, given.graphs.split(";"), given.write)
