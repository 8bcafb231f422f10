"""What bases share: columns brought to one size, and means over the members that did not see a label."""

import numpy as np
from numpy.testing import assert_allclose

from residua.bases.base import mean_where, standardisation


def test_columns_that_are_constant_to_rounding_keep_their_size():
    values = np.column_stack([[1.0, 2.0, 6.0], np.full(3, 5.0), 1e9 + 1e-6 * np.arange(3)])
    centre, spread = standardisation(values)
    assert_allclose(centre, [3.0, 5.0, 1e9])
    assert_allclose(spread, [np.sqrt(14 / 3), 1.0, 1.0])
    assert standardisation(values, constant=7.0)[1][1] == 7.0


def test_a_mean_is_over_those_that_are_chosen():
    values = np.array([[1.0, 2.0, 3.0], [3.0, 8.0, 5.0]])
    chosen = np.array([[True, False, False], [True, True, False]])
    np.testing.assert_array_equal(mean_where(values, chosen), [2.0, 8.0, np.nan])
