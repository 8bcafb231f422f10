"""Columns on one scale."""

import numpy as np
import pandas as pd

from residua.reproduction.datasets.scaling import standardise


def test_standardised_columns_have_mean_0_and_deviation_1():
    table = pd.DataFrame({"a": [1.0, 2.0, 6.0], "b": [5.0, 5.0, 5.0]})
    found = standardise(table)
    np.testing.assert_allclose(found["a"], (table["a"] - 3) / np.sqrt((4 + 1 + 9) / 2))
    assert found["b"].tolist() == [0.0, 0.0, 0.0]
