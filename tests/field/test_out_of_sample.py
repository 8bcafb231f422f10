"""beta from labels that networks did not learn from, against dense conditional distributions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
from graphs import small_world
from residua.bases.base import Base, Outcome
from residua.field.fitted import FittedField
from residua.field.out_of_sample import FEW, RELATIVE_VARIANCE, _share_of_ambiguity, with_out_of_sample_beta


class Several(Base):
    """A base whose members' predictions (k, n) are given."""

    name = "several"

    def __init__(self, each):
        self.each = each

    def _fit(self, task, correlation):
        raise NotImplementedError

    def predict(self, graph, X):
        return self.each.mean(axis=0)

    def predict_members(self, graph, X):
        return self.each


def fitted(case, truth, each, unseen, alpha, beta, optimism=None):
    y = np.where(case.labelled, truth, np.nan)
    residuals = (truth - each)[:, case.labelled]
    unknown = np.full(residuals.shape[1], np.nan)
    outcome = Outcome(residuals.mean(axis=0), unknown, None, residuals, unseen, optimism)
    alphas = dict.fromkeys(case.types, alpha)
    return FittedField(case.graph, np.empty((case.n, 0)), y, Several(each), outcome, alphas, alphas, beta)


def misfit(S, alpha, labelled, learned, r):
    """The squared Mahalanobis distance of residuals r (n,) not learned from to their mean given others; the errors."""
    C = dense.covariance(S, [alpha])
    T, V = np.flatnonzero(learned), np.flatnonzero(labelled & ~learned)
    weights = dense.block(C, V, T) @ np.linalg.inv(dense.block(C, T))
    error = r[V] - weights @ r[T]
    return error @ np.linalg.solve(dense.block(C, V) - weights @ dense.block(C, T, V), error), error


def tails(case, alpha, residuals, unseen):
    """Half of the way from the mean square of standardised leave-one-out errors to what their 90 % quantile says."""
    each = []
    for r, hidden in zip(residuals, unseen, strict=True):
        errors, variances = dense.leave_one_out(case.S, [alpha], 1.0, case.labelled, r)
        each.append(np.abs(errors / np.sqrt(variances))[hidden])
    z = np.concatenate(each)
    return (np.quantile(z, 0.9) / 1.6448536 / np.sqrt(np.mean(z**2))) ** (len(z) / (len(z) + FEW))


@pytest.mark.parametrize("alpha", [0.9, 0.0, -0.6])
@pytest.mark.parametrize("optimism", [None, 1.3])
def test_one_network_has_the_variance_of_residuals_it_did_not_learn_from_given_the_others(alpha, optimism):
    case, rng = small_world(60, 6, seed=1), np.random.default_rng(0)
    r = dense.draw(case.S, [alpha], 4.0, rng)[0]
    unseen = rng.random(len(case.L)) < 0.3
    learned = case.labelled.copy()
    learned[case.L[unseen]] = False
    found = with_out_of_sample_beta(
        fitted(case, r, np.zeros((1, case.n)), unseen[None], alpha, 50.0, optimism and np.array([optimism]))
    )
    variance = (optimism or 1.0) * misfit(case.S, alpha, case.labelled, learned, r)[0] / unseen.sum()
    variance *= tails(case, alpha, r[None, case.L], unseen[None])
    expected = variance + RELATIVE_VARIANCE / unseen.sum() * max(variance, 1 / 50)
    assert_allclose(found.beta, 1 / expected, rtol=1e-6)
    assert_allclose(found.error_scale, np.sqrt(optimism or 1.0), rtol=1e-12)


def test_an_average_is_spared_what_its_networks_differ_by():
    case, rng = small_world(60, 6, seed=2), np.random.default_rng(1)
    truth, alpha = dense.draw(case.S, [0.8], 1.0, rng)[0], 0.8
    each = 0.4 * rng.standard_normal((3, case.n))
    unseen = np.arange(len(case.L)) % 3 == np.arange(3)[:, None]
    found = with_out_of_sample_beta(fitted(case, truth, each, unseen, alpha, 2.0))
    total, squares, corrected = 0.0, [], []
    for own, hidden in zip(each, unseen, strict=True):
        learned = case.labelled.copy()
        learned[case.L[hidden]] = False
        q, error = misfit(case.S, alpha, case.labelled, learned, truth - own)
        mean = dense.conditional(case.S, [alpha], 1.0, case.labelled, (truth - own)[case.L])[0]
        total, squares = total + q, [*squares, *(error**2)]
        corrected.append(own[case.U] + mean)
    share = 1 - np.var(corrected, axis=0).mean() / np.mean(squares)
    variance = share * total / len(case.L) * tails(case, alpha, (truth - each)[:, case.L], unseen)
    assert 0.3 < share < 0.98
    assert_allclose(1 / found.beta, variance + RELATIVE_VARIANCE / len(case.L) * max(variance, 0.5), rtol=1e-6)
    assert_allclose(found.error_scale, np.sqrt(share), rtol=1e-6)


