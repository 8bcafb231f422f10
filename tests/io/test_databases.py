"""Tables in other files than CSV and Parquet: each gives the same predictions as the CSV files do."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from commands import run, stopped
from residua import load
from residua.cli.app import app
from residua.io.tables.files import read_file
from tables import town, write

FIT = "--target price -o m.residua"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write(tmp_path, *town())
    monkeypatch.chdir(tmp_path)
    run(f"fit nodes.csv edges.csv {FIT}")
    return tmp_path


def excel(nodes, edges):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter("town.xlsx") as book:
        nodes.to_excel(book, sheet_name="Houses", index=False)
        edges.to_excel(book, sheet_name="Streets", index=False)
    return "town.xlsx:Houses", "town.xlsx:Streets"


def sqlite(nodes, edges):
    with closing(sqlite3.connect("town.sqlite")) as base:
        nodes.to_sql("houses", base, index=False)
        edges.to_sql("all streets", base, index=False)
    return "town.sqlite:houses", "town.sqlite:all streets"


def duck(nodes, edges):
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect("town.duckdb")) as base:
        base.register("n", nodes), base.register("e", edges)
        base.execute("create table houses as select * from n"), base.execute("create table streets as select * from e")
    return "town.duckdb:houses", "town.duckdb:streets"


def tabs(nodes, edges):
    nodes.to_csv("nodes.tsv", sep="\t", index=False), edges.to_csv("edges.tsv", sep="\t", index=False)
    return "nodes.tsv", "edges.tsv"


def gzipped(nodes, edges):
    nodes.to_csv("nodes.csv.gz", index=False), edges.to_csv("edges.csv.gz", index=False)
    return "nodes.csv.gz", "edges.csv.gz"


def feather(nodes, edges):
    nodes.to_feather("nodes.feather"), edges.to_feather("edges.arrow")
    return "nodes.feather", "edges.arrow"


@pytest.mark.parametrize("kind", [excel, sqlite, duck, tabs, gzipped, feather])
def test_they_say_the_same_as_csv(folder, kind):
    nodes, edges = kind(*town())
    result = CliRunner().invoke(app, ["fit", nodes, edges, "--target", "price", "-o", "other.residua"])
    assert result.exit_code == 0, result.output + repr(result.exception)
    np.testing.assert_allclose(load("other.residua").X_, load("m.residua").X_, rtol=1e-14)
    np.testing.assert_allclose(load("other.residua").predict(), load("m.residua").predict(), atol=1e-6)
    assert load("other.residua").graph_.nodes[7] == "007"


def test_a_table_comes_by_standard_input_and_predictions_go_to_standard_output(folder):
    text = (folder / "nodes.csv").read_text(encoding="utf-8")
    result = CliRunner().invoke(app, ["fit", "-", "edges.csv", "--target", "price", "-o", "piped.residua"], input=text)
    assert result.exit_code == 0, result.output
    out = CliRunner().invoke(app, ["predict", "piped.residua", "-o", "-"]).stdout
    run("predict m.residua -o p.csv")
    assert out == (folder / "p.csv").read_text(encoding="utf-8")
    wrong = text.replace("\n003,", "\n002,", 1)
    result = CliRunner().invoke(app, ["fit", "-", "edges.csv", "--target", "price"], input=wrong)
    assert "- line 5, column 'id': id '002' was there before, in line 4" in str(result.exception)
    assert "nothing came by standard input" in str(
        CliRunner().invoke(app, ["fit", "-", "e", "--target", "p"]).exception
    )


def test_what_cannot_be_read_says_what_to_do(folder, monkeypatch, capsys):
    sqlite(*town())
    line = stopped(["fit", "town.sqlite", "edges.csv", "--target", "price"], monkeypatch, capsys)
    assert "town.sqlite has several tables or none (all streets, houses); name one: town.sqlite:all streets" in line
    line = stopped(["fit", "town.sqlite:home", "edges.csv", "--target", "price"], monkeypatch, capsys)
    assert "town.sqlite has no table 'home'; its tables are all streets, houses" in line
    line = stopped(["fit", "nodes.csv:home", "edges.csv", "--target", "price"], monkeypatch, capsys)
    assert "nodes.csv is no workbook and no database" in line
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"id,price\n1,2\n" * 999)[:-9])
    assert "cut.csv.gz is damaged gzip" in stopped("fit cut.csv.gz edges.csv --target price", monkeypatch, capsys)
    (folder / "cut.sqlite").write_bytes((folder / "town.sqlite").read_bytes()[:100])
    assert "cannot be read as an SQLite file" in stopped("fit cut.sqlite edges.csv --target price", monkeypatch, capsys)
    (folder / "cut.arrow").write_bytes(b"ARROW1\0\0 and no more")
    assert "cut.arrow is a damaged Arrow file" in stopped("fit cut.arrow edges.csv --target price", monkeypatch, capsys)
    (folder / "cut.xlsx").write_bytes(b"PK\x03\x04 and no more")
    assert "cut.xlsx cannot be read as a workbook" in stopped(
        "fit cut.xlsx edges.csv --target price", monkeypatch, capsys
    )


def test_a_sheet_with_numbers_among_text_gives_both_as_they_are_typed(folder):
    pytest.importorskip("openpyxl")
    nodes, edges = town()
    nodes["code"] = [f"{k}a" if k % 2 else k for k in range(81)]
    excel(nodes, edges)
    frame, _ = read_file(Path("town.xlsx:Houses"))
    assert frame["code"].tolist()[:3] == ["0", "1a", "2"]
    assert frame["size"].dtype == float
