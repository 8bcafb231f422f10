"""The command line as a user types it."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import residua
from residua.cli.app import app

runner = CliRunner()


def test_version():
    assert runner.invoke(app, ["--version"]).output.strip() == f"residua {residua.__version__}"


@pytest.mark.filterwarnings("ignore:.*components have no label")
def test_demo_prints_the_comparison_and_draws_the_maps(tmp_path):
    picture = tmp_path / "maps.png"
    result = runner.invoke(app, ["demo", "-o", str(picture)])
    assert result.exit_code == 0, result.output
    for word in ("base alone", "propagated", "learned", "R2", "covers", "alpha[edge]", "neighbours help"):
        assert word in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_wrong_input_ends_in_one_line_and_exit_code_2(refusal):
    assert refusal("demo", "--base", "forest").startswith("base='forest' is unknown")


def test_help_does_not_load_the_heavy_libraries():
    heavy = "numba scipy sklearn pandas matplotlib"
    code = f"import sys, residua.cli; print([m for m in '{heavy}'.split() if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"
