"""A table of any columns as numbers without gaps."""

import numpy as np
import pandas as pd
import pytest

from residua.encoding import Encoding, needs_encoding

TABLE = pd.DataFrame(
    {
        "size": [1.0, np.nan, 4.0, 3.0],
        "kind": ["b", "a", None, "b"],
        "since": pd.to_datetime(["1970-01-02", "1970-01-04", None, "1970-01-03"]),
        "new": [True, False, True, True],
    },
    index=list("pqrs"),
)


def test_medians_fill_gaps_and_every_value_gets_a_column():
    found = Encoding.of(TABLE).transform(TABLE)
    assert list(found.index) == list("pqrs")
    assert found["size"].tolist() == [1, 3, 4, 3]
    assert found["since"].tolist() == [1, 3, 2, 2]  # days
    assert found["new"].tolist() == [1, 0, 1, 1]
    assert found[["kind=(empty)", "kind=a", "kind=b"]].to_numpy().tolist() == [
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 1],
    ]


def test_another_table_is_encoded_as_the_first():
    encoding = Encoding.of(TABLE)
    other = TABLE.assign(size=np.nan, kind="never seen").sample(frac=1, random_state=0, axis=1)
    found = encoding.transform(other)
    assert list(found) == encoding.feature_names
    assert (found["size"] == 3).all()
    assert not found.filter(like="kind=").to_numpy().any()
    with pytest.raises(ValueError, match="no column 'kind'"):
        encoding.transform(TABLE.drop(columns="kind"))


def test_an_array_with_gaps_is_a_table_of_numbered_columns():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]])
    assert Encoding.of(X).transform(X).to_numpy().tolist() == [[1, 2], [3, 4], [5, 6]]


def test_columns_that_cannot_be_features_are_left_out_aloud():
    table = (
        TABLE.iloc[[0, 1, 2, 3] * 20].assign(name=[f"n{k}" for k in range(80)], nothing=np.nan).reset_index(drop=True)
    )
    with pytest.warns(UserWarning, match="80 different texts"), pytest.warns(UserWarning, match="no value in column"):
        names = Encoding.of(table).feature_names
    assert not [name for name in names if name.startswith(("name", "nothing"))]


def test_values_that_make_the_same_feature_twice_are_refused():
    with pytest.raises(ValueError, match="'kind=a'"):
        Encoding.of(TABLE.assign(**{"kind=a": 1.0}))


@pytest.mark.parametrize(
    ("table", "needs"),
    [(TABLE, True), (TABLE[["new"]], False), (TABLE[["size"]], True), (TABLE[["since"]].dropna(), True)],
)
def test_numbers_without_gaps_need_no_encoding(table, needs):
    assert needs_encoding(table) is needs
    assert not needs_encoding(np.ones((3, 2)))
