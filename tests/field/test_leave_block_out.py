"""Labels as predicted without their block are those of dense algebra that never saw the block."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

import dense
from graphs import grid, small_world
from residua import GraphRegressor
from residua.field.leave_block_out import LeaveBlockOut, draw_blocks, leave_block_out
from residua.graph.regions import missing_regions, seen_missing

CASES = {
    "grid": grid(9, 9),
    "small world": small_world(80, 4, seed=2),
    "two types": small_world(80, 6, types=2, seed=4),
}


def fitted(case, base="linear", correlation="learned", seed=0):
    """A model of labels in the larger part of a graph, the first fifth and some nodes unknown."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((case.n, 2))
    known = (np.arange(case.n) >= case.n // 5) & (rng.random(case.n) < 0.9)
    y = np.where(known, X @ [1.0, -1.0] + np.sin(np.arange(case.n) / 7) + 0.3 * rng.standard_normal(case.n), np.nan)
    return GraphRegressor(base, correlation).fit(X, y, graph=case.graph)


def every_region(model):
    return missing_regions(model.graph_, model.field_.labelled)


def some_blocks(model, rng):
    known = np.flatnonzero(model.field_.labelled)
    first = rng.integers(len(known) - 12, size=3)
    return [known[k : k + 12] for k in first]


def by_dense_algebra(case, model, block):
    """Errors and variances at a block, from labels outside of it, alpha and beta given."""
    field = model.field_
    known = field.labelled.copy()
    known[block] = False
    Z = np.column_stack([np.ones(case.n), field.X])
    alpha = np.array([field.alpha[t] for t in case.types])
    _, theta, covariance = dense.least_squares(case.S, alpha, known, field.y[known], Z)
    C = dense.covariance(case.S, alpha, field.beta)
    weights = np.linalg.solve(dense.block(C, known), dense.block(C, known, block)).T
    mean = Z[block] @ theta + weights @ (field.y - Z @ theta)[known]
    lever = Z[block] - weights @ Z[known]
    V = dense.block(C, block) - weights @ dense.block(C, known, block) + lever @ covariance @ lever.T / field.beta
    return field.y[block] - mean, np.diag(V)


@pytest.mark.parametrize("name", CASES)
def test_errors_and_variances_are_those_of_a_model_without_the_block(name):
    case = CASES[name]
    model = fitted(case)
    blocks = some_blocks(model, np.random.default_rng(1))
    found = leave_block_out(model.field_, every_region(model), blocks)
    assert found.count == 3
    for k, block in enumerate(blocks):
        error, variance = by_dense_algebra(case, model, block)
        assert_allclose(found.error[found.block == k], error, rtol=1e-4, atol=1e-5)
        assert_allclose(found.variance[found.block == k], variance, rtol=1e-5)
        number = np.cumsum(model.field_.labelled)[block] - 1
        assert_allclose(found.label[found.block == k], number)


def test_drawn_variances_are_near_the_exact_ones(monkeypatch):
    model = fitted(CASES["grid"])
    blocks = some_blocks(model, np.random.default_rng(1))
    exact = leave_block_out(model.field_, every_region(model), blocks)
    monkeypatch.setattr("residua.field.leave_block_out.EXACT", 0)
    drawn = leave_block_out(model.field_, every_region(model), blocks)
    assert_allclose(drawn.error, exact.error, rtol=1e-4, atol=1e-5)
    assert 0 < np.abs(drawn.variance / exact.variance - 1).max() < 0.5


def test_the_influence_of_a_block_makes_up_for_a_base_that_is_not_fitted_anew():
    """Where the base is itself an ordinary linear mean, the stand-in is exact."""
    case = CASES["grid"]
    model = fitted(case, LinearRegression(), None)
    field = replace(model.field_, outcome=replace(model.outcome_, residual=own_residuals(model)))
    (block,) = blocks = [np.flatnonzero(field.labelled)[5:25]]
    found = leave_block_out(field, every_region(model), blocks)
    rest = field.labelled.copy()
    rest[block] = False
    without = LinearRegression().fit(field.X[rest], field.y[rest])
    assert_allclose(found.error, field.y[block] - without.predict(field.X[block]), atol=1e-8)


def own_residuals(model):
    return (model.y_ - model.base_.predict(model.graph_, model.X_))[model.field_.labelled]


def test_labels_on_which_networks_were_trained_do_not_count():
    pytest.importorskip("torch")
    from residua import Network

    model = fitted(CASES["small world"], Network("mlp", epochs=20, validation=0.3))
    found = leave_block_out(model.field_, every_region(model))
    assert 0 < found.unseen.sum() < len(found.label)
    assert len(found.scores) == found.unseen.sum()
    assert_allclose(found.unseen, model.field_.prediction.out_of_sample_labels[found.label])


def test_each_network_of_an_ensemble_answers_for_the_labels_that_it_left_out():
    pytest.importorskip("torch")
    from residua import Network

    case = CASES["small world"]
    model = fitted(case, Network("mlp", epochs=20), None)
    residual = model.outcome_.members[0]
    unseen = np.stack([np.arange(len(residual)) % 2 == k for k in range(2)])

    def errors(higher):
        """Of two networks without any correlation, residuals of the second one so much higher."""
        members = np.stack([residual, residual + higher])
        field = replace(model.field_, outcome=replace(model.outcome_, members=members, out_of_sample=unseen))
        block = np.flatnonzero(field.labelled)[5:25]
        return leave_block_out(replace(field, error_scale=1.0), every_region(model), [block]).error

    assert_allclose(errors(1.0) - errors(0.0), np.arange(5, 25) % 2, atol=1e-8)


def test_without_a_missing_region_no_block_is_left_out():
    case = grid(12, 12, 0.7, 3)
    y = np.where(case.labelled, np.sin(np.arange(case.n)), np.nan)
    assert GraphRegressor("mean").fit(None, y, graph=case.graph).field_.left_out_blocks is None


def test_blocks_are_the_same_each_time_and_others_for_another_seed():
    model = fitted(CASES["grid"])
    missing = seen_missing(model.graph_, model.field_.labelled)
    one, again = (draw_blocks(model.field_, missing) for _ in range(2))
    other = draw_blocks(replace(model.field_, random_state=5), missing)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(one, other, strict=True))


