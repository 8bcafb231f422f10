"""What a user of tables types and reads: dates, coordinates, dry runs, what predict and compare write."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from commands import run, stopped
from residua import load
from tables import town

FIT = "fit nodes.csv edges.csv --target price"


def test_a_column_of_numbers_with_commas_cost_accuracy_in_silence_and_is_an_error_now(folder, monkeypatch, capsys):
    """The feature that explains the price, written as 358,001: left out as text, much less is explained."""
    nodes = town()[0]
    area = 1000 * np.round(500 + 100 * nodes["size"])
    nodes.drop(columns="size").assign(area=area).to_csv("nodes.csv", index=False)
    read = json.loads(run(f"{FIT} --json -o m.residua"))["r2_corrected"]
    left_out = json.loads(run(f"{FIT} --exclude area --json -o m.residua"))["r2_corrected"]
    assert left_out < read - 0.3
    nodes.drop(columns="size").assign(area=[f"{k:,.0f}" for k in area]).to_csv("nodes.csv", index=False)
    assert "column 'area' is text that looks like numbers: --thousands ," in stopped(FIT, monkeypatch, capsys)
    told = json.loads(run(f"{FIT} --thousands , --json -o m.residua"))["r2_corrected"]
    assert told == pytest.approx(read, abs=1e-9)


class TestDates:
    def test_they_become_days_and_the_time_of_the_year_and_it_says_so(self, folder):
        nodes = town()[0]
        dates = pd.Timestamp("2018-01-01") + pd.to_timedelta(37 * np.arange(81), "D")
        nodes.assign(sold=dates.strftime("%Y-%m-%d")).to_csv("nodes.csv", index=False)
        text = run(f"{FIT} -o m.residua")
        assert "sold as days since 2000-01-01, the sine of the time of the year, its cosine" in text
        X, names = load("m.residua").X_, list(load("m.residua").feature_names_in_)
        days = X[:, names.index("sold (days)")]
        np.testing.assert_allclose(days, (dates - pd.Timestamp("2000-01-01")).days)
        turn = 2 * np.pi * (dates.day_of_year - 1) / 365.25
        np.testing.assert_allclose(X[:, names.index("sold (sine of the year)")], np.sin(turn), atol=1e-12)
        run("predict m.residua --nodes nodes.csv --edges edges.csv -o again.csv")
        run("predict m.residua -o own.csv")
        pd.testing.assert_frame_equal(pd.read_csv("again.csv"), pd.read_csv("own.csv"))

    def test_of_one_year_days_are_enough_and_an_empty_cell_takes_the_median(self, folder):
        nodes = town()[0]
        dates = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(81), "D"))
        dates[5] = pd.NaT
        nodes.assign(sold=dates).to_parquet("nodes.parquet")
        found = json.loads(run("fit nodes.parquet edges.csv --target price --json -o m.residua"))
        assert found["dates"] == {"sold (days)": ["sold", "days"]}
        assert found["numbers"]["sold (days)"]["empty"] == 1
        model = load("m.residua")
        column = model.X_[:, list(model.feature_names_in_).index("sold (days)")]
        assert column[5] == np.median(np.delete(column, 5))

    def test_other_dates_stay_text_and_a_table_without_dates_is_refused(self, folder, monkeypatch, capsys):
        nodes = town()[0]
        nodes.assign(sold=[f"{k % 28 + 1}.1.2024" for k in range(81)]).to_csv("nodes.csv", index=False)
        assert json.loads(run(f"{FIT} --json -o m.residua"))["dates"] == {}
        nodes.assign(sold=[f"2024-01-{k % 28 + 1:02d}" for k in range(81)]).to_csv("nodes.csv", index=False)
        run(f"{FIT} -o m.residua")
        nodes.assign(sold="soon").to_csv("nodes.csv", index=False)
        line = stopped("predict m.residua --nodes nodes.csv --edges edges.csv", monkeypatch, capsys)
        assert "nodes.csv column 'sold' held dates in the fit, such as 2024-03-31; write such dates." in line


class TestCoordinates:
    @pytest.fixture
    def placed(self, folder):
        nodes = town()[0]
        row, column = np.divmod(np.arange(81), 9)
        nodes.assign(Lon=8 + column / 10, lat=47 + row / 10).to_csv("nodes.csv", index=False)
        return folder

    def test_they_are_for_the_map_and_it_says_so(self, placed, capsys):
        text = run(f"{FIT} -o m.residua")
        assert "Lon and lat are the positions of the nodes" in text
        assert "--coordinates features uses it too" in text
        assert not {"Lon", "lat"} & set(load("m.residua").feature_names_in_)
        run("report m.residua --nodes nodes.csv -o map.html")
        run("report m.residua --nodes nodes.csv --x Lon --y lat -o asked.html")
        pages = [(placed / f"{name}.html").read_text() for name in ("map", "asked")]
        # Bokeh counts its objects on, and Python's sets have no order.
        found, asked = (sorted(re.sub(r'"p\d+"', '"p"', page)) for page in pages)
        assert found == asked
        run("report m.residua -o layout.html")
        assert (placed / "layout.html").read_text() != (placed / "map.html").read_text()

    def test_asked_for_they_are_features_too(self, placed):
        run(f"{FIT} --coordinates features -o m.residua")
        assert {"Lon", "lat"} <= set(load("m.residua").feature_names_in_)
        assert load("m.residua").recipe_.positions == ("Lon", "lat")
        run(f"{FIT} --features size,lat -o m.residua")
        assert list(load("m.residua").feature_names_in_) == ["size", "lat"]

    def test_an_unknown_word_is_refused(self, placed, monkeypatch, capsys):
        line = stopped(f"{FIT} --coordinates both", monkeypatch, capsys)
        assert "--coordinates='both' is unknown; use one of 'map', 'features'" in line


class TestDryRun:
    def test_it_shows_what_was_read_and_writes_nothing(self, folder):
        nodes, edges = town()
        nodes.loc[3, "size"] = np.nan
        pd.concat([nodes, nodes[:1].assign(id="alone")]).to_csv("nodes.csv", index=False)
        pd.concat([edges, edges[:1].assign(target="nowhere")]).to_csv("edges.csv", index=False)
        text = run(f"{FIT} --skip-unknown --dry-run -o m.residua")
        told = (
            "Nodes     82",
            "in 1 cell",
            "to unknown nodes left out",
            "without an edge: alone",
            "neighbours of a node",
        )
        assert all(line in text for line in told)
        assert "to compile" in text
        assert not (folder / "m.residua").exists()
        found = json.loads(run(f"{FIT} --skip-unknown --dry-run --json"))
        assert found["isolates"] == 1
        assert found["preview"]["isolated"] == ["alone"]
        assert found["edge_rows"]["unknown"] == 1
        assert found["bytes"] > 0

    def test_ids_that_lost_their_zeros_are_hinted_at(self, folder):
        nodes, edges = town()
        code = {old: str(97 * k + 2001) for k, old in enumerate(nodes["id"])}
        nodes["id"], edges["source"], edges["target"] = (
            column.map(code) for column in (nodes["id"], edges["source"], edges["target"])
        )
        nodes.to_csv("nodes.csv", index=False)
        edges.to_csv("edges.csv", index=False)
        assert "leading zeros" not in run(f"{FIT} --dry-run")  # all of four digits
        more = {old: str(int(old) * 3) for old in nodes["id"]}
        nodes["id"], edges["source"], edges["target"] = (
            column.map(more) for column in (nodes["id"], edges["source"], edges["target"])
        )
        nodes.to_csv("nodes.csv", index=False)
        edges.to_csv("edges.csv", index=False)
        assert "ids have 4 or 5 digits; were leading zeros lost" in run(f"{FIT} --dry-run")


class TestPredict:
    def test_known_and_leave_one_out_have_columns_of_their_own(self, model):
        run("predict m.residua -o p.csv")
        table, fitted = pd.read_csv("p.csv", dtype={"id": str}), load("m.residua")
        frame = fitted.predict_frame()
        assert (table["known"].to_numpy() == frame["known"]).all()
        assert table["leave_one_out"].isna().equals(~table["known"])
        np.testing.assert_allclose(table["leave_one_out"], frame["leave_one_out"], atol=1e-5)

    def test_digits_mean_something_and_labels_stay_as_they_are(self, model):
        run("predict m.residua -o p.csv")
        table, fitted = pd.read_csv("p.csv", dtype=str), load("m.residua")
        unknown = table["known"] == "False"
        assert table["prediction"][unknown].str.partition(".")[2].str.len().max() <= 12
        known = ~unknown
        assert (table["prediction"][known].astype(float).to_numpy() == fitted.y_[known.to_numpy()]).all()
        np.testing.assert_allclose(table["prediction"].astype(float), fitted.predict(), atol=1e-5)

    def test_columns_are_kept_as_they_are_written(self, model):
        run("predict m.residua --nodes nodes.csv --keep quarter,size -o p.csv")
        table, nodes = pd.read_csv("p.csv", dtype=str), pd.read_csv("nodes.csv", dtype=str)
        assert table["quarter"].equals(nodes["quarter"])
        assert table["size"].equals(nodes["size"])
        nodes[::-1].to_csv("turned.csv", index=False)
        run("predict m.residua --nodes turned.csv --edges edges.csv --keep quarter -o p.csv")
        assert pd.read_csv("p.csv")["quarter"].equals(nodes["quarter"][::-1].reset_index(drop=True))

    def test_json_says_what_was_written(self, model):
        found = json.loads(run("predict m.residua --json -o p.csv"))
        assert (found["nodes"], found["known"], found["predicted"]) == (81, 54, 27)
        assert found["columns"][-2:] == ["known", "leave_one_out"]

    @pytest.mark.parametrize(
        ("options", "told"),
        {
            "--keep quarter": "--keep quarter needs the table that has these columns: --nodes nodes.csv",
            "--nodes nodes.csv": "--nodes alone is for --keep",
            "--nodes nodes.csv --keep town": "nodes.csv has no column 'town' (--keep)",
            "--json -o -": "--json and --output - both write to the screen",
        }.items(),
    )
    def test_options_that_do_not_go_together_are_refused(self, model, options, told, monkeypatch, capsys):
        assert told in stopped(f"predict m.residua {options}", monkeypatch, capsys)

    def test_trees_of_ours_need_no_trust(self, folder):
        run(f"{FIT} --base trees -o t.residua")
        assert "27 of them predicted" in run("predict t.residua -o p.csv")


def test_compare_ends_with_a_command_that_works_and_writes_table_and_picture(folder):
    text = run(
        "compare nodes.csv edges.csv --target price --exclude quarter --bases mean,linear --splits 2 -o found.csv"
    )
    command = text.split("Next: residua ")[1].splitlines()[0]
    assert command.startswith("fit nodes.csv edges.csv --target price --exclude quarter --base ")
    table = pd.read_csv("found.csv")
    best = table.loc[table["r2"].idxmax()]
    assert f"--base {best['base']}" in command
    assert (folder / "found.png").read_bytes().startswith(b"\x89PNG")
    run(" ".join(shlex.split(command)) + " -o best.residua")
    found = json.loads(run("compare nodes.csv edges.csv --target price --bases linear --splits 2 --json"))
    assert found["next"].startswith("residua fit nodes.csv edges.csv --target price --base ")


def test_compare_tries_what_fit_takes_by_default():
    from residua import GraphRegressor
    from residua.bases.registry import COMPARED

    assert {GraphRegressor().base, "linear"} <= set(COMPARED)
