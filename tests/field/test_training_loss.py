"""The likelihood as a training loss, against dense algebra and its differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
from graphs import CASES
from residua.field.training_loss import Objective, PaperObjective

NAMES = ["path", "weighted", "isolate", "two types"]


def differences(f, v, step=1e-5):
    """Central differences of f at v, one for each number in it."""
    moves = step * np.eye(len(v))
    return np.array([(f(v + move) - f(v - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_follows_the_slope_of_the_dense_likelihood_in_alpha_and_beta(name):
    """One plain step of size 0.1 in artanh(alpha) and log(beta), on Omega a label."""
    case = CASES[name]
    rng = np.random.default_rng(1)
    r = rng.standard_normal(int(case.labelled.sum()))
    paper = PaperObjective(case.graph, case.labelled, "auto", 0)
    paper.a, paper.b = rng.uniform(-0.8, 0.8, len(case.types)), 0.7
    before = np.append(paper.a, paper.b)

    def omega(v):
        return dense.omega(case.S, np.tanh(v[:-1]), np.exp(v[-1]), case.labelled, r) / len(r)

    assert_allclose(paper._omega(before, r)[0], omega(before), rtol=1e-6)
    paper.update(r)
    assert_allclose((before - np.append(paper.a, paper.b)) / 0.1, differences(omega, before), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_the_paper_is_pulled_by_beta_times_the_quadratic_form(name):
    """Of the likelihood of the batch alone, the part that knows residuals: every other node is marginalised out."""
    case = CASES[name]
    rng = np.random.default_rng(2)
    paper = PaperObjective(case.graph, case.labelled, "auto", 0)
    paper.a, paper.b = rng.uniform(-0.8, 0.8, len(case.types)), 1.4
    batch = np.flatnonzero(case.labelled)[::2]
    r = rng.standard_normal(len(batch))
    chosen = np.isin(np.arange(case.n), batch)

    def omega(r):
        return dense.omega(case.S, np.tanh(paper.a), np.exp(paper.b), chosen, r) / len(r)

    assert_allclose(paper.batch_slope(batch, r), differences(omega, r), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_the_dense_likelihood_at_its_best_beta(name):
    case = CASES[name]
    rng = np.random.default_rng(3)
    objective = Objective(case.graph, case.labelled, tol=1e-10)
    objective._set(rng.uniform(-0.8, 0.8, len(case.types)))
    r = rng.standard_normal(int(case.labelled.sum()))

    def best(r):
        q, _, _ = dense.least_squares(case.S, objective.alpha, case.labelled, r, np.empty((case.n, 0)))
        return (dense.omega(case.S, objective.alpha, len(r) / q, case.labelled, r)) / len(r)

    value, slope = objective.loss(r)
    other, _ = objective.loss(2 * r)
    assert_allclose(other - value, best(2 * r) - best(r), rtol=1e-7)  # but for a constant
    assert_allclose(slope, differences(best, r), rtol=1e-4, atol=1e-6)
