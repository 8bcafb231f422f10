"""The study of networks' standard deviations: what it writes, and the figures that are published."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from residua.reproduction import networks_coverage
from residua.reproduction.registry import Options
from residua.reproduction.runs import Task, read
from residua.reproduction.summary import markdown_table

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_a_smoke_test_has_a_line_for_each_data_set_and_method(tmp_path):
    result = networks_coverage.networks_coverage(Options(quick=True, folder=tmp_path), lambda *_: None)
    assert [row[:3] for row in result.rows[:2]] == [("model-40", "1", "1"), ("model-40", "5", "1")]
    assert len(result.rows) == 6
    assert (tmp_path / "networks-coverage.md").read_text(encoding="utf-8") == result.markdown


@pytest.mark.parametrize("kind", ["model", "noise", "directed"])
def test_simulated_residuals_weigh_as_much_as_the_features(kind):
    graph, X, y, hidden = networks_coverage.simulate(kind, 40, 0)
    assert (graph.n_nodes, (~hidden).sum()) == (100, 40)
    r = y - X[:, 0] - X[:, 1] ** 2 / 2 + X[:, 2] * X[:, 3] / 2
    assert abs(r.std() - 1) < 1e-12


def test_the_same_seed_draws_the_same_labels():
    first, again = (networks_coverage.simulate("model", 40, 3) for _ in range(2))
    other = networks_coverage.simulate("model", 40, 4)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


def test_beta_from_labels_not_learned_from_covers_more_and_leaves_the_means():
    """The quick sibling of the published study: thirty small draws, one network each."""
    found = [networks_coverage.work(Task("", "noise-40", "hops", 500 + seed, "quick"))["hops"] for seed in range(30)]
    covered, before = (networks_coverage.coverage(found, name).mean() for name in ("inside", "inside_all_labels"))
    assert before < 84
    assert 86 < covered < 94


# The published figures


@pytest.fixture(scope="module")
def published():
    return read(RESULTS / "networks-coverage.jsonl")


def test_the_page_is_that_of_the_records(published):
    page = (RESULTS / "networks-coverage.md").read_text(encoding="utf-8")
    order = {name: k for k, name in enumerate(networks_coverage.SETS)}
    body = sorted(networks_coverage.summary(published), key=lambda row: (order[row[0]], int(row[1])))
    assert len(body) == len(networks_coverage.SETS) * len(networks_coverage.METHODS)
    assert markdown_table(networks_coverage.HEAD, body) in page


def test_gaussian_intervals_of_networks_cover_what_they_promise(published):
    for dataset, members, seeds, covered, *_ in networks_coverage.summary(published):
        assert int(seeds) >= (60 if dataset in networks_coverage.SIMULATED else 12)
        assert 88 <= float(covered) <= 92, f"{dataset}, {members} member(s)"


def test_residuals_at_labels_learned_from_did_not(published):
    rows = [row for row in networks_coverage.summary(published) if row[0] in networks_coverage.SIMULATED]
    assert max(float(row[6]) for row in rows) < 86
