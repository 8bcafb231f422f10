"""Streamers: components of their features, and views."""

import numpy as np
import pytest
import scipy.sparse as sp

from residua.datasets import load_twitch
from residua.reproduction.datasets.twitch import _components, _read_features


def test_components_are_the_leading_singular_vectors(rng):
    rows = sp.csr_array((rng.random((200, 40)) < 0.2).astype(float))
    U, _, _ = np.linalg.svd(rows.toarray().T)
    expected = U[:, :8] * np.sign(U[:, :8].sum(axis=0))
    np.testing.assert_allclose(_components(rows), expected, atol=1e-9)


def test_components_of_six_countries_have_positive_sums(data_folder, twitch):
    features = [_read_features(path) for path in sorted(data_folder.glob("twitch/*/*_features.json"))]
    rows = sp.vstack(features, format="csr")
    assert rows.shape == (34118, 3170)
    assert rows.max() == 1
    vectors = _components(rows)
    assert (vectors.sum(axis=0) > 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)
    strength = np.linalg.norm(rows @ vectors, axis=0)
    assert (np.diff(strength) < 0).all()
    np.testing.assert_allclose(rows.T @ (rows @ vectors), vectors * strength**2, atol=1e-6)
    np.testing.assert_allclose(twitch.X, features[4] @ vectors, atol=1e-10)


def test_views_are_standardised_logarithms_and_features_are_left_alone(twitch, standardised):
    assert standardised(twitch.y)
    assert np.corrcoef(np.log1p(twitch.nodes["views"]), twitch.y)[0, 1] == pytest.approx(1)
    assert twitch.nodes["views"].min() == 0
    assert not standardised(twitch.X)


def test_two_loads_agree_to_the_last_bit(twitch):
    assert (load_twitch().X.to_numpy() == twitch.X.to_numpy()).all()


@pytest.mark.parametrize(
    ("country", "nodes", "edges"),
    [("DE", 9498, 153138), ("ENGB", 7126, 35324), ("ES", 4648, 59382), ("FR", 6549, 112666), ("RU", 4385, 37304)],
)
def test_other_countries_load_too(data_folder, country, nodes, edges):
    data = load_twitch(country)
    assert (data.graph.n_nodes, data.graph.n_edges) == (nodes, edges)
    assert any("listed twice" in note for note in data.notes[3:]) == (country == "FR")


def test_unknown_country_is_named():
    with pytest.raises(ValueError, match="country='BR' is unknown; use one of 'DE', 'ENGB'"):
        load_twitch("BR")
