"""The command line as a user types it: help, the demonstration, reports, wrong input, real processes."""

import json
import os
import re
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import residua as package
from commands import run, stopped
from residua.cli.app import app, main
from residua.cli.options import print_json
from tables import edit, town, write

runner = CliRunner()


def test_version():
    assert runner.invoke(app, ["--version"]).output.strip() == f"residua {package.__version__}"


@pytest.mark.filterwarnings("ignore:.*components have no label")
def test_demo_prints_the_comparison_and_draws_the_maps(tmp_path):
    picture = tmp_path / "maps.png"
    result = runner.invoke(app, ["demo", "-o", str(picture)])
    assert result.exit_code == 0, result.output
    for word in ("base", "propagated", "learned", "R2", "covers", "alpha[edge]", "neighbours help"):
        assert word in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_wrong_input_ends_in_one_line_and_exit_code_2(refusal):
    assert refusal("demo", "--base", "forest").startswith("base='forest' is unknown")


def test_help_does_not_load_the_heavy_libraries():
    heavy = "numba scipy sklearn pandas matplotlib"
    code = f"import sys, residua.cli.app; print([m for m in '{heavy}'.split() if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_report_writes_a_page(model):
    run("report m.residua --nodes nodes.csv --title Prices")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "Prices" in page


def test_report_compares_models(model, monkeypatch, capsys):
    run("fit nodes.csv edges.csv --target price --base mean -o mean.residua")
    run("report m.residua mean.residua")
    page = Path("report.html").read_text(encoding="utf-8")
    rows = re.findall(r'<th scope="row">([^<]+)</th>((?:<td class="n">[^<]+</td>)+)', page)
    assert [name for name, _ in rows if "base" in name or "residua" in name] == [
        "this one, base linear",
        "mean.residua",
    ]
    run("fit nodes.csv edges.csv --target size --base mean -o other.residua")
    assert "was fitted on other labels" in stopped("report m.residua other.residua", monkeypatch, capsys)


def test_report_takes_positions_from_columns(model, monkeypatch, capsys):
    nodes = town()[0]
    nodes["east"], nodes["north"] = np.divmod(np.arange(len(nodes)), 9)
    nodes.to_csv("placed.csv", index=False)
    run("report m.residua --nodes placed.csv --x east --y north")
    assert "give --x and --y together" in stopped("report m.residua --x east", monkeypatch, capsys)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("fit nodes.csv edges.csv --target prize", ["nodes.csv has no column 'prize'", "'price'"]),
        ("fit gone.csv edges.csv --target price", ["gone.csv not found"]),
        ("fit nodes.csv edges.csv --target price --base forest", ["base='forest' is unknown", '"trees"']),
        ("fit nodes.csv edges.csv --target price --correlation x", ["correlation='x' is unknown", "'none'"]),
        ("fit nodes.csv edges.csv --target price -o gone/m.residua", ["no folder gone"]),
        ("fit nodes.csv edges.csv --target price -o nodes.csv", ["is also an input"]),
        ("fit nodes.csv edges.csv --target price -o .", ["is a folder"]),
        ("fit nodes.csv edges.csv", ["Missing option '--target'", "see residua fit --help"]),
        ("fit nodes.csv", ["Missing argument", "see residua fit --help"]),
        ("fit nodes.csv edges.csv --target price --seed -1", ["--seed", "greater than or equal to 0"]),
        ("fit nodes.csv edges.csv --target price --bogus", ["--bogus"]),
        ("forecast", ["No such command 'forecast'", "see residua --help"]),
        ("predict gone.residua", ["gone.residua not found"]),
        ("predict nodes.csv", ["nodes.csv is damaged or no residua model"]),
        ("predict nodes.csv -o p.txt", ["should end in .csv or .parquet"]),
        ("predict nodes.csv --coverage 90", ["--coverage 90 is not between 0 and 1"]),
        ("predict nodes.csv --nodes nodes.csv", ["--nodes and --edges together"]),
        ("predict m --nodes nodes.csv --edges edges.csv --labels nodes.csv", ["--labels nodes.csv is for the graph"]),
        ("predict m --edges edges.csv --labels nodes.csv", ["--labels nodes.csv is for the graph"]),
        ("predict m --labels nodes.csv -o nodes.csv", ["is also an input"]),
        ("compare nodes.csv edges.csv --target price --split halves", ["split='halves' is unknown"]),
        ("compare nodes.csv edges.csv --target price --bases forest", ["bases='forest' is unknown"]),
        ("report nodes.csv", ["nodes.csv is damaged or no residua model"]),
    ],
)
def test_a_wrong_command_ends_in_one_line(folder, monkeypatch, capsys, command, words):
    line = stopped(command, monkeypatch, capsys)
    assert all(word in line for word in words), line


def test_too_few_labels_name_file_and_column(folder, monkeypatch, capsys):
    nodes = town()[0]
    nodes.loc[2:, "price"] = np.nan
    nodes.to_csv("nodes.csv", index=False)
    line = stopped("fit nodes.csv edges.csv --target price", monkeypatch, capsys)
    assert line.startswith("residua: nodes.csv, target 'price': y has ")


