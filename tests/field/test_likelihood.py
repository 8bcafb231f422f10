"""The likelihood from one solve is that of a dense multivariate normal, with all its gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
from graphs import CASES, grid, small_world
from residua.field import Likelihood
from residua.field.quadratic_form import QuadraticForm
from residua.linalg import Cholesky, Eigen, Lanczos

POINTS = {
    1: [((0.5,), 1.0), ((-0.8,), 3.0), ((0.0,), 0.1), ((0.99,), 2.0), ((0.999,), 1e-3)],
    2: [((0.6, 0.3), 1.0), ((-0.9, 0.8), 3.0), ((0.5, -0.5), 0.1), ((0.0, 0.7), 2.0), ((0.99, 0.98), 1.0)],
}
each_exact = pytest.mark.parametrize("strategy", [Eigen(), Cholesky()], ids=lambda s: type(s).__name__)


def labellings(c):
    """As given; at every node; at every node but one."""
    everything = np.arange(c.n)
    return [c, c.with_labels(everything), c.with_labels(everything[1:])]


@each_exact
def test_omega_and_its_gradients_are_dense(any_case, strategy, rng):
    for c in labellings(any_case):
        likelihood = Likelihood(c.graph, c.labelled, strategy)
        r = rng.standard_normal(len(c.L))
        for alpha, beta in POINTS[len(c.terms)]:
            found = likelihood.omega(r, np.array(alpha), beta)
            by_alpha, by_beta, by_r = dense.omega_gradient(c.S, alpha, beta, c.labelled, r)
            where = f"alpha={alpha}, {len(c.L)} labels"
            close = {"rtol": 1e-8, "atol": 1e-8, "err_msg": where}
            assert_allclose(found.value, dense.omega(c.S, alpha, beta, c.labelled, r), **close)
            assert_allclose(found.alpha, by_alpha, **close)
            assert_allclose(found.beta, by_beta, **close)
            assert_allclose(found.residual, by_r, **close)
            assert found.stderr == 0
            assert (found.alpha_stderr == 0).all()


@each_exact
def test_gradients_are_the_slopes_of_omega(any_case, strategy, rng):
    """The gradient check: central differences in every argument."""
    c = any_case
    likelihood = Likelihood(c.graph, c.labelled, strategy)
    r = rng.standard_normal(len(c.L))
    alpha, beta = np.array([0.7, -0.4])[: len(c.terms)], 1.7
    at = np.concatenate([alpha, [beta], r])
    p = len(alpha)

    def omega(x):
        return likelihood.omega(x[p + 1 :], x[:p], x[p])

    found = omega(at)
    slopes = [(omega(at + d).value - omega(at - d).value) / 2e-5 for d in 1e-5 * np.eye(len(at))]
    assert_allclose([*found.alpha, found.beta, *found.residual], slopes, rtol=1e-6, atol=1e-7)


def test_component_without_label_adds_nothing(rng):
    c = CASES["component without label"]
    inside = c.graph.reached(c.labelled)
    assert inside.sum() == 4
    likelihood = Likelihood(c.graph, c.labelled, Eigen())
    assert likelihood.terms[0].shape == (4, 4)
    r = rng.standard_normal(3)
    expected = dense.omega(dense.block(c.S[0], inside)[None], [0.9], 1.0, c.labelled[inside], r)
    assert_allclose(likelihood.omega(r, np.array([0.9]), 1.0).value, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "c", [small_world(n=200), grid(14, 14), small_world(n=120, types=2)], ids=["ws", "grid", "two"]
)
@each_exact
def test_omega_is_dense_on_larger_graphs(c, strategy, rng):
    likelihood = Likelihood(c.graph, c.labelled, strategy)
    r = rng.standard_normal(len(c.L))
    for alpha, beta in POINTS[len(c.terms)]:
        found = likelihood.omega(r, np.array(alpha), beta)
        by_alpha, by_beta, by_r = dense.omega_gradient(c.S, alpha, beta, c.labelled, r)
        close = {"rtol": 1e-8, "atol": 1e-8, "err_msg": f"{alpha}"}
        assert_allclose(found.value, dense.omega(c.S, alpha, beta, c.labelled, r), **close)
        assert_allclose(found.beta, by_beta, **close)
        assert_allclose(found.residual, by_r, **close)
        assert_allclose(found.alpha, by_alpha, **close)


@pytest.mark.parametrize("c", [small_world(n=200), small_world(n=120, types=2)], ids=["one type", "two types"])
def test_estimated_omega_is_within_four_of_its_standard_errors(c, rng):
    r = rng.standard_normal(len(c.L))
    for seed in range(20):
        likelihood = Likelihood(c.graph, c.labelled, Lanczos(probes=48, random_state=seed))
        for alpha, beta in POINTS[len(c.terms)][:2]:
            found = likelihood.omega(r, np.array(alpha), beta)
            by_alpha, _, by_r = dense.omega_gradient(c.S, alpha, beta, c.labelled, r)
            assert found.stderr > 0
            assert abs(found.value - dense.omega(c.S, alpha, beta, c.labelled, r)) < 4 * found.stderr
            assert (np.abs(found.alpha - by_alpha) < 4 * found.alpha_stderr).all()
            assert_allclose(found.residual, by_r, rtol=1e-8, atol=1e-8)  # no randomness enters here


def test_unknown_strategy_is_refused():
    c = CASES["path"]
    with pytest.raises(ValueError, match=r"logdet='magic' is unknown; use \"auto\""):
        Likelihood(c.graph, c.labelled, "magic")


# Q(alpha) = R' Gbar R for every alpha


def settle(form, alpha):
    """Refine as a fit does, until Q at alpha does not move any more."""
    rounds = 0
    while form.refine(alpha):
        rounds += 1
        assert rounds < 300, "refinement does not come to an end"


def check_form(form, c, R, alpha):
    expected = R.T @ dense.schur(c.S, alpha, c.labelled) @ R
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    size = np.where(size > 0, size, 1)
    assert_allclose(form(np.array(alpha)) / size, expected / size, atol=1e-8, err_msg=f"{alpha}")


@pytest.mark.parametrize("k", [1, 3])
def test_form_is_dense_for_many_alphas(any_case, k, rng):
    for c in labellings(any_case):
        R = rng.standard_normal((len(c.L), k))
        form = QuadraticForm(Likelihood(c.graph, c.labelled, Eigen()), lambda R=R: R)
        for a in np.tanh(np.linspace(-4, 4, 17)):
            check_form(form, c, R, a * np.array([1.0, -0.9])[: len(c.terms)])


LARGER = {
    "small world": small_world(n=400, share=0.3),
    "few labels": small_world(n=400, degree=4, share=0.03),
    "grid": grid(20, 20, share=0.2),
    "chain": grid(1, 500, share=0.04),
    "two types": small_world(n=150, types=2),
}


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", LARGER)
def test_form_settles_on_the_dense_value(name, k, rng):
    c = LARGER[name]
    R = rng.standard_normal((len(c.L), k)) * 10.0 ** np.arange(0, -4 * k, -4)[:k]  # columns of unlike units
    form = QuadraticForm(Likelihood(c.graph, c.labelled, Eigen()), lambda: R)
    for a in (0.5, -0.9, 0.99, 0.9999):
        alpha = a * np.array([1.0, -0.9])[: len(c.terms)]
        settle(form, alpha)
        check_form(form, c, R, alpha)


def test_form_with_dependent_and_zero_columns(rng):
    c = LARGER["small world"]
    R = rng.standard_normal((len(c.L), 2))
    R = np.column_stack([R, R[:, 0] + R[:, 1], np.zeros(len(c.L))])
    form = QuadraticForm(Likelihood(c.graph, c.labelled, Eigen()), lambda: R)
    settle(form, np.array([0.95]))
    check_form(form, c, R, [0.95])


def test_refined_at_a_large_alpha_serves_the_smaller_ones(rng):
    c = LARGER["small world"]
    R = rng.standard_normal((len(c.L), 2))
    form = QuadraticForm(Likelihood(c.graph, c.labelled, Eigen()), lambda: R)
    settle(form, np.array([0.999]))
    assert not form.by_solves
    for a in np.linspace(-0.95, 0.999, 25):
        check_form(form, c, R, [a])


@pytest.mark.parametrize("name", ["grid", "two types"])
def test_slopes_are_those_of_the_form(name, rng):
    c = LARGER[name]
    R = rng.standard_normal((len(c.L), 2))
    form = QuadraticForm(Likelihood(c.graph, c.labelled, Eigen()), lambda: R)
    alpha = np.array([0.8, -0.5])[: len(c.terms)]
    for t, slope in enumerate(form.slopes(alpha)):
        step = 1e-5 * np.eye(len(alpha))[t]
        up, down = (R.T @ dense.schur(c.S, a, c.labelled) @ R for a in (alpha + step, alpha - step))
        assert_allclose(slope, (up - down) / 2e-5, rtol=1e-6, atol=1e-6)
