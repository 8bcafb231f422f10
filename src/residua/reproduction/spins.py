"""How well spins can be predicted at all: by the law that they were drawn from.

    P(s_i | labels) by the heat bath with every labelled spin clamped, coupling and field as they truly are

No method is right more often on average than the sign of these probabilities.
"""

from __future__ import annotations

import numpy as np

from residua.reproduction import sets
from residua.reproduction.datasets.ising import FIELD, draw_spins, local_field
from residua.reproduction.runs import QUICK, Task, Values
from residua.reproduction.splits import only
from residua.reproduction.summary import GIVEN_LATER

LAW = "the law itself"
CLAMPED = 40.0  # a field that no neighbours overrule


def work(task: Task) -> dict[str, Values]:
    """Score the law on the spins and the split of a seed, given the training labels, and the validation labels too."""
    data, split = sets.draw(task.dataset, task.seed, task.setting == QUICK)

    def score(known: np.ndarray) -> float:
        mean = mean_spins(known, sets.COUPLING[task.dataset], random_state=task.seed)
        return sets.score(task.dataset, data.y[split.test], mean[split.test])

    both = only(data.y, np.concatenate([split.train, split.validation]))
    return {LAW: {"score": score(split.known(data.y)), GIVEN_LATER: score(both)}}


def mean_spins(
    known: np.ndarray, coupling: float, field: float = FIELD, draws: int = 1000, sweeps: int = 40, random_state: int = 0
) -> np.ndarray:
    """Mean (size²,) of each spin of a square grid under its law, given the spins that ``known`` has (NaN elsewhere)."""
    size = round(len(known) ** 0.5)
    local = np.where(np.isnan(known), local_field(size, field).ravel(), CLAMPED * np.nan_to_num(known))
    grids = np.broadcast_to(local.reshape(size, size), (draws, size, size))
    return draw_spins(grids, coupling, sweeps, np.random.default_rng(random_state)).mean(axis=0).ravel()
