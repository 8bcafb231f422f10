"""Log-determinants: exact where they say so, and elsewhere as far off as they say."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dense
from graphs import CASES, case, grid, small_world
from residua.linalg import Cholesky, Eigen, Lanczos, weighted_sum
from residua.linalg.lanczos import Quadrature
from residua.linalg.logdet import stochastic
from residua.linalg.logdet.choice import auto

EXACT = [Eigen(), Cholesky()]
ALPHAS = {
    1: [(-0.99,), (-0.5,), (0.0,), (0.3,), (0.9,), (0.999,)],
    # Types that cancel on a common edge, or of which one is switched off, leave a hole in the pattern of the sum.
    2: [(0.6, 0.3), (-0.9, 0.8), (0.5, -0.5), (0.0, 0.7), (0.7, 0.0), (0.0, 0.0), (0.99, 0.99)],
}

each_exact = pytest.mark.parametrize("strategy", EXACT, ids=lambda s: type(s).__name__)
subsets = pytest.mark.parametrize("subset", ["U", "none", "all"])


def pick(c, subset):
    return {"U": c.U, "none": np.arange(0), "all": np.arange(c.n)}[subset]


@each_exact
@subsets
def test_value_and_gradient_are_dense(any_case, strategy, subset):
    U = pick(any_case, subset)
    ratio = strategy.prepare(any_case.terms, U)
    assert ratio.exact
    for alpha in map(np.array, ALPHAS[len(any_case.terms)]):
        value, gradient = ratio.value(alpha), ratio.gradient(alpha)
        assert_allclose(value.value, dense.log_ratio(any_case.S, alpha, U), rtol=1e-8, atol=1e-8)
        expected = dense.log_ratio_gradient(any_case.S, alpha, U)
        assert_allclose(gradient.value, expected, rtol=1e-8, atol=1e-8, err_msg=f"alpha={alpha}")
        assert value.stderr == 0
        assert_array_equal(gradient.stderr, np.zeros(len(alpha)))


@each_exact
@subsets
def test_gradient_is_the_slope_of_the_value(any_case, strategy, subset):
    ratio = strategy.prepare(any_case.terms, pick(any_case, subset))
    for alpha in map(np.array, ALPHAS[len(any_case.terms)]):
        for t, found in enumerate(ratio.gradient(alpha).value):
            step = 1e-5 * (1 - np.abs(alpha[t])) * np.eye(len(alpha))[t]
            slope = (ratio.value(alpha + step).value - ratio.value(alpha - step).value) / (2 * step[t])
            assert_allclose(found, slope, rtol=1e-5, atol=1e-5, err_msg=f"alpha={alpha}, type {t}")


@each_exact
def test_no_subset_means_the_whole_determinant(any_case, strategy):
    alpha = np.array(ALPHAS[len(any_case.terms)][0])
    expected = np.linalg.slogdet(dense.precision(any_case.S, alpha))[1]
    assert_allclose(strategy.prepare(any_case.terms).value(alpha).value, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "c", [small_world(n=200), grid(14, 14), small_world(n=120, types=2)], ids=["ws", "grid", "two"]
)
def test_exact_strategies_agree_on_larger_graphs(c):
    for alpha in map(np.array, ALPHAS[len(c.terms)]):
        for ratio in (s.prepare(c.terms, c.U) for s in EXACT):
            assert_allclose(ratio.value(alpha).value, dense.log_ratio(c.S, alpha, c.U), rtol=1e-9, atol=1e-9)
            expected = dense.log_ratio_gradient(c.S, alpha, c.U)
            assert_allclose(ratio.gradient(alpha).value, expected, rtol=1e-8, atol=1e-8, err_msg=f"{alpha}")


def test_auto_is_exact_where_that_is_cheap():
    fallback = Lanczos()
    assert auto(CASES["path"].terms, fallback) == Eigen()
    assert auto(grid(30, 40).terms, fallback) == Cholesky()
    assert auto(small_world(n=20_000).terms, fallback) is fallback
    assert auto(small_world(n=20_000, types=2).terms, fallback) is fallback


def test_auto_counts_what_a_whole_fit_would_cost():
    """Of several edge types each alpha costs the probes anew; of a path a factor costs next to nothing."""
    fallback, halves = Lanczos(), grid(50, 60)
    halves.type[::2] = "other"
    assert auto(halves.terms, fallback) == Cholesky()
    assert auto(small_world(n=300, types=2).terms, fallback) == Eigen()
    assert auto(grid(1, 50_000).terms, fallback) == Cholesky()
    assert auto(grid(300, 300).terms, fallback) is fallback


# Power moments


def test_power_moments_are_traces_of_powers(any_case):
    alpha = np.array([0.9, -0.7])[: len(any_case.terms)]
    M = np.tensordot(alpha, any_case.S, axes=1)
    expected = [np.trace(np.linalg.matrix_power(M, j)) for j in range(5)]
    assert_allclose(weighted_sum(any_case.terms, alpha).power_moments(), expected, rtol=1e-12, atol=1e-13)


def test_power_moments_beyond_the_budget_are_left_out():
    S = small_world(n=300).terms[0]
    assert_allclose(S.power_moments(budget=0), S.power_moments()[:3])


IN_BOUNDS = """
import numpy as np
from residua.graph import Graph
from residua.linalg import weighted_sum

