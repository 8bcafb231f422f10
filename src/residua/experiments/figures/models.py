"""The models behind the figures: the paper's networks by the authors' protocol, and what they say at every node."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from residua import GraphRegressor, propagate
from residua.experiments.figures.account import QUICK
from residua.experiments.runs import Record
from residua.graph import Graph

KINDS = {"MLP": "mlp", "GNN": "sage"}
STEPS = {"": 1500, QUICK: 20}
FINE_TUNING = {"": 500, QUICK: 10}


def trained(method: str, X: pd.DataFrame, y: np.ndarray, graph: Graph, seed: int, setting: str) -> GraphRegressor:
    """``method`` (GNN, MLP, C-GNN) trained on the labels y, NaN where unknown."""
    from residua import Network

    network = Network(KINDS[method.removeprefix("C-")], steps=STEPS[setting])
    correlation = "learned" if method.startswith("C-") else None
    return GraphRegressor(network, correlation, training="paper", random_state=seed).fit(X, y, graph=graph)


def base_of(model: GraphRegressor, X: pd.DataFrame, graph: Graph) -> np.ndarray:
    """The base prediction at every node, labelled or not."""
    found: np.ndarray = model.base_.predict(graph, X.to_numpy(dtype=float))
    return found


def propagated(values: np.ndarray, graph: Graph) -> np.ndarray:
    """Label propagation, 0 where no label reaches."""
    with no_word_of_islands():
        return propagate(values, graph, fallback=0.0)


@contextmanager
def no_word_of_islands() -> Iterator[None]:
    """A few counties have no neighbour, hence no label to propagate from: known, and not worth a line a seed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*components have no label")
        yield


def only(y: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Y at the positions ``where``, NaN elsewhere."""
    out = np.full(len(y), np.nan)
    out[where] = y[where]
    return out


def gather(records: list[Record], method: str, **task: Any) -> np.ndarray:
    """Scores of a method over the seeds, from the records whose task has these fields; (seeds, ...)."""
    found = [r for r in records if method in r.results and all(getattr(r.task, k) == v for k, v in task.items())]
    return np.array([record.results[method]["score"] for record in found])


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it is one."""
    return f"{number} {noun}{'s' * (number != 1)}"


def mean_and_spread(scores: np.ndarray) -> str:
    """A mean, and the standard deviation over seeds where there are several."""
    return f"{scores.mean():.3f} ± {scores.std(ddof=1):.3f}" if len(scores) > 1 else f"{scores.mean():.3f}"
