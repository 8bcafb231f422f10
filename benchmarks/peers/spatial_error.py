"""Linear regression with spatially correlated errors: residua's model beside spreg's.

    spreg     (I - lambda W) u = e,   W rows sum to 1,    precision of u  (I - lambda W)'(I - lambda W) / sigma^2
    residua   precision of u          beta (I - alpha S), S = D^-1/2 A D^-1/2

Two models of one thing, so both are fitted to both kinds of data. spreg takes no missing label and predicts no unknown
node: there it is fitted to the map cut to the known nodes, and the conditional mean and variance of its model, at its
estimates and on the whole map, are worked out here.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import spsolve

from benchmarks.peers.clock import now
from benchmarks.peers.grids import grid
from benchmarks.peers.record import Cell, Part, Table, installed
from benchmarks.peers.scores import averaged, maps, scores, standardised
from benchmarks.peers.size import QUICK
from residua import Graph, GraphRegressor
from residua.linalg.factor import Factor
from residua.reproduction.figures.small_world import correlated_residuals
from residua.reproduction.splits import Split, random_split

PEERS = ("spreg",)
SLOPES = np.array([1.0, 0.5, -1.0])
LAMBDA, ALPHA = 0.8, 0.98
SIDES = (40, 55) if QUICK else (55, 71, 100, 141)
LARGEST = {"LU": 5_100, "ord": 3_100}  # past this spreg's dense steps take minutes and gigabytes
SPLITS = 1 if QUICK else 3


@dataclass(frozen=True)
class Fitted:
    """Coefficients (constant first), strength of the dependence, log-likelihood and error variance."""

    coefficients: np.ndarray
    strength: float
    log_likelihood: float
    variance: float = np.nan


def walk_matrix(graph: Graph) -> sp.csc_matrix:
    """W: the adjacency with rows that sum to 1; a node without neighbours has an empty row. No self-loops."""
    A = sp.csr_matrix(graph.adjacency())
    A.setdiag(0)
    A.eliminate_zeros()
    degree = np.asarray(A.sum(axis=1)).ravel()
    scale = np.divide(1.0, degree, out=np.zeros(len(degree)), where=degree > 0)
    return sp.csc_matrix(sp.diags(scale) @ A)


def weights(graph: Graph):
    """W as spreg takes it."""
    from libpysal.weights import WSP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the map has islands
        w = WSP(sp.csr_matrix(walk_matrix(graph))).to_W(silence_warnings=True)
        w.transform = "r"
    return w


def spreg_ml(method: str):
    def fit(X, y, graph, w) -> Fitted:
        import spreg

        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # scipy's, on a tolerance that spreg passes
            found = spreg.ML_Error(y[:, None], X, w, method=method)
        betas = found.betas.ravel()
        return Fitted(betas[:-1], float(betas[-1]), float(found.logll), float(np.squeeze(found.sig2)))

    return fit


def spreg_search(X, y, graph, w) -> Fitted:
    """spreg's likelihood (LU) under the search that ML_Error makes, without its standard errors."""
    from spreg.ml_error import err_c_loglik_sp

    n, W = len(y), w.sparse.tocsc()
    Z, target = np.column_stack([np.ones(n), X]), y[:, None]
    data = (n, target, W @ target, Z, W @ Z, sp.identity(n, format="csc"), W)
    found = minimize_scalar(err_c_loglik_sp, bounds=(-1.0, 1.0), args=data, method="bounded", options={"xatol": 1e-7})
    filtered = [part - found.x * (W @ part) for part in (target, Z)]
    coefficients = np.linalg.lstsq(filtered[1], filtered[0], rcond=None)[0].ravel()
    variance = float(np.mean((filtered[0].ravel() - filtered[1] @ coefficients) ** 2))
    level = -float(np.squeeze(found.fun)) - n / 2 * (np.log(2 * np.pi) + 1)
    return Fitted(coefficients, float(found.x), level, variance)


