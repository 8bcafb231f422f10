"""Methods side by side, as a user types it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import run
from residua.cli.app import app

runner = CliRunner()


def test_compare_marks_the_best(folder):
    out = run("compare nodes.csv edges.csv --target price --splits 2 --bases linear")
    assert "2, each with 14 of 54 labels held out: random nodes" in out
    best = [line for line in out.splitlines() if line.strip().startswith("*  linear, learned")]
    assert len(best) == 1
    assert "* highest R2: linear, learned" in out
    assert "residua fit --base best averages several bases" in out


def test_compare_as_json(folder):
    out = run("compare nodes.csv edges.csv --target price --splits 2 --split blocked --bases linear,mean --json")
    found = json.loads(out)
    assert found["split"] == "blocked"
    names = [method["name"] for method in found["methods"]]
    assert found["best"] in names
    assert names[0] == "label propagation"
    for method in found["methods"]:
        for score in ("r2", "rmse", "coverage", "seconds"):
            assert method[score]["mean"] == pytest.approx(np.mean(method[score]["values"]))


def test_compare_says_what_it_could_not_try(folder, monkeypatch):
    monkeypatch.setattr("residua.comparison.networks_installed", lambda: False)
    result = runner.invoke(
        app, ["compare", "nodes.csv", "edges.csv", "--target", "price", "--splits", "1", "--bases", "linear,mlp"]
    )
    assert result.exit_code == 0
    assert "mlp: networks need PyTorch, which is not installed" in result.stderr
