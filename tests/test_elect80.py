"""The packaged county map: the accuracy and calibration that a user is promised on it."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from residua import GraphRegressor, fit_correlation, metrics
from residua.datasets import load_elect80
from residua.field import Likelihood
from residua.field.correlation import maximise_likelihood
from residua.field.profile import Profile

DATA = load_elect80()


def split(seed):
    """Sixty percent labelled, the rest to be predicted."""
    known, test = train_test_split(np.arange(len(DATA.y)), train_size=0.6, random_state=seed)
    y = np.full(len(DATA.y), np.nan)
    y[known] = DATA.y[known]
    return y, test


def test_learned_linear_model_explains_two_thirds_of_turnout():
    scores = []
    for seed in range(5):
        y, _ = split(seed)
        model = GraphRegressor("linear").fit(DATA.X, y, graph=DATA.graph)
        scores.append(model.score(DATA.X, DATA.y))
        assert model.alpha_["edge"] > 0.98
    assert np.mean(scores) >= 0.68


@pytest.mark.parametrize("seed", range(3))
def test_few_labels_on_a_wide_map_are_fitted_as_by_solving_for_each_alpha(seed):
    """Far from any label a short Lanczos run sees too little: it must go on until the likelihood near 1 is right."""
    y = np.full(len(DATA.y), np.nan)
    known = np.random.default_rng(seed).choice(len(y), 20, replace=False)
    y[known] = DATA.y[known] - DATA.y.mean()
    fit = fit_correlation(y, DATA.graph)
    profile = Profile(Likelihood(DATA.graph, ~np.isnan(y)), y[~np.isnan(y)])
    profile.quadratic_form.with_steps(-1)
    solved, _ = maximise_likelihood(profile, DATA.graph.edge_types)
    assert fit.log_likelihood == pytest.approx(solved.log_likelihood, abs=1e-6)
    assert fit.alpha["edge"] == pytest.approx(solved.alpha["edge"], abs=1e-6)


def test_jackknife_intervals_cover_nine_in_ten():
    covered = []
    for seed in range(10):
        y, test = split(seed)
        lower, upper = GraphRegressor("linear").fit(DATA.X, y, graph=DATA.graph).predict_interval(coverage=0.9)
        covered.append(metrics.coverage(DATA.y[test], lower[test], upper[test]))
    assert 0.87 <= np.mean(covered) <= 0.93


def test_learned_beats_propagated_beats_base():
    y, _ = split(0)
    scores = [
        GraphRegressor("linear", correlation).fit(DATA.X, y, graph=DATA.graph)
        for correlation in (None, "propagate", "learned")
    ]
    with pytest.warns(UserWarning, match="components have no label"):
        base, propagated, learned = (model.score(DATA.X, DATA.y) for model in scores)
    assert base + 0.1 < propagated < learned
