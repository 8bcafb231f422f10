"""Coefficients in the units of the data against dense algebra, and how they are shown."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm, t
from sklearn.linear_model import Ridge

import dense
import residua
from graphs import small_world
from residua import GraphRegressor, Network
from residua.views.page.html import report_html

COLUMNS = ["estimate", "std_error", "statistic", "p_value", "lower", "upper"]


@pytest.fixture(scope="module")
def problem():
    """A small world whose features have units of their own, far from zero and from each other."""
    case = small_world(n=120, degree=6, share=0.6, seed=3)
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.standard_normal((120, 3)) * [2000.0, 1e-4, 1.0] + [60_000.0, 0.5, -3.0])
    X.columns = ["income", "rate", "noise"]
    truth = 5 + X.to_numpy() @ [1e-3, 2e4, 0.0] + dense.draw(case.S, [0.9], 4.0, rng)[0]
    return case, X, np.where(case.labelled, truth, np.nan)


def test_coefficients_are_those_of_generalised_least_squares_on_the_features_as_given(problem):
    case, X, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    found = model.summary().coefficients
    Z = np.column_stack([np.ones(120), X])
    _, theta, spread = dense.least_squares(case.S, [model.alpha_["edge"]], case.labelled, y[case.L], Z)
    error = np.sqrt(np.diag(spread) / model.beta_)
    assert found.index.tolist() == ["intercept", "income", "rate", "noise"]
    assert found.columns.tolist() == COLUMNS
    assert_allclose(found["estimate"], theta, rtol=1e-6)
    assert_allclose(found["std_error"], error, rtol=1e-6)
    assert_allclose(found["statistic"], theta / error, rtol=1e-5)
    assert_allclose(found["p_value"], 2 * norm.sf(np.abs(theta / error)), rtol=1e-3, atol=1e-12)
    assert_allclose(found["lower"], theta - norm.ppf(0.975) * error, rtol=1e-5)
    wide = model.summary(coverage=0.99).coefficients
    assert_allclose(wide["upper"], theta + norm.ppf(0.995) * error, rtol=1e-5)


def test_without_a_correlation_they_are_those_of_least_squares_with_students_t(problem):
    case, X, y = problem
    summary = GraphRegressor("linear", None).fit(X, y, graph=case.graph).summary()
    found, Z, freedom = summary.coefficients, np.column_stack([np.ones(120), X])[case.L], len(case.L) - 4
    theta, *_ = np.linalg.lstsq(Z, y[case.L])
    rest = y[case.L] - Z @ theta
    error = np.sqrt(np.diag(np.linalg.inv(Z.T @ Z)) * (rest @ rest) / freedom)
    assert summary.statistic == "t"
    assert_allclose(found["estimate"], theta, rtol=1e-6)
    assert_allclose(found["std_error"], error, rtol=1e-6)
    assert_allclose(found["p_value"], 2 * t.sf(np.abs(theta / error), freedom), rtol=1e-3, atol=1e-12)
    assert_allclose(found["upper"], theta + t.ppf(0.975, freedom) * error, rtol=1e-5)
    likelihood = norm.logpdf(rest, scale=np.sqrt(np.mean(rest**2))).sum()
    assert_allclose(summary.facts["aic"], 2 * 5 - 2 * likelihood)
    assert_allclose(summary.facts["bic"], 5 * np.log(len(rest)) - 2 * likelihood)
    assert np.isnan(summary.facts["p_value"])


def test_information_criteria_are_those_of_the_gaussian_density(problem):
    case, X, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    Z, alpha, n = np.column_stack([np.ones(120), X]), [model.alpha_["edge"]], len(case.L)
    q, theta, _ = dense.least_squares(case.S, alpha, case.labelled, y[case.L], Z)
    C = dense.block(dense.covariance(case.S, alpha, n / q), case.L)
    likelihood = multivariate_normal.logpdf(y[case.L], Z[case.L] @ theta, C)
    facts = model.summary().facts
    assert_allclose(facts["log_likelihood"], likelihood, rtol=1e-6)
    assert_allclose(facts["aic"], 2 * 6 - 2 * likelihood, rtol=1e-6)
    assert_allclose(facts["bic"], 6 * np.log(n) - 2 * likelihood, rtol=1e-6)
    assert (facts["labels"], facts["nodes"], facts["degrees_of_freedom"]) == (n, 120, n - 4)
    assert_allclose(facts["std_given_neighbours"], model.beta_**-0.5)


def test_intervals_cover_the_true_coefficients():
    """Simulated data with 210 labels; with a quarter of them intervals of 95 % cover some 91 %: alpha is estimated."""
    case, true, inside = small_world(n=300, degree=6, share=0.7, seed=5), np.array([2, 0.3, -4.0]), []
    for seed in range(100):
        rng = np.random.default_rng([7, seed])
        X = rng.standard_normal((300, 2)) * [10.0, 0.1] + 5
        truth = 2 + X @ true[1:] + dense.draw(case.S, [0.8], 1.0, rng)[0]
        model = GraphRegressor("linear").fit(X, np.where(case.labelled, truth, np.nan), graph=case.graph)
        found = model.summary().coefficients
        inside += ((found["lower"] < true) & (found["upper"] > true)).tolist()
    assert abs(np.mean(inside) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / len(inside))


def test_alpha_has_the_interval_and_test_of_its_fit(problem):
    case, X, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    summary = model.summary()
    low, high = model.correlation_.interval()["edge"]
    expected = [model.alpha_["edge"], model.alpha_stderr_["edge"], low, high]
    assert_array_equal(summary.alpha.loc["edge"].to_numpy(), expected)
    assert summary.facts["p_value"] == model.correlation_.p_value
    assert summary.methods == model.correlation_.methods
    frame = summary.to_frame()
    assert frame.index.tolist() == ["intercept", "income", "rate", "noise", "alpha[edge]"]
    assert frame.loc["alpha[edge]", "estimate"] == model.alpha_["edge"]


def test_terms_that_labels_do_not_tell_apart_have_no_error(problem):
    case, X, y = problem
    X = X.assign(twice=2 * X["noise"], flat=7.0)
    summary = GraphRegressor("linear").fit(X, y, graph=case.graph).summary()
    unclear = summary.coefficients["std_error"].isna()
    assert unclear.index[unclear].tolist() == ["intercept", "noise", "twice", "flat"]
    assert summary.notes == ("labels do not tell from other terms: intercept, noise, twice, flat.",)
    assert summary.facts["degrees_of_freedom"] == len(case.L) - 4
    alone = GraphRegressor("linear").fit(X[["income", "rate", "noise"]], y, graph=case.graph).summary()
    assert_allclose(summary.coefficients.loc["income"], alone.coefficients.loc["income"], rtol=1e-5)


def test_other_bases_have_a_summary_without_coefficients(problem):
    case, X, y = problem
    mean = GraphRegressor("mean").fit(None, y, graph=case.graph).summary()
    assert mean.coefficients.index.tolist() == ["intercept"]
    assert np.isfinite(mean.facts["aic"])
    ridge = GraphRegressor(Ridge(), folds=3).fit(X, y, graph=case.graph).summary()
    network = GraphRegressor(Network("mlp", widths=(4,), epochs=3), training="paper").fit(X, y, graph=case.graph)
    for summary in (ridge, network.summary(), GraphRegressor("zero").fit(None, y, graph=case.graph).summary()):
        assert len(summary.coefficients) == 0
        assert "alpha[edge]" in str(summary)
        assert "alpha[edge]" in summary._repr_html_()
    assert np.isnan(ridge.facts["aic"])
    propagated = GraphRegressor("linear", "propagate").fit(X, y, graph=case.graph).summary()
    assert propagated.coefficients["std_error"].isna().all()
    assert "does not know of the correlation" in propagated.notes[0]


def test_print_shows_the_table_after_a_fit_and_the_settings_before(problem, capsys):
    """The user's own lines."""
    case, X, y = problem
    model = GraphRegressor("linear")
    print(model)
    assert capsys.readouterr().out == "GraphRegressor(base='linear')\n"
    model.fit(X, y, graph=case.graph)
    print(model)
    text = capsys.readouterr().out
    assert str(model.summary()) in text
    assert repr(model) == "GraphRegressor(base='linear')"
    table = model.summary().coefficients
    for name, row in table.iterrows():
        line = next(line for line in text.splitlines() if line.startswith(f"{name} "))
        assert f"{row['estimate']:.4g}" in line
        assert f"{row['std_error']:.4g}" in line
    assert "P>|z|" in text
    assert "log-determinant: exact" in text
    assert max(map(len, text.splitlines())) <= 86


