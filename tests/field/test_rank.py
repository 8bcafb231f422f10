"""Coefficients count by the rank of the design at the labels: columns that add nothing change no number."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
import residua
from graphs import grid, small_world
from residua import GraphRegressor


def problem(seed=0, types=1):
    c = small_world(n=110, degree=6, share=0.6, seed=seed, types=types)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((c.n, 3))
    truth = 1 + X @ [1.0, -1.0, 0.5] + dense.draw(c.S, [0.9, 0.3][:types], 2.0, rng)[0]
    return c, X, np.where(c.labelled, truth, np.nan)


def surplus(X, labelled, kind):
    """Columns that say nothing at the labels that X and a constant do not say."""
    n, rng = len(X), np.random.default_rng(1)
    return {
        "zeros": lambda: np.zeros((n, 200)),
        "constants": lambda: np.tile([0.1, 1e9 / 3, -7e-5], (n, 1)),
        "constants but for rounding": lambda: (
            np.tile([0.1, 1e9 / 3], (n, 1)) * (1 + 2e-16 * rng.integers(-2, 3, (n, 2)))
        ),
        "copies": lambda: np.column_stack([X, 3 * X[:, :1]]),
        "combinations": lambda: X @ rng.standard_normal((3, 30)) + rng.standard_normal(30),
        "levels without a label": lambda: np.where(labelled[:, None], 0.0, rng.random((n, 9)) < 0.2),
    }[kind]()


KINDS = ("zeros", "constants", "constants but for rounding", "copies", "combinations", "levels without a label")


@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_add_nothing_change_no_number(kind, correlation):
    c, X, y = problem()
    more = np.column_stack([X, surplus(X, c.labelled, kind)])
    one, other = (GraphRegressor("linear", correlation=correlation).fit(Z, y, graph=c.graph) for Z in (X, more))
    assert_allclose(other.beta_, one.beta_, rtol=1e-8)
    assert_allclose(other.alpha_["edge"], one.alpha_["edge"], rtol=1e-8)
    for ours, theirs in zip(other.predict(return_std=True), one.predict(return_std=True), strict=True):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    for how in ("jackknife", "gaussian"):
        assert_allclose(other.predict_interval(method=how), one.predict_interval(method=how), rtol=1e-7, atol=1e-8)
    left_out, expected = (m.predict(return_std=True, known="predict") for m in (other, one))
    assert_allclose(left_out, expected, rtol=1e-7, atol=1e-8)
    if correlation == "learned":
        assert_allclose(other.correlation_.interval()["edge"], one.correlation_.interval()["edge"], rtol=1e-6)
        assert_allclose(other.correlation_.beta_stderr, one.correlation_.beta_stderr, rtol=1e-5)
        assert_allclose(other.correlation_.p_value, one.correlation_.p_value, rtol=1e-6)
        for name in ("log_likelihood", "restricted_log_likelihood"):
            assert_allclose(getattr(other.correlation_, name), getattr(one.correlation_, name), rtol=1e-9)


@pytest.mark.parametrize("kind", ["zeros", "copies"])
def test_columns_that_add_nothing_change_no_number_of_two_edge_types(kind):
    c, X, y = problem(types=2)
    more = np.column_stack([X, surplus(X, c.labelled, kind)])
    one, other = (GraphRegressor("linear").fit(Z, y, graph=c.graph) for Z in (X, more))
    assert_allclose(list(other.alpha_.values()), list(one.alpha_.values()), atol=1e-5)
    assert_allclose(other.predict(return_std=True), one.predict(return_std=True), rtol=1e-4, atol=1e-6)


def test_a_level_that_gets_its_label_later_is_estimated_then():
    """The design of a conditional on more labels is the one that was given, not what it spans at the first labels."""
    c, X, y = problem()
    level = (np.flatnonzero(~c.labelled)[:6, None] == np.arange(c.n)).any(axis=0)
    model = GraphRegressor("linear").fit(np.column_stack([X, level]), y, graph=c.graph)
    given = model.field_.prediction.conditional
    later = given.given(c.labelled | level)
    assert given.coefficients.design.shape[1] == 4
    assert later.coefficients.design.shape[1] == 5


def test_covariance_of_coefficients_is_dense():
    c, X, y = problem()
    fit = GraphRegressor("linear").fit(X, y, graph=c.graph).correlation_
    known = X[c.labelled]
    Z = np.column_stack([np.ones(c.n), (X - known.mean(axis=0)) / known.std(axis=0)])
    q, theta, spread = dense.least_squares(c.S, [fit.alpha["edge"]], c.labelled, y[c.labelled], Z)
    freedom = c.labelled.sum() - 4
    assert_allclose(fit.beta, freedom / q, rtol=1e-7)
    assert_allclose(fit.coefficients, theta, rtol=1e-6, atol=1e-8)
    assert_allclose(fit.coefficient_covariance, spread * q / freedom, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("features", [19, 20, 40])
def test_as_many_columns_as_labels_are_refused_whatever_the_correlation(features, rng):
    c = grid(8, 8)
    y = np.full(c.n, np.nan)
    y[rng.choice(c.n, 20, replace=False)] = rng.standard_normal(20)
    X = rng.standard_normal((c.n, features))
    for correlation in ("learned", "propagate", None):
        with pytest.raises(ValueError, match=r"fits all 20 labels exactly with .* column"):
            GraphRegressor("linear", correlation=correlation).fit(X, y, graph=c.graph)


def test_one_degree_of_freedom_tells_nothing_of_alpha_and_says_so(rng):
    """One number is left, and its scale is beta: the restricted likelihood is flat."""
    c = grid(8, 8)
    y = np.full(c.n, np.nan)
    y[rng.choice(c.n, 20, replace=False)] = rng.standard_normal(20)
    line = r"the 20 labels do not tell alpha beside 19 coefficient\(s\) of the mean: .* kept at 0"
    with pytest.warns(UserWarning, match=line):
        model = GraphRegressor("linear").fit(rng.standard_normal((c.n, 18)), y, graph=c.graph)
    assert model.alpha_ == {"edge": 0.0}
    assert model.correlation_.interval() == {"edge": (-1.0, 1.0)}
    assert model.correlation_.p_value == pytest.approx(1.0, abs=1e-3)
    assert np.isfinite(model.predict(return_std=True)).all()
    diagnosis = model.diagnose()
    assert diagnosis.untold
    assert "labels do not tell the correlation, which is kept at 0" in diagnosis.verdict
    assert model.correlation_.note in diagnosis.warnings
    assert "No correction was asked for" not in str(diagnosis)


def test_models_with_other_features_are_compared_by_the_plain_likelihood(rng):
    """A feature that matters raises it by what it explains; one that does not, by half a chi-square or so."""
    c, X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = [GraphRegressor("linear").fit(X[:, :d], y, graph=c.graph).correlation_ for d in (2, 3)]
        noise = np.column_stack([X, rng.standard_normal(c.n)])
        more = GraphRegressor("linear").fit(noise, y, graph=c.graph).correlation_
    assert fits[1].log_likelihood - fits[0].log_likelihood > 3
    assert abs(more.log_likelihood - fits[1].log_likelihood) < 4
    residual = residua.fit_correlation(y - np.nanmean(y), c.graph)
    assert residual.log_likelihood == residual.restricted_log_likelihood
