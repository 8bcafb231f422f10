"""What several experiments need: a command that is run, labels that are changed, and a peer that is not here."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from residua.cli.app import app
from residua.reproduction import calibration, forecasts, sets


@pytest.fixture
def reproduce():
    """Run ``residua reproduce`` as a smoke test; returns what it prints."""

    def invoke(*words):
        result = CliRunner().invoke(app, ["reproduce", *words, "--quick", "--jobs", "1"])
        assert result.exit_code == 0, result.output
        return result.output

    return invoke


@pytest.fixture
def flip_labels(monkeypatch):
    """From the call on data come with other labels at the nodes of a part of the split."""
    draw = sets.draw

    def flip(part="test"):
        def flipped(*arguments):
            data, split = draw(*arguments)
            y = data.y.copy()
            y[getattr(split, part)] *= -1
            return replace(data, y=y), split

        monkeypatch.setattr(sets, "draw", flipped)

    return flip


class Prior:
    """Stands in for GPBoost: the mean of the labels, and their variance."""

    def __init__(self, gp_coords, **settings):
        assert np.isfinite(gp_coords).all()

    def fit(self, y, X):
        assert np.linalg.matrix_rank(X) == X.shape[1]
        self.mean, self.variance = y.mean(), y.var()

    def predict(self, gp_coords_pred, X_pred, **settings):
        assert len(gp_coords_pred) == len(X_pred)
        return {"mu": np.full(len(X_pred), self.mean), "var": np.full(len(X_pred), self.variance)}


@pytest.fixture
def stand_in(monkeypatch):
    """A module gpboost that answers with the prior."""
    module = ModuleType("gpboost")
    module.GPModel = Prior
    monkeypatch.setitem(sys.modules, "gpboost", module)
    monkeypatch.setattr(forecasts.metadata, "version", lambda name: "0")
    monkeypatch.setattr(calibration, "gpboost_installed", lambda: True)
