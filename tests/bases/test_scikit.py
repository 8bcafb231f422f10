"""Scikit-learn regressors as bases are cross-fitted, and what is random in them follows the seed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from graphs import small_world
from residua.bases.base import Task
from residua.bases.scikit import ScikitBase


def task(random_state=0):
    case = small_world(40, 6)
    rng = np.random.default_rng(0)
    y = np.where(case.labelled, rng.standard_normal(40), np.nan)
    return Task(case.graph, rng.standard_normal((40, 2)), y, case.labelled, 4, random_state)


def test_residuals_are_those_of_fits_without_their_fold():
    given, base = task(), ScikitBase(Ridge())
    outcome = base.fit(given, None)
    X, y = given.X[given.labelled], given.y[given.labelled]
    for train, test in KFold(4, shuffle=True, random_state=0).split(X):
        assert_array_equal(outcome.residual[test], y[test] - Ridge().fit(X[train], y[train]).predict(X[test]))
    assert_array_equal(outcome.base_out_of_fold_error, outcome.residual)
    assert_array_equal(base.predict(given.graph, given.X), Ridge().fit(X, y).predict(given.X))


def test_random_states_that_are_not_set_follow_the_seed():
    forest = make_pipeline(StandardScaler(), ExtraTreesRegressor(5))

    def residual(random_state):
        return ScikitBase(forest).fit(task(random_state), None).residual

    assert_array_equal(residual(0), residual(0))
    assert (residual(0) != residual(1)).any()
    assert forest.get_params()["extratreesregressor__random_state"] is None


@pytest.mark.parametrize("splitter", [KFold(3, shuffle=True), ShuffleSplit(3), RepeatedKFold(n_splits=3, n_repeats=2)])
def test_splitters_inside_a_base_follow_the_seed(splitter):
    search = make_pipeline(StandardScaler(), GridSearchCV(Ridge(), {"alpha": [1.0, 3.0]}, cv=splitter))

    def scores(random_state):
        base = ScikitBase(search)
        base.fit(task(random_state), None)
        return base.estimator[-1].cv_results_["mean_test_score"]

    assert_array_equal(scores(0), scores(0))
    assert (scores(0) != scores(1)).any()
    assert splitter.random_state is None


def test_a_splitter_that_draws_nothing_or_has_a_seed_stays_as_it_is():
    for splitter in (KFold(3), KFold(3, shuffle=True, random_state=5)):
        base = ScikitBase(GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=splitter))
        base.fit(task(), None)
        assert base.estimator.cv.random_state == splitter.random_state


class Noting(RegressorMixin, BaseEstimator):
    """A regressor that notes the random state of each of its fits."""

    def __init__(self, seen, random_state=None):
        self.seen, self.random_state = seen, random_state

    def __sklearn_clone__(self):
        return Noting(self.seen, self.random_state)

    def fit(self, X, y):
        self.seen.append(self.random_state)
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_a_random_state_that_is_set_stays_as_it_is():
    own, unset = [], []
    ScikitBase(Noting(own, random_state=7)).fit(task(), None)
    ScikitBase(make_pipeline(StandardScaler(), Noting(unset))).fit(task(), None)
    assert own == [7] * 5
    assert len(set(unset)) == 5
    assert all(isinstance(seed, int) for seed in unset)


def test_a_correlation_is_fitted_to_the_residuals_afterwards():
    seen = []

    class Correlation:
        def __call__(self, y, design=None, start=None):
            seen.append(y)
            return "correlation"

    outcome = ScikitBase(Ridge()).fit(task(), Correlation())
    assert outcome.correlation == "correlation"
    assert_array_equal(seen, [outcome.residual])
