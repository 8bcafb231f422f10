"""Noise that blocks compute without a message has the covariance of one machine's, whatever the sign of alpha."""

import numpy as np
import pytest

from graphs import CASES
from residua.backends.dask.noise import hashed_noise


@pytest.mark.parametrize("alpha", [-0.9, 0.6])
@pytest.mark.parametrize("name", ["star", "weighted", "self-loops", "isolate"])
def test_the_covariance_of_noise_is_the_identity_minus_alpha_s(name, alpha):
    case, count = CASES[name], 40_000
    X = hashed_noise(case.terms[0], np.arange(case.n), alpha, seed=5)(count)
    expected = np.eye(case.n) - alpha * case.S[0]
    own = np.diag(expected)
    stderr = np.sqrt((np.outer(own, own) + expected**2) / count)  # of a product of two normals
    assert (np.abs(X @ X.T / count - expected) < 4.5 * stderr + 1e-12).all()
    assert (np.abs(X.mean(axis=1)) < 4.5 * np.sqrt(own / count) + 1e-12).all()


def test_columns_go_on_where_the_last_call_ended():
    case = CASES["weighted"]
    whole, parts = (hashed_noise(case.terms[0], np.arange(case.n), -0.5, seed=2) for _ in range(2))
    assert np.array_equal(whole(5), np.hstack([parts(2), parts(3)]))


def test_a_row_of_a_block_draws_what_the_whole_graph_draws_there():
    """A block knows its rows under numbers of its own; their places in the whole graph decide."""
    case = CASES["weighted"]
    order = np.random.default_rng(0).permutation(case.n)
    turned = case.terms[0].submatrix(order)
    whole = hashed_noise(case.terms[0], np.arange(case.n), -0.5, seed=2)(3)
    np.testing.assert_allclose(hashed_noise(turned, order, -0.5, seed=2)(3), whole[order], atol=1e-12)