n = 17  # degree 16, so that all numbers are exact and paths of opposite sign cancel to 0
i, j = np.triu_indices(n, 1)
kind = np.where(np.random.default_rng(0).random(len(i)) < 0.5, "a", "b")
M = weighted_sum(list(Graph.from_edges(i, j, type=kind).operators.values()), [0.5, -0.5])
A = M.to_scipy().toarray()
np.testing.assert_allclose(M.power_moments(), [np.trace(np.linalg.matrix_power(A, k)) for k in range(5)], atol=1e-15)
"""


def test_power_moments_stay_in_bounds_when_signs_cancel():
    """Without compilation an index beyond the end is an error; with it, memory is overwritten."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-c", IN_BOUNDS], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


# Lanczos: random, with its own standard error

RANDOM = {
    "small world": (small_world(n=300), [(0.5,), (0.99,), (-0.9,)]),
    "sparse small world": (small_world(n=300, degree=4), [(0.5,), (0.99,), (-0.9,)]),
    "grid": (grid(15, 20), [(0.5,), (0.99,), (-0.99,)]),
    "two types": (small_world(n=120, types=2), [(0.9, 0.5), (0.9, -0.9)]),
}
each_random = pytest.mark.parametrize("name", RANDOM)
plain_too = pytest.mark.parametrize("control_variates", [True, False], ids=["control variates", "plain"])


def runs(c, alphas, seeds, **options):
    """(seeds, alphas, 1 + p) numbers and their reported standard errors: the value, then the gradient."""
    found = []
    for seed in seeds:
        ratio = Lanczos(random_state=seed, **options).prepare(c.terms, c.U)
        assert not ratio.exact
        for alpha in map(np.array, alphas):
            value, gradient = ratio.value(alpha), ratio.gradient(alpha)
            found.append([[value.value, *gradient.value], [value.stderr, *gradient.stderr]])
    shape = (len(seeds), len(alphas), 2, 1 + len(c.terms))
    return np.moveaxis(np.array(found).reshape(shape), 2, 0)


def truth(c, alphas):
    rows = [[dense.log_ratio(c.S, a, c.U), *dense.log_ratio_gradient(c.S, a, c.U)] for a in map(np.array, alphas)]
    return np.array(rows)


@each_random
@plain_too
def test_lanczos_is_within_four_of_its_own_standard_errors(name, control_variates):
    c, alphas = RANDOM[name]
    values, errors = runs(c, alphas, range(20), probes=32, steps=40, control_variates=control_variates)
    score = np.abs(values - truth(c, alphas)) / errors
    assert score.max() < 4, f"worst by alpha: {dict(zip(alphas, score.max(axis=(0, 2)), strict=True))}"


@each_random
@plain_too
def test_lanczos_reports_the_right_standard_error(name, control_variates):
    c, alphas = RANDOM[name]
    values, errors = runs(c, alphas, range(120), probes=12, steps=32, control_variates=control_variates)
    ratio = errors.mean(axis=0) / np.sqrt(((values - truth(c, alphas)) ** 2).mean(axis=0))
    assert ratio.min() > 1 / 1.5, ratio
    assert ratio.max() < 1.5, ratio


@pytest.mark.parametrize("alpha", [-0.9, 0.0, 0.7])
def test_lanczos_on_small_graphs_is_within_four_standard_errors(any_case, alpha):
    """Where the control variates leave nothing to chance, both error and standard error vanish."""
    alphas = [tuple(alpha * np.array([1.0, -0.8])[: len(any_case.terms)])]
    values, errors = runs(any_case, alphas, range(20), probes=64)
    assert (np.abs(values - truth(any_case, alphas)) <= 4 * errors + 1e-9).all()


@pytest.mark.parametrize("alpha", [0.99, 0.999, 0.9999])
def test_default_depth_is_deep_enough_for_the_error_it_reports(alpha):
    """On a map the spectrum is dense near 1: too few steps are a bias that no number of probes shows."""
    c = grid(60, 60)
    exact = Cholesky().prepare(c.terms, c.U)
    at = np.array([alpha])
    for seed in range(3):
        ratio = Lanczos(probes=64, random_state=seed).prepare(c.terms, c.U)
        for part in ("value", "gradient"):
            found, error = getattr(ratio, part)(at)
            assert np.abs(found - getattr(exact, part)(at).value) < 4 * np.asarray(error), part


