"""From records to a table: which means are marked, and how they are written."""

import numpy as np
import pytest

from residua.reproduction import paper, tables
from residua.reproduction.paper import Reference
from residua.reproduction.runs import Record, Task
from residua.reproduction.summary import BELOW, Cell, gather, learned, markdown_table, rows


def cell(mean, reference):
    return Cell("election", "GNN", (mean - 0.01, mean + 0.01), reference)


@pytest.mark.parametrize(
    ("mean", "sd", "below"),
    [(0.47, 0.03, False), (0.469, 0.03, True), (0.46, 0.05, False), (0.459, 0.05, True), (0.9, 0.03, False)],
)
def test_a_mean_is_marked_when_it_is_further_below_than_chance(mean, sd, below):
    found = cell(mean, Reference(0.50, sd))
    assert found.below is below
    assert (BELOW in found.text()) is below
    assert (BELOW in found.lines()) is below


def test_outdated_cells_are_compared_with_the_logs():
    income, election = paper.CELLS1["income", "C-GNN"], paper.CELLS1["election", "C-GNN"]
    assert (income.mean, income.goal) == (0.81, 0.791)
    assert (election.logs, election.goal) == (0.691, 0.69)
    assert paper.CELLS1["twitch", "LP"].goal == -0.078


def test_text_shows_ours_theirs_and_the_difference():
    assert cell(0.52, Reference(0.50, 0.03, 0.51)).text() == "0.520 ± 0.014 (0.50; 0.510) +0.020"
    assert cell(0.52, Reference(0.50, 0.03)).lines() == ".520±.014\n[dim].500 +.020[/]"
    assert cell(0.52, None).text() == "0.520 ± 0.014"
    assert Cell("a", "b", (0.5,)).sd == 0.0


def test_alphas_agree_within_a_tenth_and_by_sign():
    assert tables.alpha_agrees(np.array([0.9, 0.2]), (0.95, 0.17))
    assert not tables.alpha_agrees(np.array([0.84]), (0.95,), (0.951,))
    assert not tables.alpha_agrees(np.array([-0.02]), (0.05,))


def test_records_become_rows():
    records = [
        Record(Task("t", name, "GNN", seed), {"GNN": {"score": 0.1 * seed}, "LP-GNN": {"score": 0.5}}, 1.0)
        for seed in range(3)
        for name in ("election", "twitch")
    ]
    table = rows(gather(records, ("LP", "LP-GNN", "GNN"), paper.CELLS1), ("LP", "LP-GNN", "GNN"))
    assert list(table) == ["election", "twitch"]
    nothing, half, mean = table["election"]
    assert nothing is None
    assert half.mean == 0.5
    assert mean.mean == pytest.approx(0.1)
    assert mean.reference == paper.CELLS1["election", "GNN"]


def test_alphas_are_averaged_over_seeds():
    values = [{"score": 0.0, "alpha": [0.9, x], "beta": 2.0 + x} for x in (0.1, 0.3)]
    records = [Record(Task("t", "anaheim", "C-GNN", k), {"C-GNN": v}, 1.0) for k, v in enumerate(values)]
    mean, sd, beta = learned(records, "C-GNN")["anaheim"]
    np.testing.assert_allclose([*mean, *sd, beta], [0.9, 0.2, 0.0, 0.02**0.5, 2.2])
    table = tables.alpha_table(records)
    assert "+0.900 ± 0.000, +0.200 ± 0.141 | +0.95, +0.17 | +0.946, +0.165 | yes | 2.20 | 6.69" in table


def test_one_seed_has_no_spread():
    assert Cell("x", "A", (0.5,)).text() == "0.500"
    assert Cell("x", "A", (0.5,)).lines() == ".500"
    assert Cell("x", "A", (0.4, 0.6)).text() == "0.500 ± 0.141"


def test_markdown_table():
    assert markdown_table(["", "A"], [["x", "1"]]) == "|  | A |\n| --- | ---: |\n| x | 1 |"


def test_scores_of_a_model_that_is_given_more_are_kept_apart():
    task = Task("best", "ising-", "best", 1)
    cells = gather([Record(task, {"A": {"score": 0.5, "told": 0.75}, "B": {"score": 0.25}}, 1.0)], ("A", "B"), {})
    assert cells["ising-", "A"] == Cell("ising-", "A", (0.5,), None, (0.75,))
    assert cells["ising-", "B"].given_later == ()
