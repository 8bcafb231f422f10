"""Forecasts of the methods compared: residua's own, a network's with split-conformal intervals, and the peer's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from residua import GraphRegressor, metrics
from residua.diagnosis import LEVELS
from residua.field.spread import Spread
from residua.reproduction import forecasts, sets
from true_draws import fitted, problem


def test_a_forecast_has_the_intervals_of_predict_interval():
    case, X, truth = problem(np.random.default_rng(7))
    model = fitted(case, X, truth)
    hidden = ~case.labelled
    learned = GraphRegressor("linear", spread="learned").fit(X, np.where(hidden, np.nan, truth), graph=case.graph)
    asked = {"gaussian": (model, "gaussian"), "conformal": (model, "conformal")}
    asked |= {"learned": (learned, "predictive"), "learned, conformal": (learned, "conformal")}
    for kind, forecast in forecasts.of_model(model, hidden).items():
        judged, (model, method) = forecast.judged(truth[hidden]), asked[kind]
        ends = [[end[hidden] for end in model.predict_interval(coverage=p, method=method)] for p in LEVELS]
        inside = [metrics.coverage(truth[hidden], *pair) * hidden.sum() for pair in ends]
        assert_allclose(judged["inside"], inside)
        assert_allclose(judged["width"], np.mean(ends[2][1] - ends[2][0]))
        assert_allclose(judged["width95"], np.mean(ends[3][1] - ends[3][0]))
        third = np.argsort(model.predict(return_std=True)[1][hidden])[-len(truth[hidden]) // 3 :]
        loud = metrics.coverage(truth[hidden][third], ends[2][0][third], ends[2][1][third])
        assert judged["loud"] == [round(loud * len(third)), len(third)]
        assert judged["quiet"][1] >= len(third)


def test_student_tails_score_as_their_density_and_their_quantiles():
    rng, tails = np.random.default_rng(3), Spread(df=5.0)
    y = 2.0 + 0.5 * tails.with_tails(rng.standard_normal(4000))
    student, gaussian = (forecasts.Forecast(np.full(4000, 2.0), np.full(4000, 0.5), None, t) for t in (tails, Spread()))
    assert student.judged(y)["nll"] < gaussian.judged(y)["nll"]
    assert_allclose(gaussian.judged(y)["nll"], metrics.gaussian_nll(y, np.full(4000, 2.0), np.full(4000, 0.5)))
    assert student.judged(y)["crps"] < gaussian.judged(y)["crps"] * 1.01
    assert_allclose(np.array(student.judged(y)["inside"]) / 4000, LEVELS, atol=0.025)


def test_a_forecast_of_one_scale_has_no_loud_part():
    judged = forecasts.Forecast(np.zeros(9), np.full(9, 2.0)).judged(np.arange(9.0))
    assert "loud" not in judged
    assert judged["width95"] == pytest.approx(4 * 1.95996, rel=1e-5)


def test_the_field_of_a_linear_model_is_the_one_asked_for():
    data = sets.load("ising+", 0, quick=True)
    hidden = np.arange(len(data.y)) % 4 == 0
    found = forecasts.METHODS["C-linear field=auto"](data, hidden, 0, True)["gaussian"]
    assert found["field"] in ("normalised", "laplacian")
    assert forecasts.METHODS["C-linear"](data, hidden, 0, True)["gaussian"]["field"] == "normalised"


def test_the_baseline_calibrates_on_labels_that_its_network_never_saw(monkeypatch):
    pytest.importorskip("torch_geometric.data")
    data = sets.load("ising+", 0, quick=True)
    hidden = np.arange(len(data.y)) % 4 == 0
    seen = []
    fit = GraphRegressor.fit
    monkeypatch.setattr(GraphRegressor, "fit", lambda self, X, y, **k: (seen.append(y), fit(self, X, y, **k))[1])
    judged = forecasts.split_conformal(data, hidden, 0, quick=True)["conformal"]
    known = ~np.isnan(seen[0])
    assert not (known & hidden).any()
    assert known.sum() == (~hidden).sum() - round(forecasts.CALIBRATION * (~hidden).sum())
    assert judged["labels"] == hidden.sum()


def test_the_peer_answers_where_nodes_have_coordinates(stand_in):
    data = sets.load("ising+", 0, quick=True)
    data.nodes["row"] = data.nodes["row"].astype(float)
    data.nodes.iloc[:10, data.nodes.columns.get_loc("row")] = np.nan
    hidden = np.arange(len(data.y)) % 4 == 0
    judged = forecasts.gaussian_process(data, hidden, 0, quick=True)["gaussian"]
    assert judged["labels"] == hidden[10:].sum()
    known = data.y[10:][~hidden[10:]]
    expected = metrics.gaussian_nll(
        data.y[10:][hidden[10:]], *np.full((2, judged["labels"]), [[known.mean()], [known.std()]])
    )
    assert_allclose(judged["nll"], expected)
    assert forecasts.gaussian_process(sets.load("contacts-simulated", 0), hidden, 0, quick=True) == {}
