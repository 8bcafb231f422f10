"""Methods against each other on labels that were held out: which base, and whether the neighbours help.

A split hides some of the known labels. "random" hides single nodes, which still have known neighbours; "blocked" hides
a connected ball of nodes, as when a whole region is to be predicted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from residua import metrics
from residua.bases.registry import BASES, COMPARED, NETWORKS, networks_installed
from residua.estimator import GraphRegressor
from residua.graph import Graph
from residua.validation import MIN_LABELS, check_choice, check_count, check_known_values, check_share

SETTINGS = {"plain": None, "propagated": "propagate", "learned": "learned"}
SPLITS = ("random", "blocked")
PROPAGATION = ("label propagation", "mean", "propagate")  # of the labels themselves, around their mean
COVERAGE = 0.9


@dataclass(frozen=True)
class Score:
    """One method on the held-out labels of one split."""

    r2: float
    rmse: float
    coverage: float  # of 90 % conformal intervals
    seconds: float


@dataclass(frozen=True)
class Row:
    """One method over all splits."""

    name: str
    base: str
    correlation: str | None
    scores: tuple[Score, ...] = ()
    failure: str | None = None  # why there are no scores

    def mean(self, score: str) -> float:
        return float(np.mean(self._values(score))) if self.scores else float("nan")

    def spread(self, score: str) -> float:
        """Standard deviation over the splits; NaN for a single one."""
        return float(np.std(self._values(score), ddof=1)) if len(self.scores) > 1 else float("nan")

    def _values(self, score: str) -> list[float]:
        return [getattr(one, score) for one in self.scores]


@dataclass(frozen=True)
class Comparison:
    """The table, and how it was made."""

    rows: list[Row]
    split: str
    splits: int
    n_labelled: int
    n_held_out: int  # labels of each split
    skipped: tuple[str, ...] = ()  # bases that could not be tried
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> Row | None:
        """The highest mean R2."""
        return max((row for row in self.rows if row.scores), key=lambda row: row.mean("r2"), default=None)


def compare(
    X: Any,
    y: Any,
    graph: Graph,
    *,
    bases: Sequence[str] = COMPARED,
    splits: int = 5,
    split: str = "random",
    share: float = 0.25,
    random_state: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, of, name: None,
) -> Comparison:
    """Hold out known labels, fit every method to the others, and score it on those held out.

    Parameters
    ----------
    X, y, graph : as in ``GraphRegressor.fit``; X None leaves label propagation and bases without features
    bases : names among ``BASES``; each is tried plain, propagated and learned
    splits : how often labels are held out anew
    split : "random", or "blocked" for a connected ball of nodes
    share : of the known labels that is held out
    random_state : seed of the splits and the fits
    progress : called with how many fits are done, of how many, and the name of the next one

    Examples
    --------
    >>> import residua
    >>> from residua.comparison import compare
    >>> data = residua.datasets.load_elect80()
    >>> found = compare(data.X, data.y, data.graph, bases=["linear"], splits=1)
    >>> found.best.name
    'linear, learned'
    """
    _check_settings(bases, splits, split, share, random_state)
    y, known = check_known_values(y, graph, "y", least=2 * MIN_LABELS)
    possible, skipped = _possible(bases, X)
    held = [held_out(graph, known, split, share, np.random.default_rng([random_state, k])) for k in range(splits)]
    methods = list(_methods(possible))
    rows: list[Row] = []
    notes: dict[str, None] = {}
    _warm_up(any(base in NETWORKS for base in possible))
    for k, (name, base, correlation) in enumerate(methods):
        trial = _Trial(name, base, correlation, random_state, X, y, graph)
        rows.append(trial.run(held, partial(_advance, progress, k * splits, len(methods) * splits, name)))
        notes |= dict.fromkeys(trial.notes)
    progress(len(methods) * splits, len(methods) * splits, "")
    return Comparison(rows, split, splits, int(known.sum()), int(held[0].sum()), skipped, tuple(notes))


def _check_settings(bases: Sequence[str], splits: int, split: str, share: float, random_state: int) -> None:
    check_choice(split, SPLITS, "split")
    check_count(splits, "splits", 1)
    check_count(random_state, "random_state", 0)
    check_share(share, "share")
    for name in bases:
        check_choice(name, tuple(BASES), "bases")


Progress = Callable[[int, int, str], None]


def _advance(progress: Progress, before: int, of: int, name: str, done: int) -> None:
    progress(before + done, of, name)


def _warm_up(networks: bool) -> None:
    """Load libraries and compiled code, which are no part of a method's time."""
    ring = Graph.from_edges(np.arange(9), (np.arange(9) + 1) % 9)
    GraphRegressor("mean").fit(None, np.arange(9.0) ** 2, graph=ring).predict_interval()
    if networks:
        import_module("residua.bases.networks.base")


