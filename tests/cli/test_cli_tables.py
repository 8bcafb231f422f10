"""From two tables to a model, predictions and a comparison, as a user types it."""

import json
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from residua import load
from residua.cli.app import app, main
from tables import edit, town, write

runner = CliRunner()


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


# fit


def test_fit_tells_what_it_read_and_learned(folder):
    out = run("fit nodes.csv edges.csv --target price --edge-type kind")
    for words in (
        "81 (ids: id)",
        "144 (street 72, path 72)",
        "known at 54 nodes, 66.7 %",
        "size (no cell is empty)",
        "quarter with 3 values",
        "of the edges: width",
        "street: +",
        "path: +",
        "95 % interval [",
        "base linear 0.",
        "corrected 0.",
        "The neighbours help",
        "model.residua",
    ):
        assert words in out
    assert Path("model.residua").exists()


def test_fit_prints_the_same_as_json(folder):
    found = json.loads(run("fit nodes.csv edges.csv --target price --json"))
    assert found["nodes"] == 81
    assert found["edges"] == {"edge": 144}
    assert found["labelled_share"] == pytest.approx(54 / 81)
    assert found["numbers"]["size"]["empty"] == 0
    assert found["categories"]["quarter"]["values"] == ["north", "old town", "south"]
    assert found["alpha"]["edge"]["lower"] < found["alpha"]["edge"]["value"] <= found["alpha"]["edge"]["upper"]
    assert found["r2_base"] < found["r2_corrected"]
    assert found["verdict"].startswith("The neighbours help")


@pytest.mark.parametrize("correlation", ["propagate", "none"])
def test_a_correlation_that_is_not_learned_has_no_interval(folder, correlation):
    command = f"fit nodes.csv edges.csv --target price --correlation {correlation}"
    assert "not learned" in run(command)
    assert json.loads(run(command + " --json"))["alpha"]["edge"]["lower"] is None


def test_bases_that_look_at_no_feature_need_none(folder):
    town()[0][["id", "price"]].to_csv("bare.csv", index=False)
    assert "Features  none" in run("fit bare.csv edges.csv --target price --base mean")
    assert "Features  none" in run("fit nodes.csv edges.csv --target price --base zero")
    run("predict model.residua --nodes bare.csv --edges edges.csv -o p.csv")


def test_a_linear_base_without_features_is_refused(folder, monkeypatch, capsys):
    town()[0][["id", "price"]].to_csv("bare.csv", index=False)
    line = stopped("fit bare.csv edges.csv --target price -o m.residua", monkeypatch, capsys)
    assert "no column to predict from" in line
    assert "--base mean" in line


def test_names_with_commas_go_in_quotes(folder):
    nodes = town()[0].rename(columns={"size": "size, m2"})
    nodes.to_csv("nodes.csv", index=False)
    result = runner.invoke(
        app, ["fit", "nodes.csv", "edges.csv", "--target", "price", "--features", '"size, m2",quarter']
    )
    assert result.exit_code == 0
    assert "size, m2" in result.stdout


def test_a_network_is_fitted_and_told_apart(folder):
    pytest.importorskip("torch_geometric")
    out = run("fit nodes.csv edges.csv --target price --base mlp --training post-hoc --ensemble 2 --seed 3")
    assert "base mlp" in out
    run("predict model.residua")


def test_options_of_networks_are_refused_for_others(folder, monkeypatch, capsys):
    line = stopped("fit nodes.csv edges.csv --target price --ensemble 3", monkeypatch, capsys)
    assert "--ensemble is for networks" in line


# predict


def test_predict_writes_a_line_for_each_node(model):
    assert "81 nodes, 27 of them predicted and 54 known" in run("predict m.residua -o p.csv")
    table = pd.read_csv("p.csv", dtype={"id": str})
    assert list(table) == ["id", "prediction", "std", "lower", "upper", "base", "correction"]
    nodes = town()[0]
    assert list(table["id"]) == list(nodes["id"])
    known = nodes["price"].notna()
    np.testing.assert_allclose(table["prediction"][known], nodes["price"][known])