def test_html_is_escaped_and_numbers_are_plain(problem):
    case, X, y = problem
    X = X.rename(columns={"income": "<script>alert(1)</script>"})
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    html = model.summary()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert json.loads(json.dumps(model.summary().to_dict()))["coefficients"]["rate"]["estimate"] > 0
    page = report_html(model)
    assert "What the features say" in page
    assert '<th scope="row">alpha[edge]</th>' in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page


def test_a_model_from_a_file_has_the_same_summary(problem, tmp_path):
    case, X, y = problem
    model = GraphRegressor("linear").fit(X, y, graph=case.graph)
    model.save(tmp_path / "model.residua")
    assert str(residua.load(tmp_path / "model.residua").summary()) == str(model.summary())


def test_splines_have_no_table_of_coefficients_and_no_count_of_them():
    data = residua.datasets.load_elect80()
    model = residua.GraphRegressor("splines").fit(data.X, data.y, graph=data.graph)
    found = model.summary()
    assert not len(found.coefficients)
    assert np.isnan(found.facts["aic"])
    assert np.isnan(found.facts["degrees_of_freedom"])
    assert "Degrees of freedom" not in str(found)
    assert np.isfinite(found.facts["log_likelihood"])
    assert "residua.plot.effects" in str(found)
    assert "alpha[edge]" in str(found)


