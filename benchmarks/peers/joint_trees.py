"""Joint trees against GPBoost, whose trees are boosted jointly too, with a Gaussian process over coordinates.

    y = F(x) + b(place) + noise,    b ~ Matern 3/2, Vecchia approximation with 20 neighbours      (GPBoost)

Settings of GPBoost's trees are chosen for each data set by cross-validation among the labels of a split that is not
scored; those of residua are the same for all data, chosen on other splits. The number of trees is chosen on each split
by four folds of its known labels, as residua's is by five. Its time is that of these folds and the final fit, without
the search of settings.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from benchmarks.peers.record import Cell, Part, Table
from benchmarks.peers.scores import COVERAGE, standardised
from benchmarks.peers.whole_fit import kilometres, process
from residua import metrics
from residua.datasets import Dataset
from residua.intervals import gaussian_width
from residua.reproduction.splits import random_split

TUNING = 500  # seed of the split that settings are chosen on
ROUNDS, PATIENCE, FOLDS = 500, 10, 4
GRID = tuple(
    dict(zip(("learning_rate", "num_leaves", "min_data_in_leaf"), values, strict=True))
    for values in ((0.1, 31, 20), (0.1, 8, 10), (0.05, 8, 10), (0.05, 8, 50), (0.05, 4, 20))
)


def places(data: Dataset) -> np.ndarray | None:
    """(n, 2) where nodes are, None if nobody says."""
    if "longitude" in data.nodes:
        return kilometres(data)
    if "x" in data.nodes:
        found = data.nodes[["x", "y"]].to_numpy(float)
        return (found - found.mean(axis=0)) / found.std()
    return None


def _fold_errors(X: np.ndarray, y: np.ndarray, at: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return the mean negative log-likelihood at the folds after each round."""
    import gpboost

    found = gpboost.cv(
        params={"verbose": 0, "num_threads": 1, **settings},
        train_set=gpboost.Dataset(X, y),
        gp_model=process(at),
        num_boost_round=ROUNDS,
        nfold=FOLDS,
        early_stopping_rounds=PATIENCE,
        seed=0,
        verbose_eval=False,
    )
    return np.asarray(found["test_neg_log_likelihood-mean"])


@cache
def chosen(name: str) -> dict[str, Any]:
    """Return the settings of ``GRID`` that are best on the tuning split of a data set, by its known labels alone."""
    from benchmarks.joint import loaded

    data = loaded(name)
    train = random_split(data.graph.n_nodes, TUNING).train
    X, y, at = data.X.to_numpy(float)[train], standardised(data.y, train)[train], places(data)
    assert at is not None
    return min(GRID, key=lambda settings: float(_fold_errors(X, y, at[train], settings).min()))


def score(name: str, data: Dataset, seed: int) -> list[float]:
    """Return the ``SCORES`` of ``benchmarks.joint`` on one split; there are no conformal intervals."""
    import gpboost

    settings, at = chosen(name), places(data)
    assert at is not None
    split = random_split(data.graph.n_nodes, seed)
    train, test = split.train, split.test
    X, y = data.X.to_numpy(float), standardised(data.y, train)
    begin = time.process_time()
    rounds = int(np.argmin(_fold_errors(X[train], y[train], at[train], settings))) + 1
    model = gpboost.train(
        params={"verbose": 0, "num_threads": 1, **settings},
        train_set=gpboost.Dataset(X[train], y[train]),
        gp_model=process(at[train]),
        num_boost_round=rounds,
    )
    found = model.predict(data=X[test], gp_coords_pred=at[test], predict_var=True, pred_latent=False)
    seconds = time.process_time() - begin
    unit = float(np.std(y[test]))
    truth, mean, std = y[test] / unit, found["response_mean"] / unit, np.sqrt(found["response_var"]) / unit
    margin = gaussian_width(COVERAGE) * std
    covered = metrics.coverage(truth, mean - margin, mean + margin)
    nll, crps = metrics.gaussian_nll(truth, mean, std), metrics.gaussian_crps(truth, mean, std)
    return [metrics.r2(truth, mean), covered, float("nan"), nll, crps, seconds]


def run(threads: int) -> Part:
    """Run what ``benchmarks.joint`` has no record of, and show its means."""
    from benchmarks import joint

    found = joint.collected(joint.SHOWN, joint.SETS, joint.SEEDS)
    joint.write_page(found)
    rows: list[dict[str, Cell]] = []
    for name in joint.SETS:
        seeds = found.seeds(name, joint.TREES, joint.GPBOOST)
        for method in (joint.TREES, joint.GPBOOST) if seeds else ():
            means = found.of(method, name, seeds).mean(axis=0)
            row: dict[str, Cell] = {"method": method, "data": name, "splits": len(seeds)}
            rows.append(row | dict(zip(joint.SCORES, map(float, means), strict=True)))
    question = "Trees boosted together with the correlation, over the edges of a graph or over coordinates; which?"
    remarks = ["Beside post hoc trees, on all data sets: docs/results/joint.md."]
    tables = [Table("means over the same splits", rows)]
    return Part("joint-trees", "Joint trees", question, ("gpboost",), tables, remarks)
