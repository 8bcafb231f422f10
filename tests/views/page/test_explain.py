"""What the page's script gets is enough to add up to the model's own predictions."""

import base64

import numpy as np
import pytest
from numpy.testing import assert_allclose

import residua
from graphs import small_world
from residua.views.contents import Contents
from residua.views.page.explain import explanation

N = 90


def fitted(base, correlation="learned", **options):
    case = small_world(N, 6, seed=2)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(N, 2)), np.where(np.arange(N) % 3, rng.normal(size=N).cumsum(), np.nan)
    return residua.GraphRegressor(base, correlation, **options).fit(X, y, graph=case.graph)


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), "<" + packed["kind"])


@pytest.mark.parametrize("base", ["linear", "splines", "trees", "mean"])
@pytest.mark.parametrize("correlation", ["learned", "propagate"])
def test_pulls_of_neighbours_add_up_to_corrections(base, correlation):
    model = fitted(base, correlation)
    field, contents = explanation(Contents(model))["field"], Contents(model)
    start, to, entry, diagonal, r = (unpacked(field[k]) for k in ("start", "to", "entry", "diagonal", "residual"))
    for i in np.flatnonzero(np.isnan(model.y_)):
        row = slice(start[i], start[i + 1])
        assert_allclose(-(entry[row] * r[to[row]]).sum() / diagonal[i], contents.correction[i], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("base", ["linear", "splines", "trees"])
def test_contributions_of_features_add_up_to_the_base(base):
    model = fitted(base)
    found = explanation(Contents(model))["features"]
    added = np.array([unpacked(column) for column in found["added"]])
    assert_allclose(found["average"] + added.sum(axis=0), model.base_.predict(model.graph_, model.X_), atol=1e-5)
    assert_allclose(unpacked(found["values"][1]), model.X_[:, 1], rtol=1e-6)
    assert found["names"] == ["feature 0", "feature 1"]


def test_a_feature_that_a_base_does_not_use_adds_nothing():
    case = small_world(N, 6, seed=2)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=N), np.ones(N)])
    model = residua.GraphRegressor("trees").fit(X, X[:, 0] + 0.1 * rng.normal(size=N), graph=case.graph)
    assert_allclose(model.base_.contributions(model.X_)[:, 1], 0, atol=1e-12)
    assert np.ptp(model.base_.contributions(model.X_)[:, 0]) > 1


def test_what_the_coefficients_do_is_in_the_lever():
    """The covariance of the page is that of the model's draws: G_UU^-1 / beta and the coefficients' part."""
    model = fitted("linear")
    field = explanation(Contents(model))["field"]
    start, to, entry, diagonal = (unpacked(field[k]) for k in ("start", "to", "entry", "diagonal"))
    G = np.diag(diagonal)
    for i in range(N):
        G[i, to[start[i] : start[i + 1]]] = entry[start[i] : start[i + 1]]
    unknown = np.isnan(model.y_)
    lever = np.array([unpacked(column) for column in field["lever"]])[:, unknown]
    covariance = np.linalg.inv(G[np.ix_(unknown, unknown)]) / field["beta"] + lever.T @ lever
    assert_allclose(np.sqrt(np.diag(covariance)), model.predict(return_std=True)[1][unknown], rtol=1e-8)


def test_bases_that_cannot_say_and_models_without_a_correlation_leave_it_out():
    from sklearn.neighbors import KNeighborsRegressor

    assert explanation(Contents(fitted(KNeighborsRegressor())))["features"] is None
    assert explanation(Contents(fitted("linear", None)))["field"] is None
    every = fitted("linear")
    model = residua.GraphRegressor("linear").fit(every.X_, every.predict(), graph=every.graph_)
    assert explanation(Contents(model))["field"]["whatIf"] is False
