"""Commands as a user types them."""

import os
import sys

import pytest
from typer.testing import CliRunner

from residua.cli.app import app, main

runner = CliRunner()


def run(command):
    result = runner.invoke(app, command.split())
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def stopped(command, monkeypatch, capsys):
    """The one line in which a wrong command ends; nothing new is left in the folder."""
    before = sorted(os.listdir())
    monkeypatch.setattr(sys, "argv", ["residua", *(command if isinstance(command, list) else command.split())])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sorted(os.listdir()) == before
    line = captured.err.strip()
    assert "\n" not in line
    assert line.startswith("residua: ")
    return line
