"""A whole fit and its predictions against GPBoost: a Gaussian process over coordinates beside one over edges.

    y = F(x) + b(place) + noise,    b ~ Matern 3/2, Vecchia approximation with 20 neighbours      (GPBoost)

On a map both apply: GPBoost sees where a county lies, residua what it touches. F is linear, or boosted trees with the
settings that each library comes with; GPBoost's number of trees is chosen by cross-validation among the training
nodes. Test nodes choose nothing.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.peers.clock import now
from benchmarks.peers.record import Cell, Part, Table, installed
from benchmarks.peers.scores import averaged, maps, scores, standardised
from benchmarks.peers.size import QUICK
from residua import GraphRegressor
from residua.datasets import Dataset
from residua.reproduction.splits import Split, random_split

PEERS = ("gpboost",)
SPLITS = 1 if QUICK else 3
EARTH = 6.371  # radius in thousand kilometres
TREES = {"verbose": 0}  # each library as it comes


def kilometres(data: Dataset) -> np.ndarray:
    """(n, 2) places on a flat map, in thousands of kilometres."""
    degrees = np.radians(data.nodes[["longitude", "latitude"]].to_numpy(float))
    return EARTH * degrees * [np.cos(degrees[:, 1].mean()), 1.0]


def residua_fit(base):
    def fit(X, y, places, data: Dataset, split: Split, threads: int):
        model = GraphRegressor(base).fit(X, split.known(y), graph=data.graph)
        mean, std = model.predict(return_std=True)
        return mean[split.test], std[split.test]

    return fit


def process(places: np.ndarray):
    import gpboost

    return gpboost.GPModel(
        gp_coords=places,
        cov_function="matern",
        cov_fct_shape=1.5,
        gp_approx="vecchia",
        num_neighbors=20,
        likelihood="gaussian",
    )


def gpboost_linear(X, y, places, data, split, threads):
    train, test = split.train, split.test
    Z = np.column_stack([np.ones(len(X)), X])
    model = process(places[train])
    model.fit(y=y[train], X=Z[train])
    found = model.predict(gp_coords_pred=places[test], X_pred=Z[test], predict_var=True, predict_response=True)
    return found["mu"], np.sqrt(found["var"])


def gpboost_trees(X, y, places, data, split, threads):
    import gpboost

    train, test = split.train, split.test
    settings = {**TREES, "num_threads": threads}
    known = gpboost.Dataset(X[train], y[train])
    path = gpboost.cv(
        params=settings,
        train_set=known,
        gp_model=process(places[train]),
        num_boost_round=200,
        nfold=4,
        early_stopping_rounds=5,
        seed=0,
        verbose_eval=False,
    )["test_neg_log_likelihood-mean"]
    rounds = int(np.argmin(path)) + 1
    model = gpboost.train(
        params=settings,
        train_set=gpboost.Dataset(X[train], y[train]),
        gp_model=process(places[train]),
        num_boost_round=rounds,
    )
    found = model.predict(data=X[test], gp_coords_pred=places[test], predict_var=True, pred_latent=False)
    return found["response_mean"], np.sqrt(found["response_var"])


METHODS = {
    "residua, linear": (None, residua_fit("linear")),
    "GPBoost, linear": ("gpboost", gpboost_linear),
    "residua, boosted trees": (None, residua_fit(HistGradientBoostingRegressor(random_state=0))),
    "GPBoost, boosted trees": ("gpboost", gpboost_trees),
    "residua, hops (its default)": (None, residua_fit("hops")),
}


def score(method, data: Dataset, seed: int, threads: int) -> dict[str, float]:
    """Scores at the test nodes of one split, y in its own standard deviations, and seconds of fit and prediction."""
    split = random_split(data.graph.n_nodes, seed)
    X = standardised(data.X.to_numpy(float), split.train)
    y = standardised(data.y, split.train)
    places = kilometres(data)
    begin = now()
    mean, std = method(X, y, places, data, split, threads)
    return {**scores(y[split.test], mean, std), "seconds": now() - begin}


def methods():
    return {name: method for name, (peer, method) in METHODS.items() if peer is None or installed(peer)}


def run(threads: int) -> Part:
    data = maps(("election",) if QUICK else ("election", "income"))
    for one in data:  # weights or none: each kind of graph is compiled for
        for method in (residua_fit("linear"), residua_fit("hops")):
            score(method, one, 99, threads)
    rows: list[dict[str, Cell]] = []
    for one in data:
        for name, method in methods().items():
            found = averaged(score(method, one, seed, threads) for seed in range(SPLITS))
            rows.append({"map": one.name, "method": name, **found})
    tables = [Table(f"Means over {SPLITS} splits: 60 % known, 20 % tested", rows)]
    return Part(
        "whole-fit",
        "4. Whole fit against a Gaussian process over coordinates",
        "County maps, cut to the counties whose coordinates are known. y is standardised by the training nodes, so NLL "
        "and CRPS are in its standard deviations. GPBoost is given coordinates in kilometres, residua the edges; "
        "'hops' also sees the neighbours' features, which no other row does. The remaining 20 % of the nodes are "
        "unused.",
        PEERS,
        tables,
        remarks(rows),
    )


def remarks(rows: list[dict[str, Cell]]) -> list[str]:
    """For each map and mean: who is ahead by NLL, and by how much time."""
    found = []
    at = {(row["map"], row["method"]): row for row in rows}
    for (place, method), peer in at.items():
        if not str(method).startswith("GPBoost"):
            continue
        ours = at[place, str(method).replace("GPBoost", "residua")]
        ahead = "GPBoost" if float(peer["NLL"] or 0) < float(ours["NLL"] or 0) else "residua"
        found.append(
            f"{place}, {str(method).split(', ')[1]}: {ahead} has the lower NLL (residua {ours['NLL']:.3f}, GPBoost "
            f"{peer['NLL']:.3f}); R2 {ours['R2']:.3f} and {peer['R2']:.3f}; GPBoost takes "
            f"{float(peer['seconds'] or 0) / float(ours['seconds'] or 1):.1f} times residua's time."
        )
    return found
