"""Forecasts of held-out labels by several methods, and how well calibrated and how sharp they are.

    label = mean + std * e,    e standard normal ("gaussian"), or with Student's tails where a spread is learned, or +-e
                               one of the scores of labels left out ("conformal")

A method learns from the labels that are known and answers for those that are hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.linalg import orth
from scipy.special import ndtri

from residua import GraphRegressor, NeighbourFeatures, metrics
from residua.datasets import Dataset
from residua.diagnosis import LEVELS
from residua.field.spread import Spread
from residua.intervals import jackknife_quantile
from residua.reproduction.runs import Values

CALIBRATION = 0.15  # share of the known labels that split-conformal intervals keep for their residuals
PLACES = (("longitude", "latitude"), ("x", "y"), ("row", "column"))
GPBOOST = "GPBoost"
KINDS = ("gaussian", "conformal", "learned", "learned, conformal")  # of intervals: the latter of a learned spread
QUANTILES = ndtri((np.arange(400) + 0.5) / 400)
THIRDS = ("quiet", "middle", "loud")  # of the labels, by the standard deviation of their forecast


@dataclass(frozen=True)
class Forecast:
    """What a method says of some labels."""

    mean: np.ndarray  # (m,)
    std: np.ndarray  # (m,)
    scores: np.ndarray | None = None  # absolute errors over standard deviations of other labels; None: by the tails
    tails: Spread = field(default_factory=Spread)

    def width(self, coverage: float) -> float:
        """Half the interval, in standard deviations."""
        return self.tails.width(coverage) if self.scores is None else jackknife_quantile(self.scores, coverage)

    def judged(self, y: np.ndarray) -> Values:
        """Counts of labels y (m,) inside the intervals of ``LEVELS``, and scores in the units of y."""
        z = np.abs(y - self.mean) / self.std
        return {
            "labels": len(y),
            "inside": [int((z <= self.width(level)).sum()) for level in LEVELS],
            "width": float(2 * self.width(0.9) * self.std.mean()),
            "width95": float(2 * self.width(0.95) * self.std.mean()),
            "crps": self._crps(y),
            "nll": -float(np.mean(self.tails.log_density(z) - np.log(self.std))),
            **self._by_scale(z <= self.width(0.9)),
        }

    def _by_scale(self, inside: np.ndarray) -> Values:
        """Labels inside of 90 % intervals, of how many, in the thirds of smallest and of largest standard deviation."""
        if np.ptp(self.std) <= 1e-9 * self.std.max():
            return {}
        thirds = np.array_split(np.argsort(self.std, kind="stable"), 3)
        counts = {name: [int(inside[rows].sum()), len(rows)] for name, rows in zip(THIRDS, thirds, strict=True)}
        return {name: counts[name] for name in (THIRDS[0], THIRDS[-1])}

    def _crps(self, y: np.ndarray) -> float:
        if self.scores is None and not np.isfinite(self.tails.df):
            return metrics.gaussian_crps(y, self.mean, self.std)
        quantiles = self.tails.with_tails(QUANTILES)
        each = quantiles if self.scores is None else np.concatenate([-self.scores, self.scores])
        return metrics.sample_crps(y, self.mean + self.std * each[:, None])


def of_model(model: GraphRegressor, hidden: np.ndarray) -> dict[str, Forecast]:
    """Forecasts of ``predict_interval`` at hidden nodes (n,) bool, with a constant spread and with a learned one."""
    found = {}
    for setting, kinds in (("constant", KINDS[:2]), ("learned", KINDS[2:])):
        own = replace(model.field_, spread_setting=setting).prediction
        mean, std = own.mean[hidden], own.std[hidden]
        found[kinds[0]] = Forecast(mean, std, None, own.spread)
        found[kinds[1]] = Forecast(mean, std, own.scores, own.spread)
    return found


def correlated_linear(
    data: Dataset, hidden: np.ndarray, seed: int, quick: bool, kind: str = "normalised"
) -> dict[str, Values]:
    """A linear base on hop features, with the learned correlation."""
    hops = NeighbourFeatures().fit_transform(data.X, graph=data.graph)
    return _of_correlated(
        GraphRegressor("linear", random_state=seed, field=kind, spread="constant"), hops, data, hidden
    )


def correlated_trees(data: Dataset, hidden: np.ndarray, seed: int, quick: bool) -> dict[str, Values]:
    """Boosted trees on hop features, with the learned correlation."""
    hops = NeighbourFeatures().fit_transform(data.X, graph=data.graph)
    return _of_correlated(GraphRegressor("trees", random_state=seed, spread="constant"), hops, data, hidden)


def correlated_hops(data: Dataset, hidden: np.ndarray, seed: int, quick: bool) -> dict[str, Values]:
    """The default network, with the learned correlation."""
    return _of_correlated(
        GraphRegressor(_network("hops", quick), random_state=seed, spread="constant"), data.X, data, hidden
    )


def _of_correlated(model: GraphRegressor, X: Any, data: Dataset, hidden: np.ndarray) -> dict[str, Values]:
    model.fit(X, np.where(hidden, np.nan, data.y), graph=data.graph)
    found = {name: forecast.judged(data.y[hidden]) for name, forecast in of_model(model, hidden).items()}
    diagnosis = model.diagnose()
    found["gaussian"] |= {"off": list(diagnosis.off), "remote": diagnosis.remote, "field": model.field_.kind}
    return found


def split_conformal(data: Dataset, hidden: np.ndarray, seed: int, quick: bool) -> dict[str, Values]:
    """A graph network without correlation; one width for all nodes, from labels that had no part in its training."""
    rng = np.random.default_rng([seed, 2])
    labels = np.flatnonzero(~hidden)
    apart = rng.choice(labels, round(CALIBRATION * len(labels)), replace=False)
    unknown = hidden.copy()
    unknown[apart] = True
    model = GraphRegressor(_network("sage", quick), None, random_state=seed)
    mean = model.fit(data.X, np.where(unknown, np.nan, data.y), graph=data.graph).predict()
    error = np.abs(data.y - mean)[apart]
    spread = float(np.sqrt(np.mean(error**2)))
    forecast = Forecast(mean[hidden], np.full(int(hidden.sum()), spread), error / spread)
    return {"conformal": forecast.judged(data.y[hidden])}


def _network(kind: str, quick: bool) -> Any:
    from residua import Network

    return Network(kind, epochs=20 if quick else 200)


def places(data: Dataset) -> np.ndarray | None:
    """(n, 2) coordinates of the nodes, NaN where there are none; None of a data set without."""
    for pair in PLACES:
        if set(pair) <= set(data.nodes.columns):
            return data.nodes[list(pair)].to_numpy(dtype=float)
    return None


def gaussian_process(data: Dataset, hidden: np.ndarray, seed: int, quick: bool) -> dict[str, Values]:
    """GPBoost: a linear mean of hop features and a Gaussian process over coordinates; nothing without coordinates."""
    where = places(data)
    if where is None:
        return {}
    placed = np.isfinite(where).all(axis=1)
    known, asked = placed & ~hidden, placed & hidden
    hops = NeighbourFeatures().fit_transform(data.X, graph=data.graph)
    # Orthonormal columns of the same span: its optimiser takes neither collinear ones nor those of unlike size.
    Z = orth(np.column_stack([np.ones(len(hops)), (hops - hops.mean(axis=0)) / np.maximum(hops.std(axis=0), 1e-12)]))
    process = import_module("gpboost").GPModel(
        gp_coords=where[known],
        cov_function="matern",
        cov_fct_shape=1.5,
        gp_approx="vecchia",
        likelihood="gaussian",
        seed=seed,
        num_parallel_threads=1,
    )
    process.fit(y=data.y[known], X=Z[known] * np.sqrt(len(Z)))
    found = process.predict(
        gp_coords_pred=where[asked], X_pred=Z[asked] * np.sqrt(len(Z)), predict_var=True, predict_response=True
    )
    judged = Forecast(found["mu"], np.sqrt(found["var"])).judged(data.y[asked])
    return {"gaussian": judged | {"version": metadata.version("gpboost")}}


def gpboost_installed() -> bool:
    """Whether the peer, which residua does not depend on, is there."""
    return find_spec("gpboost") is not None


Method = Callable[[Dataset, np.ndarray, int, bool], dict[str, Values]]
METHODS: dict[str, Method] = {
    "C-linear": correlated_linear,
    "C-linear field=auto": partial(correlated_linear, kind="auto"),
    "C-trees": correlated_trees,
    "C-hops": correlated_hops,
    "GNN": split_conformal,
    GPBOOST: gaussian_process,
}
