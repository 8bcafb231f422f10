"""Edges that are listed more than once: what they become, and the account of the rows."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import run, stopped
from residua import load

FIT = ["fit", "nodes.csv", "edges.csv", "--target", "y", "--weight", "w", "--features", "x", "--correlation", "none"]
ROWS = """source,target,w
a,b,1
b,c,2
b,a,3
b,c,4
c,d,5
d,c,5
d,e,0
e,e,7
e,a,1
"""
WEIGHTS = {  # of a-b, listed 1 and back 3, and of b-c, listed 2 and again 4; c-d agrees both ways
    "first": (1, 2),
    "sum": (4, 6),
    "mean": (2, 3),
    "max": (3, 4),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "edges.csv").write_text(ROWS, encoding="utf-8")
    nodes = pd.DataFrame({"id": list("abcde"), "x": [0.0, 2, 1, 5, 3], "y": [1.0, 2, 4, 1, np.nan]})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_repeated_edge_is_refused_with_both_lines_and_the_option(folder, monkeypatch, capsys):
    line = stopped(FIT, monkeypatch, capsys)
    assert "edges.csv line 5: the edge 'b' - 'c' of line 3 is listed again; keep one line for each edge" in line
    assert "--duplicates sum, mean, max or first" in line
    (folder / "edges.csv").write_text(ROWS.replace("b,c,4\n", ""), encoding="utf-8")
    line = stopped(FIT, monkeypatch, capsys)
    assert "line 4: the edge 'a' - 'b' of line 2 is listed the other way round, with weight 3 in place of 1" in line


@pytest.mark.parametrize("rule", list(WEIGHTS))
def test_the_option_says_what_they_become_and_the_account_adds_up(folder, rule):
    found = json.loads(run(f"{' '.join(FIT)} --duplicates {rule} --json -o m.residua"))
    A = load("m.residua").graph_.adjacency().toarray()
    assert (A[0, 1], A[1, 2], A[2, 3], A[4, 4], A[0, 4], A[3, 4]) == (*WEIGHTS[rule], 5, 7, 1, 0)
    assert np.array_equal(A, A.T)
    rows = found["edge_rows"]
    assert rows == {
        "rows": 9, "edges": 5, "self_loops": 1, "repeated": 1, "both_ways": 2, "zero": 1, "unknown": 0
    }  # fmt: skip
    assert rows["rows"] == sum(rows[name] for name in ("edges", "repeated", "both_ways", "zero", "unknown"))
    assert found["edges"] == {"edge": rows["edges"]}
    text = run(f"{' '.join(FIT)} --duplicates {rule} -o m.residua")
    assert (
        "1 from a node to itself; of 9 rows 1 list an edge again, 2 list one the other way round, 1 of weight 0" in text
    )
    run("predict m.residua --nodes nodes.csv --edges edges.csv -o again.csv")  # by the rule of the fit
    run("predict m.residua -o own.csv")
    pd.testing.assert_frame_equal(pd.read_csv("again.csv"), pd.read_csv("own.csv"))


def test_rows_of_several_types_are_edges_of_their_own(folder):
    table = pd.read_csv("edges.csv").assign(w=1.0, kind=list("rsrsrsrsr"))
    table.to_csv("edges.csv", index=False)
    found = json.loads(run(f"{' '.join(FIT)} --edge-type kind --duplicates sum --json -o m.residua"))
    assert found["edge_rows"]["edges"] == sum(found["edges"].values())
    assert list(found["edges"]) == ["r", "s"]


def test_edges_without_weights_that_are_listed_both_ways_need_no_option(folder):
    pd.read_csv("edges.csv").drop(columns="w").drop(index=3).to_csv("edges.csv", index=False)
    found = json.loads(run("fit nodes.csv edges.csv --target y --features x --correlation none --json -o m.residua"))
    assert found["edge_rows"]["both_ways"] == 2
    assert load("m.residua").graph_.adjacency().max() == 1


def test_an_unknown_rule_is_refused(folder, monkeypatch, capsys):
    assert "--duplicates='add' is unknown; use one of 'error'" in stopped(
        [*FIT, "--duplicates", "add"], monkeypatch, capsys
    )