def test_parquet_predictions_are_the_same(model):
    run("predict m.residua -o p.csv")
    run("predict m.residua -o p.parquet")
    pd.testing.assert_frame_equal(
        pd.read_csv("p.csv", dtype={"id": str}), pd.read_parquet("p.parquet"), check_dtype=False
    )


def test_a_wider_coverage_gives_wider_intervals(model):
    widths = []
    for coverage in (0.5, 0.95):
        run(f"predict m.residua --coverage {coverage} -o p.csv")
        table = pd.read_csv("p.csv")
        widths.append((table["upper"] - table["lower"]).max())
    assert widths[0] < widths[1]


def test_predict_for_other_tables_uses_their_labels(model):
    nodes, edges = town(seed=5)
    write(Path("."), nodes.iloc[::-1], edges)
    run("predict m.residua --nodes nodes.csv --edges edges.csv -o p.csv")
    table = pd.read_csv("p.csv", dtype={"id": str}).set_index("id")
    known = nodes.set_index("id")["price"].dropna()
    np.testing.assert_allclose(table["prediction"][known.index], known)


def test_predict_takes_labels_that_came_after_the_fit(model):
    """In any order, with an empty cell, and columns that do not matter."""
    unknown = town()[0].query("price.isna()")["id"].to_numpy()
    later = pd.DataFrame({"note": "x", "price": [3.5, -1.0, np.nan], "id": unknown[[5, 2, 8]]})
    later.to_csv("later.csv", index=False)
    assert "81 nodes, 25 of them predicted and 56 known" in run("predict m.residua --labels later.csv -o p.csv")
    table = pd.read_csv("p.csv", dtype={"id": str}).set_index("id")
    fitted = load(model)
    y = np.full(81, np.nan)
    y[np.isin(fitted.graph_.nodes, unknown[5])] = 3.5
    y[np.isin(fitted.graph_.nodes, unknown[2])] = -1.0
    np.testing.assert_allclose(table["prediction"], fitted.predict(y=y))
    assert np.abs(table["prediction"] - fitted.predict()).max() > 0.1


def test_without_correlation_later_labels_move_the_base_alone(folder):
    run("fit nodes.csv edges.csv --target price --correlation none -o m.residua")
    nodes = town()[0]
    unknown = nodes["price"].isna().to_numpy()
    few = pd.DataFrame({"id": nodes["id"][unknown][:4], "price": 50.0})
    pd.concat([few, nodes[["id", "price"]][~unknown][:2]]).to_csv("later.csv", index=False)
    result = runner.invoke(app, ["predict", "m.residua", "--labels", "later.csv", "-o", "p.csv"])
    assert "later.csv: new labels 4, in place of one of the fit 2." in result.stderr
    table = pd.read_csv("p.csv")
    still = table["std"] > 0
    assert still.sum() == unknown.sum() - 4
    np.testing.assert_allclose(table["correction"][still], 0, atol=1e-9)
    run("predict m.residua -o before.csv")
    assert (table["base"] - pd.read_csv("before.csv")["base"]).abs().min() > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,price\n000,1\n999,2\n", ["later.csv line 3", "node '999' is none of the 81 nodes of the model"]),
        ("id,price\n000,1\n000,2\n", ["later.csv line 3", "was there before", "give every node one line."]),
        (
            "id,price\n000,much\n",
            ["later.csv line 2", "'much' is not a number; write a number, or leave"],
        ),
        ("id,price\n000,\n", ["later.csv has no label: every cell of column 'price' is empty"]),
        ("id,price\n998,1\n999,2\n", ["node '998' (and 1 more) is none of the 81 nodes"]),
        ("id,cost\n000,1\n", ["later.csv has no column 'price'"]),
        ("node,price\n000,1\n", ["later.csv has no column 'id'"]),
    ],
)
def test_wrong_later_labels_end_in_one_line(model, monkeypatch, capsys, text, words):
    Path("later.csv").write_text(text)
    line = stopped("predict m.residua --labels later.csv -o p.csv", monkeypatch, capsys)
    assert all(word in line for word in words), line


