"""Methods against each other on labels that were held out: which base, and whether the neighbours help.

A split hides some of the known labels. "random" hides single nodes, which still have known neighbours; "blocked" hides
a connected ball of nodes, as when a whole region is to be predicted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from residua import metrics
from residua.bases.registry import BASES, COMPARED, NETWORKS, networks_installed
from residua.encoding import Encoding, needs_encoding
from residua.estimator import GraphRegressor
from residua.extras import how_to_install
from residua.field.kinds import check_field
from residua.graph import Graph
from residua.model_selection import SPLITS, held_out
from residua.validation import MIN_LABELS, check_choice, check_count, check_known_values, check_share, check_together

SETTINGS = {"plain": None, "propagated": "propagate", "learned": "learned"}
COVERAGE = 0.9


@dataclass(frozen=True)
class Score:
    """One method on the held-out labels of one split.

    Parameters
    ----------
    r2 : float
        Share of their variance that is explained.
    rmse : float
        Root mean squared error.
    coverage : float
        Share inside 90 % conformal intervals.
    width : float
        Mean width of those intervals.
    seconds : float
        Of fit and prediction.
    """

    r2: float
    rmse: float
    coverage: float
    width: float
    seconds: float


@dataclass(frozen=True)
class Row:
    """One method over all splits.

    Parameters
    ----------
    name : str
        How the table calls it.
    base : str
        Its base.
    correlation : {"learned", "propagate", None}
        Its correlation.
    scores : tuple of Score
        One for each split.
    failure : str, optional
        Why there are no scores.
    """

    name: str
    base: str
    correlation: str | None
    scores: tuple[Score, ...] = ()
    failure: str | None = None

    def mean(self, score: str) -> float:
        """Return the mean of a score over the splits; NaN where there are none."""
        return float(np.mean(self.values(score))) if self.scores else float("nan")

    def spread(self, score: str) -> float:
        """Return the standard deviation of a score over the splits; NaN for a single one."""
        return float(np.std(self.values(score), ddof=1)) if len(self.scores) > 1 else float("nan")

    def values(self, score: str) -> list[float]:
        """Return a score of each split."""
        return [getattr(one, score) for one in self.scores]


PROPAGATION = Row("label propagation", "mean", "propagate")  # of the labels themselves, around their mean


@dataclass(frozen=True)
class Comparison:
    """The table, and how it was made.

    Parameters
    ----------
    rows : list of Row
        The methods.
    split : {"random", "blocked"}
        How labels were held out.
    splits : int
        How often.
    n_labelled : int
        Known labels.
    n_held_out : int
        Labels held out of each split.
    skipped : tuple of str
        Bases that could not be tried, and why.
    notes : tuple of str
        Warnings of the fits.
    """

    rows: list[Row]
    split: str
    splits: int
    n_labelled: int
    n_held_out: int
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Row | None:
        """The method of the highest mean R2."""
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
    field: str = "normalised",
    random_state: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, of, name: None,
) -> Comparison:
    """Hold out known labels, fit every method to the others, and score it on those held out.

    Parameters
    ----------
    X : array of shape (n, d), DataFrame or None
        Features, as in ``GraphRegressor.fit``; None leaves label propagation and bases without features. Trees take
        missing values and text as they are; for the other bases empty cells take the column's median, and a column of
        text becomes one for each value.
    y : array or Series of shape (n,)
        Labels, NaN where unknown.
    graph : Graph
        The graph.
    bases : sequence of str
        Names of bases; each is tried plain, propagated and learned.
    splits : int
        How often labels are held out anew.
    split : {"random", "blocked"}
        Whether single nodes are held out, or a connected ball of nodes.
    share : float
        Share of the known labels that is held out.
    field : {"normalised", "laplacian", "auto"}
        Precision of the residuals, as in ``GraphRegressor``.
    random_state : int
        Seed of the splits and the fits.
    progress : callable
        Called with how many fits are done, of how many, and the name of the next one.

    Examples
    --------
    >>> import residua
    >>> from residua.comparison import compare
    >>> data = residua.datasets.load_elect80()
    >>> found = compare(data.X, data.y, data.graph, bases=["linear"], splits=1)
    >>> found.best.name
    'linear, learned'
    """
    check_choice(split, SPLITS, "split")
    check_count(splits, "splits", 1)
    check_count(random_state, "random_state", 0)
    check_share(share, "share")
    check_field(field, auto=True)
    for name in bases:
        check_choice(name, tuple(BASES), "bases")
    X, y = check_together(graph, X, y=y)
    y, known = check_known_values(y, graph, "y", least=2 * MIN_LABELS)
    possible, skipped = _possible(bases, X)
    masks = [held_out(graph, known, split, share, np.random.default_rng([random_state, k])) for k in range(splits)]
    numbers = Encoding.of(X).transform(X) if X is not None and needs_encoding(X) else X
    methods = _methods(possible)
    total = len(methods) * splits
    notes: dict[str, None] = {}

    def tried(method: Row, done: int) -> Row:
        """Return the method with its scores; it may fail, which is a result too."""
        scores: list[Score] = []
        for k, hidden in enumerate(masks):
            progress(done + k, total, method.name)
            with warnings.catch_warnings(record=True, action="always") as caught:
                try:
                    model = GraphRegressor(method.base, method.correlation, field=field, random_state=random_state)
                    table = X if BASES[method.base].tables else numbers
                    scores.append(score_hidden(model, table, y, graph, hidden))
                except ValueError as error:
                    return replace(method, failure=f"split {k + 1}: {error}")
            notes.update((str(warning.message), None) for warning in caught if k == 0)
        return replace(method, scores=tuple(scores))

    _warm_up(any(base in NETWORKS for base in possible))
    rows = [tried(method, k * splits) for k, method in enumerate(methods)]
    progress(total, total, "")
    return Comparison(rows, split, splits, int(known.sum()), int(masks[0].sum()), skipped, tuple(notes))


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
        skipped.append(f"{', '.join(absent)}: networks need PyTorch, which is not installed; {how_to_install('gnn')}.")
    blind = [name for name in kept if X is None and BASES[name].features and name not in absent]
    if blind:
        skipped.append(f"{', '.join(blind)}: there are no feature columns.")
    return [name for name in kept if name not in (*absent, *blind)], tuple(skipped)


def _methods(bases: Sequence[str]) -> list[Row]:
    rows = [Row(f"{base}, {name}", base, correlation) for base in bases for name, correlation in SETTINGS.items()]
    like = PROPAGATION.base, PROPAGATION.correlation
    return [PROPAGATION, *(row for row in rows if (row.base, row.correlation) != like)]


def score_hidden(model: GraphRegressor, X: Any, y: np.ndarray, graph: Graph, hidden: np.ndarray) -> Score:
    """Fit a model to the labels that are not hidden (n,), and score it at those that are."""
    begin = time.perf_counter()
    model.fit(X, np.where(hidden, np.nan, y), graph=graph)
    mean = model.predict()[hidden]
    lower, upper = (end[hidden] for end in model.predict_interval(coverage=COVERAGE))
    seconds = time.perf_counter() - begin
    truth = y[hidden]
    covered, width = metrics.coverage(truth, lower, upper), float(np.mean(upper - lower))
    return Score(metrics.r2(truth, mean), metrics.rmse(truth, mean), covered, width, seconds)
