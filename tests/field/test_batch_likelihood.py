"""The likelihood of a random batch is that of all labels in the mean over batches, in value and every gradient."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
from graphs import CASES
from residua.field import Likelihood
from residua.field.batch_likelihood import batch_omega
from residua.linalg import Cholesky, Solver
from residua.linalg.cg import CG

NAMES = ["path", "isolate", "self-loops", "weighted", "two components", "two types"]


def setting(name, size):
    """A case with at most six labels, its likelihood, residuals and what is remembered of them."""
    case = CASES[name]
    case = case.with_labels(case.L[:6])
    likelihood = Likelihood(case.graph, case.labelled, Cholesky(), Solver(CG(tol=1e-12)))
    rng = np.random.default_rng(0)
    r, remembered = rng.standard_normal((2, len(case.L)))
    return case, likelihood, r, remembered, min(size, len(case.L)), np.full(len(case.types), -0.45)


def mean_over_batches(likelihood, r, remembered, size, alpha, beta):
    """Value, and gradients in alpha, beta and all residuals, over every batch and every choice of signs."""
    found = []
    for batch in combinations(range(len(r)), size):
        at = np.array(batch)
        for signs in product((-1.0, 1.0), repeat=size):
            one = batch_omega(likelihood, at, r[at], remembered, np.array(signs), alpha, beta)
            whole = np.zeros(len(r))
            whole[at] = one.residual
            found.append(np.r_[one.value, one.alpha, one.beta, whole])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 3])
def test_the_mean_over_all_batches_is_the_dense_likelihood_with_its_gradients(name, size):
    case, likelihood, r, remembered, size, alpha = setting(name, size)
    value = dense.omega(case.S, alpha, 1.7, case.labelled, r)
    expected = np.r_[value, np.hstack(dense.omega_gradient(case.S, alpha, 1.7, case.labelled, r))]
    for memory in (remembered, np.zeros_like(r), r):
        assert_allclose(mean_over_batches(likelihood, r, memory, size, alpha, 1.7), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_all_labels_is_exact_whatever_is_remembered(name):
    case, likelihood, r, remembered, _, alpha = setting(name, 6)
    found = batch_omega(likelihood, np.arange(len(r)), r, remembered, np.ones(len(r)), alpha, 1.7)
    by_alpha, by_beta, by_r = dense.omega_gradient(case.S, alpha, 1.7, case.labelled, r)
    assert_allclose(found.value, dense.omega(case.S, alpha, 1.7, case.labelled, r), rtol=1e-8)
    assert_allclose(
        np.r_[found.alpha, found.beta, found.residual], np.r_[by_alpha, by_beta, by_r], rtol=1e-8, atol=1e-8
    )


def test_what_is_remembered_right_leaves_nothing_to_chance():
    case, likelihood, r, _, _, alpha = setting("path", 2)
    pull = dense.omega_gradient(case.S, alpha, 1.7, case.labelled, r)[2]
    for batch in combinations(range(len(r)), 2):
        at = np.array(batch)
        found = batch_omega(likelihood, at, r[at], r, np.ones(2), alpha, 1.7)
        assert_allclose(found.residual, len(r) / 2 * pull[at], rtol=1e-8)
        assert_allclose(found.value, dense.omega(case.S, alpha, 1.7, case.labelled, r), rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_without_signs_the_others_are_as_remembered(name):
    case, likelihood, r, remembered, size, alpha = setting(name, 3)
    at = np.arange(size)
    now = remembered.copy()
    now[at] = r[at]
    by_alpha, by_beta, by_r = dense.omega_gradient(case.S, alpha, 1.7, case.labelled, now)
    found = batch_omega(likelihood, at, r[at], remembered, None, alpha, 1.7)
    assert_allclose(found.value, dense.omega(case.S, alpha, 1.7, case.labelled, now), rtol=1e-8)
    expected = np.r_[by_alpha, by_beta, len(r) / size * by_r[at]]
    assert_allclose(np.r_[found.alpha, found.beta, found.residual], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["path", "two types"])
def test_gradients_of_one_batch_are_those_of_its_value(name):
    _, likelihood, r, remembered, _, alpha = setting(name, 3)
    at, signs, step = np.array([0, 2, 3]), np.array([1.0, -1.0, -1.0]), 1e-5
    start = np.r_[r[at], alpha, 1.7]

    def omega(v):
        return batch_omega(likelihood, at, v[:3], remembered, signs, v[3:-1], v[-1])

    found = omega(start)
    slopes = [(omega(start + d).value - omega(start - d).value) / (2 * step) for d in step * np.eye(len(start))]
    assert_allclose(np.r_[found.residual, found.alpha, found.beta], slopes, rtol=1e-6, atol=1e-7)
