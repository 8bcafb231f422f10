"""Tensors as X, y and masks, of any precision and with a gradient, are the arrays that they hold."""

import numpy as np
import pytest

import residua
from graphs import small_world
from residua import Graph, GraphRegressor

torch = pytest.importorskip("torch")

CASE = small_world(60, 4, seed=0)
RNG = np.random.default_rng(0)
# Whole numbers, which every precision holds.
X = RNG.integers(-8, 9, (60, 2)).astype(float)
Y = np.where(CASE.labelled, X @ [1.0, -2.0] + RNG.integers(-2, 3, 60), np.nan)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gradient", [False, True])
def test_a_model_fits_and_predicts_tensors(dtype, gradient):
    x, y = torch.tensor(X, dtype=dtype, requires_grad=gradient), torch.tensor(Y, dtype=dtype)
    graph = CASE.graph
    model, plain = (GraphRegressor("linear").fit(*data, graph=graph) for data in ((x, y), (X, Y)))
    np.testing.assert_array_equal(model.predict(), plain.predict())
    other = Graph.from_scipy(graph.adjacency())
    np.testing.assert_array_equal(model.predict(x, y, graph=other), plain.predict(X, Y, graph=other))
    truth = np.nan_to_num(Y, nan=1.0) + X[:, 0]
    assert model.score(x, torch.tensor(truth)) == plain.score(X, truth)
    np.testing.assert_array_equal(model.predict(y=torch.tensor(truth)), plain.predict(y=truth))


def test_other_functions_take_tensors_too():
    graph, y = CASE.graph, torch.tensor(Y)
    np.testing.assert_array_equal(residua.propagate(y, graph), residua.propagate(Y, graph))
    assert residua.fit_correlation(y, graph).alpha == residua.fit_correlation(Y, graph).alpha
    assert residua.metrics.morans_i(y, graph) == residua.metrics.morans_i(Y, graph)
    near = [residua.NeighbourFeatures().fit_transform(values, graph=graph) for values in (torch.tensor(X), X)]
    np.testing.assert_array_equal(*near)
    mask = torch.tensor(CASE.labelled)
    assert graph.describe(labelled=mask) == graph.describe(labelled=CASE.labelled)


def test_whole_numbers_and_a_column_are_labels():
    x, y = torch.tensor(X), torch.arange(60)[:, None]
    model = GraphRegressor("linear").fit(x, y, graph=CASE.graph)
    np.testing.assert_array_equal(model.y_, np.arange(60))


def test_a_sparse_tensor_is_refused_and_the_remedy_works():
    sparse = torch.tensor(X).to_sparse()
    with pytest.raises(ValueError, match=r"X is a sparse tensor of shape \(60, 2\); give X.to_dense\(\)"):
        GraphRegressor("linear").fit(sparse, Y, graph=CASE.graph)
    GraphRegressor("linear").fit(sparse.to_dense(), Y, graph=CASE.graph)
