"""Neighbour features against the dense averages they stand for."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from graphs import small_world
from residua import Graph, GraphRegressor, NeighbourFeatures


def averages(case):
    """(p, n, n) dense D_t^-1 A_t and (p, n) degrees D_t, each type by its own degree."""
    A = np.zeros((len(case.types), case.n, case.n))
    for i, j, w, t in zip(case.source, case.target, case.weight, case.type, strict=True):
        A[case.types.index(t), i, j] = A[case.types.index(t), j, i] = w
    degree = A.sum(axis=2)
    inverse = np.array([[1 / d if d > 0 else 0.0 for d in row] for row in degree])
    return inverse[:, :, None] * A, degree


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
@pytest.mark.parametrize("degree", [True, False])
def test_columns_are_powers_of_the_neighbour_mean(any_case, hops, degree, rng):
    X = rng.normal(size=(any_case.n, 2))
    columns = [X]
    for M, d in zip(*averages(any_case), strict=True):
        columns += [np.linalg.matrix_power(M, k) @ X for k in range(1, hops + 1)]
        if degree:
            columns += [np.log1p(d)[:, None], (M @ np.log1p(d))[:, None]]
    found = NeighbourFeatures(hops, degree).fit_transform(X, graph=any_case.graph)
    np.testing.assert_allclose(found, np.hstack(columns), atol=1e-12)


def test_a_node_without_neighbours_of_a_type_gets_zeros(any_case, rng):
    X = rng.normal(size=(any_case.n, 1))
    found = NeighbourFeatures(hops=1, degree=False).fit_transform(X, graph=any_case.graph)
    _, degree = averages(any_case)
    for t, d in enumerate(degree):
        assert (found[d == 0, 1 + t] == 0).all()


def test_without_features_the_degree_is_left(any_case):
    found = NeighbourFeatures(hops=2).fit_transform(None, graph=any_case.graph)
    assert found.shape == (any_case.n, 2 * len(any_case.types))


def test_parameters_and_clones():
    features = NeighbourFeatures(hops=3, degree=False)
    assert features.get_params() == {"hops": 3, "degree": False}
    assert clone(features).get_params() == features.get_params()
    assert clone(features).set_params(hops=1).hops == 1
    with pytest.raises(ValueError, match="hops=-1 is below 0"):
        NeighbourFeatures(hops=-1).fit(np.zeros((3, 1)), graph=small_world(n=20, degree=4).graph)


def test_output_as_a_table_by_id(rng):
    case = small_world(n=30, degree=4, types=2)
    ids = np.array([f"n{k}" for k in range(30)], object)
    graph = Graph.from_edges(ids[case.source], ids[case.target], type=case.type, nodes=ids)
    X = pd.DataFrame(rng.normal(size=(30, 2)), index=ids, columns=["a", "b"])
    expected = NeighbourFeatures(hops=2).fit_transform(X, graph=graph)
    features = NeighbourFeatures(hops=2).set_output(transform="pandas")
    found = clone(features).fit_transform(X.iloc[::-1], graph=graph)  # rows in another order: ids tell
    assert found.index.tolist() == ids.tolist()
    np.testing.assert_array_equal(found.to_numpy(), expected)
    first, second = graph.edge_types
    names = ["a", "b"]
    for kind in (first, second):
        names += [f"a, hop 1, {kind}", f"b, hop 1, {kind}", f"a, hop 2, {kind}", f"b, hop 2, {kind}"]
        names += [f"log degree, {kind}", f"log degree, hop 1, {kind}"]
    assert found.columns.tolist() == names
    assert (found[f"log degree, {first}"] == np.log1p(graph.adjacency(first).sum(axis=1))).all()
    with sklearn.config_context(transform_output="pandas"):
        assert NeighbourFeatures().fit_transform(X, graph=graph).index.tolist() == ids.tolist()
        assert isinstance(features.set_output(transform="default").fit_transform(X, graph=graph), np.ndarray)
    step = make_pipeline(NeighbourFeatures()).set_output(transform="pandas")[0]
    assert isinstance(step.fit_transform(X, graph=graph), pd.DataFrame)
    with pytest.raises(ValueError, match="transform='polars' is unknown; use one of 'default', 'pandas'"):
        features.set_output(transform="polars")
    with pytest.raises(NotFittedError, match=r"call fit\(X, graph=graph\) first"):
        NeighbourFeatures().get_feature_names_out()
    plain = NeighbourFeatures(hops=1, degree=False).fit(X.to_numpy(), graph=case.graph)
    assert plain.get_feature_names_out().tolist()[:3] == ["x0", "x1", f"x0, hop 1, {case.types[0]}"]


def test_boosted_trees_learn_from_the_surroundings(rng):
    case = small_world(n=600, degree=6, share=0.6)
    X = rng.normal(size=(case.n, 2))
    M = averages(case)[0][0]
    truth = X[:, 0] + 3 * M @ X[:, 1] + 0.1 * rng.normal(size=case.n)
    y = np.where(case.labelled, truth, np.nan)
    trees = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    scores = [
        GraphRegressor(trees, correlation=None).fit(columns, y, graph=case.graph).score(None, truth)
        for columns in (X, NeighbourFeatures(hops=1).fit_transform(X, graph=case.graph))
    ]
    assert scores[1] > scores[0] + 0.3


def test_columns_are_those_of_the_fit():
    graph = small_world(n=20, degree=4).graph
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    features = NeighbourFeatures(hops=1).fit(X, graph=graph)
    expected = NeighbourFeatures(hops=1).fit_transform(X, graph=graph)
    for given in (X, X.to_numpy()):
        np.testing.assert_array_equal(features.transform(given, graph=graph), expected)
    with pytest.raises(ValueError, match=r"X has columns \['b', 'a'\] but the model was fitted on \['a', 'b'\]"):
        features.transform(X[["b", "a"]], graph=graph)
    with pytest.raises(ValueError, match="X has 1 columns but the model was fitted on 2"):
        features.transform(X[["a"]].to_numpy(), graph=graph)
    with pytest.raises(ValueError, match="X is None"):
        features.transform(None, graph=graph)