@pytest.mark.parametrize("steps", [24, 96])
@pytest.mark.parametrize(
    "c",
    [case(3_000, zip(range(2_999), range(1, 3_000), strict=True), range(0, 3_000, 2)), grid(60, 60)],
    ids=["path", "map"],
)
def test_what_few_steps_leave_near_the_limit_is_in_the_error(c, steps):
    """There the last steps change little, and all that are missing a lot."""
    exact = Cholesky().prepare(c.terms, c.U)
    for alpha in ([0.9999], [0.99999]):
        ratio = Lanczos(probes=16, steps=steps).prepare(c.terms, c.U)
        for part in ("value", "gradient"):
            found, error = getattr(ratio, part)(np.array(alpha))
            off = np.abs(found - getattr(exact, part)(np.array(alpha)).value) / np.asarray(error)
            assert off < 4, f"{part} at {alpha}"


def test_more_probes_keep_the_first_ones():
    c = small_world(n=300)
    few = Lanczos(probes=8, random_state=5).prepare(c.terms, c.U)
    many = Lanczos(probes=20, random_state=5).prepare(c.terms, c.U)
    few = few.with_effort((20, few.steps))
    at = np.array([0.9])
    assert_allclose(few.value(at), many.value(at), rtol=1e-12)
    assert_allclose(np.ravel(few.gradient(at)), np.ravel(many.gradient(at)), rtol=1e-12)
    assert few.probes == many.probes == 20


def test_standard_error_falls_with_the_root_of_the_probes():
    c = small_world(n=400)
    at = np.array([0.9])
    errors = [
        np.mean([Lanczos(probes=k, random_state=s).prepare(c.terms, c.U).value(at).stderr for s in range(20)])
        for k in (16, 64)
    ]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.25)


def test_same_seed_same_number_other_seed_another():
    c = small_world(n=300)
    at = np.array([0.9])
    first, again, other = (Lanczos(random_state=s).prepare(c.terms, c.U).value(at).value for s in (1, 1, 2))
    assert first == again != other


def test_float32_probes_agree_within_their_error():
    c = small_world(n=400)
    for alpha in map(np.array, RANDOM["small world"][1]):
        double = Lanczos(probes=32).prepare(c.terms, c.U)
        single = Lanczos(probes=32, dtype=np.float32).prepare(c.terms, c.U)
        for part in ("value", "gradient"):
            a, b = getattr(double, part)(alpha), getattr(single, part)(alpha)
            assert np.abs(np.asarray(a.value) - b.value) < 0.1 * np.asarray(a.stderr), (alpha, part)


@pytest.mark.parametrize("options", [{"probes": 1}, {"steps": 1}])
def test_too_few_probes_or_steps_are_refused(options):
    with pytest.raises(ValueError, match="at least 2"):
        Lanczos(**options)


PAPER = small_world(n=500, degree=10, share=0.5)


@pytest.mark.parametrize(("control_variates", "bar"), [(False, 0.05), (True, 0.005)], ids=["plain", "control variates"])
@pytest.mark.parametrize("subset", ["none", "U"], ids=["logdet Gamma", "logdet Gamma - logdet Gamma_UU"])
def test_the_papers_check(control_variates, bar, subset):
    """Watts-Strogatz, n = 500, mean degree 10, half labelled, alpha = .999: root mean square over 100 runs."""
    U = pick(PAPER, subset)
    expected = dense.log_ratio(PAPER.S, [0.999], U)
    strategies = (Lanczos(probes=128, steps=32, control_variates=control_variates, random_state=s) for s in range(100))
    found = [s.prepare(PAPER.terms, U).value(np.array([0.999])).value for s in strategies]
    error = np.sqrt(np.mean((np.array(found) / expected - 1) ** 2))
    assert error < bar


@pytest.mark.parametrize("apart", [2e-16, 1e-15, 1e-14])
def test_nodes_that_differ_by_rounding_are_one_node_of_the_polynomial(apart):
    """A slope through two such nodes would turn the rounding of f into anything."""
    nodes = np.array([[0.5, 0.5 + apart, 0.5 - apart, -0.5, -0.5 + apart]])
    found, merged = (
        stochastic._polynomial_fit(Quadrature(places, np.ones((1, 5))), 5) for places in (nodes, np.round(nodes, 3))
    )
    assert_allclose(found, merged, atol=1e-10)