def _possible(bases: Sequence[str], X: Any) -> tuple[list[str], tuple[str, ...]]:
    """Bases that can be fitted, and a line on those that cannot."""
    kept, skipped = list(dict.fromkeys(bases)), []
    absent = [name for name in kept if name in NETWORKS and not networks_installed()]
    if absent:
        skipped.append(f"{', '.join(absent)}: networks need PyTorch, which is not installed; install residua[gnn].")
    blind = [name for name in kept if X is None and BASES[name].features and name not in absent]
    if blind:
        skipped.append(f"{', '.join(blind)}: there are no feature columns.")
    return [name for name in kept if name not in (*absent, *blind)], tuple(skipped)


def _methods(bases: Sequence[str]) -> Iterator[tuple[str, str, str | None]]:
    yield PROPAGATION
    for base in bases:
        for setting, correlation in SETTINGS.items():
            if (base, correlation) != PROPAGATION[1:]:
                yield f"{base}, {setting}", base, correlation


@dataclass
class _Trial:
    """One method on every split; it may fail, which is a result too."""

    name: str
    base: str
    correlation: str | None
    random_state: int
    X: Any
    y: np.ndarray
    graph: Graph
    notes: list[str] = field(default_factory=list)

    def run(self, held: Sequence[np.ndarray], advance: Callable[[int], None]) -> Row:
        scores: list[Score] = []
        for k, hidden in enumerate(held):
            advance(k)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    scores.append(self._score(hidden))
                except ValueError as error:
                    return Row(self.name, self.base, self.correlation, failure=f"split {k + 1}: {error}")
            self.notes += [str(warning.message) for warning in caught if k == 0]
        return Row(self.name, self.base, self.correlation, tuple(scores))

    def _score(self, hidden: np.ndarray) -> Score:
        begin = time.perf_counter()
        model = GraphRegressor(self.base, self.correlation, random_state=self.random_state)
        model.fit(self.X, np.where(hidden, np.nan, self.y), graph=self.graph)
        mean = model.predict()[hidden]
        lower, upper = (end[hidden] for end in model.predict_interval(coverage=COVERAGE))
        seconds = time.perf_counter() - begin
        truth = self.y[hidden]
        return Score(metrics.r2(truth, mean), metrics.rmse(truth, mean), metrics.coverage(truth, lower, upper), seconds)


def held_out(graph: Graph, known: np.ndarray, split: str, share: float, rng: np.random.Generator) -> np.ndarray:
    """(n,) bool: known labels to hide, at least two, and enough left to learn from."""
    total = int(known.sum())
    count = min(max(round(share * total), 2), total - MIN_LABELS)
    order = rng.permutation(len(known)) if split == "random" else _ball(graph, known, count, rng)
    hidden = np.zeros(len(known), bool)
    hidden[order[known[order]][:count]] = True
    return hidden


def _ball(graph: Graph, known: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Nodes from some node outward, on to other components until ``count`` of them are known."""
    A = graph.adjacency()
    left, found = np.ones(graph.n_nodes, bool), 0
    parts: list[np.ndarray] = []
    for node in rng.permutation(graph.n_nodes):
        if found >= count:
            break
        if left[node]:
            alone = graph.degree[node] == 0
            ball = np.array([node]) if alone else breadth_first_order(A, node, False, return_predecessors=False)
            left[ball] = False
            found += int(known[ball].sum())
            parts.append(ball)
    return np.concatenate(parts)
