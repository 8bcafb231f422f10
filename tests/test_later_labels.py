"""Labels that come after the fit: conditioned on beside the others, nothing trained anew."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import dense
import residua
from graphs import CASES, grid, small_world
from residua import Average, GraphRegressor, Network

GRAPHS = {"grid": grid(7, 8, share=0.4), "small world": small_world(80, 4), "two types": small_world(80, types=2)}
BASES = {
    "linear": "linear",
    "mean": "mean",
    "trees": DecisionTreeRegressor(max_depth=3, random_state=0),
    "network": Network("sage", widths=(4,), epochs=30),
}


def problem(case, seed=0):
    """Features, true labels, those known at the fit, and those that come later (NaN elsewhere)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((case.n, 2))
    alpha = np.array([0.9] if len(case.types) == 1 else [0.7, 0.2])
    truth = X @ [1.0, -0.5] + 3.0 + dense.draw(case.S, alpha, 2.0, rng)[0]
    later = ~case.labelled & (rng.random(case.n) < 0.5)
    return X, truth, np.where(case.labelled, truth, np.nan), np.where(later, truth, np.nan)


def fitted(case, base, correlation="learned", ensemble=1):
    X, _, y, _ = problem(case)
    return GraphRegressor(base, correlation, ensemble=ensemble, folds=4).fit(X, y, graph=case.graph)


def hidden(case):
    """Nodes whose label is never told."""
    return ~case.labelled & np.isnan(problem(case)[3])


