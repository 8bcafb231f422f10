"""Linear bases: least squares, and what it would have said of each label without it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import small_world
from residua.bases.base import Task
from residua.bases.linear import LinearBase


def task(n=40, columns=3, seed=0):
    case = small_world(n, 6, seed=seed)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns)) * 10.0 ** rng.integers(-3, 4, columns)
    y = np.where(case.labelled, rng.standard_normal(n), np.nan)
    return Task(case.graph, X, y, case.labelled, 5, 0)


@pytest.mark.parametrize(("name", "columns"), [("zero", 0), ("mean", 1), ("linear", 4)])
def test_without_a_correlation_it_is_least_squares(name, columns):
    given, base = task(), LinearBase(name)
    outcome = base.fit(given, None)
    Z, y = np.column_stack([np.ones(40), given.X])[given.labelled][:, :columns], given.y[given.labelled]
    expected = Z @ np.linalg.lstsq(Z, y)[0] if columns else np.zeros(len(y))
    assert_allclose(base.predict(given.graph, given.X)[given.labelled], expected, atol=1e-10)
    assert_allclose(outcome.residual, y - expected, atol=1e-10)
    assert outcome.correlation is None
    assert base.design(given.X).shape == (40, columns)


@pytest.mark.parametrize("name", ["zero", "mean", "linear"])
def test_out_of_fold_errors_are_those_of_fits_without_each_label(name):
    given = task()
    outcome = LinearBase(name).fit(given, None)
    for k, node in enumerate(np.flatnonzero(given.labelled)):
        labelled = given.labelled.copy()
        labelled[node] = False
        base = LinearBase(name)
        base.fit(Task(given.graph, given.X, given.y, labelled, 5, 0), None)
        error = given.y[node] - base.predict(given.graph, given.X)[node]
        assert_allclose(outcome.base_out_of_fold_error[k], error, rtol=1e-8, atol=1e-10)


def test_columns_that_are_constant_or_repeated_change_nothing():
    given, base = task(), LinearBase("linear")
    expected = base.fit(given, None).residual
    X = np.column_stack([given.X, np.full(40, 7.0), given.X[:, 0]])
    assert_allclose(
        LinearBase("linear").fit(Task(given.graph, X, given.y, given.labelled, 5, 0), None).residual, expected
    )


def test_as_many_features_as_labels_are_refused():
    given = task(columns=30)
    assert given.labelled.sum() < 31
    with pytest.raises(ValueError, match="leaves no residual to learn from"):
        LinearBase("linear").fit(given, None)
