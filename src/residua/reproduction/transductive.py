"""One data set, some labels known, the others asked for: the paper's methods by the authors' protocol.

    LP-X at U = X + propagated residuals of X at L;    C-X at U = X + conditional mean given those at L

L training nodes (60 %), U test nodes (20 %). The other 20 % of the labels are used for nothing, as in the authors'
code. X and LP-X share one training.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from residua import GraphRegressor, propagate
from residua.datasets import Dataset
from residua.graph import Graph
from residua.reproduction import sets
from residua.reproduction.runs import QUICK, Task, Values
from residua.reproduction.splits import Split

# Name of a base in the tables -> kind of network. The authors' GCN is GraphSAGE's, not that of Kipf and Welling.
NETWORKS = {"MLP": "mlp", "GNN": "sage", "GCN": "sage-gcn", "SAGE-max": "sage-max", "SAGE-pool": "sage-pool"}
STEPS = {QUICK: 20, "": 1500}  # by Task.setting


def training_of(method: str) -> str:
    """The training that answers for a method."""
    return method.removeprefix("LP-")


def work(task: Task) -> dict[str, Values]:
    """Train once, and return the results of every method that this training answers for."""
    data, split = sets.draw(task.dataset, task.seed, task.setting == QUICK)
    return measure(task, data, split, partial(sets.score, task.dataset))


@sets.no_word_of_islands()
def measure(
    task: Task, data: Dataset, split: Split, score: Callable[[np.ndarray, np.ndarray], float]
) -> dict[str, Values]:
    """Do the same for a data set and a split that the task does not name."""

    def result(prediction: np.ndarray) -> Values:
        return {"score": score(data.y[split.test], prediction[split.test])}

    known = split.known(data.y)
    if task.method == "LP":
        return {"LP": result(propagated(known, data.graph))}
    model = trained_for(task, task.method, data, split)
    if task.method.startswith("C-"):
        learned = {"alpha": list(model.alpha_.values()), "beta": model.beta_}
        return {task.method: result(model.predict()) | learned}
    base = base_of(model, data.X, data.graph)
    correction = propagated(split.known(data.y - base), data.graph)
    return {task.method: result(base), f"LP-{task.method}": result(base + correction)}


def trained_for(task: Task, method: str, data: Dataset, split: Split) -> GraphRegressor:
    """Return ``method`` trained on the training labels of a split, as the authors do on that data set."""
    lbfgs = task.dataset == "twitch"
    return trained(method, data.X, split.known(data.y), data.graph, task.seed, task.setting, lbfgs=lbfgs)


def trained(
    method: str, X: pd.DataFrame, y: np.ndarray, graph: Graph, seed: int, setting: str, lbfgs: bool = False
) -> GraphRegressor:
    """Return ``method`` (GNN, MLP, C-GNN, ...) trained by the authors' protocol on the labels y, NaN where unknown."""
    from residua import Network

    network = Network(NETWORKS[method.removeprefix("C-")], steps=STEPS[setting], lbfgs=lbfgs)
    correlation = "learned" if method.startswith("C-") else None
    return GraphRegressor(network, correlation, training="paper", random_state=seed).fit(X, y, graph=graph)


def base_of(model: GraphRegressor, X: pd.DataFrame, graph: Graph) -> np.ndarray:
    """The base prediction at every node, labelled or not."""
    found: np.ndarray = model.base_.predict(graph, X.to_numpy(dtype=float))
    return found


def propagated(values: np.ndarray, graph: Graph) -> np.ndarray:
    """Propagate labels; 0 where no label reaches."""
    return propagate(values, graph, fallback=0.0)
