"""Labels of independent noise: how often tests and intervals of alpha find what is not there, draw after draw.

A test of 5 % finds a correlation in 5 % of the draws, up to four binomial standard deviations; where labels are few it
may find one less often, never more often.
"""

import time
import warnings

import numpy as np

from residua import Graph, GraphRegressor

LEVEL, LEAST = 0.05, 96  # draws


def graph(rng: np.random.Generator) -> Graph:
    """A grid, a ring, pairs or paths of four, of 50 to 260 nodes."""
    kind = rng.integers(4)
    if kind == 0:
        side = int(rng.integers(8, 17))
        at = np.arange(side * side).reshape(side, side)
        ends = np.concatenate([np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()], np.c_[at[:-1].ravel(), at[1:].ravel()]])
    else:
        n = 4 * int(rng.integers(13, 50))
        at = np.arange(n)
        cut = {1: at < n, 2: at % 2 == 0, 3: at % 4 < 3}[int(kind)]
        ends = np.c_[at, (at + 1) % n][cut]
    return Graph.from_edges(ends[:, 0], ends[:, 1], nodes=np.arange(ends.max() + 1))


def draw(rng: np.random.Generator) -> tuple[Graph, np.ndarray, np.ndarray]:
    """A graph, up to half as many features as labels, beside them columns that add nothing, and labels of noise."""
    world = graph(rng)
    n = world.n_nodes
    labels = int(rng.integers(20, min(n, 200)))
    X = rng.standard_normal((n, int(rng.integers(0, labels // 2))))
    X = np.column_stack([X, np.zeros((n, rng.integers(3))), np.ones((n, rng.integers(3))), X[:, : rng.integers(3)]])
    y = np.full(n, np.nan)
    y[rng.choice(n, labels, replace=False)] = rng.standard_normal(labels) * 10.0 ** rng.integers(-6, 7)
    return world, X, y


def fitted(world: Graph, X: np.ndarray, y: np.ndarray) -> GraphRegressor:
    model = GraphRegressor("linear" if X.shape[1] else "mean")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*labels do not tell alpha")
        return model.fit(X if X.shape[1] else None, y, graph=world)


def soak(budget_seconds: float, random_state: int) -> dict[str, int]:
    """Draw and fit until the time is over; an assertion fails where noise is taken for correlation too often.

    The counts are of draws, of false alarms, of intervals that miss 0, of verdicts that the neighbours help, and of
    fits that say that the labels do not tell alpha.
    """
    rng, end = np.random.default_rng(random_state), time.monotonic() + budget_seconds
    counts = dict.fromkeys(("draws", "false alarms", "missed", "help", "untold"), 0)
    while counts["draws"] < LEAST or time.monotonic() < end:
        model = fitted(*draw(rng))
        told = model.diagnose()
        low, high = told.alpha_interval["edge"]
        counts["draws"] += 1
        counts["false alarms"] += told.p_value < LEVEL
        counts["missed"] += not low <= 0 <= high
        counts["help"] += told.verdict.startswith("The neighbours help")
        counts["untold"] += told.untold
        assert not (told.untold and model.alpha_["edge"]), "alpha is not told, and not kept at 0"
        assert "No correction was asked for" not in told.verdict, told.verdict
    most = most_expected(counts["draws"])
    for what in ("false alarms", "missed", "help"):
        assert counts[what] <= most, f"{what} in {counts[what]} of {counts['draws']} draws of noise, {most:.0f} at most"
    return {name: int(count) for name, count in counts.items()}


def most_expected(draws: int) -> float:
    """Return how many draws a test of 5 % may take for correlation: its mean and four standard deviations."""
    return LEVEL * draws + 4 * np.sqrt(LEVEL * (1 - LEVEL) * draws)
