"""From two tables to a model and predictions, as a user types it."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from commands import run, stopped
from residua import Average, GraphRegressor, best_average, load
from residua.cli.app import app
from residua.io.tables.predictions import rounded
from tables import edit, town, write

runner = CliRunner()
ENDS = ("source", "target")


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


def test_a_field_and_lengths_are_those_of_python(folder):
    out = run("fit nodes.csv edges.csv --target price --features size --length width --field laplacian")
    model, edges = load("model.residua"), pd.read_csv("edges.csv", dtype={"source": str, "target": str})
    nearness = 1 / edges["width"].to_numpy()
    places = model.graph_.index(edges["source"]), model.graph_.index(edges["target"])
    assert model.graph_.adjacency()[places] == pytest.approx(nearness / nearness.mean())
    assert f"Field     laplacian, smoothing a = {model.correlation_.smoothing:.4g}, 95 % interval [" in out
    found = json.loads(run("fit nodes.csv edges.csv --target price --features size --length width --field auto --json"))
    assert found["field"] in found["field_in_words"]
    assert "chosen by leave-one-out log score a label: normalised" in found["field_in_words"]
    assert run("predict model.residua --nodes nodes.csv --edges edges.csv -o again.csv")  # lengths are read again


def test_lengths_that_make_no_weights_are_refused(folder, monkeypatch, capsys):
    words = "fit nodes.csv edges.csv --target price --length width"
    assert "leave one out" in stopped(f"{words} --weight width", monkeypatch, capsys)
    edit(folder / "edges.csv", 2, "1.0", "0.0")
    assert "the length is 0; give a number above 0" in stopped(words, monkeypatch, capsys)


def test_coefficients_are_printed_in_the_units_of_the_columns(folder):
    out, found = (run(f"fit nodes.csv edges.csv --target price --features size {how}") for how in ("", "--json"))
    found = json.loads(found)
    summary = load("model.residua").summary()
    assert list(found["coefficients"]) == ["intercept", "size"]
    assert found["coefficients"]["size"] == pytest.approx(summary.coefficients.loc["size"].to_dict())
    assert found["aic"] == pytest.approx(summary.facts["aic"])
    assert f"size: {summary.coefficients.loc['size', 'estimate']:+.4g}, standard error" in out
    wide = run("fit nodes.csv edges.csv --target price --correlation none --base mean")
    assert "intercept: +" in wide


def test_fit_prints_the_same_as_json(folder):
    found, told = (run(f"fit nodes.csv edges.csv --target price {how}") for how in ("--json", ""))
    found = json.loads(found)
    alpha = found["alpha"]["edge"]
    interval = f"95 % interval [{alpha['lower']:+.4f}, {alpha['upper']:+.4f}]"
    for words in (
        f"edge: {alpha['value']:+.4f}, {interval}",
        f"base linear {found['r2_base']:.3f}, corrected {found['r2_corrected']:.3f}",
        f"each of {found['labels_left_out']} labels",
        found["verdict"],
    ):
        assert words in told
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


def test_splines_are_fitted_saved_and_predict(folder):
    found = json.loads(run("fit nodes.csv edges.csv --target price --base splines --json"))
    assert found["r2_base"] < found["r2_corrected"]
    run("predict model.residua -o p.csv")
    run("report model.residua -o report.html")
    model = load("model.residua")
    assert model.base == "splines"
    np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], model.predict(), rtol=1e-6)
    out = run("compare nodes.csv edges.csv --target price --splits 1 --bases splines")
    assert "splines, learned" in out


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


@pytest.mark.parametrize("word", ["NA", "n/a", "not known", "a,b", 'say "no"', "it's", "$HOME", "a;b"])
def test_what_an_error_says_to_type_works_as_it_is_written(folder, word, refusal):
    nodes = town()[0].drop(columns="size")
    nodes["size, m2"] = [word if k == 2 else str(k % 5) for k in range(len(nodes))]
    nodes.to_csv("nodes.csv", index=False)
    fit = ["fit", "nodes.csv", "edges.csv", "--target", "price"]
    said = re.search(
        r"(--missing .+), or read the column as text: (--categorical .+), or leave it out: (--exclude .+)\.$",
        refusal(*fit),
    )
    for option in said.groups():
        result = runner.invoke(app, [*fit, *shlex.split(option)])
        assert result.exit_code == 0, result.output
    assert "size, m2" not in runner.invoke(app, [*fit, *shlex.split(said[3])]).stdout


@pytest.mark.parametrize("word", [" ", " NA ", "no " + 20 * "very " + "long word"])
def test_a_word_that_no_option_can_name_is_not_advised(folder, word, refusal):
    nodes = town()[0].astype({"price": object})
    nodes.loc[2, "price"] = word
    nodes.to_csv("nodes.csv", index=False)
    said = refusal("fit", "nodes.csv", "edges.csv", "--target", "price")
    assert "is not a number; write a number, leave the cell empty; an empty cell is a node whose label" in said
    nodes.loc[2, "price"] = ""
    nodes.astype(str).to_parquet("nodes.parquet")
    assert "'' is not a number" in (said := refusal("fit", "nodes.parquet", "edges.csv", "--target", "price"))
    assert "leave the cell empty (null); an empty cell is" in said


def test_a_network_is_fitted_and_told_apart(folder):
    pytest.importorskip("torch_geometric")
    out = run("fit nodes.csv edges.csv --target price --base mlp --training post-hoc --ensemble 2 --seed 3")
    assert "base mlp" in out
    model = load("model.residua")
    assert (model.base_.name, model.training, model.random_state) == ("mlp", "post-hoc", 3)
    assert len(model.base_.members) == 2
    run("predict model.residua")
    table = pd.read_csv("predictions.csv", dtype={"id": str})
    np.testing.assert_allclose(table["prediction"], model.predict())


def test_a_quote_left_open_stops_the_command(folder, monkeypatch, capsys):
    lines = Path("edges.csv").read_text().splitlines()
    for k in (20, 60):
        first, rest = lines[k].split(",", 1)
        lines[k] = f'{first},"{rest}'
    Path("edges.csv").write_text("\n".join(lines) + "\n")
    line = stopped("fit nodes.csv edges.csv --target price --base mean -o m.residua", monkeypatch, capsys)
    assert "edges.csv line 21: a quote is opened" in line
    assert not Path("m.residua").exists()


def test_options_of_networks_are_refused_for_others(folder, monkeypatch, capsys):
    line = stopped("fit nodes.csv edges.csv --target price --ensemble 3", monkeypatch, capsys)
    assert "--ensemble is for networks" in line


def test_predict_writes_a_line_for_each_node(model):
    assert "81 nodes, 27 of them predicted and 54 known" in run("predict m.residua -o p.csv")
    table = pd.read_csv("p.csv", dtype={"id": str})
    assert list(table) == ["id", "prediction", "std", "lower", "upper", "base", "correction", "known", "leave_one_out"]
    nodes = town()[0]
    assert list(table["id"]) == list(nodes["id"])
    known = nodes["price"].notna()
    np.testing.assert_allclose(table["prediction"][known], nodes["price"][known])


def test_parquet_predictions_are_the_same_with_all_their_digits(model):
    run("predict m.residua -o p.csv")
    run("predict m.residua -o p.parquet")
    table, whole = pd.read_csv("p.csv", dtype={"id": str}), pd.read_parquet("p.parquet")
    pd.testing.assert_frame_equal(table, rounded(whole), check_dtype=False, check_exact=True)
    assert np.array_equal(whole["prediction"], load("m.residua").predict())


def test_a_wider_coverage_gives_wider_intervals(model):
    widths = []
    for coverage in (0.5, 0.95):
        run(f"predict m.residua --coverage {coverage} -o p.csv")
        table = pd.read_csv("p.csv")
        widths.append((table["upper"] - table["lower"]).max())
    assert widths[0] < widths[1]


def test_predict_says_what_tells_the_width_of_intervals(model, monkeypatch, capsys):
    run("predict m.residua --left-out blocks -o p.csv")
    upper = load(model).predict_interval(left_out="blocks")[1]
    np.testing.assert_allclose(pd.read_csv("p.csv")["upper"], upper)
    assert (upper != load(model).predict_interval(left_out="nodes")[1]).any()
    text = stopped("predict m.residua --left-out rows -o p.csv", monkeypatch, capsys)
    assert "--left-out 'rows' is none of auto, nodes, blocks" in text


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


def test_trees_are_predicted_from_without_any_trust(folder):
    run("fit nodes.csv edges.csv --target price --base trees")
    run("predict model.residua")


def test_a_dry_run_tells_what_a_fit_would_take_and_writes_nothing(folder):
    told = run("fit nodes.csv edges.csv --target price --dry-run -o dry.residua")
    assert "B available" in told
    assert not (folder / "dry.residua").exists()


def test_a_fit_that_would_not_fit_into_memory_is_refused_before_it_begins(folder, monkeypatch, capsys):
    monkeypatch.setattr("residua.resources.available_bytes", lambda: 1e3)
    line = stopped("fit nodes.csv edges.csv --target price -o m.residua", monkeypatch, capsys)
    assert "this fit would take" in line
    assert "0 MB are available" in line


def test_ids_that_are_numbers_may_come_in_any_order(folder):
    nodes, edges = town()
    nodes["id"], edges["source"], edges["target"] = (
        column.astype(int) for column in (nodes["id"], *map(edges.get, ENDS))
    )
    nodes["longitude"], nodes["latitude"] = np.divmod(np.arange(81.0), 9)
    found = {}
    for name, order in {"sorted": np.arange(81), "shuffled": np.random.default_rng(0).permutation(81)}.items():
        write(Path("."), nodes.iloc[order], edges)
        run("fit nodes.csv edges.csv --target price --features size,quarter --edge-type kind -o m.residua")
        run("predict m.residua -o p.csv")
        run("predict m.residua --nodes nodes.csv --edges edges.csv -o other.csv")
        run("compare nodes.csv edges.csv --target price --features size --bases linear --splits 1")
        run("report m.residua --nodes nodes.csv -o r.html")
        found[name] = [pd.read_csv(path).set_index("id")["prediction"].sort_index() for path in ("p.csv", "other.csv")]
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)  # labels are of size 1


def with_gaps(folder):
    """Write the tables with empty cells among numbers and among text."""
    nodes, edges = town()
    nodes.loc[::9, "size"] = np.nan
    nodes.loc[4::20, "quarter"] = None
    write(folder, nodes, edges)
    return nodes.drop(columns=["id", "price"])


def test_trees_see_the_table_as_it_is(folder):
    table = with_gaps(folder)
    out = run("fit nodes.csv edges.csv --target price --base trees")
    assert "an empty cell left to trees as it is: size in 9 cells" in out
    assert (
        "quarter with 4 values (categories, to trees as they are; an empty cell is missing: quarter in 4 cells)" in out
    )
    model = load("model.residua")
    assert list(model.feature_names_in_) == ["size", "quarter"]
    assert model.base_.columns.categorical.tolist() == [False, True]
    pd.testing.assert_frame_equal(model.X_.astype(table.dtypes), table)
    run("predict model.residua --nodes nodes.csv --edges edges.csv -o again.csv")
    np.testing.assert_allclose(pd.read_csv("again.csv")["prediction"], model.predict(), rtol=1e-9)
    found = json.loads(run("compare nodes.csv edges.csv --target price --splits 1 --bases linear,trees --json"))
    assert found["as_they_are"]
    assert all(method["failure"] is None for method in found["methods"])


def test_linear_bases_get_numbers_as_before(folder):
    with_gaps(folder)
    out = run("fit nodes.csv edges.csv --target price")
    assert "an empty cell takes the column's median: size" in out
    assert list(load("model.residua").feature_names_in_)[:2] == ["size", "quarter=(empty)"]


@pytest.fixture
def quick_candidates(monkeypatch):
    """Let ``best`` try bases that take no second."""
    plain = {name: lambda name=name: GraphRegressor(name) for name in ("mean", "linear", "trees")}
    monkeypatch.setattr(best_average, "_candidates", lambda: plain)


def test_the_best_average_is_fitted_saved_and_asked(folder, quick_candidates):
    with_gaps(folder)
    out = run("fit nodes.csv edges.csv --target price --base best --time-budget 100")
    average = load("model.residua")
    assert isinstance(average, Average)
    heaviest = int(average.weights.argmax())
    assert f"weight {average.weights[heaviest]:.2f}" in out
    assert f"{average.out_of_sample_scores().r2:.3f}; each of 54 labels" in out
    run("predict model.residua -o own.csv")
    run("predict model.residua --nodes nodes.csv --edges edges.csv -o again.csv")
    own, again = pd.read_csv("own.csv"), pd.read_csv("again.csv")
    assert list(own) == ["id", "prediction", "std", "lower", "upper", "base", "correction", "known", "leave_one_out"]
    np.testing.assert_allclose(own["prediction"], average.predict(), rtol=1e-9)
    own, again = own.iloc[:, 1:-2], again.iloc[:, 1:-2]
    np.testing.assert_allclose(own, again, rtol=1e-7, atol=1e-9)
    told = runner.invoke(app, ["report", "model.residua", "-o", "report.html"])
    assert told.exit_code == 0
    assert "the page shows the one of the largest weight" in told.stderr
    found = json.loads(run("fit nodes.csv edges.csv --target price --base best --json"))
    assert sum(one["weight"] for one in found["bases"]) == pytest.approx(1)
    assert "about" in run("fit nodes.csv edges.csv --target price --base best --dry-run")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--ensemble 3", "--ensemble is for a single base"),
        ("--correlation none", "--correlation is for a single base"),
        ("--time-budget 0", "--time-budget=0.0 must be a number of seconds above 0"),
        ("--features price", "the id or the target"),
        ("--scheduler tcp://127.0.0.1:1", "--base best is for one machine"),
    ],
)
def test_what_best_does_not_take_ends_in_one_line(folder, monkeypatch, capsys, words, said):
    line = stopped(f"fit nodes.csv edges.csv --target price --base best -o m.residua {words}", monkeypatch, capsys)
    assert said in line
