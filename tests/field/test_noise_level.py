"""Alpha, beta and noise together are where the dense restricted likelihood is highest, and as sure as it says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import dense
from graphs import CASES, grid
from residua.field import Likelihood
from residua.field.alpha_interval import profile_interval
from residua.field.correlator import Correlator
from residua.field.noise import Noise
from residua.field.noise_level import NoiseLevel
from residua.linalg import Cholesky, Lanczos

KINDS = ("known", "learned", "weights")


def task(kind, seed=2, alpha=(0.95,), beta=2.0, c=None):
    """A case, noisy labels around 1, a design, and what is known of the noise."""
    c = grid(10, 10, share=0.8, seed=seed) if c is None else c
    rng = np.random.default_rng(seed)
    N = rng.uniform(0.1, 1.5, len(c.L)) if kind != "learned" else np.full(len(c.L), 0.7)
    f = dense.draw(c.S, alpha, beta, rng)[0]
    y = 1 + f[c.L] + np.sqrt(N) * rng.standard_normal(len(N))
    relative = {"known": N, "learned": np.ones(len(N)), "weights": N / 0.4}[kind]
    return c, y, np.ones((len(y), 1)), Noise(relative, kind != "known")


def restricted(c, alpha, beta, sigma2, y, Z, noise):
    """-2 restricted log-likelihood, by contrasts."""
    V = dense.block(dense.covariance(c.S, alpha, beta), c.labelled) + sigma2 * np.diag(noise.relative)
    W = np.linalg.qr(Z)[0]
    inverse = np.linalg.inv(V)
    r = y - W @ np.linalg.solve(W.T @ inverse @ W, W.T @ inverse @ y)
    logdets = np.linalg.slogdet(V)[1] + np.linalg.slogdet(W.T @ inverse @ W)[1]
    return r @ inverse @ r + logdets + (len(y) - W.shape[1]) * np.log(2 * np.pi)


def best(c, y, Z, noise, a=None):
    """The dense optimum in (a, log beta, log sigma^2), or with a fixed."""

    def height(x):
        x = x if a is None else np.r_[a, x]
        return restricted(c, [np.tanh(x[0])], np.exp(x[1]), np.exp(x[2]) if noise.learned else 1.0, y, Z, noise)

    start = [*([1.5] if a is None else []), 0.5, *([-0.5] if noise.learned else [])]
    runs = [
        minimize(height, np.array(start) + s, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9})
        for s in (0, 1)
    ]
    return min(runs, key=lambda run: run.fun)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_the_dense_optimum(kind):
    c, y, Z, noise = task(kind)
    fit, dense_best = Correlator(c.graph, c.labelled, noise=noise)(y, Z), best(*task(kind))
    assert_allclose(-2 * fit.restricted_log_likelihood, dense_best.fun, atol=1e-4)
    assert_allclose(np.arctanh(fit.alpha["edge"]), dense_best.x[0], atol=0.05)
    assert_allclose(np.log(fit.beta), dense_best.x[1], atol=0.05)
    if noise.learned:
        assert_allclose(np.log(fit.noise_variance), dense_best.x[2], atol=0.03)
    found = fit.alpha["edge"], fit.beta, fit.noise_variance or 1.0
    V = dense.block(dense.covariance(c.S, found[:1], found[1]), c.labelled) + found[2] * np.diag(noise.relative)
    H = Z.T @ np.linalg.solve(V, Z)
    assert_allclose(fit.coefficients, np.linalg.solve(H, Z.T @ np.linalg.solve(V, y)), rtol=1e-6)
    assert_allclose(fit.coefficient_covariance, np.linalg.inv(H), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_omega_of_alpha_has_noise_at_its_best(kind):
    c, y, Z, noise = task(kind)
    level = Correlator(c.graph, c.labelled, noise=noise)(y, Z).source.profile
    for a in (0.3, 1.2, 2.5):
        expected = best(c, y, Z, noise, a).fun
        assert_allclose(-2 * level.restricted_log_likelihood(np.array([a])), expected, atol=2e-3)
        slope = (level.omega(np.array([a + 1e-3])) - level.omega(np.array([a - 1e-3]))) / 2e-3
        assert_allclose(level.gradient(np.array([a]))[0], slope, rtol=0.02, atol=0.01)


def test_an_interval_ends_where_the_dense_profile_has_risen():
    c, y, Z, noise = task("known", seed=1)
    fit = Correlator(c.graph, c.labelled, noise=noise)(y, Z)
    level, top = fit.source.profile, best(c, y, Z, noise).fun
    a = np.arctanh(np.array([fit.alpha["edge"]]))
    low, high = profile_interval(level, a, 0, 2.0)
    for end in (low, high):
        if abs(end) < 1:
            assert_allclose(best(c, y, Z, noise, np.arctanh(end)).fun - top, 2.0, atol=0.02)


@pytest.mark.parametrize("logdet", [Cholesky(), Lanczos(probes=64)])
def test_factors_and_probes_find_the_same(logdet):
    c, y, Z, noise = task("known", seed=2, c=grid(16, 16, share=0.7))
    exact, found = (Correlator(c.graph, c.labelled, how, noise=noise)(y, Z) for how in ("auto", logdet))
    assert abs(found.alpha["edge"] - exact.alpha["edge"]) < 0.5 * exact.alpha_stderr["edge"]
    assert abs(found.beta - exact.beta) < 0.5 * exact.beta_stderr


def test_two_edge_types_have_an_alpha_each():
    c, y, Z, noise = task("known", alpha=(0.6, 0.3), c=CASES["two types"])
    level = NoiseLevel(Likelihood(c.graph, c.labelled), y, noise, Z)
    a = np.array([0.4, 0.2])
    for t in (-0.5, 0.0, 1.0):
        found = level.at(t)
        expected = restricted(c, np.tanh(a), np.exp(t), 1.0, y, Z, noise)
        assert_allclose(found.omega(a) + 2 * found.counted * np.log(found.size), expected, rtol=1e-9)
        slopes = [(found.omega(a + d) - found.omega(a - d)) / 2e-4 for d in 1e-4 * np.eye(2)]
        assert_allclose(found.gradient(a), slopes, rtol=1e-4, atol=1e-6)


def test_labels_without_noise_are_found_to_have_none():
    rng = np.random.default_rng(3)
    c = grid(14, 14, share=1.0)
    y = dense.draw(c.S, [0.99], 1.0, rng)[0]
    fit = Correlator(c.graph, c.labelled, noise=Noise(np.ones(len(y)), True))(y, np.ones((len(y), 1)))
    plain = Correlator(c.graph, c.labelled)(y, np.ones((len(y), 1)))
    assert fit.restricted_log_likelihood >= plain.restricted_log_likelihood
    assert fit.noise_variance < 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*labels do not tell")
@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_of_the_test_of_no_correlation_are_as_many_as_promised(kind):
    p = []
    for seed in range(200):
        c, y, Z, noise = task(kind, seed, alpha=(0.0,), c=grid(7, 7, share=0.9))
        p.append(Correlator(c.graph, c.labelled, noise=noise)(y, Z).p_value)
    assert 2 <= (np.array(p) < 0.05).sum() <= 20  # of 10 expected, at three standard errors


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*labels do not tell")
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_alpha_cover_it(kind):
    inside = 0
    for seed in range(100):
        c, y, Z, noise = task(kind, seed, alpha=(0.9,), beta=1.0)
        low, high = Correlator(c.graph, c.labelled, noise=noise)(y, Z).interval()["edge"]
        inside += low <= 0.9 <= high
    assert inside >= 88  # of 95 expected, at three standard errors