def test_independent_errors_spare_at_most_what_their_average_does():
    case, rng = small_world(60, 6, seed=2), np.random.default_rng(1)
    each = np.where(case.labelled, 0, 100.0) * rng.standard_normal((4, case.n))  # far apart where nothing is known
    unseen = np.arange(len(case.L)) % 4 == np.arange(4)[:, None]
    found = with_out_of_sample_beta(fitted(case, rng.standard_normal(case.n), each, unseen, 0.0, 1.0))
    assert_allclose(found.error_scale, 0.5)


def test_nothing_changes_where_no_label_was_left_out():
    case = small_world(60, 6, seed=2)
    r = np.random.default_rng(0).standard_normal(case.n)
    field = fitted(case, r, np.zeros((1, case.n)), np.zeros((1, len(case.L)), bool), 0.5, 2.0)
    assert with_out_of_sample_beta(field) is field
    other = replace(field, outcome=Outcome(r[case.L], r[case.L]))
    assert with_out_of_sample_beta(other) is other


def test_long_tails_do_not_widen_the_intervals_of_all():
    case, off = small_world(2000, 6, seed=2), {"mean square": [], "both": []}
    for seed in range(8):
        values = np.random.default_rng(seed).standard_t(4, 20_000)
        r, unseen = values[: case.n], np.ones((1, len(case.L)), bool)
        beta = with_out_of_sample_beta(fitted(case, r, np.zeros((1, case.n)), unseen, 0.0, 1.0)).beta
        for name, variance in (("mean square", np.mean(r[case.L] ** 2)), ("both", 1 / beta)):
            off[name].append(np.mean(np.abs(values) < 1.645 * np.sqrt(variance)) - 0.9)
    found = {name: np.mean(each) for name, each in off.items()}
    assert found["mean square"] > 0.015
    assert 0 < found["both"] < 0.7 * found["mean square"]


def test_tails_of_a_gaussian_leave_its_variance():
    case, found = small_world(2000, 6, seed=2), []
    for seed in range(8):
        r, unseen = np.random.default_rng(seed).standard_normal(case.n), np.ones((1, len(case.L)), bool)
        beta = with_out_of_sample_beta(fitted(case, r, np.zeros((1, case.n)), unseen, 0.0, 1.0)).beta
        found.append(1 / beta / np.mean(r[case.L] ** 2))
    assert abs(np.mean(found) - 1) < 0.02


def test_propagation_counts_no_label_that_sets_the_level_of_its_component():
    case, rng = small_world(60, 6, seed=3), np.random.default_rng(0)
    r = np.cumsum(rng.standard_normal(case.n))
    unseen = np.ones((1, len(case.L)), bool)  # a network that learned from none of them: as propagation itself has it
    field = fitted(case, r, np.zeros((1, case.n)), unseen, 1.0, 1.0)
    found = with_out_of_sample_beta(field)
    q = dense.schur(case.S, [1 - 1e-9], case.labelled)
    q = r[case.L] @ q @ r[case.L]
    variance = q / (len(case.L) - 1) * tails(case, 1 - 1e-9, r[None, case.L], unseen)
    inflated = variance + RELATIVE_VARIANCE / len(case.L) * max(variance, 1.0)
    assert_allclose(1 / found.beta, inflated, rtol=1e-5)


def test_a_label_that_several_members_left_out_is_spared_less_than_one_that_a_single_one_did():
    """Errors of k members that differ by noise: those of the average of c, scaled, are of the size of the average's."""
    rng, k, c = np.random.default_rng(0), 6, 2
    shared, own = rng.standard_normal(200_000), 0.8 * rng.standard_normal((k, 200_000))
    hidden = (np.arange(200_000) + np.arange(k)[:, None]) % k < c
    single = np.mean((shared + own) ** 2)
    ambiguity = own.var(axis=0).mean() / single
    several = np.mean((shared + (own * hidden).sum(axis=0) / c) ** 2)
    scale = (1 - ambiguity) / (1 - ambiguity * _share_of_ambiguity(hidden))
    assert_allclose(scale * several, np.mean((shared + own.mean(axis=0)) ** 2), rtol=0.01)
    assert _share_of_ambiguity(np.eye(k, dtype=bool)) == 0
    assert_allclose(_share_of_ambiguity(np.ones((k, 5), bool)), 1)
