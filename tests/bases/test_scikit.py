"""Scikit-learn regressors as bases are cross-fitted, and what is random in them follows the seed."""

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
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


def test_a_correlation_is_fitted_to_the_residuals_afterwards():
    seen = []

    class Correlation:
        def __call__(self, y, design=None, start=None):
            seen.append(y)
            return "correlation"

    outcome = ScikitBase(Ridge()).fit(task(), Correlation())
    assert outcome.correlation == "correlation"
    assert_array_equal(seen, [outcome.residual])
