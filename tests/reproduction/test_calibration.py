"""The study of calibration: what it writes, where it goes on, and the figures that are published."""

import re
from pathlib import Path

import numpy as np
import pytest

from residua.diagnosis import LEVELS
from residua.reproduction import calibration, sets
from residua.reproduction.forecasts import KINDS
from residua.reproduction.registry import Options
from residua.reproduction.runs import Task, read

DOCS = Path(__file__).parents[2] / "docs"


def options(folder, **more):
    return Options(quick=True, folder=folder, datasets=("ising+",), **more)


def test_the_study_writes_its_page_goes_on_where_it_stopped_and_keeps_the_peer(tmp_path, stand_in, monkeypatch):
    asked = options(tmp_path, methods=("C-linear", "GPBoost"))
    calls = []
    result = calibration.calibration(asked, lambda *call: calls.append(call[:2]))
    assert calls == [(k, 4) for k in range(5)]
    assert [row[:3] for row in result.rows] == [
        (method, kind, split)
        for split in ("random", "blocked")
        for method, kind in (*(("C-linear", kind) for kind in KINDS), ("GPBoost", "gaussian"))
    ]
    monkeypatch.setattr(calibration, "gpboost_installed", lambda: False)
    again = calibration.calibration(asked, lambda *call: calls.append(call[:2]))
    assert calls[5:] == [(4, 4)]
    assert again.rows == result.rows
    assert (tmp_path / "calibration.md").read_text(encoding="utf-8") == again.markdown


def test_the_study_says_that_the_peer_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "gpboost_installed", lambda: False)
    result = calibration.calibration(options(tmp_path, methods=("C-linear", "GPBoost")), lambda *_: None)
    assert {row[0] for row in result.rows} == {"C-linear"}
    assert result.notes[-1] == "GPBoost is left out: gpboost is not installed."
    with pytest.raises(ValueError, match="methods=GPBoost needs the package gpboost"):
        calibration.calibration(options(tmp_path, methods=("GPBoost",)), lambda *_: None)


def test_a_blocked_split_hides_a_ball_and_a_random_one_does_not():
    for split, lonely in (("random", 0.1), ("blocked", 0.6)):
        values = calibration.work(Task("calibration", "ising+", "C-linear", 0, split))["gaussian"]
        assert values["labels"] == round(calibration.SHARE * 35**2)
        assert values["remote"] is (lonely > 0.5)


def test_scores_that_older_records_lack_are_left_empty():
    new = {"labels": 4, "inside": [1, 2, 3, 4], "width": 1.0, "width95": 1.5, "quiet": [1, 2], "loud": [2, 2]}
    scores = {"crps": 0.5, "nll": 0.7}
    old = {name: new[name] for name in ("labels", "inside", "width")}
    found = {
        ("random", "elect80", "C-linear", "gaussian"): [new | scores, new | scores | {"quiet": [2, 2]}],
        ("random", "elect80", "GPBoost", "gaussian"): [old | scores],
    }
    page = "\n".join(calibration.blocks(found))
    assert "| elect80 | 1.500 |  |" in page
    assert "| elect80 | 75.0 / 100.0 |  |" in page


def test_the_study_has_eleven_sets(tmp_path):
    asked = calibration.tasks(Options(folder=tmp_path, datasets=("elect80", "twitch")), ["C-trees"])
    assert {task.dataset for task in asked} == {"elect80", "twitch"}
    assert sets.load("elect80", 0).graph.n_nodes == 3107


def test_conformal_intervals_of_ninety_per_cent_cover_88_to_92_on_average_over_data_sets():
    found = calibration.by_interval(read(DOCS / "results" / "calibration.jsonl"))
    for method in ("C-linear", "C-hops"):
        each = [found["random", dataset, method, "conformal"] for dataset in sets.SETS]
        assert all(len(runs) >= 5 for runs in each)
        assert 0.88 <= np.mean([calibration.coverage(runs)[LEVELS.index(0.9)] for runs in each]) <= 0.92


def test_published_tables_are_what_the_records_give():
    found = calibration.by_interval(read(DOCS / "results" / "calibration.jsonl"))
    page = (DOCS / "results" / "calibration.md").read_text(encoding="utf-8")
    assert "\n\n".join(calibration.blocks(found)) in page
    section = (DOCS / "uncertainty.md").read_text(encoding="utf-8").split("## How well they cover")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!-).*\|$", section, re.M)
    assert len(rows) > 20
    assert all(row in page for row in rows)