def of_scores(scores, block, share=1.0):
    k = len(scores)
    return LeaveBlockOut(
        np.arange(k), np.array(block), np.array(scores), np.ones(k), np.ones(k, bool), share, max(block) + 1, 0.0
    )


def test_the_width_covers_blocks_alike_and_one_block_more():
    small, large = [1.0, 2.0], np.linspace(10, 20, 98)
    found = of_scores([*small, *large], [0] * 2 + [1] * 98)
    # (1 + 1/2) of .4 is .6 of the scores, each block half: all of the small one, and a fifth of the large one.
    assert found.width(np.array([5.0]), 0.4) == pytest.approx(large[int(np.ceil(0.2 * 98)) - 1])
    assert found.width(np.array([5.0]), 0.3) == 2.0
    assert found.width(np.array([5.0]), 0.9) == 20.0  # of 1.35 nothing is enough


def test_the_width_is_of_single_labels_as_far_as_unknown_nodes_lie_in_no_region():
    single = np.linspace(0, 1, 101)
    none = of_scores([10.0, 11.0], [0, 1], share=0.0)
    assert none.width(single, 0.9) == pytest.approx(0.9)
    half = of_scores([10.0, 11.0], [0, 1], share=0.5)
    assert half.width(single, 0.3) == pytest.approx(0.3 * 1.25 * 2, abs=0.011)


def test_r2_is_within_blocks():
    found = of_scores([0.5, -0.5, 1.0, -1.0], [0, 0, 1, 1])
    labels = np.array([0.0, 2.0, 10.0, 14.0])
    assert found.r2(labels) == pytest.approx(1 - (0.25 + 1.0) / (1.0 + 4.0))
    assert np.isnan(found.r2(np.ones(4)))


def test_variances_have_the_learned_spread_as_labels_outside_of_the_block_tell_it():
    case, rng = grid(14, 14), np.random.default_rng(6)
    X = rng.standard_normal((case.n, 2))
    known = np.arange(case.n) >= 40
    y = np.where(known, X[:, 0] + np.exp(X[:, 1]) * rng.standard_normal(case.n), np.nan)
    field = GraphRegressor("linear", spread="learned").fit(X, y, graph=case.graph).field_
    assert not field.spread.gaussian
    block = np.arange(60, 80)
    y, residual = (np.array(values) for values in (field.y, field.prediction.residual))
    y[block] = np.nan
    rest = replace(field.outcome, residual=residual[~np.isnan(y)])
    without = replace(field, y=y, outcome=rest, spread_setting=field.spread)
    found = leave_block_out(field, missing_regions(case.graph, known), [block])
    assert_allclose(np.sqrt(found.variance), without.prediction.std[block], rtol=1e-6)
    assert np.ptp(found.variance / without.prediction.field_std[block] ** 2) > 0.5
