"""One data set, some labels known, the others asked for: the paper's methods by the authors' protocol.

    LP-X at U = X + propagated residuals of X at L;    C-X at U = X + conditional mean given those at L

L training nodes (60 %), U test nodes (20 %). The other 20 % of the labels are used for nothing, as in the authors'
code. X and LP-X share one training.
"""

from __future__ import annotations

import warnings

import numpy as np

from residua import GraphRegressor, propagate
from residua.datasets import Dataset
from residua.experiments import sets
from residua.experiments.runs import Task, Values
from residua.experiments.splits import Split

# Name of a base in the tables -> kind of network.
NETWORKS = {"MLP": "mlp", "GNN": "sage", "GCN": "gcn", "SAGE-max": "sage-max", "SAGE-pool": "sage-pool"}
QUICK = "quick"  # as Task.setting: twenty steps
STEPS = {QUICK: 20, "": 1500}


def training_of(method: str) -> str:
    """The training that answers for a method."""
    return method.removeprefix("LP-")


def work(task: Task) -> dict[str, Values]:
    """Train once; the results of every method that this training answers for."""
    data, split = sets.draw(task.dataset, task.seed, task.setting == QUICK)

    def result(prediction: np.ndarray) -> Values:
        return {"score": sets.score(task.dataset, data.y[split.test], prediction[split.test])}

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*components have no label")  # counties that are islands
        if task.method == "LP":
            return {"LP": result(propagate(split.known(data.y), data.graph, fallback=0.0))}
        model = _trained(task, data, split)
        if task.method.startswith("C-"):
            learned = {"alpha": list(model.alpha_.values()), "beta": model.beta_}
            return {task.method: result(model.predict()) | learned}
        base = model.base_.predict(data.graph, data.X.to_numpy(dtype=float))
        correction = propagate(split.known(data.y - base), data.graph, fallback=0.0)
    return {task.method: result(base), f"LP-{task.method}": result(base + correction)}


def _trained(task: Task, data: Dataset, split: Split) -> GraphRegressor:
    from residua import Network

    kind = NETWORKS[task.method.removeprefix("C-")]
    network = Network(kind, steps=STEPS[task.setting], lbfgs=task.dataset == "twitch")
    correlation = "learned" if task.method.startswith("C-") else None
    model = GraphRegressor(network, correlation, training="paper", random_state=task.seed)
    return model.fit(data.X, split.known(data.y), graph=data.graph)