def alphas(model):
    return list(model.alpha_.values())


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("base", ["linear", "mean"])
def test_a_linear_base_answers_as_kriging_with_all_labels(name, base):
    case = GRAPHS[name]
    X, truth, _, later = problem(case)
    model = fitted(case, base)
    mean, std = model.predict(y=later, return_std=True)
    U = hidden(case)
    Z = model.base_.design(X)
    expected, C = dense.kriging(case.S, alphas(model), model.beta_, ~U, truth[~U], Z)
    assert_allclose(mean[U], expected, rtol=1e-8)
    assert_allclose(std[U] ** 2, np.diag(C), rtol=1e-8)
    assert_array_equal(mean[~U], truth[~U])
    assert_array_equal(std[~U], 0)
    left_out, spread = model.predict(y=later, return_std=True, known="predict")
    error, variance = dense.leave_one_out(case.S, alphas(model), model.beta_, ~U, truth[~U], Z)
    assert_allclose(truth[~U] - left_out[~U], error, rtol=1e-6, atol=1e-8)
    assert_allclose(spread[~U] ** 2, variance, rtol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_labels_of_the_fit_keep_their_out_of_fold_residuals(name):
    case = GRAPHS[name]
    X, truth, _, later = problem(case)
    model = fitted(case, BASES["trees"])
    U = hidden(case)
    base = model.base_.predict(case.graph, X)
    residual = np.where(np.isnan(later), np.nan, truth - base)
    residual[case.labelled] = model.outcome_.residual
    assert np.abs(residual - (truth - base))[case.labelled].max() > 0.1  # in-sample ones are others
    shift, C = dense.conditional(case.S, alphas(model), model.beta_, ~U, residual[~U])
    mean, std = model.predict(y=later, return_std=True)
    assert_allclose(mean[U], base[U] + shift, rtol=1e-8)
    assert_allclose(std[U] ** 2, np.diag(C), rtol=1e-8)


def test_of_a_network_each_start_speaks_for_the_labels_it_has_not_seen():
    case = GRAPHS["grid"]
    X, truth, _, later = problem(case)
    model = fitted(case, BASES["network"], ensemble=4)
    U = hidden(case)
    each = model.base_.predict_members(case.graph, X)
    assert_allclose(each.mean(axis=0), model.base_.predict(case.graph, X))
    shift, _ = dense.conditional(case.S, alphas(model), model.beta_, ~U, (truth - each.mean(axis=0))[~U])
    assert_allclose(model.predict(y=later)[U], (each.mean(axis=0)[U] + shift), rtol=1e-6)
    own = [dense.leave_one_out(case.S, alphas(model), model.beta_, ~U, (truth - e)[~U])[0] for e in each]
    out = np.ones((4, case.n), bool)  # the later labels are new to all four
    out[:, case.labelled] = model.outcome_.out_of_sample
    out = out[:, ~U]
    assert (out.sum(axis=0) == np.where(case.labelled[~U], 1, 4)).all()
    expected = (np.array(own) * out).sum(axis=0) / out.sum(axis=0)
    left_out = model.predict(y=later, known="predict")
    assert_allclose((truth - left_out)[~U], expected, rtol=1e-4, atol=1e-5)


def test_out_of_fold_residuals_that_members_share_are_left_out_together():
    case = GRAPHS["grid"]
    X, truth, y, later = problem(case)
    model = GraphRegressor(BASES["network"], training="post-hoc", ensemble=4).fit(X, y, graph=case.graph)
    assert_array_equal(model.outcome_.members, np.tile(model.outcome_.residual, (4, 1)))
    U = hidden(case)
    residual = truth - model.base_.predict(case.graph, X)
    residual[case.labelled] = model.outcome_.residual
    error, _ = dense.leave_one_out(case.S, alphas(model), model.beta_, ~U, residual[~U])
    assert_allclose((truth - model.predict(y=later, known="predict"))[~U], error, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
def test_labels_that_were_known_already_change_nothing(base, correlation):
    case = GRAPHS["grid"]
    y = problem(case)[2]
    model = fitted(case, BASES[base], correlation)
    for known in ("label", "predict"):
        again = model.predict(y=y, return_std=True, known=known)
        assert_allclose(again, model.predict(return_std=True, known=known), rtol=1e-6, atol=1e-8)
        nothing = model.predict(y=np.full(case.n, np.nan), return_std=True, known=known)
        assert_allclose(nothing, again, rtol=1e-12)


@pytest.mark.parametrize("base", BASES)
def test_the_model_stays_as_it_was(base):
    case = GRAPHS["grid"]
    untouched, model = fitted(case, BASES[base]), fitted(case, BASES[base])
    model.predict(y=problem(case)[3], return_std=True, known="predict")
    for known in ("label", "predict"):
        expected = untouched.predict(return_std=True, known=known)
        assert_array_equal(model.predict(return_std=True, known=known), expected)
    assert_array_equal(model.y_, untouched.y_)
    assert_array_equal(model.outcome_.residual, untouched.outcome_.residual)


def test_a_corrected_label_takes_the_place_of_the_old_one():
    case = GRAPHS["grid"]
    y = problem(case)[2]
    model = fitted(case, "mean")
    at = int(np.flatnonzero(case.labelled)[3])
    correction = np.full(case.n, np.nan)
    correction[at] = y[at] + 10
    now = np.where(np.isnan(correction), y, correction)
    expected, _ = dense.kriging(case.S, alphas(model), model.beta_, case.labelled, now[case.labelled], np.ones((56, 1)))
    found = model.predict(y=correction)
    assert found[at] == y[at] + 10
    assert_allclose(found[~case.labelled], expected, rtol=1e-8)


def test_propagation_reaches_a_component_once_it_has_a_label():
    case = CASES["two components"].with_labels([0, 1, 2])
    y = np.where(case.labelled, np.arange(case.n) + 1.0, np.nan)
    model = GraphRegressor("zero", "propagate").fit(None, y, graph=case.graph)
    other = case.graph.components != case.graph.components[0]
    with pytest.warns(UserWarning, match="components have no label"):
        assert (model.predict()[other] == 0).all()
    later = np.full(case.n, np.nan)
    later[np.flatnonzero(other)[0]] = 5.0
    both = ~np.isnan(np.where(np.isnan(later), y, later))
    expected = dense.harmonic(case.S, both, np.where(np.isnan(later), y, later))
    assert_allclose(model.predict(y=later), expected, rtol=1e-8)
    assert (expected[other] > 0).all()


def test_draws_and_intervals_know_the_later_labels():
    case = GRAPHS["grid"]
    later = problem(case)[3]
    model = fitted(case, "linear")
    told = ~np.isnan(later)
    mean, std = model.predict(y=later, return_std=True)
    draws = model.sample(4000, y=later)
    assert_array_equal(draws[:, told], np.tile(later[told], (4000, 1)))
    assert (np.abs(draws.mean(axis=0) - mean) <= 5 * std / 4000**0.5 + 1e-9).all()
    lower, upper = model.predict_interval(y=later, method="gaussian")
    assert_array_equal(lower[told], later[told])
    assert_allclose(upper - lower, 2 * 1.6448536269514722 * std)


def test_scores_leave_out_what_was_told():
    case = GRAPHS["small world"]
    X, truth, _, later = problem(case)
    models = [fitted(case, base) for base in ("linear", LinearRegression())]
    U = hidden(case)
    average = Average(models)
    for model in (*models, average):
        expected = residua.metrics.r2(truth[U], model.predict(y=later)[U])
        assert model.score(X, truth, known=later) == pytest.approx(expected)
        assert model.score(X, truth, known=later, graph=case.graph) == pytest.approx(expected)
    mean = np.mean([model.predict(y=later) for model in models], axis=0)
    assert_allclose(average.predict(y=later), mean)


def test_a_loaded_average_scores_as_before(tmp_path):
    case = GRAPHS["small world"]
    X, truth, _, later = problem(case)
    average = Average([fitted(case, base) for base in ("linear", "mean")])
    average.save(tmp_path / "average.residua")
    again = residua.load(tmp_path / "average.residua")
    for known in (None, later):
        assert again.score(X, truth, known=known) == average.score(X, truth, known=known)


def test_a_loaded_model_takes_later_labels_too(tmp_path):
    case = GRAPHS["grid"]
    later = problem(case)[3]
    for base in ("linear", BASES["network"]):
        model = fitted(case, base, ensemble=4 if base != "linear" else 1)
        model.save(tmp_path / "model.residua")
        again = residua.load(tmp_path / "model.residua")
        for known in ("label", "predict"):
            assert_array_equal(again.predict(y=later, known=known), model.predict(y=later, known=known))


def test_a_fine_tuned_ensemble_takes_later_labels():
    case, other = GRAPHS["grid"], GRAPHS["small world"]
    X, truth, y, later = problem(other)
    tuned = fitted(case, BASES["network"], ensemble=2).fine_tune(X, y, graph=other.graph, steps=5)
    each = tuned.base_.predict_members(other.graph, X)
    U, alpha = hidden(other), alphas(tuned)
    shift, _ = dense.conditional(other.S, alpha, tuned.beta_, ~U, (truth - each.mean(axis=0))[~U])
    assert_allclose(tuned.predict(y=later)[U], each.mean(axis=0)[U] + shift, rtol=1e-6)
    error = [dense.leave_one_out(other.S, alpha, tuned.beta_, ~U, (truth - e)[~U])[0] for e in each]
    left_out = truth - tuned.predict(y=later, known="predict")
    assert_allclose(left_out[~U], np.mean(error, axis=0), rtol=1e-4, atol=1e-5)


def test_wrong_later_labels_are_refused():
    case = GRAPHS["grid"]
    X, _, y, _ = problem(case)
    model = fitted(case, "linear")
    with pytest.raises(ValueError, match=r"y has .*3.*56"):
        model.predict(y=y[:3])
    for given in ({"graph": case.graph}, {"X": X, "graph": case.graph}):
        with pytest.raises(ValueError, match=r"leave graph out \(y= by itself has labels that came later\)"):
            model.predict(y=y, **given)
    with pytest.raises(NotFittedError):
        GraphRegressor("mean").score(None, y, graph=case.graph)
