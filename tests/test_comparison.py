"""Methods are compared on labels that none of them has seen."""

import numpy as np
import pytest
import scipy.sparse as sp

import residua
from residua import comparison
from residua.comparison import compare
from tables import SIDE, town


@pytest.fixture(scope="module")
def data():
    nodes, edges = town()
    graph = residua.Graph.from_pandas(edges, nodes=nodes["id"])
    return nodes[["size"]], nodes["price"].to_numpy(), graph


def test_each_base_is_tried_in_three_ways_beside_label_propagation(data):
    found = compare(*data, bases=["linear", "mean"], splits=2)
    assert [row.name for row in found.rows] == [
        "label propagation",
        "linear, plain",
        "linear, propagated",
        "linear, learned",
        "mean, plain",
        "mean, learned",  # propagated, it is label propagation
    ]
    assert all(len(row.scores) == 2 for row in found.rows)
    assert found.best.name == max(found.rows, key=lambda row: row.mean("r2")).name
    assert found.best.base == "linear"


def test_scores_are_those_of_the_field_that_was_asked_for(data):
    X, y, graph = data
    found = compare(X, y, graph, bases=["linear"], splits=1, field="laplacian")
    hidden = comparison.held_out(graph, ~np.isnan(y), "random", 0.25, np.random.default_rng([0, 0]))
    model = residua.GraphRegressor("linear", field="laplacian")
    expected = comparison.score_hidden(model, X, y, graph, hidden)
    assert next(row for row in found.rows if row.name == "linear, learned").scores[0].r2 == expected.r2
    with pytest.raises(ValueError, match="field='smooth' is unknown"):
        compare(X, y, graph, field="smooth")


def test_scores_are_those_of_the_model_on_the_labels_held_out(data):
    X, y, graph = data
    found = compare(X, y, graph, bases=["linear"], splits=1, random_state=4)
    hidden = comparison.held_out(graph, ~np.isnan(y), "random", 0.25, np.random.default_rng([4, 0]))
    assert hidden.sum() == found.n_held_out == round(0.25 * found.n_labelled)
    model = residua.GraphRegressor("linear", random_state=4).fit(X, np.where(hidden, np.nan, y), graph=graph)
    learned = next(row for row in found.rows if row.name == "linear, learned")
    assert learned.mean("r2") == pytest.approx(model.score(X, y))
    assert np.isnan(learned.spread("r2"))


def test_means_and_spreads_are_those_of_a_sample_of_splits(data):
    rows = compare(*data, bases=["linear"], splits=3).rows
    for row in rows:
        scores = [score.r2 for score in row.scores]
        mean = sum(scores) / 3
        assert row.mean("r2") == pytest.approx(mean)
        assert row.spread("r2") == pytest.approx(np.sqrt(sum((score - mean) ** 2 for score in scores) / 2))
        assert row.spread("r2") > 0


def test_the_same_seed_gives_the_same_table_and_another_gives_another(data):
    first, again, other = (
        compare(*data, bases=["linear"], splits=2, random_state=seed).rows[1].mean("r2") for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize("seed", range(5))
def test_a_blocked_split_holds_out_a_connected_ball(data, seed):
    _, _, graph = data
    every = np.ones(graph.n_nodes, bool)
    hidden = comparison.held_out(graph, every, "blocked", 0.3, np.random.default_rng(seed))
    assert hidden.sum() == round(0.3 * SIDE**2)
    parts, _ = sp.csgraph.connected_components(graph.adjacency()[hidden][:, hidden])
    assert parts == 1


def test_a_blocked_split_goes_on_to_other_components():
    graph = residua.Graph.from_edges([0, 2, 4], [1, 3, 5], nodes=range(9))
    hidden = comparison.held_out(graph, np.ones(9, bool), "blocked", 0.6, np.random.default_rng(0))
    assert hidden.sum() == 5


def test_known_labels_alone_are_held_out_and_some_stay(data):
    _, y, graph = data
    for split in comparison.SPLITS:
        for share in (0.01, 0.5, 0.99):
            hidden = comparison.held_out(graph, ~np.isnan(y), split, share, np.random.default_rng(0))
            assert not np.isnan(y[hidden]).any()
            assert hidden.sum() >= 2
            assert (~np.isnan(y) & ~hidden).sum() >= 3


def test_a_method_that_fails_is_a_row_of_its_own(data):
    _, y, graph = data
    X = np.random.default_rng(0).normal(size=(len(y), 60))  # more features than labels
    found = compare(X, y, graph, bases=["linear"], splits=1)
    failed = [row for row in found.rows if row.failure]
    assert {row.base for row in failed} == {"linear"}
    assert "as many features as labels" in failed[0].failure
    assert found.best.name == "label propagation"


def test_bases_that_cannot_be_tried_are_named(data, monkeypatch):
    X, y, graph = data
    monkeypatch.setattr(comparison, "networks_installed", lambda: False)
    found = compare(X, y, graph, bases=["linear", "sage"], splits=1)
    assert {row.base for row in found.rows} == {"mean", "linear"}
    assert "sage: networks need PyTorch" in found.skipped[0]
    assert "linear, trees: there are no feature columns." in compare(None, y, graph, bases=["linear", "trees"]).skipped


def test_progress_counts_every_fit(data):
    seen = []
    compare(*data, bases=["linear"], splits=2, progress=lambda *told: seen.append(told))
    assert [done for done, _, _ in seen] == list(range(9))
    assert {of for _, of, _ in seen} == {8}


def test_warnings_become_notes_told_once():
    nodes, edges = town()
    graph = residua.Graph.from_pandas(edges, nodes=[*nodes["id"], "island"])
    y = np.append(nodes["price"], np.nan)
    found = compare(np.append(nodes["size"], 0.0)[:, None], y, graph, bases=["linear"], splits=1)
    assert len(found.notes) == 1
    assert "components have no label" in found.notes[0]


@pytest.mark.parametrize(
    "wrong", [{"split": "halves"}, {"splits": 0}, {"share": 1.0}, {"bases": ["forest"]}, {"random_state": -1}]
)
def test_wrong_arguments_are_refused(data, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        compare(*data, **wrong)
