"""Files made to do harm: each is refused in one line, before memory is asked for, and none runs code.

The same functions run for longer in ``make soak``; here each has some hundred inputs, the same in every run.
"""

import json
import os
import zipfile

import numpy as np
import pytest

import residua
from residua import GraphRegressor, ModelFileError
from residua.io.model_file import load
from residua.io.tables.graphs import Columns, read_tables
from soak import bombs, checkpoint_files, data_files, model_files, shape_files, table_files
from soak.mutations import damaged, damaged_json
from soak.verdicts import Judge, PromiseBroken, Rounds, nothing_runs
from tables import town, write

INPUTS = 150  # of each kind of file


@pytest.mark.parametrize("part", [model_files, table_files, shape_files, data_files, checkpoint_files])
def test_damaged_files_are_refused_in_one_line_or_harmless(part):
    counts = part.run(Rounds(INPUTS), 0)
    assert counts["inputs"] == counts["accepted"] + counts["refused"] >= INPUTS
    assert counts["refused"] > INPUTS / 3


def test_no_file_gets_the_memory_that_it_claims(tmp_path):
    found = {bomb.name: bombs.go_off(bomb) for bomb in bombs.bombs(tmp_path)}
    assert len(found) > 15
    for name, outcome in found.items():
        assert type(outcome.error) in (ValueError, ModelFileError), name
        assert len(str(outcome.error).splitlines()) == 1, name
        assert outcome.megabytes < 30, name  # the largest of the files is 1 MB


def test_memory_that_is_asked_for_is_seen(tmp_path):
    bomb = bombs.Bomb("itself", tmp_path, lambda: np.zeros(10**7))
    assert bombs.go_off(bomb).megabytes > 79


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "..\\escaped", "model.json/../../escaped"])
def test_no_member_of_an_archive_is_written_anywhere(name, tmp_path):
    members = model_files.members_of(model_files.saved(_model()))
    path = tmp_path / "inner" / "folder" / "m.residua"
    path.parent.mkdir(parents=True)
    path.write_bytes(model_files.zipped([*members.items(), (name, b"x")]))
    before = sorted(tmp_path.rglob("*"))
    with nothing_runs(), pytest.raises(ModelFileError, match="members are"):
        load(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_module_that_a_file_names_is_not_imported(tmp_path, monkeypatch):
    """A scikit-learn part names types by module; one that is not trusted is not even looked for."""
    (tmp_path / "canary.py").write_text(f"open({str(tmp_path / 'sang')!r}, 'w')\nclass Ridge: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    members = model_files.members_of(model_files.saved(model_files.good_models()["pipeline"]))
    inner = model_files.members_of(members["base.skops"])
    schema = inner["schema.json"].replace(b"sklearn.linear_model._ridge", b"canary")
    assert b"canary" in schema
    members["base.skops"] = model_files.zipped([*(inner | {"schema.json": schema}).items()])
    (tmp_path / "m.residua").write_bytes(model_files.zipped([*members.items()]))
    with pytest.raises(ModelFileError, match=r"not trusted by default: canary\.Ridge"):
        load(tmp_path / "m.residua")
    assert not (tmp_path / "sang").exists()


def _model() -> GraphRegressor:
    graph = residua.Graph.from_edges(range(20), range(1, 21))
    return GraphRegressor("mean").fit(None, np.sin(np.arange(21.0)), graph=graph)


@pytest.mark.parametrize("version", [2, 10**9])
def test_a_newer_version_asks_for_an_upgrade(version, tmp_path):
    members = model_files.members_of(model_files.saved(_model()))
    table = json.loads(members["model.json"]) | {"format": version}
    (tmp_path / "m").write_bytes(model_files.zipped([*(members | {"model.json": json.dumps(table).encode()}).items()]))
    with pytest.raises(ModelFileError, match=r"written by a newer residua .* upgrade residua"):
        load(tmp_path / "m")


def test_a_table_that_claims_more_rows_than_memory_holds_is_refused(tmp_path):
    bomb = bombs._table(tmp_path)
    with pytest.raises(ValueError, match=r"claims 1,000,000,000,000,000 rows of 2 columns, more than the .* GB"):
        bomb.read()


def test_a_name_with_a_nul_and_a_cell_without_end_are_refused(tmp_path):
    nodes, edges = write(tmp_path, *town())
    good = nodes.read_bytes()
    nodes.write_bytes(good.replace(b"size", b"si\x00ze"))
    with pytest.raises(ValueError, match=r"NUL character in the name of column 'si\?ze'"):
        read_tables(nodes, edges, Columns("price"))
    nodes.write_bytes(good.replace(b"size", b"s" * 140_000))
    with pytest.raises(ValueError, match="line 1: the columns' names cannot be read"):
        read_tables(nodes, edges, Columns("price"))
    nodes.write_bytes(good + b'"' + b"x" * 140_000)
    with pytest.raises(ValueError, match="a cell has more than 131,072 characters"):
        read_tables(nodes, edges, Columns("price"))


def test_a_model_whose_numbers_overflow_together_is_refused(tmp_path):
    members = model_files.members_of(model_files.saved(model_files.good_models()["linear"]))
    arrays = model_files.from_safetensors(members["arrays.safetensors"])
    arrays["base.coefficients"][:] = 1e308
    members["arrays.safetensors"] = model_files.to_safetensors(arrays)
    (tmp_path / "m").write_bytes(model_files.zipped([*members.items()]))
    with pytest.raises(ModelFileError, match="its base predicts numbers that are not finite"):
        load(tmp_path / "m")


# The judge itself


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (KeyError("x"), "KeyError came out"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "odd"), "UnicodeDecodeError came out"),
        (MemoryError(), "MemoryError came out"),
        (SystemExit(1), "SystemExit came out"),
        (ValueError("one\ntwo"), "not one line"),
        (ValueError("\x1b[2J"), "not one line"),
        (ValueError(""), "not one line"),
        (ValueError("something is wrong"), "does not name here.csv"),
    ],
)
def test_the_judge_complains(error, complaint, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def call():
        raise error

    with pytest.raises(PromiseBroken, match=complaint) as caught:
        Judge().judge(b"input", call, "here.csv")
    kept = [path.read_bytes() for path in tmp_path.iterdir()]
    assert kept == [b"input"]
    assert str(tmp_path) in str(caught.value)


def test_the_judge_sees_what_a_reader_does_behind_ones_back(tmp_path):
    def writes():
        (tmp_path / "x").write_text("x")

    def runs():
        os.system("true")

    for deed in (writes, runs):
        with pytest.raises(PromiseBroken, match="reading a file did this"), nothing_runs():
            deed()
    with nothing_runs():
        json.loads("{}")


@pytest.mark.parametrize("change", [damaged, damaged_json])
def test_the_same_seed_does_the_same_damage(change):
    data = json.dumps(shape_files.geojson()).encode()
    first, second = ([change(data, np.random.default_rng([3, k])) for k in range(30)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 25


def test_a_good_archive_is_what_the_damage_begins_with(tmp_path):
    for model in model_files.good_models().values():
        (tmp_path / "m").write_bytes(model_files.saved(model))
        assert zipfile.is_zipfile(tmp_path / "m")
        model_files._use(tmp_path / "m")