def test_edf_and_slopes_of_splines_are_those_of_the_hat_matrix():
    """edf = tr of d fitted / d y, by feature; the slope of a curve is that of least squares through it."""
    rng = np.random.default_rng(5)
    case = small_world(n=80, degree=4, seed=5)
    X = pd.DataFrame(rng.standard_normal((80, 2)), columns=["bent", "straight"])
    y = np.sin(2 * X["bent"].to_numpy()) + X["straight"].to_numpy() + dense.draw(case.S, [0.7], 20.0, rng)[0]
    model = GraphRegressor("splines").fit(X, y, graph=case.graph)
    base, effects = model.base_, model.summary().effects
    Z = base.design(X.to_numpy())
    G = dense.precision(case.S, list(model.alpha_.values()), 1.0)
    with np.errstate(divide="ignore"):
        penalty = np.diag(np.where(base.prior_variance > 0, 1 / base.prior_variance, 1e12))
    influence = np.linalg.solve(Z.T @ G @ Z + penalty, Z.T @ G @ Z).diagonal()
    expected = [influence[base.features == j].sum() for j in range(2)]
    assert_allclose(effects["edf"], expected, rtol=1e-4, atol=1e-6)
    assert effects.loc["bent", "edf"] > 2.5 > effects.loc["straight", "edf"]
    total = model.summary().facts["effective_degrees_of_freedom"]
    assert_allclose(total, influence.sum(), rtol=1e-4)
    for j, name in enumerate(X):
        curve = (Z - Z.mean(axis=0))[:, base.features == j] @ base.coefficients[base.features == j]
        assert_allclose(effects.loc[name, "slope"], np.polyfit(X[name], curve, 1)[0], rtol=1e-6)
        assert_allclose(effects.loc[name, ["lowest", "highest"]], [curve.min(), curve.max()])
    assert "edf" in str(model.summary())
    assert "<th>edf</th>" in model.summary()._repr_html_()


def test_splines_that_are_lines_have_the_coefficients_of_lines_in_the_units_of_the_data():
    rng = np.random.default_rng(6)
    case = small_world(n=80, degree=4, seed=6)
    X = pd.DataFrame({"flag": 3.0 * rng.integers(0, 2, 80)})  # of two values: a line
    y = X["flag"].to_numpy() + dense.draw(case.S, [0.7], 20.0, rng)[0]
    lines, splines = (GraphRegressor(base).fit(X, y, graph=case.graph).summary() for base in ("linear", "splines"))
    pd.testing.assert_frame_equal(splines.coefficients, lines.coefficients)
    assert len(splines.effects) == len(lines.effects) == 0
