"""Minimising with a costly smooth part that is interpolated."""

import numpy as np
import pytest

from residua.field.line_search import interpolate, minimise


def test_a_polynomial_is_interpolated_exactly():
    nodes = np.array([-1.0, 0.2, 0.5, 2.0])
    cubic = np.polynomial.Polynomial([1.0, -2.0, 0.5, 3.0])
    at = interpolate(nodes, cubic(nodes))
    np.testing.assert_allclose([at(a) for a in (-0.7, 0.2, 1.3)], cubic(np.array([-0.7, 0.2, 1.3])), rtol=1e-12)


@pytest.mark.parametrize("where", [-1.7, 0.0, 0.33, 2.9])
def test_the_optimum_is_found_with_few_calls_of_the_costly_part(where):
    calls = []

    def smooth(a):
        return 40 * np.log(np.cosh(a - 0.1)) + np.cos(a)

    def costly(a):
        calls.append(a)
        return smooth(a)

    known = {a: smooth(a) for a in np.linspace(-4, 4, 9)}
    best = minimise(lambda a: 60 * (a - where) ** 2 + smooth(a), costly, known, (where - 1, where + 1))
    assert best == pytest.approx(where, abs=1e-6)
    assert len(calls) <= 8


def test_a_search_again_asks_next_to_nothing():
    """The cheap part has changed a little, as with further steps of a quadratic form; what was asked is kept."""
    calls = []

    def costly(a):
        calls.append(a)
        return np.log(np.cosh(a))

    points = {a: costly(a) for a in (-1.0, 0.0, 1.0)}
    best = minimise(lambda a: (a - 0.3) ** 2 + np.log(np.cosh(a)), costly, points, (-1.0, 1.0))
    before = len(calls)
    assert sorted(points) == sorted(calls)
    again = minimise(lambda a: (a - 0.3001) ** 2 + np.log(np.cosh(a)), costly, points, (-1.0, 1.0), start=best)
    assert again == pytest.approx(0.3001, abs=1e-6)
    assert len(calls) <= before + 1


def test_an_optimum_at_an_end_is_found():
    points = {a: np.cos(a) for a in (0.0, 0.5, 1.0)}
    assert minimise(lambda a: a, np.cos, points, (0.0, 1.0)) == pytest.approx(0.0, abs=1e-4)