def test_a_model_is_replaced_only_by_a_whole_one(model, monkeypatch, capsys):
    before = model.read_bytes()
    edit(Path("nodes.csv"), 4, "002,", "002,x")
    stopped("fit nodes.csv edges.csv --target price -o m.residua", monkeypatch, capsys)
    assert model.read_bytes() == before


def test_predictions_that_cannot_be_written_leave_nothing(model, monkeypatch, capsys):
    Path("p.csv").write_text("old")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    assert "No space left" in stopped("predict m.residua -o p.csv", monkeypatch, capsys)
    assert Path("p.csv").read_text() == "old"


def test_debug_shows_where_an_error_comes_from(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["residua", "fit", "nodes.csv", "edges.csv", "--target", "prize", "--debug"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_mistake_of_ours_is_not_hidden(folder, monkeypatch):
    def broken(*_args, **_kwargs):
        raise KeyError("ours")

    monkeypatch.setattr("residua.io.tables.graphs.read_tables", broken)
    monkeypatch.setattr(sys, "argv", ["residua", "fit", "nodes.csv", "edges.csv", "--target", "price"])
    with pytest.raises(KeyError, match="ours"):
        main()


def test_ctrl_c_ends_in_a_word(folder, monkeypatch, capsys):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("residua.io.tables.graphs.read_tables", interrupted)
    monkeypatch.setattr(sys, "argv", ["residua", "fit", "nodes.csv", "edges.csv", "--target", "price"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err.strip() == "residua: interrupted"


def residua(*arguments, **options):
    command = [sys.executable, "-c", "from residua.cli.app import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_a_training_that_ctrl_c_ended_is_kept_and_told_by_the_exit_code(monkeypatch, capsys):
    def interrupted(*_args, **_kwargs):
        warnings.warn("training was interrupted; the best network so far is kept.", UserWarning, stacklevel=2)

    monkeypatch.setattr("residua.cli.app.app", interrupted)
    monkeypatch.setattr(sys, "argv", ["residua", "fit"])
    with warnings.catch_warnings(action="always"), pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert "best network so far is kept" in capsys.readouterr().err


def test_the_way_from_tables_to_predictions(folder):
    fit = residua("fit", "nodes.csv", "edges.csv", "--target", "price", "-o", "m.residua")
    assert fit.returncode == 0, fit.stderr
    assert fit.stderr == ""
    assert "The neighbours help" in fit.stdout
    predict = residua("predict", "m.residua", "-o", "p.parquet")
    assert predict.returncode == 0, predict.stderr
    assert pd.read_parquet("p.parquet")["id"].tolist()[:2] == ["000", "001"]


def test_a_wrong_file_ends_a_process_with_2_and_no_traceback(folder):
    edit(folder / "edges.csv", 3, "001", "999")
    run = residua("fit", "nodes.csv", "edges.csv", "--target", "price")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert "edges.csv line 3" in run.stderr
    assert sorted(os.listdir()) == ["edges.csv", "nodes.csv"]


def test_a_file_without_its_last_line_break_is_noted(folder):
    Path("edges.csv").write_bytes(Path("edges.csv").read_bytes().rstrip())
    run = residua("fit", "nodes.csv", "edges.csv", "--target", "price")
    assert run.returncode == 0
    assert run.stderr.startswith("note: edges.csv does not end with a line break")


def test_no_command_shows_the_help():
    run = residua()
    assert run.returncode == 0
    assert "fit" in run.stdout


@pytest.mark.slow
def test_start_up_is_quick(folder):
    """In processor time on one thread, which is what a user waits on a machine without other work."""
    n = 3000
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": range(n), "a": rng.normal(size=n), "y": rng.normal(size=n)})
    edges = pd.DataFrame({"source": rng.integers(0, n, 4 * n), "target": rng.integers(0, n, 4 * n)})
    write(folder, nodes, edges)
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

    def seconds(*arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert residua(*arguments, env=os.environ | dict.fromkeys(threads, "1")).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds("--help") for _ in range(3)) < 0.5
    assert min(seconds("fit", "nodes.csv", "edges.csv", "--target", "y") for _ in range(2)) < 5


def test_numbers_that_are_not_finite_become_null_in_json(capsys):
    print_json({"r2": float("nan"), "ends": (float("-inf"), 1.5), "rows": [{"n": 3, "name": "köln"}]})
    said = capsys.readouterr().out
    assert json.loads(said) == {"r2": None, "ends": [None, 1.5], "rows": [{"n": 3, "name": "köln"}]}
    assert "köln" in said


def test_both_defaults_are_argued_where_they_are_looked_up():
    from residua import GraphRegressor

    said = " ".join(run("fit --help").split())
    assert GraphRegressor().base == "hops"
    assert "In Python the default is hops" in said.replace("│ ", "")
    assert 'has another default, "linear"' in " ".join(GraphRegressor.__doc__.split())
