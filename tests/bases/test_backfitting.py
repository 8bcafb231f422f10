"""Any regressor fitted together with the correlation, by backfitting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import residua
from residua import Graph, GraphRegressor
from residua.bases.backfitting import Backfitting, Round
from residua.bases.scikit import weight_argument
from residua.field import Conditional, Correlator
from residua.field.fold_fields import DRAWS


def grid(side: int) -> Graph:
    at = np.arange(side * side).reshape(side, side)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    return Graph.from_edges(*(np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1)))


def data(seed: int, side: int = 18) -> tuple[Graph, np.ndarray, np.ndarray]:
    rng, graph, n = np.random.default_rng(seed), grid(side), side * side
    X = rng.normal(size=(n, 3))
    G = np.eye(n) - 0.995 * graph.operators["edge"].dense()
    r = np.linalg.solve(np.linalg.cholesky(G).T, rng.normal(size=n))
    return graph, X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.4 * r


def prepared(seed: int = 0) -> tuple[Backfitting, Graph, np.ndarray]:
    graph, X, y = data(seed, 10)
    labelled = np.random.default_rng(seed).random(100) < 0.6
    fold = np.random.default_rng(seed).integers(0, 4, labelled.sum())

    def predicted(k, target, weight):
        known = X[labelled][fold != k], target[fold != k]
        return (
            Ridge()
            .fit(*known, sample_weight=None if weight is None else weight[fold != k])
            .predict(X[labelled][fold == k])
        )

    found = Backfitting(y[labelled], fold, np.flatnonzero(labelled), Correlator(graph, labelled), 100, predicted)
    found.fields.tol = 1e-10
    return found, graph, labelled


def test_targets_are_labels_without_what_the_other_residuals_say():
    found, graph, labelled = prepared()
    residual, alpha = np.random.default_rng(1).normal(size=labelled.sum()), np.array([0.9])
    target, weight = found._targets(Round(residual, alpha, 0.0, found.y))
    full = np.zeros(100)
    full[labelled] = residual
    precision = found.fields.precisions()
    for k in range(5):
        known = labelled.copy()
        known[found.labels[found.fold == k]] = False
        given = Conditional(graph, known, 0.9, exact=True)
        at, exact = known[labelled], given.schur_diagonal
        # A precision is 1 less an average of squares over draws, whose standard error is known.
        assert (np.abs(precision[known, k] - exact) <= 4.5 * (1 - exact) * np.sqrt(2 / DRAWS) + 1e-9).all()
        pulled = given.leave_one_out(np.where(known, full, np.nan)).error * exact
        assert_allclose(target[at, k], found.y[at] - residual[at] + pulled / precision[known, k], atol=1e-7)
        assert_allclose(weight[at, k], precision[known, k] / precision[labelled, -1].mean())


@pytest.mark.parametrize("k", range(4))
def test_a_fit_without_a_fold_is_given_targets_that_know_nothing_of_it(k):
    """Poisoned labels and residuals of fold k change no target and no weight of the fit without it."""
    found, _, _ = prepared()
    residual, alpha = np.random.default_rng(1).normal(size=len(found.y)), np.array([0.9])
    clean = found._targets(Round(residual, alpha, 0.0, found.y))
    own = found.fold == k
    found.y = np.where(own, 1e4, found.y)
    poisoned = found._targets(Round(np.where(own, -1e4, residual), alpha, 0.0, found.y))
    for before, after in zip(clean, poisoned, strict=True):
        assert_array_equal(before[~own, k], after[~own, k])
    others = np.arange(5) != k
    assert np.abs(clean[0] - poisoned[0])[:, others].max() > 1


def test_the_plain_fit_is_the_first_round_and_the_best_is_kept():
    found, _, _ = prepared()
    plain, best = found.run()
    errors = [entry["error"] for entry in found.history]
    assert errors[0] == plain.error
    assert best.error == min(errors)
    assert {entry["start"] for entry in found.history} == {"0", "labels"}
    assert len(errors) == 1 + 2 + 2 + 2


@pytest.mark.parametrize(
    "base",
    [
        HistGradientBoostingRegressor(max_iter=40),
        ExtraTreesRegressor(40, min_samples_leaf=2),
        make_pipeline(StandardScaler(), KNeighborsRegressor(10)),
    ],
    ids=["boosting", "forest", "pipeline"],
)
def test_joint_fits_predict_better_than_corrections_afterwards_and_cover_as_they_say(base):
    gains, inside = [], []
    for seed in range(3):
        graph, X, y = data(seed)
        hidden = np.random.default_rng(seed).random(len(y)) < 0.4
        errors = {}
        for training in ("joint", "post-hoc"):
            model = GraphRegressor(base, training=training).fit(X, np.where(hidden, np.nan, y), graph=graph)
            mean, std = model.predict(return_std=True)
            errors[training] = np.mean((mean - y)[hidden] ** 2)
            if training == "joint":
                inside.append(np.abs(mean - y)[hidden] < 1.645 * std[hidden])
        gains.append(np.log(errors["post-hoc"] / errors["joint"]))
    assert np.mean(gains) > 0.02
    assert 0.84 < np.mean(np.concatenate(inside)) < 0.96


def test_weights_reach_the_regressor_at_the_end_of_a_pipeline():
    assert weight_argument(Ridge()) == "sample_weight"
    assert weight_argument(make_pipeline(StandardScaler(), Ridge())) == "ridge__sample_weight"
    assert weight_argument(KNeighborsRegressor()) is None
    assert weight_argument(make_pipeline(StandardScaler(), KNeighborsRegressor())) is None


def test_a_joint_fit_comes_back_from_a_file_and_tells_its_rounds(tmp_path):
    graph, X, y = data(0, 10)
    y[::3] = np.nan
    model = GraphRegressor(Ridge()).fit(X, y, graph=graph)
    assert len(model.history_) == 7
    assert np.isfinite(model.outcome_.base_out_of_fold_error).all()
    model.save(tmp_path / "ridge.residua")
    again = residua.load(tmp_path / "ridge.residua")
    assert_array_equal(again.predict(known="predict", return_std=True), model.predict(known="predict", return_std=True))
    assert again.correlation_.interval() == model.correlation_.interval()
    plain = GraphRegressor(Ridge(), training="post-hoc").fit(X, y, graph=graph)
    assert plain.history_.empty
    assert_array_equal(plain.outcome_.residual, model.outcome_.base_out_of_fold_error)


def test_out_of_fold_predictions_of_a_whole_fit_do_not_know_their_fold():
    """Poisoned labels of one fold move every prediction but those of that fold, which were made without them."""
    graph, X, y = data(3, 10)
    folds = KFold(5, shuffle=True, random_state=0)
    fold = next(test for _, test in folds.split(y))
    other = np.setdiff1d(np.arange(100), fold)
    poisoned = y.copy()
    poisoned[fold] += 100.0
    found = []
    for labels in (y, poisoned):
        model = GraphRegressor(DecisionTreeRegressor(max_depth=3, random_state=0)).fit(X, labels, graph=graph)
        found.append(labels - model.field_.outcome.base_out_of_fold_error)
    assert_allclose(found[0][fold], found[1][fold], rtol=1e-9)
    assert (np.abs(found[0] - found[1])[other] > 1).mean() > 0.5
