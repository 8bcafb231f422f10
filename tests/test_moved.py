"""Modules of the reference keep their old names, with a word on the new one."""

import importlib
import sys
import warnings

import pytest

from residua.moved import MOVED


@pytest.fixture
def fresh():
    """No module under an old name."""
    yield
    for name in MOVED:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("residua.datasets.catalogue", "Entry"),
        ("residua.gaussian", "Conditional"),
        ("residua.gaussian", "Likelihood"),
        ("residua.graph_report", "GraphReport"),
        ("residua.numerics", "Sparse"),
        ("residua.report", "layout"),
        ("residua.report.html", "write_report"),
        ("residua.report.plots", "strip"),
        ("residua.report.positions", "layout"),
    ],
)
def test_an_old_name_is_the_same_object_and_names_the_new_module(old, name, fresh):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = getattr(importlib.import_module(old), name)
    assert f"{old} is now {MOVED[old]}; import it from there." in [str(w.message) for w in caught]
    assert {w.category for w in caught} == {DeprecationWarning}
    assert found is getattr(importlib.import_module(MOVED[old]), name)


def test_a_name_that_never_was_is_not_found(fresh):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("residua.nothing")
