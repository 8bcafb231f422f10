"""On data of known correlation the intervals cover as often as they promise.

200 simulations: a count of covering intervals within 90-99 % is 95 % up to three binomial standard deviations.
"""

from functools import cache

import numpy as np
import pytest

import dense
import residua
from fits import fit_likelihood
from graphs import small_world
from residua.field import Likelihood
from residua.linalg import Eigen

WORLD = small_world(n=400, degree=6, share=0.6, seed=11)


@cache
def likelihood() -> Likelihood:
    """Graph and labels stay the same, so their spectrum is needed once."""
    return Likelihood(WORLD.graph, WORLD.labelled, Eigen())


@pytest.mark.parametrize("alpha", [-0.9, -0.3, 0.0, 0.5, 0.9, 0.99])
def test_interval_for_alpha_covers_as_promised(alpha):
    draws = dense.draw(WORLD.S, [alpha], 2.0, np.random.default_rng(1), count=200)
    covered = 0
    for r in draws[:, WORLD.labelled]:
        low, high = fit_likelihood(likelihood(), r, WORLD.types).interval()["edge"]
        covered += low <= alpha <= high
    assert 180 <= covered <= 198


@pytest.mark.parametrize("seed", range(2))
def test_test_of_no_correlation_rejects_as_often_as_it_should(seed):
    """p-values of uncorrelated residuals are uniform: 5 % below .05, and a mean of one half."""
    draws = np.random.default_rng(seed).standard_normal((200, len(WORLD.L)))
    p = np.array([fit_likelihood(likelihood(), r, WORLD.types).p_value for r in draws])
    assert 1 <= (p < 0.05).sum() <= 20  # 10 +- 3 standard deviations
    assert abs(p.mean() - 0.5) < 4 / np.sqrt(12 * len(p))


@pytest.mark.parametrize("method", ["gaussian", "jackknife"])
@pytest.mark.parametrize("alpha", [-0.9, 0.5, 0.95])
def test_predictive_intervals_cover_as_promised(alpha, method):
    """40 data sets, 160 unknown nodes each; alpha, beta and the coefficients are learned from the labels."""
    rng = np.random.default_rng(2)
    hits = []
    for r in dense.draw(WORLD.S, [alpha], 2.0, rng, count=40):
        X = rng.standard_normal((WORLD.n, 2))
        y = 3.0 + X @ [1.0, -0.5] + r
        known = np.where(WORLD.labelled, y, np.nan)
        model = residua.GraphRegressor(base="linear").fit(X, known, graph=WORLD.graph)
        low, high = model.predict_interval(coverage=0.9, method=method)
        hits.append(((low <= y) & (y <= high))[WORLD.U])
    assert 0.88 <= np.mean(hits) <= 0.92


@pytest.mark.parametrize("alpha", [0.5, 0.95])
def test_coefficients_lie_within_their_standard_errors(alpha):
    """Squared scores of 2 coefficients in 100 simulations average to 1."""
    rng = np.random.default_rng(3)
    Z = np.column_stack([np.ones(WORLD.n), rng.standard_normal(WORLD.n)])[WORLD.labelled]
    truth = np.array([2.0, -1.0])
    scores = []
    for r in dense.draw(WORLD.S, [alpha], 2.0, rng, count=100)[:, WORLD.labelled]:
        fit = fit_likelihood(likelihood(), Z @ truth + r, WORLD.types, Z)
        scores.append((fit.coefficients - truth) / np.sqrt(np.diag(fit.coefficient_covariance)))
    # a chi-square of 200, or fewer where the two are correlated: at least 100
    assert abs(np.mean(np.square(scores)) - 1) < 4 * np.sqrt(2 / 100)
