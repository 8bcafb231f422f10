"""Early stopping: the best step, and errors of labels that did not choose it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from residua.bases.stopping import FOLDS, EarlyStopping


def run(squares):
    stopping = EarlyStopping(squares.shape[1])
    best = [t for t, row in enumerate(squares) if stopping.improved(float(row.mean()), row)]
    return stopping, best[-1]


def paths(labels, steps=40, seed=0):
    """Squared errors (steps, labels) that fall and rise again, with noise of each label's own."""
    rng = np.random.default_rng(seed)
    walks = np.cumsum(rng.standard_normal((steps, labels)), axis=0) / 3
    return (rng.standard_normal(labels) * (0.5 + np.linspace(-1, 1, steps)[:, None] ** 2) + walks) ** 2


@pytest.mark.parametrize("labels", [2, 7, FOLDS, 3 * FOLDS + 1])
def test_a_label_is_judged_at_the_best_step_of_the_others(labels):
    squares = paths(labels)
    stopping, best = run(squares)
    assert best == squares.mean(axis=1).argmin()
    expected = np.empty(labels)
    for fold in range(min(FOLDS, labels)):
        own = np.arange(labels) % FOLDS == fold
        expected[own] = squares[squares[:, ~own].sum(axis=1).argmin()][own]
    assert_allclose(stopping.squares, expected)
    assert_allclose(stopping.optimism, expected.mean() / squares.mean(axis=1).min())


def test_labels_that_choose_the_step_never_look_worse_for_it():
    found = [run(paths(labels, seed=seed))[0].optimism for labels in (3, 10, 50) for seed in range(20)]
    assert min(found) >= 1
    assert np.median(found) > 1.05


def test_the_optimism_is_what_new_labels_show():
    """Errors at new labels, over those at the labels that chose the step: on average what the labels themselves say."""
    chosen, new, told = 0.0, 0.0, 0.0
    for seed in range(300):
        squares = paths(40, seed=seed)
        stopping, best = run(squares[:, ::2])
        chosen, new = chosen + squares[best, ::2].mean(), new + squares[best, 1::2].mean()
        told += stopping.optimism * squares[best, ::2].mean()
    assert new / chosen > 1.1
    assert_allclose(told / chosen, new / chosen, rtol=0.05)


@pytest.mark.parametrize("labels", [0, 1])
def test_one_label_has_no_others_to_choose_for_it(labels):
    stopping = EarlyStopping(labels)
    assert stopping.improved(2.0, np.full(labels, 2.0))
    assert not stopping.improved(2.0, np.full(labels, 2.0))
    assert stopping.since == 1
    assert stopping.optimism == 1


def test_it_goes_on_from_its_state():
    squares = paths(30)
    whole, _ = run(squares)
    first = EarlyStopping(30)
    for row in squares[:17]:
        first.improved(float(row.mean()), row)
    second = EarlyStopping(30)
    second.restore({name: value.copy() for name, value in first.state().items()})
    for row in squares[17:]:
        second.improved(float(row.mean()), row)
    assert (second.since, second.lowest, second.optimism) == (whole.since, whole.lowest, whole.optimism)
