"""Tables reach a base as they are given: names, text, categories, dates, missing values, sparse matrices."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import residua
from graphs import small_world
from residua import GraphRegressor, NeighbourFeatures
from residua.bases.trees.columns import Columns
from residua.features import same_features

N = 120
GRAPH = small_world(N).graph


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "count": rng.integers(0, 9, N),
            "kind": rng.choice(["a", "b", "c"], N),
            "grade": pd.Categorical(rng.choice(["low", "high"], N), ["low", "high"], ordered=True),
            "built": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), "D"),
            "open": rng.random(N) < 0.5,
        }
    )


def labels(X: pd.DataFrame) -> np.ndarray:
    y = X["count"] + 3.0 * (X["kind"] == "b") + np.random.default_rng(1).normal(size=N)
    return np.where(np.arange(N) % 4 == 0, np.nan, y)


class Seeing(RegressorMixin, BaseEstimator):
    """A regressor that says what it is given."""

    def __init__(self, seen):
        self.seen = seen

    def __sklearn_clone__(self):
        return Seeing(self.seen)

    def fit(self, X, y):
        self.seen.append(X)
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        self.seen.append(X)
        return np.full(X.shape[0], self.mean_)


@pytest.mark.parametrize("training", ["joint", "post-hoc"])
def test_a_regressor_gets_a_data_frame_with_the_columns_as_they_are(training):
    seen, X = [], table()
    shuffled = X.sample(frac=1, random_state=0)
    by_id = residua.Graph.from_edges(["n0"], ["n1"], nodes=[f"n{i}" for i in range(N)])
    y = pd.Series(labels(X), index=X.index)
    ids = [f"n{i}" for i in range(N)]
    model = GraphRegressor(Seeing(seen), correlation=None, training=training)
    model.fit(shuffled.set_axis([ids[i] for i in shuffled.index]), y.set_axis(ids), graph=by_id)
    for part in seen:
        assert isinstance(part, pd.DataFrame)
        assert_array_equal(part.dtypes, X.dtypes)
    assert list(model.X_["count"]) == list(X["count"])
    assert list(model.feature_names_in_) == list(X.columns)


def test_a_pipeline_chooses_columns_by_name_and_predicts_another_graph():
    X = table()
    encode = make_column_transformer((OneHotEncoder(), ["kind", "grade"]), (StandardScaler(), ["count"]))
    model = GraphRegressor(make_pipeline(encode, Ridge())).fit(X, labels(X), graph=GRAPH)
    other = small_world(60).graph
    found = model.predict(table(3).iloc[:60], graph=other)
    assert np.isfinite(found).all()
    with pytest.raises(ValueError, match="reorder them to match"):
        model.predict(table(3).iloc[:60][list(X.columns[::-1])], graph=other)


def test_missing_values_are_left_to_a_base_that_takes_them():
    X = table()[["size", "count"]]
    model = GraphRegressor(HistGradientBoostingRegressor(max_iter=10)).fit(X, labels(table()), graph=GRAPH)
    assert np.isfinite(model.predict()).all()
    with pytest.raises(ValueError, match="NaN"):
        GraphRegressor(Ridge()).fit(X, labels(table()), graph=GRAPH)
    with pytest.raises(ValueError, match=r"X has nan in row \d+, column size"):
        GraphRegressor("linear").fit(X, labels(table()), graph=GRAPH)
    with pytest.raises(ValueError, match=r"columns that are not numbers: \['kind'"):
        GraphRegressor("linear").fit(table(), labels(table()), graph=GRAPH)


def test_a_sparse_matrix_stays_sparse_and_says_what_the_array_says():
    X = sp.random_array((N, 30), density=0.1, rng=np.random.default_rng(0), format="csc")
    ridge = Ridge(solver="sparse_cg", tol=1e-13)
    sparse, dense = (GraphRegressor(ridge).fit(Z, labels(table()), graph=GRAPH) for Z in (X, X.toarray()))
    assert sp.issparse(sparse.X_)
    assert_allclose(sparse.predict(), dense.predict(), atol=1e-6)


def test_trees_take_text_categories_dates_and_missing_values():
    X = table()
    truth = X["count"] + 3.0 * (X["kind"] == "b")
    model = GraphRegressor("trees").fit(X, labels(X), graph=GRAPH)
    hidden = np.isnan(labels(X))
    error = np.mean((model.predict() - truth)[hidden] ** 2)
    assert error < 0.5 * np.var(truth[hidden])
    unseen = table(5).assign(kind="z")
    assert np.isfinite(model.predict(unseen, graph=small_world(N, 6).graph)).all()


def test_columns_are_encoded_by_their_values_whatever_their_order():
    X = table()
    encoded = Columns.of(X)
    assert_array_equal(encoded.categorical, [False, False, True, True, False, False])
    found = encoded.numbers(X)
    assert_array_equal(np.isnan(found[:, 0]), X["size"].isna())
    assert len({(code, kind) for code, kind in zip(found[:, 2], X["kind"], strict=True)}) == 3
    days = (X["built"] - pd.Timestamp("1970-01-01")).dt.days
    assert_array_equal(found[:, 4], days)
    assert np.isnan(encoded.numbers(X.assign(kind="new"))[:, 2]).all()
    with pytest.raises(ValueError, match="X has lists in column 'kind'"):
        Columns.of(X.assign(kind=[[1]] * N))


@pytest.mark.parametrize(
    "base",
    [
        "trees",
        make_pipeline(make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), ["count"])), Ridge()),
    ],
    ids=["trees", "pipeline"],
)
def test_tables_come_back_from_a_model_file(base, tmp_path):
    X = table()
    model = GraphRegressor(base).fit(X, labels(X), graph=GRAPH)
    model.save(tmp_path / "model.residua")
    again = residua.load(tmp_path / "model.residua")
    assert same_features(again.X_, model.X_)
    assert_array_equal(again.X_.dtypes, model.X_.dtypes)
    assert_array_equal(again.predict(return_std=True), model.predict(return_std=True))
    other = small_world(60).graph
    assert_array_equal(again.predict(table(3)[:60], graph=other), model.predict(table(3)[:60], graph=other))


def test_a_sparse_matrix_comes_back_from_a_model_file(tmp_path):
    X = sp.random_array((N, 30), density=0.1, rng=np.random.default_rng(0), format="csr")
    model = GraphRegressor(Ridge()).fit(X, labels(table()), graph=GRAPH)
    model.save(tmp_path / "model.residua")
    again = residua.load(tmp_path / "model.residua")
    assert same_features(again.X_, model.X_)
    assert_array_equal(again.predict(), model.predict())


def test_what_a_model_file_does_not_keep_is_refused_by_name(tmp_path):
    X = table().assign(odd=[(1, 2)] * N)
    model = GraphRegressor(Seeing([])).fit(X, labels(table()), graph=GRAPH)
    with pytest.raises(ValueError, match="column 'odd' of X"):
        model.save(tmp_path / "model.residua")


def test_neighbour_features_average_numbers_and_pass_the_rest_on():
    path = residua.Graph.from_edges([0, 1, 2], [1, 2, 3])
    X = pd.DataFrame({"x": [0.0, 1.0, np.nan, 4.0], "kind": list("abcd")})
    found = NeighbourFeatures(hops=1, degree=False).fit_transform(X, graph=path)
    assert list(found["kind"]) == list("abcd")
    # The neighbours of node 1 are 0 and 2, of which only 0 has a number; node 3 has only node 2, which has none.
    assert_array_equal(found.iloc[:, 2], [1.0, 0.0, 2.5, np.nan])


@pytest.mark.parametrize("training", ["joint", "post-hoc"])
def test_the_graph_reaches_neighbour_features_inside_a_pipeline(training, tmp_path):
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = labels(table())
    outside = NeighbourFeatures(hops=2).fit_transform(X, graph=GRAPH)
    inside = GraphRegressor(make_pipeline(NeighbourFeatures(hops=2), StandardScaler(), Ridge()), training=training)
    plain = GraphRegressor(make_pipeline(StandardScaler(), Ridge()), training=training)
    inside.fit(X, y, graph=GRAPH)
    plain.fit(outside, y, graph=GRAPH)
    assert_allclose(inside.predict(), plain.predict())
    other, Z = small_world(50).graph, np.random.default_rng(1).normal(size=(50, 3))
    around = NeighbourFeatures(hops=2).fit_transform(Z, graph=other)
    assert_allclose(inside.predict(Z, graph=other), plain.predict(around, graph=other))
    inside.save(tmp_path / "model.residua")
    assert_array_equal(residua.load(tmp_path / "model.residua").predict(), inside.predict())


def test_an_array_of_text_that_is_changed_after_the_fit_changes_no_model():
    graph = residua.Graph.from_edges(np.arange(11), np.arange(1, 12))
    X = np.array([[name, "x"] for name in "abcabcabcabc"], dtype=object)
    y = np.r_[np.arange(10.0) ** 2 % 7, np.nan, np.nan]
    base = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    model = GraphRegressor(base, training="post-hoc", folds=3).fit(X, y, graph=graph)
    X[:] = "c"
    assert_array_equal(model.X_[:3, 0], ["a", "b", "c"])
