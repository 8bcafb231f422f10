"""Intervals hold what they promise where the model is true, the diagnosis tells where they do not, and the study."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import grid, small_world
from residua import Graph, GraphRegressor, metrics
from residua.diagnosis import LEVELS, _cause, _remote
from residua.reproduction import calibration, forecasts, sets
from residua.reproduction.registry import Options
from residua.reproduction.runs import Task, read
from true_draws import KINDS, LEAST, fitted, problem, soak, tally

DOCS = Path(__file__).parents[2] / "docs"
EACH = [(kind, level) for kind in KINDS for level in LEVELS]


# Labels drawn from the model


@pytest.fixture(scope="module")
def true_model():
    return tally(30, random_state=0)[0]


@pytest.mark.parametrize(("kind", "level"), EACH)
def test_intervals_hold_the_share_they_promise_when_the_model_is_true(true_model, kind, level):
    assert true_model.keeps(kind, level), (true_model.coverage(kind, level), true_model.margin(kind, level))


def test_intervals_a_fifth_too_narrow_or_too_wide_are_found_out():
    for found in tally(16, random_state=1, stretch=(0.8, 1.2)):
        assert not any(found.keeps(kind, level) for kind, level in EACH if level in (0.8, 0.9))


def test_with_long_tails_conformal_intervals_hold_and_gaussian_ones_do_not():
    (found,) = tally(16, random_state=2, noise="long tails")
    assert all(found.keeps("conformal", level) for level in LEVELS)
    assert found.coverage("gaussian", 0.5) > 0.5 + found.margin("gaussian", 0.5)


def test_the_soak_counts():
    counts = soak(0.0, 3)
    assert counts["draws"] == LEAST
    assert 0 < counts["conformal 50%"] < counts["conformal 90%"] < counts["conformal 95%"] < counts["labels"]


def test_the_soak_fails_where_intervals_do_not_hold(monkeypatch):
    monkeypatch.setattr(GraphRegressor, "_conformal_quantile", lambda self, coverage: 1.0)
    with pytest.raises(AssertionError, match="conformal 50% intervals hold"):
        soak(0.0, 3)


# The diagnosis


def told_off(model):
    return [note for note in model.diagnose().warnings if note.startswith("Gaussian intervals are off")]


def test_diagnosis_is_silent_on_labels_of_the_model():
    rng = np.random.default_rng(4)
    for _ in range(6):
        diagnosis = fitted(*problem(rng)).diagnose()
        assert not diagnosis.warnings
        assert not diagnosis.off
        assert not diagnosis.remote


def test_diagnosis_tells_of_long_tails_and_by_how_much():
    case = small_world(600, 6, share=0.8, seed=5)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((case.n, 2))
    model = fitted(case, X, X.sum(axis=1) + rng.standard_t(2.2, case.n))
    found = model.diagnose()
    assert 0.5 in found.off
    (note,) = told_off(model)
    assert f"those of 50 % cover {found.coverages[0.5]:.1%}" in note
    assert "longer tails than a Gaussian" in note
    assert found.coverages[0.9] == found.coverage


def test_diagnosis_tells_of_standard_deviations_that_are_too_small():
    case, X, truth = problem(np.random.default_rng(6))
    model = fitted(case, X, truth)
    model.beta_ *= 4
    (note,) = told_off(model)
    assert "standard deviations are too small" in note
    assert model.diagnose().off == LEVELS


@pytest.mark.parametrize(
    ("covered", "cause"),
    [
        ((0.60, 0.86, 0.94, 0.985), "standard deviations are too large"),
        ((0.40, 0.70, 0.80, 0.85), "standard deviations are too small"),
        ((0.60, 0.86, 0.90, 0.94), "the residuals have longer tails than a Gaussian"),
        ((0.50, 0.80, 0.85, 0.91), "the residuals have longer tails than a Gaussian"),
        ((0.40, 0.75, 0.99, 1.00), "the residuals have shorter tails than a Gaussian"),
    ],
)
def test_the_cause_is_scale_where_all_are_off_to_one_side_and_else_shape(covered, cause):
    assert _cause(dict(zip(LEVELS, covered, strict=True)), 10_000) == cause


def by_region(case):
    """The first fifth of a grid unknown, all else known."""
    known = np.arange(case.n) >= case.n // 5
    return GraphRegressor("mean").fit(None, np.where(known, np.sin(np.arange(case.n)), np.nan), graph=case.graph)


def test_diagnosis_tells_of_labels_missing_by_region_and_not_at_random():
    diagnosis = by_region(grid(20, 20)).diagnose()
    assert diagnosis.remote
    # Of four unknown rows the last touches the known ones.
    assert any(
        note.startswith("75% of the unknown nodes have no known neighbour, against 0%") for note in diagnosis.warnings
    )
    for share in (0.02, 0.1, 0.5, 0.9):
        for seed in range(20):
            case = grid(20, 20, share, seed)
            assert _remote(case.graph, case.labelled) is None


def test_a_node_is_no_neighbour_of_its_own():
    at = np.arange(100)
    path = Graph.from_edges(np.r_[at[:-1], at], np.r_[at[1:], at], np.full(199, 0.1), nodes=at)
    known = (at % 2 == 0) & (at < 60)
    # No known node has a known neighbour, so no unknown one is worse off.
    assert _remote(path, known) is None


# Scores


def test_crps_of_draws_is_its_definition(rng):
    y, draws = rng.normal(size=7), rng.normal(size=(5, 7))
    pairs = np.abs(draws[:, None] - draws[None]).mean(axis=(0, 1))
    assert_allclose(metrics.sample_crps(y, draws), np.mean(np.abs(draws - y).mean(axis=0) - pairs / 2))
    assert_allclose(metrics.sample_crps(y, draws[:1]), np.abs(draws[0] - y).mean())
    hidden = np.where(np.arange(7) < 3, y, np.nan)
    assert_allclose(metrics.sample_crps(hidden, draws), metrics.sample_crps(y[:3], draws[:, :3]))


def test_crps_of_many_draws_is_that_of_their_distribution(rng):
    y, mean, std = rng.normal(size=20), rng.normal(size=20), rng.uniform(0.5, 2, 20)
    draws = mean + std * rng.normal(size=(20_000, 20))
    assert_allclose(metrics.sample_crps(y, draws), metrics.gaussian_crps(y, mean, std), rtol=0.01)


@pytest.mark.parametrize(
    ("y", "draws", "told"),
    [
        ([1.0], [1.0], r"draws has shape \(1,\); give at least one row"),
        ([1.0], np.empty((0, 1)), "give at least one row"),
        ([1.0, 2.0], [[1.0]], "draws has 1 entries but y has 2"),
        ([1.0], [[1.0], [np.inf]], "draws is inf at index 0"),
    ],
)
def test_crps_of_draws_checks_its_arguments(y, draws, told):
    with pytest.raises(ValueError, match=told):
        metrics.sample_crps(y, draws)


# The study


def test_a_forecast_has_the_intervals_of_predict_interval():
    case, X, truth = problem(np.random.default_rng(7))
    model = fitted(case, X, truth)
    hidden = ~case.labelled
    for kind, forecast in forecasts.of_model(model, hidden).items():
        judged = forecast.judged(truth[hidden])
        ends = [[end[hidden] for end in model.predict_interval(coverage=p, method=kind)] for p in LEVELS]
        inside = [metrics.coverage(truth[hidden], *pair) * hidden.sum() for pair in ends]
        assert_allclose(judged["inside"], inside)
        assert_allclose(judged["width"], np.mean(ends[2][1] - ends[2][0]))


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


class Prior:
    """Stands in for GPBoost: the mean of the labels, and their variance."""

    def __init__(self, gp_coords, **settings):
        assert np.isfinite(gp_coords).all()

    def fit(self, y, X):
        assert np.linalg.matrix_rank(X) == X.shape[1]
        self.mean, self.variance = y.mean(), y.var()

    def predict(self, gp_coords_pred, X_pred, **settings):
        assert len(gp_coords_pred) == len(X_pred)
        return {"mu": np.full(len(X_pred), self.mean), "var": np.full(len(X_pred), self.variance)}


@pytest.fixture
def stand_in(monkeypatch):
    module = ModuleType("gpboost")
    module.GPModel = Prior
    monkeypatch.setitem(sys.modules, "gpboost", module)
    monkeypatch.setattr(forecasts.metadata, "version", lambda name: "0")
    monkeypatch.setattr(calibration, "gpboost_installed", lambda: True)


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


def options(folder, **more):
    return Options(quick=True, folder=folder, datasets=("ising+",), **more)


def test_the_study_writes_its_page_goes_on_where_it_stopped_and_keeps_the_peer(tmp_path, stand_in, monkeypatch):
    asked = options(tmp_path, methods=("C-linear", "GPBoost"))
    told = []
    result = calibration.calibration(asked, lambda *call: told.append(call[:2]))
    assert told == [(k, 4) for k in range(5)]
    assert [row[:3] for row in result.rows] == [
        (method, kind, split)
        for split in ("random", "blocked")
        for method, kind in (("C-linear", "gaussian"), ("C-linear", "conformal"), ("GPBoost", "gaussian"))
    ]
    monkeypatch.setattr(calibration, "gpboost_installed", lambda: False)
    again = calibration.calibration(asked, lambda *call: told.append(call[:2]))
    assert told[5:] == [(4, 4)]
    assert again.rows == result.rows
    assert (tmp_path / "calibration.md").read_text(encoding="utf-8") == again.markdown


def test_the_study_says_that_the_peer_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "gpboost_installed", lambda: False)
    result = calibration.calibration(options(tmp_path, methods=("C-linear", "GPBoost")), lambda *_: None)
    assert {row[0] for row in result.rows} == {"C-linear"}
    assert result.notes[-1] == "GPBoost is left out: gpboost is not installed."
    with pytest.raises(ValueError, match="methods=GPBoost needs the package gpboost"):
        calibration.calibration(options(tmp_path, methods=("GPBoost",)), lambda *_: None)


def test_a_blocked_split_hides_a_ball_and_a_random_one_does_not():
    for split, lonely in (("random", 0.1), ("blocked", 0.6)):
        values = calibration.work(Task("calibration", "ising+", "C-linear", 0, split))["gaussian"]
        assert values["labels"] == round(calibration.SHARE * 35**2)
        assert values["remote"] is (lonely > 0.5)


# The published figures


def test_conformal_intervals_of_ninety_per_cent_cover_88_to_92_on_average_over_data_sets():
    found = calibration.by_interval(read(DOCS / "results" / "calibration.jsonl"))
    for method in ("C-linear", "C-hops"):
        each = [found["random", dataset, method, "conformal"] for dataset in sets.SETS]
        assert all(len(runs) >= 5 for runs in each)
        assert 0.88 <= np.mean([calibration.coverage(runs)[LEVELS.index(0.9)] for runs in each]) <= 0.92


def test_published_tables_are_what_the_records_give():
    found = calibration.by_interval(read(DOCS / "results" / "calibration.jsonl"))
    page = (DOCS / "results" / "calibration.md").read_text(encoding="utf-8")
    assert "\n\n".join(calibration.blocks(found)) in page
    section = (DOCS / "uncertainty.md").read_text(encoding="utf-8").split("## How well they hold")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!-).*\|$", section, re.M)
    assert len(rows) > 20
    assert all(row in page for row in rows)
