"""Intervals cover the share that they promise where the model is true, and jackknife ones where it is not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
from graphs import grid, small_world
from residua import Average, Graph, GraphRegressor
from residua.diagnosis import LEVELS
from residua.field.leave_block_out import draw_blocks, leave_block_out
from residua.graph.regions import seen_missing
from residua.intervals import jackknife_plus, jackknife_quantile
from true_draws import KINDS, LEAST, fitted, problem, soak, tally

EACH = [(kind, level) for kind in KINDS for level in LEVELS]


@pytest.fixture(scope="module")
def true_model():
    return tally(30, random_state=0)[0]


@pytest.mark.parametrize(("kind", "level"), EACH)
def test_intervals_hold_the_share_they_promise_when_the_model_is_true(true_model, kind, level):
    assert true_model.keeps(kind, level), (true_model.coverage(kind, level), true_model.margin(kind, level))


def test_intervals_a_fifth_too_narrow_or_too_wide_are_found_out():
    for found in tally(16, random_state=1, stretch=(0.8, 1.2)):
        assert not any(found.keeps(kind, level) for kind, level in EACH if level in (0.8, 0.9))


def test_with_long_tails_jackknife_intervals_hold_and_gaussian_ones_do_not():
    (found,) = tally(16, random_state=2, noise="long tails")
    assert all(found.keeps("jackknife", level) for level in LEVELS)
    assert found.coverage("gaussian", 0.5) > 0.5 + found.margin("gaussian", 0.5)


def test_the_soak_counts():
    counts = soak(0.0, 3)
    assert counts["draws"] == LEAST
    assert 0 < counts["jackknife 50%"] < counts["jackknife 90%"] < counts["jackknife 95%"] < counts["labels"]


def test_the_soak_fails_where_intervals_do_not_hold(monkeypatch):
    monkeypatch.setattr("residua.interval_predictor.jackknife_quantile", lambda scores, coverage: 1.0)
    with pytest.raises(AssertionError, match="jackknife 50% intervals hold"):
        soak(0.0, 3)


# jackknife+


def test_jackknife_plus_is_the_quantile_of_models_without_each_fold():
    rng = np.random.default_rng(0)
    fold, scores = rng.integers(4, size=29), rng.random(29)
    means, stds = rng.standard_normal((4, 6)), 1 + rng.random((4, 6))
    lower, upper = jackknife_plus(fold, scores, means, stds, 0.8)
    for i in range(6):
        reach = scores * stds[fold, i]
        assert upper[i] == np.sort(means[fold, i] + reach)[23]  # the 24th of 29: (29 + 1) * .8
        assert lower[i] == np.sort(means[fold, i] - reach)[5]
    assert np.isinf(jackknife_plus(fold, scores, means, stds, 0.98)).all()


def test_jackknife_plus_covers_what_it_promises_whatever_the_model():
    """A wrong model of few labels: the guarantee asks for exchangeable labels and nothing else."""
    rng, inside = np.random.default_rng(3), []
    for _ in range(12):
        case = small_world(120, 6, share=0.5, seed=int(rng.integers(2**31)))
        X = rng.standard_normal((case.n, 6))
        y = np.exp(X[:, 0]) + rng.standard_t(2, case.n)
        model = GraphRegressor("linear").fit(X, np.where(case.labelled, y, np.nan), graph=case.graph)
        lower, upper = (end[~case.labelled] for end in model.predict_interval(method="jackknife+", coverage=0.8))
        inside.append(np.mean((lower <= y[~case.labelled]) & (y[~case.labelled] <= upper)))
    error = np.std(inside, ddof=1) / np.sqrt(len(inside))
    assert 2 * 0.8 - 1 + 4 * error < np.mean(inside)  # what is guaranteed
    assert abs(np.mean(inside) - 0.8) < 4 * error + 0.02  # and what is usual


def test_jackknife_plus_refits_every_kind_of_model_and_leaves_known_labels():
    case, X, truth = problem(np.random.default_rng(8))
    model = fitted(case, X, truth)
    table = model.predict_frame(method="jackknife+")
    lower, upper = model.predict_interval(method="jackknife+")
    assert_allclose(table["lower"], lower)
    assert_allclose(table["upper"], upper)
    assert_allclose(lower[case.labelled], truth[case.labelled])
    average = Average([model, GraphRegressor("mean").fit(None, model.y_, graph=case.graph)])
    ends = average.predict_interval(method="jackknife+", nodes=case.graph.nodes[~case.labelled][:5])
    assert (ends[0] < ends[1]).all()
    both = GraphRegressor("linear").fit(X, np.column_stack([model.y_, 2 * model.y_]), graph=case.graph)
    assert_allclose(both.predict_interval(method="jackknife+")[1] @ [2, -1], 0, atol=1e-3)


def test_jackknife_plus_says_what_it_cannot_do():
    case, X, truth = problem(np.random.default_rng(9))
    model = fitted(case, X, truth)
    with pytest.raises(ValueError, match="has no width in standard deviations; see predict_interval"):
        model.interval_width(method="jackknife+")
    few = case.with_labels(np.arange(12))
    y = np.where(few.labelled, truth, np.nan)
    with pytest.raises(ValueError, match='of which there are 12, and needs 20; use method="jackknife"'):
        GraphRegressor("zero").fit(None, y, graph=case.graph).predict_interval(method="jackknife+")


def test_conformal_is_another_word_for_jackknife():
    case, X, truth = problem(np.random.default_rng(10))
    model = fitted(case, X, truth)
    assert model.interval_width(method="conformal") == model.interval_width(method="jackknife")
    assert model.interval_width() == model.interval_width(method="jackknife")


# Regions without labels


def by_region(seed):
    """Labels of the model on a grid, a corner of which has none."""
    rng = np.random.default_rng(seed)
    case = grid(16, 16)
    S = np.stack([term.to_scipy().toarray() for term in case.graph.operators.values()])
    truth = dense.draw(S, np.array([0.97]), 2.0, rng)[0]
    known = np.ones((16, 16), bool)
    known[:8, :8] = False
    return case, known.ravel(), truth


def test_where_a_region_is_missing_the_width_is_that_of_blocks():
    case, known, truth = by_region(0)
    model = GraphRegressor("mean").fit(None, np.where(known, truth, np.nan), graph=case.graph)
    own, blocks = model.field_.prediction, model.field_.left_out_blocks
    expected = blocks.width(own.scores, 0.9)
    assert model.interval_width() == model.interval_width(left_out="blocks") == expected
    assert model.interval_width(left_out="nodes") == jackknife_quantile(own.scores, 0.9) != expected
    lower, upper = model.predict_interval()
    assert_allclose((upper - lower)[~known], 2 * expected * own.std[~known])
    assert_allclose(model.predict_frame()["upper"], upper)
    with pytest.raises(ValueError, match="left_out"):
        model.interval_width(left_out="groups")


def test_the_pattern_is_that_of_the_nodes_that_are_unknown_when_asked():
    case, known, truth = by_region(1)
    model = GraphRegressor("mean").fit(None, np.where(known, truth, np.nan), graph=case.graph)
    nodes = model.interval_width(left_out="nodes")
    later = np.where(np.arange(case.n) % 2 == 0, truth, np.nan)
    assert model.interval_width(y=later) == nodes != model.interval_width()
    full = GraphRegressor("mean").fit(None, truth, graph=case.graph)
    other = grid(16, 16).graph
    with_region = np.where(known, truth, np.nan)
    moved = Graph.from_edges(*(np.array(edges_of(other)).T + 1000), nodes=np.arange(case.n) + 1000)
    assert full.interval_width(y=with_region, graph=moved) != full.interval_width(y=later, graph=moved)


def edges_of(graph):
    A = graph.adjacency().tocoo()
    return [(i, j) for i, j in zip(A.row, A.col, strict=True) if i < j]


def test_intervals_of_blocks_cover_a_region_whose_level_is_its_own():
    """Each quarter of the map has a level of its own: single labels know it, labels of another quarter do not."""
    covered = {"nodes": [], "auto": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        case, known, _ = by_region(seed)
        at = np.arange(case.n)
        level = rng.standard_normal((2, 2))[at // 16 // 8, at % 16 // 8]
        truth = level + 0.3 * rng.standard_normal(case.n)
        model = GraphRegressor("mean").fit(None, np.where(known, truth, np.nan), graph=case.graph)
        for left_out, found in covered.items():
            lower, upper = (end[~known] for end in model.predict_interval(left_out=left_out))
            found.append(np.mean((lower <= truth[~known]) & (truth[~known] <= upper)))
    assert np.mean(covered["auto"]) > np.mean(covered["nodes"]) + 0.05


def test_an_average_leaves_out_the_blocks_that_its_models_do():
    case, known, truth = by_region(2)
    X = np.random.default_rng(2).standard_normal((case.n, 2))
    y = np.where(known, truth, np.nan)
    one = GraphRegressor("linear").fit(X, y, graph=case.graph)
    two = GraphRegressor("mean", random_state=4).fit(None, y, graph=case.graph)
    assert Average([one]).interval_width() == pytest.approx(one.interval_width())
    found = Average([one, two])._blocks(None)
    missing = seen_missing(case.graph, known)
    again = leave_block_out(two.field_, missing, draw_blocks(one.field_, missing))
    assert_allclose(found.error, (one.field_.left_out_blocks.error + again.error) / 2)
    assert Average([one, two]).interval_width() != Average([one, two]).interval_width(left_out="nodes")


# Labels with noise


def test_labels_with_noise_are_left_out_one_by_one():
    case, known, truth = by_region(4)
    y = np.where(known, truth, np.nan)
    noisy = GraphRegressor("mean").fit(None, y, graph=case.graph, noise_variance=0.1)
    nodes = noisy.interval_width(left_out="nodes")
    assert noisy.interval_width() == nodes == jackknife_quantile(noisy.field_.prediction.scores, 0.9)
    assert noisy.diagnose().remote
    assert noisy.diagnose().blocks is None
    with pytest.raises(ValueError, match='left_out="blocks" is for labels without noise; use left_out="nodes"'):
        noisy.predict_interval(left_out="blocks")
    with pytest.raises(ValueError, match='is for labels without noise; use method="jackknife"'):
        noisy.predict_interval(method="jackknife+")
    both = GraphRegressor("mean").fit(None, np.column_stack([y, 2 * y]), graph=case.graph, noise_variance=0.1)
    assert both.predict_frame()[0]["upper"].tolist() == noisy.predict_interval()[1].tolist()


def test_later_labels_with_noise_leave_the_width_to_single_labels():
    case, known, truth = by_region(5)
    model = GraphRegressor("mean").fit(None, np.where(known, truth, np.nan), graph=case.graph)
    later = np.where(known, np.nan, truth)
    later[:100] = np.nan
    single, blocks = (model.interval_width(y=later, left_out=left_out) for left_out in ("nodes", "auto"))
    assert single != blocks
    given = {"y": later, "noise_variance": 0.2}
    assert model.interval_width(**given) == single
    mean, std = model.predict(**given, return_std=True)
    assert_allclose(model.predict_interval(**given)[1], mean + single * std)
    assert_allclose(model.predict_frame(**given)["upper"], mean + single * std)
    for asked in ({"left_out": "blocks"}, {"method": "jackknife+"}):
        with pytest.raises(ValueError, match="is for labels without noise"):
            model.predict_interval(**given, **asked)
        with pytest.raises(ValueError, match="is for labels without noise"):
            model.predict_frame(**given, **asked)
    with pytest.raises(ValueError, match="is for labels without noise"):
        model.predict_interval(method="jackknife+", label_noise=0.1)
