"""fit_correlation on a million nodes against the paper's procedure, and against plain sparse products.

The paper evaluates the likelihood and its gradient 150 times, each time with Lanczos from 128 probes, 32 steps, on
Gamma and on Gamma_UU, and eight conjugate-gradient solves. One such evaluation is timed here on residua's own kernels
(its trace estimates are taken as free) and multiplied.
"""

import warnings

import numpy as np
from rich.console import Console

import residua
from benchmarks.common import (
    best_seconds,
    correlated_residuals,
    peak_gigabytes,
    predict_mean,
    warm_up,
    watts_strogatz,
)
from residua.field import Likelihood
from residua.field.precision import unit_precision
from residua.linalg import CG
from residua.linalg.lanczos import tridiagonal

ALPHA, BETA, LABELLED = 0.9, 1.0, 0.6
EVALUATIONS, PROBES, STEPS, SOLVES = 150, 128, 32, 8


def paper_evaluation_seconds(graph: residua.Graph, residual: np.ndarray) -> float:
    """One evaluation of the paper's objective and gradient."""
    likelihood = Likelihood(graph, ~np.isnan(residual), residua.Lanczos())
    alpha = np.array([ALPHA])
    sides = [unit_precision(terms, alpha) for terms in (likelihood.terms, likelihood.terms_UU)]
    rng = np.random.default_rng(0)
    seconds = 0.0
    for side in sides:
        probes = rng.standard_normal((side.shape[0], PROBES))
        seconds += best_seconds(lambda A=side, Z=probes: tridiagonal(A, Z, STEPS), repeats=1)
        del probes
    right = rng.standard_normal(sides[1].shape[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve = best_seconds(lambda: CG(tol=1e-6, max_iter=STEPS).solve(sides[1], right))
    return seconds + SOLVES * solve


def run(n: int = 1_000_000, console: Console | None = None) -> None:
    console = console or Console()
    warm_up()
    source, target = watts_strogatz(n)
    graph = residua.Graph.from_edges(source, target)
    residual = correlated_residuals(graph, ALPHA, BETA, LABELLED)
    matrix = graph.operators["edge"].to_scipy()
    vector = np.random.default_rng(1).standard_normal(n)
    product = best_seconds(lambda: matrix @ vector, repeats=20)

    build = best_seconds(lambda: residua.Graph.from_edges(source, target))
    fit_time = best_seconds(lambda: residua.fit_correlation(residual, graph))
    fit = residua.fit_correlation(residual, graph)
    mean = best_seconds(lambda: predict_mean(residual, graph, fit.alpha["edge"]))
    total = build + fit_time + mean
    memory = peak_gigabytes()

    console.rule(f"fit_correlation, Watts-Strogatz n = {n:,}, mean degree 10, {LABELLED:.0%} labelled")
    console.print(fit.summary(), highlight=False, markup=False)
    error = fit.alpha_mc_error["edge"] / fit.alpha_stderr["edge"]
    console.print(f"\nalpha: true {ALPHA}, Monte-Carlo error {error:.3f} of its standard error")
    console.print(f"build {build:.2f} s, fit {fit_time:.2f} s, mean {mean:.2f} s; peak memory {memory:.1f} GB")
    console.print(
        f"one scipy product, one thread: {product * 1e3:.1f} ms; build + fit + mean = {total / product:.0f} products"
    )
    once = paper_evaluation_seconds(graph, residual)
    console.print(
        f"paper's procedure: {once:.1f} s an evaluation, {EVALUATIONS} of them {once * EVALUATIONS:.0f} s: "
        f"fit_correlation is {once * EVALUATIONS / fit_time:.0f} times faster\n"
    )


if __name__ == "__main__":
    run()
