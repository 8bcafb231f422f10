"""The paper's data sets, loaded once a file, and a machine without any of their files."""

import numpy as np
import pytest

from residua.datasets import load_county, load_transport, load_twitch, simulate_contacts
from residua.reproduction.datasets import files


@pytest.fixture(scope="module")
def election(data_folder):
    return load_county("election")


@pytest.fixture(scope="module")
def anaheim(data_folder):
    return load_transport("anaheim")


@pytest.fixture(scope="module")
def chicago(data_folder):
    return load_transport("chicago")


@pytest.fixture(scope="module")
def twitch(data_folder):
    return load_twitch()


@pytest.fixture(scope="module")
def contacts():
    return simulate_contacts()


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No folder, an empty cache, and a port where nobody answers."""
    monkeypatch.delenv("RESIDUA_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "BASE_URL", "http://127.0.0.1:9/")


@pytest.fixture(scope="session")
def standardised():
    """Whether the columns of a table have mean 0 and standard deviation 1."""
    return lambda table: np.allclose(table.mean(), 0, atol=1e-12) and np.allclose(np.std(table, axis=0, ddof=1), 1)