def spreg_moments(X, y, graph, w) -> Fitted:
    import spreg

    with contextlib.redirect_stdout(io.StringIO()):
        betas = spreg.GM_Error(y[:, None], X, w).betas.ravel()
    return Fitted(betas[:-1], float(betas[-1]), np.nan)


def residua_linear(X, y, graph, w) -> Fitted:
    fit = GraphRegressor("linear").fit(X, y, graph=graph).correlation_
    return Fitted(fit.coefficients, fit.alpha["edge"], fit.log_likelihood)


METHODS = {
    "residua, linear": (None, residua_linear),
    "spreg ML_Error, LU": ("LU", spreg_ml("LU")),
    "spreg ML_Error, ord": ("ord", spreg_ml("ord")),
    "spreg's likelihood, LU, no standard errors": ("search", spreg_search),
    "spreg GM_Error (moments)": ("moments", spreg_moments),
}


def simulate(graph: Graph, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X (n, 3) and y, with errors from spreg's model ("spreg") or residua's ("residua")."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((graph.n_nodes, len(SLOPES)))
    if kind == "spreg":
        noise = rng.standard_normal(graph.n_nodes)
        u = spsolve(sp.identity(graph.n_nodes, format="csc") - LAMBDA * walk_matrix(graph), noise)
    else:
        u = correlated_residuals(graph, ALPHA, 1.0, seed)
    return X, 2 + X @ SLOPES + u


def estimate(side: int, kind: str, methods: list[str]) -> list[dict[str, Cell]]:
    """Every label known: seconds, error of the slopes, and log-likelihood, which both models state for the same y."""
    graph = grid(side)
    X, y = simulate(graph, kind)
    w = weights(graph) if installed("spreg") else None
    rows: list[dict[str, Cell]] = []
    for name in methods:
        key, method = METHODS[name]
        if (key and w is None) or graph.n_nodes > LARGEST.get(str(key), np.inf):
            continue
        fit, seconds = timed(lambda method=method: method(X, y, graph, w))
        error = float(np.sqrt(np.mean((fit.coefficients[1:] - SLOPES) ** 2)))
        unit = float(rows[0]["seconds"] or 0) if rows else seconds
        row = {"n": graph.n_nodes, "data from": kind, "method": name, "log-likelihood": fit.log_likelihood}
        rows.append({**row, "error of slopes": error, "seconds": seconds, "times residua": seconds / unit})
    return rows


def timed(task: Callable[[], Fitted], patience: float = 2.0) -> tuple[Fitted, float]:
    """The result and its seconds; the best of three where one is quick."""
    times: list[float] = []
    while not times or (len(times) < 3 and times[0] < patience):
        begin = now()
        found = task()
        times.append(now() - begin)
    return found, min(times)


def conditional(W: sp.spmatrix, fit: Fitted, X: np.ndarray, y: np.ndarray, split: Split):
    """Mean and deviation at the test nodes of spreg's model, given the training labels."""
    n = len(y)
    root = sp.identity(n, format="csr") - fit.strength * sp.csr_matrix(W)
    Q = sp.csr_matrix(root.T @ root)
    m = fit.coefficients[0] + X @ fit.coefficients[1:]
    U = np.setdiff1d(np.arange(n), split.train)
    factor = Factor(sp.csc_array(Q[U][:, U]))
    mean = m[U] - factor.solve(Q[U][:, split.train] @ (y - m)[split.train])
    std = np.sqrt(fit.variance * factor.inverse.diagonal())
    at = np.searchsorted(U, split.test)
    return mean[at], std[at]


def spreg_predict(X, y, graph: Graph, split: Split):
    known = sp.csr_matrix(graph.adjacency())[split.train][:, split.train]
    fit = spreg_search(X[split.train], y[split.train], None, weights(Graph.from_scipy(known)))
    return conditional(walk_matrix(graph), fit, X, y, split)


def residua_predict(X, y, graph: Graph, split: Split):
    mean, std = GraphRegressor("linear").fit(X, split.known(y), graph=graph).predict(return_std=True)
    return mean[split.test], std[split.test]


PREDICTORS = {"residua, linear": (None, residua_predict), "spreg's estimates": ("spreg", spreg_predict)}


def predictions(name: str, X: np.ndarray, y: np.ndarray, graph: Graph) -> list[dict[str, Cell]]:
    """60 % of the labels known; scores at a fifth of the nodes."""
    rows: list[dict[str, Cell]] = []
    for method, (peer, predict) in PREDICTORS.items():
        if peer and not installed(peer):
            continue
        found = []
        for seed in range(-1, SPLITS):  # the first of them to warm up
            split = random_split(len(y), max(seed, 0))
            x, t = standardised(X, split.train), standardised(y, split.train)
            begin = now()
            mean, std = predict(x, t, graph, split)
            found.append({**scores(t[split.test], mean, std), "seconds": now() - begin})
        rows.append({"data": name, "method": method, **averaged(found[1:])})
    return rows


def run(threads: int) -> Part:
    names = list(METHODS)
    estimated = [row for side in SIDES for row in estimate(side, "spreg", names)]
    estimated += estimate(SIDES[0], "residua", names)
    predicted = [row for data in maps() for row in predictions(data.name, data.X.to_numpy(float), data.y, data.graph)]
    for kind in ("spreg", "residua"):
        graph = grid(SIDES[0])
        predicted += predictions(f"grid {SIDES[0]} x {SIDES[0]}, errors from {kind}", *simulate(graph, kind), graph)
    tables = [
        Table("Grids, all labels known: time and fit", estimated),
        Table(f"60 % of the labels known, means over {SPLITS} splits, y in its standard deviations", predicted),
    ]
    return Part(
        "spatial-error",
        "3. Spatial error model",
        "A linear mean and errors that neighbours share. The models differ (simultaneous autoregression with rows that "
        "sum to 1 in spreg, a Markov field with the symmetric S in residua), so each is also met on data drawn from "
        "the other. ML_Error forms n x n inverses for its standard errors and is run up to n = "
        f"{max(LARGEST.values()):,} here; its likelihood alone goes on. spreg's estimates for the predictions come "
        "from that likelihood, on the map cut to the known nodes.",
        PEERS,
        tables,
        remarks(estimated, predicted),
    )


def remarks(estimated: list[dict[str, Cell]], predicted: list[dict[str, Cell]]) -> list[str]:
    found = []
    for name in dict.fromkeys(str(row["method"]) for row in estimated):
        ratios = [float(row["times residua"] or 0) for row in estimated if row["method"] == name]
        if name != "residua, linear":
            found.append(f"{name}: {min(ratios):.2g} to {max(ratios):.2g} times residua's time; below 1 it is faster.")
    for kind in ("spreg", "residua"):
        rows = [row for row in estimated if row["data from"] == kind and row["n"] == estimated[0]["n"]]
        levels = {str(row["method"]): row["log-likelihood"] for row in rows if row["log-likelihood"] is not None}
        told = ", ".join(f"{name} {level:,.1f}" for name, level in levels.items() if np.isfinite(float(level or 0)))
        found.append(f"Log-likelihood on errors drawn from {kind}'s model: {told}.")
    for ours, peer in zip(predicted[::2], predicted[1::2], strict=False):
        if ours["data"] == peer["data"]:
            ahead = "residua" if float(ours["NLL"] or 0) < float(peer["NLL"] or 0) else "spreg's model"
            found.append(
                f"{ours['data']}: {ahead} has the lower NLL (residua {ours['NLL']:.3f}, spreg {peer['NLL']:.3f})."
            )
    found.append(
        "residua's time includes the standard error of alpha and its test against zero; spreg's likelihood alone has "
        "neither, and GM_Error has no likelihood. spreg tests, diagnoses and compares many models of which this is one."
    )
    return found
