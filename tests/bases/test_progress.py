"""A bar is drawn where a person watches."""

import io
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import fitted  # noqa: E402
from residua.bases import progress as progress_file  # noqa: E402


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("patience", "shown"), [(0.0, True), (60.0, False)])
def test_a_bar_is_drawn_on_a_terminal_once_a_fit_takes_long(patience, shown, monkeypatch):
    monkeypatch.setattr(progress_file, "PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    expected = fitted("mlp").predict()
    assert ("training mlp" in sys.stderr.getvalue()) is shown
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    np.testing.assert_array_equal(fitted("mlp").predict(), expected)
    assert sys.stderr.getvalue() == ""
