"""Labels seen through noise: every fast path is the dense Gaussian with covariance Sigma_LL + N."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import dense
from graphs import CASES, grid, small_world
from residua.field import Conditional, Likelihood
from residua.field.quadratic_form import QuadraticForm
from residua.linalg import Cholesky, Eigen, Lanczos
from residua.linalg.factor import Family

BETA = 1.7


@pytest.fixture(params=CASES, ids=lambda name: name)
def any_case(request):
    return CASES[request.param]


def noise_at(c, seed=0, exact=0):
    """Noise variances at the labels, the first ``exact`` of them 0."""
    N = np.random.default_rng(seed).uniform(0.05, 3.0, len(c.L))
    N[:exact] = 0
    return N


def alpha_of(c):
    return np.array([0.8, -0.4][: len(c.types)]) if len(c.types) > 1 else np.array([0.9])


def gain_of(c, N):
    return 1 / (1 + BETA * N)


def covariance_of_labels(c, alpha, N):
    return dense.block(dense.covariance(c.S, alpha, BETA), c.labelled) + np.diag(N)


@pytest.mark.parametrize("exact", [0, 1])
@pytest.mark.parametrize("strategy", [Eigen(), Cholesky()])
def test_likelihood_is_that_of_a_dense_gaussian_with_noise(any_case, strategy, exact):
    c, alpha, N = any_case, alpha_of(any_case), noise_at(any_case, exact=exact)
    r = np.random.default_rng(1).standard_normal(len(c.L))
    likelihood = Likelihood(c.graph, c.labelled, strategy, gain=gain_of(c, N))
    found = likelihood.omega(r, alpha, BETA)
    V = covariance_of_labels(c, alpha, N)
    assert_allclose(found.value, -2 * multivariate_normal(cov=V).logpdf(r), rtol=1e-10)
    assert_allclose(found.residual, 2 * np.linalg.solve(V, r), rtol=1e-5, atol=1e-6)
    for t in range(len(alpha)):
        step = 1e-5 * (np.arange(len(alpha)) == t)
        ends = [-2 * multivariate_normal(cov=covariance_of_labels(c, alpha + s * step, N)).logpdf(r) for s in (1, -1)]
        assert_allclose(found.alpha[t], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by", ["krylov", "solves", "factors"])
@pytest.mark.parametrize("exact", [0, 1])
def test_quadratic_form_and_its_slope_are_those_of_the_dense_precision(any_case, by, exact):
    c, alpha, N = any_case, alpha_of(any_case), noise_at(any_case, exact=exact)
    R = np.random.default_rng(1).standard_normal((len(c.L), 3))
    likelihood = Likelihood(c.graph, c.labelled, gain=gain_of(c, N))
    form = QuadraticForm(likelihood, lambda: R)
    if by == "krylov":
        form.with_steps(2 * c.n)
    else:
        form._switch_to_solves()
        form.family = Family(likelihood.terms_UU) if by == "factors" else None

    def referee(alpha):
        return R.T @ np.linalg.solve(BETA * covariance_of_labels(c, alpha, N), R)

    assert_allclose(form(alpha), referee(alpha), rtol=1e-9, atol=1e-9)
    for t in range(len(alpha)):
        step = 1e-5 * (np.arange(len(alpha)) == t)
        difference = (referee(alpha + step) - referee(alpha - step)) / 2e-5
        assert_allclose(form.slopes(alpha)[t], difference, rtol=1e-5, atol=1e-6)


def posterior(c, alpha, N, r):
    """Mean and covariance of f given noisy labels, by the dense Gaussian."""
    C = dense.covariance(c.S, alpha, BETA)
    weights = np.linalg.solve(covariance_of_labels(c, alpha, N), C[c.L]).T
    return weights @ r, C - weights @ C[c.L]


def conditional_of(c, alpha, N, **options):
    full = np.full(c.n, np.nan)
    full[c.labelled] = N
    return Conditional(c.graph, c.labelled, dict(zip(c.types, alpha, strict=True)), BETA, noise=full, **options)


def spread(c, values):
    full = np.full(c.n, np.nan)
    full[c.labelled] = values
    return full


@pytest.mark.parametrize("exact", [0, 1])
def test_the_field_given_noisy_labels_is_the_dense_posterior(any_case, exact):
    c, alpha, N = any_case, alpha_of(any_case), noise_at(any_case, exact=exact)
    r = np.random.default_rng(1).standard_normal(len(c.L))
    mean, cov = posterior(c, alpha, N, r)
    found = conditional_of(c, alpha, N, exact=True)
    assert_allclose(found.conditional_mean(spread(c, r)), mean, rtol=1e-5, atol=1e-6)
    assert_allclose(found.variance().value, np.diag(cov), rtol=1e-9, atol=1e-12)
    V = covariance_of_labels(c, alpha, N)
    assert_allclose(found.quadratic_form(spread(c, r)), r @ np.linalg.solve(V, r) / BETA, rtol=1e-9)
    values, vectors = np.linalg.eigh(V)
    assert_allclose(
        found.decorrelated(spread(c, r)), vectors @ ((vectors.T @ r) / np.sqrt(values)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("exact", [0, 1])
def test_left_out_labels_are_predicted_by_the_dense_posterior_of_the_others(any_case, exact):
    c, alpha, N = any_case, alpha_of(any_case), noise_at(any_case, exact=exact)
    r = np.random.default_rng(1).standard_normal(len(c.L))
    found = conditional_of(c, alpha, N, exact=True).leave_one_out(spread(c, r))
    V = covariance_of_labels(c, alpha, N)
    for i in range(len(r)):
        rest = np.delete(np.arange(len(r)), i)
        weights = np.linalg.solve(V[np.ix_(rest, rest)], V[rest, i])
        assert_allclose(found.error[i], r[i] - weights @ r[rest], rtol=1e-5, atol=1e-6)
        assert_allclose(found.variance[i], V[i, i] - weights @ V[rest, i], rtol=1e-9)


def test_coefficients_and_their_share_of_the_variance_are_those_of_dense_least_squares(any_case):
    c, alpha, N = any_case, alpha_of(any_case), noise_at(any_case)
    rng = np.random.default_rng(2)
    Z = np.column_stack([np.ones(c.n), rng.standard_normal(c.n)])
    y = rng.standard_normal(len(c.L))
    C, V = dense.covariance(c.S, alpha, BETA), covariance_of_labels(c, alpha, N)
    inverse = np.linalg.inv(V)
    cov = np.linalg.inv(Z[c.L].T @ inverse @ Z[c.L])
    theta = cov @ Z[c.L].T @ inverse @ y
    weights = C[:, c.L] @ inverse
    lever = Z - weights @ Z[c.L]
    found = conditional_of(c, alpha, N, exact=True, design=Z)
    assert_allclose(found.mean_of(spread(c, y)), Z @ theta, rtol=1e-5, atol=1e-6)
    expected = C - weights @ C[c.L] + lever @ cov @ lever.T
    assert_allclose(found.variance().value, np.diag(expected), rtol=1e-5, atol=1e-7)
    P = inverse - inverse @ Z[c.L] @ cov @ Z[c.L].T @ inverse
    left = found.leave_one_out(spread(c, y - Z[c.L] @ theta))
    if (np.diag(P) * BETA > 1e-6).all():
        assert_allclose(left.error, (P @ y) / np.diag(P), rtol=1e-5, atol=1e-6)
        assert_allclose(left.variance, 1 / np.diag(P), rtol=1e-5)


def test_draws_have_the_covariance_of_the_posterior():
    c = CASES["two types"]
    alpha, N = alpha_of(c), noise_at(c)
    _, cov = posterior(c, alpha, N, np.zeros(len(c.L)))
    draws = conditional_of(c, alpha, N).sample(40_000, np.random.default_rng(0))
    error = np.sqrt((cov**2 + np.outer(np.diag(cov), np.diag(cov))) / len(draws))
    assert (np.abs(np.cov(draws.T) - cov) < 5 * error).all()


@pytest.mark.parametrize("seed", range(3))
def test_sampled_variances_and_left_out_ones_are_exact_ones_within_their_error(seed):
    c = grid(12, 12, seed=seed)
    alpha, N = np.array([0.95]), noise_at(c, seed)
    exact, sampled = (conditional_of(c, alpha, N, exact=e, draws=1000, random_state=seed) for e in (True, False))
    truth, found = exact.variance(), sampled.variance()
    assert (np.abs(found.value - truth.value) < 5 * found.stderr + 1e-12).all()
    assert_allclose(sampled.schur_diagonal, exact.schur_diagonal, rtol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_probes_estimate_the_logdeterminant_within_their_error(seed):
    c = small_world(400, seed=seed)
    gain = gain_of(c, noise_at(c, seed))
    exact = Likelihood(c.graph, c.labelled, Eigen(), gain=gain)
    sampled = Likelihood(c.graph, c.labelled, Lanczos(probes=32, random_state=seed), gain=gain)
    for alpha in (np.array([0.5]), np.array([0.99]), np.array([-0.9])):
        found = sampled.ratio.value(alpha)
        assert abs(found.value - exact.ratio.value(alpha).value) < 5 * found.stderr


def test_vanishing_noise_is_no_noise(any_case):
    c, alpha = any_case, alpha_of(any_case)
    r = np.random.default_rng(1).standard_normal(len(c.L))
    tiny = np.full(len(c.L), 1e-9)
    plain = Likelihood(c.graph, c.labelled, Eigen()).omega(r, alpha, BETA)
    noisy = Likelihood(c.graph, c.labelled, Eigen(), gain=gain_of(c, tiny)).omega(r, alpha, BETA)
    assert_allclose(noisy.value, plain.value, rtol=1e-6)
    one = Likelihood(c.graph, c.labelled, Eigen(), gain=np.ones(len(c.L))).omega(r, alpha, BETA)
    assert_allclose(one.value, plain.value, rtol=1e-12)
    assert_allclose(conditional_of(c, alpha, tiny).conditional_mean(spread(c, r))[c.L], r, rtol=1e-5, atol=1e-7)
