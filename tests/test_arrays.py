"""A mask hides what it hides everywhere arrays come in, and only real numbers are numbers."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import residua
from residua import metrics
from residua.arrays import as_floats
from residua.graph import Graph
from residua.views.figures import check_positions

N = 30
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, 2)), RNG.normal(size=N)
HIDDEN = np.arange(N) % 3 == 0
UNKNOWN = np.where(HIDDEN, np.nan, Y)
MASKED = np.ma.array(np.where(HIDDEN, 1e6, Y), mask=HIDDEN)  # what is hidden would be seen at once
RING = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)


def linear(y, X=X):
    return residua.GraphRegressor("linear").fit(X, y, graph=RING)


@pytest.mark.parametrize("dtype", [float, np.float32, object])
def test_a_masked_label_is_unknown(dtype):
    found, expected = linear(MASKED.astype(dtype)), linear(UNKNOWN.astype(dtype).astype(float))
    np.testing.assert_array_equal(found.y_, expected.y_)
    np.testing.assert_array_equal(found.predict(), expected.predict())


def test_masked_integers_are_unknown_too():
    labels = np.ma.array(np.arange(N), mask=HIDDEN)
    np.testing.assert_array_equal(np.isnan(linear(labels).y_), HIDDEN)


def test_labels_that_come_later_keep_their_mask():
    model = linear(UNKNOWN)
    later = np.ma.array(np.where(np.arange(N) == 3, 5.0, 1e6), mask=np.arange(N) != 3)
    plain = later.filled(np.nan)
    np.testing.assert_array_equal(model.predict(y=later), model.predict(y=plain))
    assert model.score(None, np.ma.array(Y, mask=~HIDDEN), known=later) == model.score(None, Y, known=plain)


SCORES = {
    "r2": (metrics.r2, (Y + 0.1,)),
    "rmse": (metrics.rmse, (Y + 0.1,)),
    "crps": (metrics.gaussian_crps, (Y + 0.1, np.ones(N))),
    "sample_crps": (metrics.sample_crps, (RNG.normal(size=(5, N)),)),
    "coverage": (metrics.coverage, (Y - 1, Y + 1)),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_leave_out_what_is_masked(name):
    score, others = SCORES[name]
    assert score(MASKED, *others) == score(UNKNOWN, *others)


def test_a_masked_feature_is_missing():
    table = np.ma.array(X, mask=np.zeros_like(X, bool))
    np.testing.assert_array_equal(linear(UNKNOWN, table).predict(), linear(UNKNOWN).predict())
    table[4, 1] = np.ma.masked
    with pytest.raises(ValueError, match="X has nan in row 4, column 1"):
        linear(UNKNOWN, table)
    with pytest.raises(ValueError, match="X has nan in row 4, column 1"):
        linear(UNKNOWN, list(table))


def test_a_masked_flag_marks_no_label():
    flags = np.ma.array(np.ones(N, bool), mask=np.arange(N) > 0)
    two = Graph.from_edges([0, 2], [1, 3])
    assert two.describe(flags[:4]).unlabelled_components == 1
    assert two.describe(np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[0, 0, 1, 1])).unlabelled_components == 1
    nn = pytest.importorskip("residua.nn")
    assert nn.CorrelatedResidual(RING, flags).labelled.sum() == 1


def test_masked_weights_and_places_are_missing():
    with pytest.raises(ValueError, match="weight is nan at row 1"):
        Graph.from_edges([0, 1], [1, 2], weight=np.ma.array([1.0, 2.0], mask=[0, 1]))
    with pytest.raises(ValueError, match=r"A is a masked array; give 0 where there is no edge: A.filled\(0\)"):
        Graph.from_scipy(np.ma.array(np.ones((3, 3)), mask=np.eye(3)))
    with pytest.raises(ValueError, match="positions is not finite at row 2"):
        check_positions(np.ma.array(np.ones((3, 2)), mask=[[0, 0], [0, 0], [0, 1]]), None, None)


NO_NUMBERS = {
    "complex": Y + 0j,
    "complex list": list(Y + 0j),
    "complex objects": np.array([*Y[:-1], np.complex128(1)], object),
    "dates": pd.date_range("2024-01-01", periods=N),
    "NaT": np.full(N, np.datetime64("NaT", "ns")),
    "NaT beside numbers": [*Y[:-1], pd.NaT],
    "numpy's NaT beside numbers": np.array([*Y[:-1], np.datetime64("NaT")], object),
    "durations": pd.Series(pd.to_timedelta(np.arange(N), "s")),
    "masked complex": np.ma.array(Y + 0j, mask=HIDDEN),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_real_number_is_refused(kind):
    values = NO_NUMBERS[kind]
    with pytest.raises(ValueError, match=r"y is not numeric \(it holds .*\); give numbers, NaN where unknown"):
        linear(values)
    with pytest.raises(ValueError, match=r"y is not numeric \(it holds "):
        metrics.rmse(values, Y)
    with pytest.raises(ValueError, match=r"X is not numeric \(it holds "):
        linear(
            UNKNOWN, np.array([values, values], object).T if isinstance(values, list) else np.ma.stack([values] * 2).T
        )


def test_complex_columns_and_dates_of_a_frame_are_refused():
    with pytest.raises(ValueError, match=r"X is not numeric \(it holds complex128\)"):
        linear(UNKNOWN, pd.DataFrame({"a": Y, "b": Y + 0j}))
    with pytest.raises(ValueError, match=r"X has columns that are not numbers: \['b'\]"):
        linear(UNKNOWN, pd.DataFrame({"a": Y, "b": NO_NUMBERS["dates"]}))


def test_missing_numbers_of_pandas_own_types_are_nan():
    column = pd.array([1, None], "Int64")
    np.testing.assert_array_equal(
        as_floats(pd.DataFrame({"a": column, "b": [1.5, 2.5]}), "X"), [[1, 1.5], [np.nan, 2.5]]
    )
    np.testing.assert_array_equal(as_floats(pd.Series(column), "y"), [1, np.nan])


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.coo_array])
def test_a_sparse_table_is_told_so(make):
    with pytest.raises(
        ValueError, match=r"X is a sparse matrix of shape \(30, 2\); give it as an array: X.toarray\(\)"
    ):
        linear(UNKNOWN, make(X))


def test_columns_of_one_name_are_told_so():
    table = pd.DataFrame(np.column_stack([X, Y]), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="X has more than one column named 'a'; give each its own name"):
        linear(UNKNOWN, table)


def test_a_dict_of_labels_is_told_to_be_a_series_and_that_works():
    names = np.array([f"n{k}" for k in range(N)])
    graph = Graph.from_edges(names, np.roll(names, -1), nodes=names)
    labels = dict(list(zip(names, UNKNOWN, strict=True))[::-1])
    with pytest.raises(ValueError, match=r"^y is a dict; .* pd\.Series\(y\)"):
        residua.GraphRegressor("mean").fit(None, labels, graph=graph)
    found = residua.GraphRegressor("mean").fit(None, pd.Series(labels), graph=graph)
    np.testing.assert_array_equal(found.y_, UNKNOWN)
    with pytest.raises(ValueError, match=r"^labelled is a dict"):
        graph.describe(labels)


def test_a_tensor_is_numbers_with_or_without_a_gradient():
    torch = pytest.importorskip("torch")
    found = linear(torch.tensor(UNKNOWN, requires_grad=True), torch.tensor(X, requires_grad=True))
    np.testing.assert_array_equal(found.predict(), linear(UNKNOWN).predict())
