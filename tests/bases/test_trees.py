"""Boosted trees grown through the likelihood."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import residua
from graphs import small_world
from residua import Graph, GraphRegressor
from residua.bases.base import Task
from residua.bases.trees.base import TreesBase
from residua.bases.trees.bins import Bins
from residua.bases.trees.boosting import Boosters, Problem, Settings
from residua.bases.trees.kernels import MISSING, add_trees, find_leaves, grow
from residua.bases.trees.training import Independent
from residua.field.fold_fields import FoldFields

N = 400


def grid(side: int = 20) -> Graph:
    at = np.arange(side * side).reshape(side, side)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    source, target = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    return Graph.from_edges(source, target)


def data(seed: int = 0, alpha: float = 0.99) -> tuple[Graph, np.ndarray, np.ndarray]:
    """A step and an interaction of features, and what neighbours on a grid share."""
    rng, graph = np.random.default_rng(seed), grid()
    X = rng.normal(size=(N, 4))
    G = np.eye(N) - alpha * graph.operators["edge"].dense()
    r = np.linalg.solve(np.linalg.cholesky(G).T, rng.normal(size=N))
    return graph, X, 1.5 * np.sign(X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.4 * r


def best_split_by_hand(codes: np.ndarray, g: np.ndarray, least: int, ridge: float) -> float:
    def part(rows: np.ndarray) -> float:
        return g[rows].sum() ** 2 / (rows.sum() + ridge)

    gains = [0.0]
    for column in codes.T:
        there = column < MISSING
        for t in np.unique(column[there]):
            for missing_left in (False, True):
                left = np.where(there, column <= t, missing_left)
                if min(left.sum(), (~left).sum()) >= least:
                    gains.append(part(left) + part(~left) - part(np.ones(len(g), bool)))
    return max(gains)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_split_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (90, 3)).astype(np.uint8)
    codes[rng.random((90, 3)) < 0.2] = MISSING
    g = rng.normal(size=90)
    settings = np.arange(3), np.zeros(3, bool), 2, 5.0, 1.0
    feature, tables, children = grow(codes, np.arange(90), g, *settings)
    left = tables[0, codes[:, feature[0]]]
    gain = sum(g[side].sum() ** 2 / (side.sum() + 1) for side in (left, ~left)) - g.sum() ** 2 / 91
    assert_allclose(gain, best_split_by_hand(codes, g, 5, 1.0))
    assert_array_equal(children, [[-1, -2]])


def test_a_tree_puts_every_row_into_the_leaf_that_it_grew_it_in():
    rng = np.random.default_rng(1)
    codes, g = rng.integers(0, 40, (300, 4)).astype(np.uint8), rng.normal(size=300)
    tree = grow(codes, np.arange(300), g, np.arange(4), np.zeros(4, bool), 8, 10.0, 1.0)
    leaf = np.empty(300, np.int64)
    find_leaves(codes, *tree, leaf)
    assert np.bincount(leaf, minlength=8).min() >= 10
    values, out = rng.normal(size=8), np.zeros(300)
    add_trees(codes, *(part[None] for part in tree), values[None], out)
    assert_array_equal(out, values[leaf])


def test_categories_are_split_by_what_they_stand_for_and_not_by_their_numbers():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 10, (500, 1)).astype(np.uint8)
    g = np.where(np.isin(codes[:, 0], [1, 4, 8]), 1.0, -1.0)
    feature, tables, _ = grow(codes, np.arange(500), g, np.arange(1), np.array([True]), 2, 5.0, 1.0)
    left = tables[0, :10]
    assert set(np.flatnonzero(left)) in ({1, 4, 8}, {0, 2, 3, 5, 6, 7, 9})
    assert feature[0] == 0


def test_columns_are_cut_between_their_values_or_at_quantiles():
    X = np.column_stack([np.array([3.0, 1.0, 1.0, np.nan, 2.0]), [0, 1, 2, 3, 300]])
    bins = Bins.of(X, np.array([False, True]))
    assert_array_equal(bins.codes(X), [[2, 0], [0, 1], [0, 2], [MISSING, 3], [1, MISSING]])
    many = np.random.default_rng(0).normal(size=(10_000, 1))
    codes = Bins.of(many).codes(many)
    assert len(np.unique(codes)) == MISSING
    assert np.bincount(codes[:, 0]).max() < 60
    assert (np.diff(codes[np.argsort(many[:, 0]), 0].astype(int)) >= 0).all()


def problem(seed: int = 0) -> tuple[Graph, Problem]:
    graph, X, y = data(seed)
    rng = np.random.default_rng(seed)
    fold = np.where(rng.random(N) < 0.6, rng.integers(0, 5, N), -1)
    bins = Bins.of(X)
    Z = np.column_stack([np.ones(N), X])
    return graph, Problem(bins.codes(X), bins.categorical, Z, np.where(fold < 0, np.nan, y), fold, 5)


def boosted(given: Problem, graph: Graph, alpha: float, rounds: int = 6) -> Boosters:
    fields = FoldFields(graph, given.known, tol=1e-10)
    fields.set_alpha(np.array([alpha]))
    boosters = Boosters(given, fields, Settings())
    for _ in range(rounds):
        boosters.grow()
    return boosters


def test_every_round_lowers_the_quadratic_form_and_keeps_residuals_completed():
    graph, given = problem()
    fields = FoldFields(graph, given.known, tol=1e-10)
    fields.set_alpha(np.array([0.97]))
    boosters, last = Boosters(given, fields, Settings()), np.inf
    for _ in range(5):
        boosters.grow()
        fresh = np.where(given.known, np.nan_to_num(given.y)[:, None] - boosters.f, 0.0)
        pulled = fields.complete(fresh)
        assert_allclose(boosters.full, fresh, atol=1e-6)
        assert_allclose(boosters.pulled, pulled, atol=1e-6)
        form = (fresh * pulled).sum(axis=0)
        assert (form < last).all()
        last = form


def test_the_linear_part_is_generalised_least_squares_of_each_booster():
    graph, given = problem()
    boosters = boosted(given, graph, 0.9, rounds=0)
    G = np.eye(N) - 0.9 * graph.operators["edge"].dense()
    for k, known in enumerate(given.known.T):
        K, U = np.flatnonzero(known), np.flatnonzero(~known)
        schur = G[np.ix_(K, K)] - G[np.ix_(K, U)] @ np.linalg.solve(G[np.ix_(U, U)], G[np.ix_(U, K)])
        Z = given.Z[K]
        assert_allclose(boosters.theta[k], np.linalg.solve(Z.T @ schur @ Z, Z.T @ schur @ given.y[K]), atol=1e-6)


def test_without_a_correlation_a_round_is_that_of_alpha_0():
    graph, given = problem()
    found = Boosters(given, Independent(given.known), Settings(ridge=0.0))
    expected = np.where(given.known, np.nan_to_num(given.y)[:, None], 0.0)
    means = expected.sum(axis=0) / given.known.sum(axis=0)
    assert_allclose(found.fields.complete(found.full.copy()), np.where(given.known, expected - found.f, 0.0))
    constant = Boosters(replace(given, Z=np.ones((N, 1))), Independent(given.known), Settings())
    assert_allclose(constant.f, np.tile(means, (N, 1)))
    assert graph.n_nodes == N


@pytest.mark.parametrize("k", range(5))
def test_a_booster_does_not_see_the_labels_of_its_fold(k):
    """At one alpha: poisoned labels of fold k change nothing of booster k, and much of all others."""
    graph, given = problem()
    poisoned = replace(given, y=np.where(given.fold == k, 1e3, given.y))
    clean, other = boosted(given, graph, 0.97), boosted(poisoned, graph, 0.97)
    assert_array_equal(clean.f[:, k], other.f[:, k])
    assert_array_equal(clean.full[:, k], other.full[:, k])
    assert_array_equal(clean.theta[k], other.theta[k])
    rest = np.arange(5) != k
    assert (np.abs(clean.f - other.f)[:, rest].max(axis=0) > 1).all()


def test_labels_that_are_not_given_change_nothing():
    """What stands at unlabelled nodes is never read: any rubbish there leaves every bit as it was."""
    graph, given = problem()
    unknown = given.fold < 0
    rubbish = replace(given, y=np.where(unknown, 1e6, given.y))
    clean, other = boosted(given, graph, 0.97), boosted(rubbish, graph, 0.97)
    assert_array_equal(clean.f, other.f)


def test_validation_labels_are_learned_from_by_no_booster():
    graph, X, y = data()
    judges = np.arange(N) % 7 == 0
    poisoned = np.where(judges, y + 100.0, y)
    found = []
    for labels in (y, poisoned):
        task = Task(graph, X, labels, np.ones(N, bool), 5, 0, validation=judges)
        base = TreesBase(joint=False)
        base.y_centre, base.y_spread, base.bins = 0.0, 1.0, Bins.of(X)
        base.x_centre, base.x_spread = X.mean(axis=0), X.std(axis=0)
        found.append(base._trained(task, None)[0])
    rounds = min(len(t.history) for t in found) - 1
    for part in ("feature", "tables", "children", "values"):
        first, second = (getattr(t.boosters.trees, part)[:rounds] for t in found)
        assert_array_equal(first, second)
    assert found[0].history[0]["error"] < found[1].history[0]["error"]


def test_joint_trees_explain_more_than_trees_corrected_afterwards():
    gains, inside = [], []
    for seed in range(4):
        graph, X, y = data(seed)
        hidden = np.random.default_rng(seed).random(N) < 0.4
        known = np.where(hidden, np.nan, y)
        errors = {}
        for training in ("joint", "post-hoc"):
            model = GraphRegressor("trees", training=training).fit(X, known, graph=graph)
            mean, std = model.predict(return_std=True)
            errors[training] = np.mean((mean - y)[hidden] ** 2)
            inside.append(np.abs(mean - y)[hidden] < 1.645 * std[hidden])
        gains.append(np.log(errors["post-hoc"] / errors["joint"]))
    assert np.mean(gains) > 0.05
    assert 0.85 < np.mean(np.concatenate(inside)) < 0.95


def test_a_missing_number_is_no_obstacle():
    graph, X, y = data()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    base = TreesBase()
    task = Task(graph, X, y, np.ones(N, bool), 5, 0)
    outcome = base.fit(task, None)
    assert np.isfinite(base.predict(graph, X)).all()
    assert np.var(outcome.residual) < 0.9 * np.var(y)


def test_a_model_file_holds_the_trees_and_no_code(tmp_path):
    graph, X, y = data()
    y[::3] = np.nan
    model = GraphRegressor("trees").fit(X, y, graph=graph)
    model.save(tmp_path / "trees.residua")
    again = residua.load(tmp_path / "trees.residua")
    assert again.base == "trees"
    assert again.alpha_ == model.alpha_
    for known in ("label", "predict"):
        assert_array_equal(again.predict(known=known, return_std=True), model.predict(known=known, return_std=True))
    assert again.correlation_.interval() == model.correlation_.interval()
    later = np.where(np.arange(N) == 0, 2.0, np.nan)
    assert_array_equal(again.predict(y=later), model.predict(y=later))


def test_history_tells_every_round_and_verbose_prints_some(capsys):
    graph, X, y = data()
    model = GraphRegressor("trees").fit(X, y, graph=graph, verbose=True)
    history = model.history_
    assert list(history.columns) == ["linear", "round", "error", "alpha"]
    assert history["linear"].nunique() == 2
    assert (history.groupby("linear")["error"].min() < history.groupby("linear")["error"].first()).all()
    assert "boosting trees" in capsys.readouterr().out
    assert GraphRegressor("linear").fit(X, y, graph=graph).history_.empty


def test_labels_may_be_few_constant_columns_many_or_units_large():
    graph = small_world(60).graph
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    y = rng.normal(size=60)
    few = np.where(np.arange(60) < 4, y, np.nan)
    assert np.isfinite(GraphRegressor("trees").fit(X, few, graph=graph).predict()).all()
    unit = GraphRegressor("trees").fit(X, y, graph=graph).predict(known="predict")
    large = GraphRegressor("trees").fit(X * 1e6, y * 1e50, graph=graph).predict(known="predict")
    assert_allclose(large / 1e50, unit, rtol=1e-5)


def test_validation_is_a_mask_or_ids_of_labelled_nodes():
    graph, X, y = data()
    y[0] = np.nan
    judges = np.arange(N) % 5 == 1
    by_mask = GraphRegressor("trees").fit(X, y, graph=graph, validation=judges)
    by_id = GraphRegressor("trees").fit(X, y, graph=graph, validation=graph.nodes[judges])
    assert_array_equal(by_mask.predict(), by_id.predict())
    with pytest.raises(ValueError, match="validation has 1 nodes whose label is unknown"):
        GraphRegressor("trees").fit(X, y, graph=graph, validation=[0, 1])
    with pytest.raises(ValueError, match="validation names 9999"):
        GraphRegressor("trees").fit(X, y, graph=graph, validation=[9999])
    with pytest.raises(ValueError, match='base "linear" has no training to stop early'):
        GraphRegressor("linear").fit(X, y, graph=graph, validation=judges)
    with pytest.raises(ValueError, match="validation leaves 2 labels"):
        GraphRegressor("trees").fit(X, y, graph=graph, validation=np.arange(N) > 2)
