"""A folder with two tables, and a model of them."""

import pytest

from commands import run
from tables import town, write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder a user is in, with nodes.csv and edges.csv."""
    write(tmp_path, *town())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    run("fit nodes.csv edges.csv --target price -o m.residua")
    return folder / "m.residua"
