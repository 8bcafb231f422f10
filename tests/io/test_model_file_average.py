"""A loaded average answers as the saved one, to the last bit; a file that is not as it should be gives one line."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

from graphs import small_world
from residua import Average, GraphRegressor, ModelFileError, load
from residua.cli.app import app

WEIGHTS = (0.1, 0.7, 0.3)  # adds up to 1.1, so that what is saved has been rounded


@pytest.fixture(scope="module")
def average():
    rng = np.random.default_rng(0)
    graph = small_world(80, 4, seed=0).graph
    X = rng.standard_normal((80, 2))
    y = np.where(rng.random(80) < 0.3, np.nan, X @ [1.0, -1.0] + rng.standard_normal(80))
    models = [GraphRegressor(base).fit(X, y, graph=graph) for base in ("linear", "mean", Ridge())]
    return Average(models, WEIGHTS)


@pytest.fixture
def forge(average, tmp_path):
    """Writes the average with members added, changed or (None) left out, and returns its path."""

    def write(**members):
        path = tmp_path / "forged.residua"
        average.save(path)
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in (parts | members).items():
                if content is not None:
                    archive.writestr(name, content)
        return path

    return write


def test_an_average_comes_back_the_same(average, tmp_path):
    average.save(tmp_path / "average.residua")
    again = load(tmp_path / "average.residua")
    assert isinstance(again, Average)
    np.testing.assert_array_equal(again.weights, average.weights)
    for ours, theirs in zip(again.predict(return_std=True), average.predict(return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again.predict_interval(), average.predict_interval())


def table(**changes):
    return json.dumps({"format": 1, "residua": "0.1.0", "weights": [0.2, 0.3, 0.5]} | changes).encode()


def test_a_forged_file_without_changes_loads(forge):
    assert list(load(forge(**{"average.json": table()})).weights) == [0.2, 0.3, 0.5]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"average.json": b"[]"}, "is not an object"),
        ({"average.json": table(format=2)}, "written by a newer residua .* upgrade residua"),
        ({"average.json": table(format=0)}, "format is 0"),
        ({"average.json": table(weights=[])}, "it has a member"),
        ({"average.json": table(weights=[1.0, 0.0])}, "it has a member '2/"),
        ({"average.json": table(weights=[0.2, 0.3, 0.5, 0.0])}, "it has no model.json"),
        ({"average.json": table(weights=[2.0, 3.0, 5.0])}, "weights do not add up to 1"),
        ({"average.json": table(weights=[-1.0, 1.0, 1.0])}, "none negative"),
        ({"average.json": table(weights=["nan", 0.5, 0.5])}, "none negative"),
        ({"average.json": table(weights=[None, 0.5, 0.5])}, "a number is None"),
        ({"0/model.json": None}, "it has no model.json"),
        ({"0/further": b""}, "members are"),
        ({"00/model.json": b"{}"}, "it has a member '00/model.json'"),
        ({"²/model.json": b"{}"}, "it has a member"),
        ({"../0/model.json": b"{}"}, "it has a member"),
    ],
)
def test_a_changed_file_is_refused_in_one_line(forge, members, message):
    path = forge(**members)
    with pytest.raises(ModelFileError, match=message) as refusal:
        load(path)
    assert str(refusal.value).startswith(f"{path} ")
    assert "\n" not in str(refusal.value)


def test_models_of_other_labels_are_refused(forge, average, tmp_path):
    first = average.models[0]
    other = GraphRegressor("linear").fit(first.X_, 2 * first.y_, graph=first.graph_)
    other.save(tmp_path / "other.residua")
    with zipfile.ZipFile(tmp_path / "other.residua") as archive:
        members = {f"1/{name}": archive.read(name) for name in archive.namelist()}
    with pytest.raises(ModelFileError, match=r"models\[1\] was fitted on another graph or other labels"):
        load(forge(**members))


def test_a_kind_that_was_not_asked_for_is_refused(average, tmp_path):
    average.save(tmp_path / "average.residua")
    average.models[0].save(tmp_path / "one.residua")
    assert isinstance(load(tmp_path / "average.residua", kind=Average), Average)
    assert isinstance(load(tmp_path / "one.residua", kind=GraphRegressor), GraphRegressor)
    with pytest.raises(ModelFileError, match="holds an average of models, no GraphRegressor"):
        load(tmp_path / "average.residua", kind=GraphRegressor)
    with pytest.raises(ModelFileError, match="holds one model, no Average"):
        load(tmp_path / "one.residua", kind=Average)


def test_the_command_predicts_by_an_average(average, tmp_path):
    average.save(tmp_path / "average.residua")
    words = ["predict", str(tmp_path / "average.residua"), "--trust", "-o", str(tmp_path / "out.csv")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(table["prediction"], average.predict(), rtol=1e-9)
    np.testing.assert_allclose(table["lower"], average.predict_interval()[0], rtol=1e-9)
