"""Work is done in an order of nodes that suits the memory; what comes out is the same, in the order of the graph."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import residua
from graphs import CASES, small_world
from residua import Cholesky, Graph, GraphRegressor
from residua.field import Conditional, Likelihood
from residua.field.training_loss import Objective
from residua.linalg import Sparse, order


def ring(n, rng=None):
    """Each node beside its six nearest; ids in order, or drawn at random."""
    name = np.arange(n) if rng is None else rng.permutation(n)
    source = np.repeat(np.arange(n), 3)
    target = (source + np.tile([1, 2, 3], n)) % n
    return Graph.from_edges(name[source], name[target], nodes=np.arange(n))


def random_graph(n, rng):
    return Graph.from_edges(*rng.integers(0, n, (2, 3 * n)), nodes=np.arange(n))


@pytest.fixture
def small(monkeypatch):
    """Graphs of a few thousand nodes count as large."""
    monkeypatch.setattr(order, "LARGE", 1000)
    monkeypatch.setattr(order, "RUN", 128)


def test_an_order_is_looked_for_where_it_is_worth_having(small, rng):
    assert ring(4000).near_order is None  # theirs is good
    assert random_graph(4000, rng).near_order is None  # none is better
    shuffled = ring(4000, rng)
    found = shuffled.near_order
    assert np.array_equal(np.sort(found), np.arange(4000))
    S = shuffled.operators["edge"].submatrix(found)
    apart = np.abs(np.repeat(np.arange(4000), np.diff(S.indptr)) - S.indices)
    assert np.median(apart) < 20
    assert ring(900, rng).near_order is None  # small


def test_isolated_nodes_and_hubs_do_not_keep_from_an_order_or_from_coming_back(small, rng, monkeypatch):
    name = rng.permutation(6000)
    source = np.repeat(np.arange(4000), 3)
    target = (source + np.tile([1, 2, 3], 4000)) % 4000
    graph = Graph.from_edges(name[source], name[target], nodes=np.arange(6000))
    assert graph.near_order is not None
    assert not graph.near_order.flags.writeable
    monkeypatch.setattr(order, "MOST", 5)  # scipy takes the square of the largest degree
    assert Graph.from_edges(name[source], name[target], nodes=np.arange(6000)).near_order is None


def test_a_damaged_pattern_that_is_not_symmetric_does_no_harm():
    S = Sparse(np.array([0, 0, 0, 3]), np.array([0, 1, 2]), None, np.ones(3))
    rows = np.array([2, 1, 0])
    assert_allclose(S.submatrix(rows).dense(), S.dense()[np.ix_(rows, rows)])


@pytest.mark.parametrize("rows", ["all", "some"])
def test_submatrix_in_any_order_is_the_dense_one(any_case, rows, rng):
    S = any_case.terms[0]
    chosen = rng.permutation(any_case.n)[: None if rows == "all" else (any_case.n + 1) // 2]
    found = S.submatrix(chosen)
    assert_allclose(found.dense(), S.dense()[np.ix_(chosen, chosen)], atol=1e-15)
    for first, last in zip(found.indptr, found.indptr[1:], strict=False):
        assert (np.diff(found.indices[first:last]) > 0).all()


def problem(rng, n=1500):
    """A shuffled ring with an island that no label reaches, and one with a label."""
    name = rng.permutation(n + 20)
    source = np.r_[np.repeat(np.arange(n), 3), n + np.arange(9), n + 10 + np.arange(9)]
    target = np.r_[
        (np.repeat(np.arange(n), 3) + np.tile([1, 2, 3], n)) % n, n + 1 + np.arange(9), n + 11 + np.arange(9)
    ]
    graph = Graph.from_edges(name[source], name[target], nodes=np.arange(n + 20))
    r = Conditional(graph, np.zeros(n + 20, bool), 0.9, 2.0).sample(1, rng)[0]
    known = rng.random(n + 20) < 0.5
    known[name[n : n + 10]] = False
    known[name[n + 10]] = True
    return graph, np.where(known, r, np.nan)


def both(monkeypatch, graph, ask):
    """What comes out in the graph's own order, and in the better one."""
    plain = ask(Graph.from_arrays(graph.arrays(), graph.nodes, graph.edge_types))
    monkeypatch.setattr(order, "LARGE", 1000)
    monkeypatch.setattr(order, "RUN", 128)
    arranged = Graph.from_arrays(graph.arrays(), graph.nodes, graph.edge_types)
    assert arranged.near_order is not None
    return plain, ask(arranged)


def test_a_fit_and_its_prediction_are_the_same(monkeypatch, rng):
    graph, r = problem(rng)
    X = rng.standard_normal((graph.n_nodes, 2))
    y = np.where(np.isnan(r), np.nan, r + X @ [1.0, -2.0])

    def ask(graph):
        fit = residua.fit_correlation(r, graph, logdet=Cholesky())
        model = GraphRegressor("linear", logdet=Cholesky()).fit(X, y, graph=graph)
        mean, std = model.predict(return_std=True)
        left_out = Conditional(graph, ~np.isnan(r), 0.9).leave_one_out(np.nan_to_num(r))
        return (fit.alpha["edge"], fit.beta, fit.alpha_stderr["edge"], mean, std, left_out.error, left_out.variance)

    for one, other in zip(*both(monkeypatch, graph, ask), strict=True):
        assert_allclose(other, one, rtol=1e-6, atol=1e-7)


def test_a_training_loss_and_its_correction_are_the_same(monkeypatch, rng):
    graph, r = problem(rng)
    known = ~np.isnan(r)

    def ask(graph):
        loss = Objective(graph, known, Cholesky(), tol=1e-10)
        loss.refit(r[known])
        value, slope = loss.loss(r[known])
        return loss.alpha, value, slope, loss.correction()

    for one, other in zip(*both(monkeypatch, graph, ask), strict=True):
        assert_allclose(other, one, rtol=1e-6, atol=1e-8)


def test_rows_of_a_likelihood_know_their_nodes(small, rng):
    graph, r = problem(rng)
    known = ~np.isnan(r)
    likelihood = Likelihood(graph, known)
    assert np.array_equal(likelihood.nodes[likelihood.L], np.flatnonzero(known))
    assert len(likelihood.nodes) == graph.n_nodes - 10
    assert not known[likelihood.nodes[likelihood.U]].any()


def test_share_of_different_columns():
    star, path = CASES["star"].terms[0], CASES["path"].terms[0]
    n = star.shape[0]
    assert order.different(star, np.arange(1, n)) == pytest.approx(1 / (n - 1))
    assert order.different(path, np.array([0])) == 1
    S = small_world(n=2000).terms[0]
    rows = np.array([5, 900, 3])
    columns = np.concatenate([S.indices[S.indptr[i] : S.indptr[i + 1]] for i in rows])
    assert order.different(S, rows) == pytest.approx(len(set(columns.tolist())) / len(columns))
