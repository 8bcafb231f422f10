"""Warnings name the line of the user's own file."""

import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import residua
from residua.linalg import CG, Shifted

TWO_ISLANDS = residua.Graph.from_edges([0, 1, 3, 4], [1, 2, 4, 5])
RING = residua.Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)


def solved_too_briefly():
    return CG(max_iter=1).solve(Shifted(RING.operators["edge"], 0.9), np.arange(30.0))


def filled():
    return residua.propagate([1.0, np.nan, np.nan, np.nan, np.nan, np.nan], TWO_ISLANDS)


def fitted():
    model = residua.GraphRegressor("mean", "propagate")
    return model.fit(None, [1.0, 2.0, 4.0, np.nan, np.nan, np.nan], graph=TWO_ISLANDS).predict()


@pytest.mark.parametrize("call", [solved_too_briefly, filled, fitted])
def test_a_warning_names_the_line_that_called_the_library(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    lines, first = inspect.getsourcelines(call)
    assert len(caught) == 1
    assert Path(caught[0].filename) == Path(__file__)
    assert caught[0].lineno == first + len(lines) - 1


def test_the_warning_of_an_import_names_the_file_that_imports(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("import warnings\nwarnings.simplefilter('always')\nimport residua.numerics\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert f"{script}:3: DeprecationWarning: residua.numerics is now residua.linalg" in done.stderr


def test_no_module_counts_frames_by_itself():
    root = Path(residua.__file__).parent
    assert [p.name for p in root.rglob("*.py") if "stacklevel" in p.read_text(encoding="utf-8")] == ["caller.py"]
