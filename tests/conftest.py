"""Fixtures: each graph by name, so that a failing test says on which one it fails."""

import os
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from graphs import CASES, ONE_TYPE, TWO_TYPES, Case
from residua.cli.app import main

# The same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", derandomize=True, max_examples=150, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


ROOT = Path(__file__).parents[1]


def pytest_configure(config):
    """Let processes that tests begin import this checkout, whatever is installed, and the helpers of the tests."""
    paths = [str(ROOT / "src"), str(ROOT / "tests"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in dict.fromkeys(paths) if path)
    # One worker for each core: threads of their own would only wait for one another.
    if "PYTEST_XDIST_WORKER" in os.environ:
        numba.set_num_threads(1)
        threadpool_limits(1)


@pytest.fixture(params=CASES, ids=str)
def any_case(request) -> Case:
    """Every small graph."""
    return CASES[request.param]


@pytest.fixture(params=ONE_TYPE, ids=str)
def one_type(request) -> Case:
    """Every small graph of one edge type."""
    return CASES[request.param]


@pytest.fixture(params=TWO_TYPES, ids=str)
def two_types(request) -> Case:
    """Every small graph of two edge types."""
    return CASES[request.param]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@pytest.fixture(scope="module")
def data_folder():
    """The folder with the files of the paper's data sets; RESIDUA_DATA names it while a test runs."""
    folder = Path(os.environ.get("RESIDUA_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "election").is_dir():
        pytest.skip("the paper's data files are not here; set RESIDUA_DATA to their folder, see docs/data.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESIDUA_DATA", str(folder))
        yield folder


@pytest.fixture
def refusal(monkeypatch, capsys):
    """What the command line says of wrong words: one line, and exit code 2."""

    def said(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["residua", *words])
        with pytest.raises(SystemExit) as exit:
            main()
        assert exit.value.code == 2
        error = capsys.readouterr().err.strip()
        assert error.startswith("residua: ")
        assert "\n" not in error
        return error.removeprefix("residua: ")

    return said
