"""The standard logging module hears what a fit does, and nothing is printed unless it is asked."""

import logging
import subprocess
import sys

import numpy as np

import residua
from graphs import small_world
from residua import GraphRegressor


def test_a_fit_and_files_are_logged(caplog, tmp_path):
    """The user's own line is ``logging.basicConfig(level=logging.INFO)``."""
    case = small_world(n=40, degree=4, share=0.8)
    y = np.where(case.labelled, np.random.default_rng(0).standard_normal(40).cumsum(), np.nan)
    with caplog.at_level(logging.DEBUG, logger="residua"):
        model = GraphRegressor("mean").fit(None, y, graph=case.graph)
        model.save(tmp_path / "m.residua")
        residua.load(tmp_path / "m.residua")
    said = {(record.name, record.levelname): record.getMessage() for record in caplog.records}
    fitted = said["residua.fitting", "INFO"]
    assert fitted.startswith(f"fitted GraphRegressor to y: {model.field_!r} in ")
    assert "wrote GraphRegressor to" in caplog.text
    assert "read GraphRegressor from" in caplog.text
    methods = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert f"log-determinant: {model.correlation_.methods['log-determinant']}" in methods


def test_nothing_is_printed_unless_it_is_asked():
    code = (
        "import numpy as np, residua; k = np.arange(9)\n"
        "g = residua.Graph.from_edges(k, (k + 1) % 9)\n"
        "residua.GraphRegressor('mean').fit(None, (k - 4.0) ** 2, graph=g).predict()"
    )
    for begin, expected in (("", ""), ("import logging; logging.basicConfig(level='INFO')\n", "fitted GraphRegressor")):
        run = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, check=True)
        assert run.stdout == ""
        assert expected in run.stderr
        assert expected or run.stderr == ""
