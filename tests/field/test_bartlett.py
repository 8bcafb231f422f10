"""Bartlett's factor is the mean of the likelihood-ratio statistic over independent noise; 1 where labels are many."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma

import dense
from graphs import case, grid, small_world
from residua.field import Likelihood
from residua.field.bartlett import FEW, bartlett_factor
from residua.field.precision import A_MAX
from residua.field.profile import Profile


def factor(c, Z=None, random_state=0):
    y = np.random.default_rng(5).standard_normal(c.labelled.sum())
    Z = None if Z is None else Z[c.labelled]
    return bartlett_factor(Profile(Likelihood(c.graph, c.labelled), y, Z), Z, random_state)


def dense_statistics(c, Z, count):
    """Omega(0) - min Omega for each of ``count`` columns of noise, from the covariance of contrasts."""
    noise = np.random.default_rng(9).standard_normal((c.labelled.sum(), count))
    K = np.linalg.svd(Z[c.labelled])[0][:, Z.shape[1] :]
    w = K.T @ noise
    heights = []
    for a in np.append(np.linspace(-A_MAX, A_MAX, 240), 0.0):
        C = K.T @ dense.block(dense.covariance(c.S, [np.tanh(a)]), c.labelled) @ K
        q = np.einsum("ij,ij->j", w, np.linalg.solve(C, w))
        heights.append(len(w) * np.log(q) + np.linalg.slogdet(C)[1])
    return heights[-1] - np.min(heights, axis=0)


def pairs_and_singles():
    """Three pairs with both labels, ten with one."""
    labelled = [0, 1, 2, 3, 4, 5, *range(6, 26, 2)]
    return case(26, [(2 * k, 2 * k + 1) for k in range(13)], labelled)


@pytest.mark.parametrize(("c", "features"), [(pairs_and_singles(), 0), (pairs_and_singles(), 2), (grid(7, 7), 5)])
def test_factor_is_the_mean_of_the_dense_statistic(c, features, rng):
    Z = np.column_stack([np.ones(c.n), rng.standard_normal((c.n, features))])
    expected = dense_statistics(c, Z, 4000)
    m = c.labelled.sum() - Z.shape[1]
    least = m * (digamma(m / 2) - digamma((m - 1) / 2))
    found = [factor(c, Z, seed) for seed in range(4)]
    error = expected.std() * np.sqrt(1 / 4000 + 1 / 4000)
    assert np.mean(found) == pytest.approx(max(expected.mean(), least), abs=5 * error)


def test_factor_is_one_where_labels_are_many_and_one_where_nothing_is_left():
    assert factor(small_world(n=200, share=0.6)) == 1
    few = case(4, [(0, 1), (1, 2), (2, 3)], [0, 1, 2, 3])
    assert factor(few, np.column_stack([np.ones(4), [1.0, 2, 4, 8], [1.0, 3, 9, 27]])) == 1


def test_factor_of_several_types_is_that_of_a_regression():
    c = small_world(n=60, types=2, share=0.6)
    m = c.labelled.sum()
    assert m <= FEW
    assert_allclose(factor(c), m * (digamma(m / 2) - digamma((m - 2) / 2)) / 2)
    assert factor(c) > 1


def test_columns_that_add_nothing_leave_the_factor(rng):
    c = grid(7, 7)
    Z = np.column_stack([np.ones(c.n), rng.standard_normal((c.n, 3))])
    more = np.column_stack([Z, np.zeros((c.n, 4)), Z[:, 1:] @ rng.standard_normal((3, 2))])
    assert_allclose(factor(c, more), factor(c, Z), rtol=1e-9)
