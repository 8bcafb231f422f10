"""The diagnosis says where Gaussian intervals are off, and where labels are missing by region."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import null_data
from graphs import grid, small_world
from residua import Graph, GraphRegressor, Network
from residua.diagnosis import LEVELS, _cause
from residua.field.profile import Profile
from residua.graph.regions import remote
from true_draws import fitted, problem


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
    model.field_ = replace(model.field_, beta=4 * model.beta_)
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
            assert remote(case.graph, case.labelled) is None


def test_a_node_is_no_neighbour_of_its_own():
    at = np.arange(100)
    path = Graph.from_edges(np.r_[at[:-1], at], np.r_[at[1:], at], np.full(199, 0.1), nodes=at)
    known = (at % 2 == 0) & (at < 60)
    # No known node has a known neighbour, so no unknown one is worse off.
    assert remote(path, known) is None


# Independent noise


def test_noise_is_seldom_taken_for_correlation():
    counts = null_data.soak(0.0, 3)
    assert counts["draws"] == null_data.LEAST
    assert counts["false alarms"] >= counts["help"]


def test_the_soak_notices_the_plain_likelihood(monkeypatch):
    monkeypatch.setattr("residua.field.correlator.Profile", partial(Profile, restricted=False))
    with pytest.raises(AssertionError, match=r"false alarms in .* draws of noise"):
        null_data.soak(0.0, 3)


def test_a_learned_alpha_of_zero_is_no_correction_that_was_not_asked_for():
    """One label in each pair: they say nothing of alpha, which stays at 0 and was learned all the same."""
    pairs = Graph.from_edges(np.arange(0, 60, 2), np.arange(1, 60, 2), nodes=np.arange(60))
    y = np.full(60, np.nan)
    y[::2] = np.random.default_rng(0).standard_normal(30)
    with pytest.warns(UserWarning, match="the 30 labels do not tell alpha beside 1 coefficient"):
        told = GraphRegressor("mean").fit(None, y, graph=pairs).diagnose()
    assert told.alpha == {"edge": 0.0}
    assert told.verdict.startswith("The labels do not tell the correlation, which is kept at 0")
    found = replace(told, untold=False)  # a maximum at 0
    assert found.verdict.startswith("No correlation among neighbours was found (p = ")
    without = GraphRegressor("mean", correlation=None).fit(None, y, graph=pairs).diagnose()
    assert without.verdict.startswith("No correction was asked for")


@pytest.mark.parametrize("correlation", ["learned", None])
def test_labels_that_a_network_was_trained_on_are_never_called_left_out(correlation):
    """It fits noise at all of its labels; of an alpha that these do not tell, that is no leave-one-out score."""
    pytest.importorskip("torch")
    pairs = Graph.from_edges(np.arange(0, 60, 2), np.arange(1, 60, 2), nodes=np.arange(60))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), np.full(60, np.nan)
    y[::2] = rng.standard_normal(30)
    verdicts = {}
    for validation in (0.0, 0.3):
        model = GraphRegressor(Network("hops", epochs=200, validation=validation), correlation)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the 30 labels do not tell alpha")
            verdicts[validation] = model.fit(X, y, graph=pairs).diagnose().verdict
    assert verdicts[0.0].endswith(", for labels that the network was trained on.")
    assert "nan" not in verdicts[0.0]
    assert "trained on" not in verdicts[0.3]
    assert "labels left out of the training" in verdicts[0.3] or correlation is None
