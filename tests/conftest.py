"""Fixtures: each graph by name, so that a failing test says on which one it fails."""

import numpy as np
import pytest
from graphs import CASES, ONE_TYPE, TWO_TYPES, Case


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
