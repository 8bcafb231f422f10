"""Labels drawn from the model itself, some of them hidden: how often intervals hold them, draw after draw.

Labels of one draw share what was fitted, so coverage is held to the spread between draws, which is never less than
that of independent labels.
"""

import time
from dataclasses import dataclass

import numpy as np

import dense
from graphs import Case, grid, small_world
from residua import GraphRegressor
from residua.diagnosis import LEVELS

KINDS = ("gaussian", "jackknife")
# alpha and beta are fitted and taken as known, which costs intervals this much at 180 labels.
PLUGGED_IN = 0.01
LEAST = 12  # draws, for a spread between them


def problem(rng: np.random.Generator, noise: str = "model") -> tuple[Case, np.ndarray, np.ndarray]:
    """A graph of 300 nodes, features and all labels: a linear mean plus residuals of the model, or with long tails."""
    seed, alpha = int(rng.integers(2**31)), rng.choice([-0.8, 0.0, 0.7, 0.95])
    case = grid(15, 20, 0.6, seed) if rng.random() < 0.5 else small_world(300, 6, share=0.6, seed=seed)
    X = rng.standard_normal((case.n, 2))
    S = np.stack([term.to_scipy().toarray() for term in case.graph.operators.values()])
    residual = dense.draw(S, np.array([alpha]), 2.0, rng)[0] if noise == "model" else rng.standard_t(2.5, case.n)
    return case, X, 1 + X @ [1.0, -2.0] + residual


def fitted(case: Case, X: np.ndarray, truth: np.ndarray) -> GraphRegressor:
    return GraphRegressor("linear").fit(X, np.where(case.labelled, truth, np.nan), graph=case.graph)


@dataclass
class Tally:
    """Hidden labels inside intervals, one row a draw."""

    inside: dict[tuple[str, float], list[int]]
    hidden: list[int]

    def add(self, model: GraphRegressor, truth: np.ndarray, stretch: float = 1.0) -> None:
        """Count what a model's intervals, ``stretch`` times as wide, hold."""
        unknown = np.isnan(model.y_)
        self.hidden.append(int(unknown.sum()))
        for kind, level in self.inside:
            lower, upper = (end[unknown] for end in model.predict_interval(coverage=level, method=kind))
            held = np.abs(truth[unknown] - (lower + upper) / 2) <= stretch * (upper - lower) / 2
            self.inside[kind, level].append(int(held.sum()))

    def coverage(self, kind: str, level: float) -> float:
        return sum(self.inside[kind, level]) / sum(self.hidden)

    def margin(self, kind: str, level: float) -> float:
        """Four standard errors of the coverage, over draws or of independent labels if that is more."""
        share = np.array(self.inside[kind, level]) / np.array(self.hidden)
        over_draws = share.std(ddof=1) / np.sqrt(len(share))
        return 4 * max(over_draws, np.sqrt(level * (1 - level) / sum(self.hidden)))

    def keeps(self, kind: str, level: float) -> bool:
        return abs(self.coverage(kind, level) - level) <= self.margin(kind, level)


def blank() -> Tally:
    return Tally({(kind, level): [] for kind in KINDS for level in LEVELS}, [])


def tally(draws: int, random_state: int, noise: str = "model", stretch: tuple[float, ...] = (1.0,)) -> list[Tally]:
    """A tally for each ``stretch``, all of the same draws."""
    rng, found = np.random.default_rng(random_state), [blank() for _ in stretch]
    for _ in range(draws):
        case, X, truth = problem(rng, noise)
        model = fitted(case, X, truth)
        for one, factor in zip(found, stretch, strict=True):
            one.add(model, truth, factor)
    return found


def soak(budget_seconds: float, random_state: int) -> dict[str, int]:
    """Draw, fit and count until the time is over; an assertion fails where intervals do not hold what they promise.

    The counts are of draws, of hidden labels, and of those inside each interval.
    """
    rng, found, end = np.random.default_rng(random_state), blank(), time.monotonic() + budget_seconds
    while len(found.hidden) < LEAST or time.monotonic() < end:
        case, X, truth = problem(rng)
        found.add(fitted(case, X, truth), truth)
    for kind, level in found.inside:
        share, margin = found.coverage(kind, level), max(found.margin(kind, level), PLUGGED_IN)
        told = f"{kind} {level:.0%} intervals hold {share:.2%} over {len(found.hidden)} draws, margin {margin:.2%}"
        assert abs(share - level) <= margin, told
    counts = {f"{kind} {level:.0%}": sum(inside) for (kind, level), inside in found.inside.items()}
    return {"draws": len(found.hidden), "labels": sum(found.hidden), **counts}