def test_values_not_seen_before_are_noted(model):
    edit(Path("nodes.csv"), 5, "north", "harbour")
    result = runner.invoke(app, ["predict", "m.residua", "--nodes", "nodes.csv", "--edges", "edges.csv"])
    assert result.exit_code == 0
    assert "harbour" in result.stderr


def test_trees_are_predicted_from_once_trusted(folder, monkeypatch, capsys):
    run("fit nodes.csv edges.csv --target price --base trees")
    assert "add --trust" in stopped("predict model.residua", monkeypatch, capsys)
    run("predict model.residua --trust")


# report


def test_report_writes_a_page(model):
    run("report m.residua --nodes nodes.csv --title Prices")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "Prices" in page


def test_report_takes_positions_from_columns(model, monkeypatch, capsys):
    nodes = town()[0]
    nodes["east"], nodes["north"] = np.divmod(np.arange(len(nodes)), 9)
    nodes.to_csv("placed.csv", index=False)
    run("report m.residua --nodes placed.csv --x east --y north")
    assert "give --x and --y together" in stopped("report m.residua --x east", monkeypatch, capsys)


# compare


def test_compare_marks_the_best(folder):
    out = run("compare nodes.csv edges.csv --target price --splits 2 --bases linear")
    assert "2, each with 14 of 54 labels held out: random nodes" in out
    best = [line for line in out.splitlines() if line.strip().startswith("*  linear, learned")]
    assert len(best) == 1
    assert "* highest R2: linear, learned" in out


def test_compare_as_json(folder):
    out = run("compare nodes.csv edges.csv --target price --splits 2 --split blocked --bases linear,mean --json")
    found = json.loads(out)
    assert found["split"] == "blocked"
    names = [method["name"] for method in found["methods"]]
    assert found["best"] in names
    assert names[0] == "label propagation"
    for method in found["methods"]:
        for score in ("r2", "rmse", "coverage", "seconds"):
            assert method[score]["mean"] == pytest.approx(np.mean(method[score]["values"]))


def test_compare_says_what_it_could_not_try(folder, monkeypatch):
    monkeypatch.setattr("residua.comparison.networks_installed", lambda: False)
    result = runner.invoke(
        app, ["compare", "nodes.csv", "edges.csv", "--target", "price", "--splits", "1", "--bases", "linear,mlp"]
    )
    assert result.exit_code == 0
    assert "mlp: networks need PyTorch, which is not installed" in result.stderr


# Wrong input


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

    monkeypatch.setattr("residua.io.tables.read_tables", broken)
    monkeypatch.setattr(sys, "argv", ["residua", "fit", "nodes.csv", "edges.csv", "--target", "price"])
    with pytest.raises(KeyError, match="ours"):
        main()


def test_ctrl_c_ends_in_a_word(folder, monkeypatch, capsys):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("residua.io.tables.read_tables", interrupted)
    monkeypatch.setattr(sys, "argv", ["residua", "fit", "nodes.csv", "edges.csv", "--target", "price"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err.strip() == "residua: interrupted"


# Real processes


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


def test_a_dry_run_tells_what_a_fit_would_take_and_writes_nothing(folder):
    told = run("fit nodes.csv edges.csv --target price --dry-run -o dry.residua")
    assert "B available" in told
    assert not (folder / "dry.residua").exists()


def test_a_fit_that_would_not_fit_into_memory_is_refused_before_it_begins(folder, monkeypatch, capsys):
    monkeypatch.setattr("residua.resources.available_bytes", lambda: 1e3)
    line = stopped("fit nodes.csv edges.csv --target price -o m.residua", monkeypatch, capsys)
    assert "this fit would take" in line
    assert "0 MB are available" in line
