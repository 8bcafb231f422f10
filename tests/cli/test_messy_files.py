"""Files as people have them, from the command that a user types."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from commands import run, stopped
from residua import load
from residua.cli.app import app
from tables import town

FIT = ["fit", "nodes.csv", "edges.csv", "--target", "price"]
WAYS = {  # how a whole number of square metres may be written, and the options that read it
    "{:,} m²": "--thousands , --units",
    "${:,}": "--thousands , --units",
    "{:,}": "--thousands ,",
    "{} %": "--units",
}


def invoke(*arguments):
    result = CliRunner().invoke(app, [*FIT, *arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def sizes(n):
    return 1000 + 37 * np.arange(n) % 4001


@pytest.mark.parametrize("form", list(WAYS))
def test_numbers_with_marks_are_refused_with_the_option_that_reads_them(folder, form, monkeypatch, capsys):
    nodes = town()[0].assign(area=sizes(81))
    nodes.to_csv("nodes.csv", index=False)
    invoke("-o", "plain.residua")
    run("predict plain.residua --nodes nodes.csv --edges edges.csv -o plain.csv")
    nodes.assign(area=[form.format(k) for k in nodes["area"]]).to_csv("nodes.csv", index=False)
    line = stopped(FIT, monkeypatch, capsys)
    assert "column 'area' is text that looks like numbers" in line
    said = re.search(r"numbers: (--.+?) reads", line)[1]
    assert said == WAYS[form]
    invoke(*shlex.split(said), "-o", "marked.residua")
    np.testing.assert_allclose(load("marked.residua").predict(), load("plain.residua").predict(), rtol=1e-10)
    run("predict marked.residua --nodes nodes.csv --edges edges.csv -o marked.csv")
    marked, plain = (pd.read_csv(name)["prediction"] for name in ("marked.csv", "plain.csv"))
    np.testing.assert_allclose(marked, plain, rtol=1e-10)


def test_decimal_commas_of_a_target_and_a_feature_are_read(folder, monkeypatch, capsys):
    nodes = town()[0]
    invoke("-o", "plain.residua")
    nodes.to_csv("nodes.csv", index=False, sep=";", decimal=",")
    line = stopped(FIT, monkeypatch, capsys)
    assert re.search(r"column 'price' holds text such as '.+', not numbers; it looks like numbers: --decimal , ", line)
    found = json.loads(invoke("--decimal", ",", "-o", "commas.residua", "--json"))
    assert list(found["numbers"]) == ["size"]
    np.testing.assert_allclose(load("commas.residua").predict(), load("plain.residua").predict(), rtol=1e-10)


def test_a_comma_with_three_digits_behind_it_is_told_in_both_readings(folder, monkeypatch, capsys):
    nodes = town()[0].assign(area=[f"{k:,}" for k in sizes(81)])
    nodes.to_csv("nodes.csv", index=False)
    line = stopped(FIT, monkeypatch, capsys)
    assert "--thousands , reads '1,000' as 1000, --decimal , reads '1,000' as 1," in line


def test_a_few_marks_among_plain_numbers_are_no_words_for_an_empty_cell(folder, monkeypatch, capsys):
    nodes = town()[0].assign(area=[f"{k:,}" if k > 3000 else str(k) for k in sizes(81)])
    assert 0 < nodes["area"].str.contains(",").sum() < 40
    nodes.to_csv("nodes.csv", index=False)
    line = stopped(FIT, monkeypatch, capsys)
    assert "--thousands , reads" in line
    assert "--missing" not in line
    assert "area" in json.loads(invoke("--thousands", ",", "--json"))["numbers"]


@pytest.mark.parametrize("cells", [("12 Main", "13 Oak"), ("Q1", "Q2"), ("1a", "2b"), ("01", "02")])
def test_text_that_only_has_digits_in_it_stays_text(folder, cells):
    nodes = town()[0].assign(kind=[cells[k % 2] for k in range(81)])
    nodes.to_csv("nodes.csv", index=False)
    assert json.loads(invoke("--json"))["categories"]["kind"]["values"] == list(cells)


def test_cells_of_another_unit_are_refused(folder, monkeypatch, capsys):
    nodes = town()[0].assign(area=[f"{k} m" for k in sizes(81)])
    nodes.loc[5, "area"] = "3 km"
    nodes.to_csv("nodes.csv", index=False)
    assert "nodes.csv line 7, column 'area': '3 km' is not a number" in stopped([*FIT, "--units"], monkeypatch, capsys)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--thousands", "x"], "--thousands x is no such mark"), (["--thousands", "."], "are both a point")],
)
def test_marks_that_cannot_be_are_refused(folder, options, words, monkeypatch, capsys):
    assert words in stopped([*FIT, *options], monkeypatch, capsys)
