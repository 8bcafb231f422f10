"""Units and offsets change nothing, however extreme; where floats cannot hold what is asked, one line says so."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

import residua
from residua.bases.base import standardisation
from residua.graph import Graph

N = 100
RNG = np.random.default_rng(0)
GRID = np.arange(N).reshape(10, 10)
GRAPH = Graph.from_edges(
    np.append(GRID[:, :-1].ravel(), GRID[:-1].ravel()), np.append(GRID[:, 1:].ravel(), GRID[1:].ravel())
)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, -2.0] + RNG.normal(size=N)
Y[::3] = np.nan


def fitted(X=X, y=Y, base="linear"):
    with warnings.catch_warnings(action="error"):
        return residua.GraphRegressor(base).fit(X, y, graph=GRAPH)


@pytest.mark.parametrize("scale", [1e155, 1e300, 1e-155, 1e-200, 1e-300, [1e155, 1e-200]])
def test_features_of_any_size_say_the_same(scale):
    expected, found = fitted(), fitted(X * scale)
    assert found.alpha_["edge"] == pytest.approx(expected.alpha_["edge"], abs=1e-6)
    for there, here in zip(expected.predict(return_std=True), found.predict(return_std=True), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-8)


def test_networks_see_features_of_any_size():
    pytest.importorskip("torch")
    settings = residua.Network("mlp", epochs=20)
    for scale in (2.0**520, 2.0**-700):  # powers of two, so that not a digit differs
        np.testing.assert_array_equal(fitted(X * scale, base=settings).predict(), fitted(base=settings).predict())


def test_standardisation_is_exact_under_powers_of_two():
    centre, spread = standardisation(X)
    for power in (-900, 0, 900):
        found = standardisation(np.ldexp(X, power))
        np.testing.assert_array_equal(found, np.ldexp([centre, spread], power))
    np.testing.assert_allclose([centre, spread], [X.mean(axis=0), X.std(axis=0)], rtol=1e-14)


def test_features_far_from_zero_are_not_constant():
    moved = X + 1e12
    np.testing.assert_allclose(fitted(moved).predict(), fitted(moved - 1e12).predict(), atol=2e-3)


def test_features_at_the_end_of_floats_are_refused():
    with pytest.raises(ValueError, match=r"X has numbers near 1e308.*divide its columns by 1000"):
        fitted(np.where(np.arange(N)[:, None] == 4, 1.7e308, X))


@pytest.mark.parametrize("base", ["linear", "mean", "zero", "trees"])
@pytest.mark.parametrize("scale", [1e-160, 1e-300, 1e155, 1e300])
def test_labels_whose_squares_are_no_floats_are_refused(base, scale):
    with pytest.raises(ValueError, match=r"y has numbers up to \S+, and floats do not hold their squares; give it in"):
        fitted(y=Y * scale, base=base)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_advice_can_be_followed(scale):
    np.testing.assert_allclose(fitted(y=Y * scale).predict() / scale, fitted().predict(), rtol=1e-6, atol=1e-8)


def test_later_labels_that_are_too_large_are_refused():
    later = np.full(N, np.nan)
    later[0] = 1e200
    with pytest.raises(ValueError, match=r"y has numbers up to 1e\+200"):
        fitted().predict(y=later)


@pytest.mark.parametrize("base", ["linear", "mean", Ridge()])
@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
def test_an_offset_of_1e14_moves_predictions_and_is_told(base, correlation):
    rounded = (Y + 1e14) - 1e14  # what is left of the labels
    model = residua.GraphRegressor(base, correlation)
    expected = model.fit(X, rounded, graph=GRAPH).predict()
    with pytest.warns(UserWarning, match=r"y lies near 1e\+14 and varies by \S+ only, which leaves floats \d+ steps"):
        model.fit(X, Y + 1e14, graph=GRAPH)
    np.testing.assert_allclose(model.predict() - 1e14, expected, atol=0.1)
    assert model.alpha_["edge"] == pytest.approx(
        residua.GraphRegressor(base, correlation).fit(X, rounded, graph=GRAPH).alpha_["edge"], abs=0.02
    )


def test_coefficients_and_errors_bear_an_offset():
    plain, moved = fitted(y=np.round(Y * 64) / 64), fitted(y=np.round(Y * 64) / 64 + 2.0**30)
    change = moved.correlation_.coefficients - plain.correlation_.coefficients
    np.testing.assert_allclose(change, [2.0**30, 0, 0], atol=1e-5)
    np.testing.assert_allclose(moved.outcome_.base_out_of_fold_error, plain.outcome_.base_out_of_fold_error, atol=1e-12)


@pytest.mark.parametrize("base", ["linear", "zero", Ridge()])
def test_labels_that_are_rounded_away_are_refused(base):
    with pytest.raises(ValueError, match=r"y lies near 1e\+16 and varies by \S+ only.*subtract a constant from y"):
        fitted(y=Y + 1e16, base=base)


@pytest.mark.parametrize("base", ["linear", "mean", "trees", Ridge()])
@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
def test_labels_of_few_digits_are_refused_for_that_and_not_as_constant(base, correlation):
    with pytest.raises(
        ValueError, match=r"y lies near 1e\+15 and varies by \S+ only, which leaves floats \d+ steps; sub"
    ):
        residua.GraphRegressor(base, correlation).fit(X, Y + 1e15, graph=GRAPH)


def test_networks_bear_an_offset_of_1e14():
    pytest.importorskip("torch_geometric")
    model, y = residua.GraphRegressor("mlp", None), 8 * Y / (np.nanmax(Y) - np.nanmin(Y))  # 512 steps of floats
    expected = model.fit(X, (y + 1e14) - 1e14, graph=GRAPH).predict()
    with pytest.warns(UserWarning, match=r"y lies near 1e\+14"):
        model.fit(X, y + 1e14, graph=GRAPH)
    np.testing.assert_allclose(model.predict() - 1e14, expected, atol=0.2 * np.nanstd(y))


@pytest.mark.parametrize("scale", [1e-100, 1e-45, 1e40, 1e100])
def test_labels_that_boosted_trees_cannot_see_are_refused_and_the_advice_works(scale):
    with pytest.raises(
        ValueError, match=r"y varies by \S+, which boosted trees do not see.*such as y \* \S+\."
    ) as error:
        fitted(y=Y * scale, base=HistGradientBoostingRegressor())
    unit = float(str(error.value).rsplit("y * ", 1)[1].rstrip("."))
    mended, plain = (fitted(y=Y * s, base=HistGradientBoostingRegressor()).predict() / s for s in (scale * unit, 1.0))
    np.testing.assert_allclose(mended, plain, rtol=1e-4, atol=1e-4)
