"""The commands ``reproduce`` and ``data``: columns that fit, refusals, and what is listed."""

import pytest
from typer.testing import CliRunner

from residua.cli.app import app
from residua.cli.reproduce import _blocks
from residua.datasets import available

runner = CliRunner()


def test_columns_are_broken_into_blocks_that_fit():
    assert _blocks([5, 10, 10, 10], 80) == [[0, 1, 2, 3]]
    assert _blocks([5, 10, 10, 10], 36) == [[0, 1, 2], [0, 3]]
    assert _blocks([5, 50, 50], 20) == [[0, 1], [0, 2]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table1", "--datasets", "mars"], "datasets=mars is unknown; use ising+, ising-, income"),
        (["table1", "--methods", "GNN,ABC"], "methods=ABC is unknown; use LP, MLP"),
        (["table1", "--protocol", "best", "--methods", "LP"], "methods=LP is unknown; use paper's C-GNN, C-hops"),
        (["table1", "--datasets", ","], "datasets is empty; use ising+, ising-, income"),
        (["table2", "--protocol", "best"], "--protocol has no effect on table2; leave it out."),
        (["calibration", "--protocol", "best"], "--protocol has no effect on calibration; leave it out."),
        (["fig-features", "--protocol", "best"], "--protocol has no effect on fig-features; leave it out."),
        (["fig-scaling", "--seeds", "7"], "--seeds has no effect on fig-scaling; leave it out."),
        (["fig-scaling", "--first-seed", "7"], "--first-seed has no effect on fig-scaling; leave it out."),
        (["fig-election", "--seeds", "7"], "--seeds has no effect on fig-election; leave it out."),
        (["all", "--methods", "GNN"], "--methods has no effect on all; name one experiment in place of all."),
        (["table1", "--protocol", "good"], "protocol='good' is unknown"),
        (["table9"], "experiment='table9' is unknown"),
        (["fig-ising", "--datasets", "election"], "--datasets has no effect on fig-ising; leave it out."),
    ],
)
def test_wrong_names_end_in_one_line_and_exit_code_2(words, message, tmp_path, refusal):
    assert refusal("reproduce", *words, "-o", str(tmp_path)).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_made_is_named(refusal):
    error = refusal("reproduce", "table1", "--quick", "-o", "/proc/nowhere")
    assert error.startswith("folder /proc/nowhere cannot be made (No such file or directory); name one that can be")


def test_data_list_names_every_set_and_its_terms():
    result = runner.invoke(app, ["data", "list"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    cells = [[cell.strip() for cell in line.split("│")] for line in result.output.splitlines()]
    named = {row[1]: row for row in cells if len(row) > 4 and row[1]}
    for entry in available():
        assert entry.terms.split()[0] in named[entry.name][4]
    assert "own copy" in result.output


def test_data_fetch_finds_the_files_that_are_here(data_folder):
    result = runner.invoke(app, ["data", "fetch", "anaheim", "elect80"])
    assert result.exit_code == 0, result.output
    assert "anaheim: 2 files in" in result.output
    assert "elect80: needs no files" in result.output


def test_data_fetch_refuses_an_unknown_name(refusal):
    assert refusal("data", "fetch", "mars").startswith("name='mars' is unknown")
