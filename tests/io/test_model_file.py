"""A loaded model answers as the saved one, to the last bit; a file that is not as it should be gives one clear line."""

import datetime
import errno
import io
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import residua
from residua import Cholesky, Eigen, Graph, GraphRegressor, Lanczos, ModelFileError, load
from residua.io.model_file.estimators import pack_estimators

N = 40
TREES = ["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"]
BASES = {
    "zero": lambda: "zero",
    "mean": lambda: "mean",
    "linear": lambda: "linear",
    "splines": lambda: "splines",
    "boosting": lambda: HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3),
    "pipeline": lambda: make_pipeline(StandardScaler(), Ridge()),
}
INTEGERS = np.arange(N)
WORDS = np.array([f"köln {i}" for i in range(N)], object)
PAIRS = np.fromiter(((i // 5, ("row", i % 5)) for i in range(N)), object, N)


def ring(ids=INTEGERS, weighted=False, types=("edge",)) -> Graph:
    """A ring with chords; edges take the types in turn."""
    rows = [(i, (i + 1) % N) for i in range(N)] + [(i, (i + 7) % N) for i in range(0, N, 3)]
    source, target = np.array(rows).T
    weight = np.random.default_rng(1).uniform(0.5, 2, len(rows)) if weighted else None
    kind = np.resize(np.array(types, object), len(rows))
    return Graph.from_edges(ids[source], ids[target], weight, kind, nodes=ids)


def data():
    """Features, all labels, and the labels with a third of them unknown."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    truth = X @ [1, -1] + np.sin(np.arange(N) / 3) + 0.3 * rng.normal(size=N)
    return X, truth, np.where(rng.random(N) < 0.35, np.nan, truth)


def fitted(base="linear", graph=None, **parameters) -> GraphRegressor:
    X, _, y = data()
    return GraphRegressor(base, **parameters).fit(X, y, graph=graph or ring())


def reloaded(model, folder: Path, **options) -> GraphRegressor:
    model.save(folder / "model.residua")
    return residua.load(folder / "model.residua", **options)


def answers(model) -> list[np.ndarray]:
    X, truth, y = data()
    other = ring(types=model.graph_.edge_types)
    return [
        *model.predict(return_std=True),
        *model.predict(return_std=True, known="predict"),
        *model.predict(X[::-1], y[::-1], graph=other, return_std=True),
        *model.predict_interval(coverage=0.8),
        *model.predict_interval(method="gaussian"),
        model.sample(3),
        np.array(model.score(None, truth)),
    ]


def assert_same(model, again) -> None:
    for before, after in zip(answers(model), answers(again), strict=True):
        np.testing.assert_array_equal(before, after)
    assert model.diagnose() == again.diagnose()
    assert model.correlation_ is None or str(model.correlation_) == str(again.correlation_)


# A round trip changes nothing


@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
@pytest.mark.parametrize("base", BASES)
def test_every_base_with_every_correlation_comes_back_the_same(base, correlation, tmp_path):
    model = fitted(BASES[base](), ring(WORDS, weighted=True), correlation=correlation)
    again = reloaded(model, tmp_path, trusted=TREES if base == "boosting" else ())
    assert_same(model, again)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.residua"]


@pytest.mark.parametrize("field", ["laplacian", "auto"])
@pytest.mark.parametrize("correlation", ["learned", "propagate"])
def test_each_field_comes_back_the_same(field, correlation, tmp_path):
    model = fitted(correlation=correlation, field=field, graph=ring(weighted=True))
    again = reloaded(model, tmp_path)
    assert_same(model, again)
    assert (again.field_.kind, again.field_.log_scores) == (model.field_.kind, model.field_.log_scores)
    assert again.field_.smoothing == model.field_.smoothing
    assert str(again.summary()) == str(model.summary())


@pytest.mark.parametrize("base", ["zero", "linear", "splines", "pipeline"])
def test_two_edge_types_come_back_the_same(base, tmp_path):
    model = fitted(BASES[base](), ring(PAIRS, weighted=True, types=("road", "rail")))
    again = reloaded(model, tmp_path)
    assert again.graph_.edge_types == ("road", "rail")
    assert_same(model, again)


@pytest.mark.parametrize(
    "logdet",
    ["auto", Eigen(), Cholesky(), Cholesky(cholmod=False), Lanczos(), Lanczos(64, 24, False, 3, np.float32)],
    ids=repr,
)
def test_each_log_determinant_gives_the_same_interval_of_alpha(logdet, tmp_path):
    model = fitted(logdet=logdet)
    again = reloaded(model, tmp_path)
    assert again.logdet == logdet
    for coverage in (0.5, 0.95):
        assert model.correlation_.interval(coverage) == again.correlation_.interval(coverage)


@pytest.mark.parametrize("types", [("edge",), pytest.param(("road", "rail"), marks=pytest.mark.slow)])
def test_probes_that_a_fit_added_are_used_again(types, tmp_path):
    model = fitted("zero", ring(types=types), logdet=Lanczos(control_variates=False))
    again = reloaded(model, tmp_path)
    assert again.correlation_.source.effort[0] > 8
    assert model.correlation_.interval() == again.correlation_.interval()


def test_steps_that_a_fit_deepened_are_used_again(tmp_path):
    model = fitted("zero", logdet=Lanczos(control_variates=False, steps=3))
    again = reloaded(model, tmp_path)
    assert model.correlation_.source.effort[1] > 3
    assert again.correlation_.source.effort == model.correlation_.source.effort
    assert model.correlation_.interval() == again.correlation_.interval()


SAME = """
import sys
import numpy as np, residua
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
search = GridSearchCV(RandomForestRegressor(2), {"max_depth": [1, 2]}, cv=KFold(2, shuffle=True))
rng = np.random.default_rng(0)
X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
ring = residua.Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)
for name, base in {"pipeline": make_pipeline(StandardScaler(), Ridge()), "trees": "trees", "search": search}.items():
    residua.GraphRegressor(base, folds=2).fit(X, y, graph=ring).save(f"{sys.argv[1]}/{name}.residua")
"""


def test_the_same_fit_gives_the_same_bytes(tmp_path):
    for folder, seed in (("a", "1"), ("b", "2")):
        (tmp_path / folder).mkdir()
        program = f"import sys; sys.path[:0] = {sys.path}\n{SAME}"
        settings = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / folder)], check=True, env=settings)
    files = sorted((tmp_path / "a").iterdir())
    assert len(files) == 3
    for file in files:
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


def test_what_lies_between_the_fields_of_a_tree_is_not_saved():
    forest = RandomForestRegressor(1, random_state=0).fit(np.arange(9.0)[:, None], np.arange(9.0))
    tree, before = forest.estimators_[0].tree_, pack_estimators({"base": forest})
    state = tree.__getstate__()
    state["nodes"].view(np.uint8).reshape(tree.node_count, -1)[:, 57:] += 1
    tree.__setstate__(state)
    assert pack_estimators({"base": forest}) == before


def test_a_model_that_was_loaded_is_saved_as_the_same_bytes(tmp_path):
    again = reloaded(fitted(make_pipeline(StandardScaler(), Ridge())), tmp_path)
    before = (tmp_path / "model.residua").read_bytes()
    reloaded(again, tmp_path)
    assert (tmp_path / "model.residua").read_bytes() == before


def test_a_search_keeps_all_but_its_times(tmp_path):
    model = fitted(GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=3))
    types = ["sklearn.metrics._scorer._PassthroughScorer", "sklearn.model_selection._split.KFold"]
    took = model.base_.estimator.refit_time_
    again = reloaded(model, tmp_path, trusted=types)
    before, after = (m.base_.estimator.cv_results_ for m in (model, again))
    np.testing.assert_array_equal(after["mean_test_score"], before["mean_test_score"])
    assert (after["mean_fit_time"] == 0).all()
    assert model.base_.estimator.refit_time_ == took > 0


def test_an_interval_is_the_same_twice_whatever_was_asked_before():
    fit = fitted("zero", ring(types=("road", "rail"))).correlation_
    assert fit.interval() == fit.interval()


@pytest.mark.parametrize("base", BASES)
def test_parameters_come_back(base, tmp_path):
    model = fitted(BASES[base](), folds=np.int64(4), random_state=7, correlation="propagate", logdet=Eigen())
    again = reloaded(model, tmp_path, trusted=TREES)
    before, after = model.get_params(), again.get_params()
    assert {name: repr(value) for name, value in before.items() if name != "folds"} == {
        name: repr(value) for name, value in after.items() if name != "folds"
    }
    assert (before["folds"], type(after["folds"])) == (4, int)


def test_fitted_attributes_come_back(tmp_path):
    X, _, y = data()
    table = pd.DataFrame(X, columns=["income", ("age", 1)])
    model = GraphRegressor("linear").fit(table, y, graph=ring())
    again = reloaded(model, tmp_path)
    for name in ("alpha_", "alpha_stderr_", "beta_", "n_features_in_"):
        assert getattr(model, name) == getattr(again, name)
    assert list(again.feature_names_in_) == ["income", ("age", 1)]
    assert again.X_.flags.f_contiguous == model.X_.flags.f_contiguous  # sums depend on it in the last bit
    assert again.outcome_.correlation is again.correlation_
    with pytest.raises(ValueError, match="reorder"):
        again.predict(table.iloc[:, ::-1], y, graph=ring())


@pytest.mark.parametrize(
    "ids",
    [
        INTEGERS - 7,
        WORDS,
        PAIRS,
        INTEGERS + 0.5,
        np.array([True, False, "a", -1.5, 2**80, (1,), ((), ("b", 2.0)), *range(10, N + 3)], object),
        np.array([f"\U0001f600 \x00 \n {i}" for i in range(N)], object),
    ],
    ids=["int", "str", "tuple", "float", "mixed", "odd text"],
)
def test_ids_come_back_with_their_types(ids, tmp_path):
    again = reloaded(fitted("mean", ring(ids)), tmp_path).graph_.nodes
    assert again.dtype == ring(ids).nodes.dtype
    assert [(type(a), a) for a in again.tolist()] == [(type(a), a) for a in ids.tolist()]


def test_numpy_scalars_become_python_ids(tmp_path):
    ids = np.fromiter([(np.int32(i), np.str_("x")) for i in range(N)], object, N)
    first = reloaded(fitted("mean", ring(ids)), tmp_path).graph_.nodes[0]
    assert (first, [type(part) for part in first]) == ((0, "x"), [int, str])


def test_a_loaded_model_can_be_saved_again_to_the_same_bytes(tmp_path):
    fitted(graph=ring(PAIRS)).save(tmp_path / "a")
    load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_loaded_model_can_be_fitted_again_and_pickled(tmp_path):
    model = fitted()
    again = reloaded(model, tmp_path)
    assert_same(model, pickle.loads(pickle.dumps(again)))
    X, _, y = data()
    assert_same(model, again.fit(X, y, graph=ring()))


def test_parameters_set_after_the_fit_do_not_change_what_was_learned(tmp_path):
    model = fitted("linear", logdet=Cholesky()).set_params(base=Ridge(), logdet="auto")
    again = reloaded(model, tmp_path)
    assert isinstance(again.base, Ridge)
    assert_same(model, again)


def test_a_new_process_predicts_the_same(tmp_path):
    models = {"linear": fitted(graph=ring(WORDS)), "pipeline": fitted(BASES["pipeline"]())}
    for name, model in models.items():
        model.save(tmp_path / name)
    code = (
        "import sys, residua\n"
        "for path in sys.argv[1:]:\n"
        "    model = residua.load(path)\n"
        "    print(model.predict(return_std=True)[1].tobytes().hex(), model.sample(2).tobytes().hex())"
    )
    command = [sys.executable, "-W", "error", "-c", code, *(tmp_path / name for name in models)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    expected = [(m.predict(return_std=True)[1].tobytes().hex(), m.sample(2).tobytes().hex()) for m in models.values()]
    assert printed == [text for pair in expected for text in pair]


# What cannot be kept is refused before anything is written


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda i: pd.Timestamp(2020, 1, 1) + pd.Timedelta(days=i), "Timestamp"),
        (lambda i: frozenset([i]), "frozenset"),
        (lambda i: b"%d" % i, "bytes"),
        (lambda i: ("a", datetime.date(2000, 1, 1 + i % 28), i), "date"),
        (lambda i: (i, float("inf")), "float"),
    ],
)
def test_other_ids_are_refused_by_type(make, kind, tmp_path):
    ids = np.fromiter(map(make, range(N)), object, N)
    with pytest.raises(ValueError, match=rf"node id .* is of type {kind}, .*; use int, str, finite float") as error:
        fitted("mean", ring(ids)).save(tmp_path / "model.residua")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_base_that_could_not_be_read_back_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"base Pipeline cannot be kept .*; use estimators and functions") as error:
        fitted(make_pipeline(FunctionTransformer(lambda X: X), Ridge())).save(tmp_path / "model.residua")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


class Subclass(GraphRegressor):
    pass


@pytest.mark.parametrize(
    "parameters", [{"folds": 1}, {"random_state": -1}, {"logdet": 3}, {"base": "sage-mean"}, {"correlation": "strong"}]
)
def test_parameters_that_fit_would_refuse_are_not_saved(parameters, tmp_path):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        fitted().set_params(**parameters).save(tmp_path / "model.residua")
    assert not list(tmp_path.iterdir())


def test_a_subclass_is_refused(tmp_path):
    X, _, y = data()
    with pytest.raises(ValueError, match="model is a Subclass; only a GraphRegressor"):
        Subclass().fit(X, y, graph=ring()).save(tmp_path / "model.residua")


# A write that fails loses nothing


def fail_with(code: int) -> Callable:
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failing_write_keeps_the_old_file_and_leaves_no_other(function, tmp_path, monkeypatch):
    path = tmp_path / "model.residua"
    fitted("zero").save(path)
    before = path.read_bytes()
    model = fitted("linear")
    monkeypatch.setattr(os, function, fail_with(errno.ENOSPC))
    with pytest.raises(OSError, match=r"saving the model failed: No space left on device: '.*model.residua'") as error:
        model.save(path)
    assert error.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("limit", [0, 100, 3000])
def test_a_file_that_outgrows_its_room_keeps_the_old_one(limit, tmp_path):
    path = tmp_path / "model.residua"
    fitted("zero").save(path)
    before, model = path.read_bytes(), fitted("linear")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        with pytest.raises(OSError, match="saving the model failed: File too large"):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_leaves_no_other_file(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted("zero").save(tmp_path / "model.residua")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_missing_or_read_only_or_the_target_gives_one_line(tmp_path, monkeypatch):
    model = fitted("zero")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; create it first"):
        model.save(tmp_path / "nowhere" / "model.residua")
    with pytest.raises(ValueError, match="is not a regular file; give a file name"):
        model.save(tmp_path)
    monkeypatch.setattr(os, "replace", fail_with(errno.EACCES))  # root may write anywhere
    with pytest.raises(PermissionError, match="saving the model failed: Permission denied"):
        model.save(tmp_path / "model.residua")


def test_a_link_and_the_mode_of_the_old_file_are_kept(tmp_path):
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fitted("zero").save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600
    load(tmp_path / "real")


# Damaged files


def refusal(path, **options) -> str | None:
    """The one line with which a file is refused; None where it loads."""
    try:
        load(path, **options)
    except ModelFileError as error:
        text = str(error)
    else:
        return None
    assert text.startswith(f"{path} ")
    assert "\n" not in text
    return text


@pytest.fixture(scope="module", params=["linear", "pipeline"])
def good(request, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "model.residua"
    fitted(BASES[request.param](), ring(PAIRS, weighted=True)).save(path)
    return path.read_bytes()


def test_a_truncated_file_is_refused_wherever_it_ends(good, tmp_path):
    for size in np.unique(np.linspace(0, len(good) - 1, 80).astype(int)):
        (tmp_path / "short").write_bytes(good[:size])
        assert refusal(tmp_path / "short"), size


def test_a_flipped_bit_is_refused_or_harmless(good, tmp_path):
    """Some bits of a zip say nothing of its members, such as the time at which they were written."""
    rng = np.random.default_rng(0)
    (tmp_path / "good").write_bytes(good)
    expected = load(tmp_path / "good").predict(return_std=True)
    places = np.concatenate([rng.integers(0, len(good), 60), rng.integers(len(good) - 300, len(good), 60)])
    refused = 0
    for at in places:
        changed = bytearray(good)
        changed[at] ^= 1 << rng.integers(8)
        (tmp_path / "flipped").write_bytes(changed)
        if refusal(tmp_path / "flipped"):
            refused += 1
        else:
            np.testing.assert_array_equal(load(tmp_path / "flipped").predict(return_std=True), expected, str(at))
    assert 60 < refused < len(places)


def test_any_bytes_are_refused(tmp_path):
    for text in (b"", b"PK", b"\x80\x04N.", b"\x00" * 1000, b"PK\x05\x06" + bytes(18)):
        (tmp_path / "odd").write_bytes(text)
        assert "damaged or no residua model" in refusal(tmp_path / "odd")


def test_missing_files_folders_and_pipes_give_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="not found; give the path of a file that"):
        load(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "is not a regular file" in refusal(path)


# Files made to do harm: checksums are right, contents are not


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, compression=zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def forge(tmp_path):
    """Writes a model file with some members, entries of its JSON or arrays changed, and returns its path."""
    path = tmp_path / "forged.residua"

    def write(model=None, members=None, table=None, arrays=None) -> Path:
        (model or fitted(graph=ring(WORDS, weighted=True))).save(path)
        parts = members_of(path.read_bytes())
        if table:
            parts["model.json"] = json.dumps(table(json.loads(parts["model.json"]))).encode()
        if arrays:
            parts["arrays.safetensors"] = to_safetensors(arrays(from_safetensors(parts["arrays.safetensors"])))
        path.write_bytes(zipped((parts | (members or {})).items()))
        return path

    return write


def test_a_file_of_the_first_version_gets_its_beta_corrected(forge):
    """It held a beta of the correlation that did not allow for the coefficients of the mean."""
    whole = load(forge())
    half = whole.beta_ / 2
    again = load(forge(table=changed("beta", half, "correlation")))
    assert again.beta_ == again.correlation_.beta == whole.beta_
    assert again.correlation_.beta_stderr == pytest.approx(2 * whole.correlation_.beta_stderr)
    np.testing.assert_allclose(again.correlation_.coefficient_covariance, whole.correlation_.coefficient_covariance / 2)


def test_a_forged_file_without_changes_loads(forge):
    assert refusal(forge(table=dict, arrays=dict)) is None


@pytest.mark.parametrize("name", ["model.pkl", "base.skops", "../../.bashrc", "/etc/passwd"])
def test_a_further_member_is_refused(name, forge):
    assert "members are" in refusal(forge(members={name: pickle.dumps(print)}))


@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors"])
def test_a_pickle_in_place_of_a_member_is_not_opened(name, forge):
    assert "damaged" in refusal(forge(members={name: pickle.dumps(print)}))


def test_two_members_of_one_name_are_refused(forge):
    path = forge()
    parts = list(members_of(path.read_bytes()).items())
    with pytest.warns(UserWarning, match="Duplicate name"):
        path.write_bytes(zipped([*parts, parts[0]]))
    assert "two members have one name" in refusal(path)


def test_compressed_members_are_refused_unread(forge):
    path = forge()
    bomb = members_of(path.read_bytes()) | {"model.json": b" " * 10**7}
    path.write_bytes(zipped(bomb.items(), zipfile.ZIP_DEFLATED))
    assert "is compressed" in refusal(path)


def test_a_newer_format_asks_for_an_upgrade(forge):
    path = forge(table=lambda t: t | {"format": 2, "residua": "9.9"}, members={"more.bin": b""})
    assert "was written by a newer residua (9.9, file format 2; this is" in refusal(path)
    assert refusal(path).endswith("upgrade residua.")


def test_deep_or_endless_json_is_refused(forge):
    for text in (b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"format": ' + b"1" * 5000 + b"}", b"NaN", b"1"):
        assert "damaged" in refusal(forge(members={"model.json": text}))


def changed(key, value, *outer):
    """A change of one entry of the JSON part."""

    def change(table):
        inner = table
        for name in outer:
            inner = inner[name]
        inner[key] = value
        return table

    return change


@pytest.mark.parametrize(
    "change",
    [
        changed("format", 0),
        changed("format", True),
        changed("beta", -1.0),
        changed("beta", "inf"),
        changed("beta", 10**400),
        changed("alpha", {"edge": 1.5}),
        changed("alpha", {"road": 0.5}),
        changed("alpha", {"edge": "nan"}),
        changed("alpha_stderr", {"edge": [1]}),
        changed("n_nodes", 10**15, "graph"),
        changed("n_nodes", -1, "graph"),
        changed("nodes", ["a"] * N, "graph"),
        changed("nodes", [{"a": 1}] * N, "graph"),
        changed("nodes", None, "graph"),
        changed("edge_types", ["edge", "edge"], "graph"),
        changed("edge_types", [], "graph"),
        changed("feature_names", ["a"]),
        changed("kind", "pickle", "base"),
        changed("kind", "scikit", "base"),
        changed("name", "os.system", "base"),
        changed("base", "os.system", "parameters"),
        changed("base", {"estimator": "parameter"}, "parameters"),
        changed("folds", "5", "parameters"),
        changed("random_state", 0.5, "parameters"),
        changed("logdet", {"strategy": "Popen", "args": "ls"}, "parameters"),
        changed("logdet", {"strategy": "Lanczos", "probes": -4}, "parameters"),
        changed("other\n\x1b[2J", 1, "parameters"),
        changed("n_labelled", 3, "correlation"),
        changed("steps", -1, "correlation", "effort"),
        changed("probes", 10**9, "correlation", "effort"),
        changed("estimators", ["fitted"]),
    ],
)
def test_a_changed_table_is_refused(change, forge):
    assert refusal(forge(table=change))


def without(key):
    return lambda table: {name: value for name, value in table.items() if name != key}


@pytest.mark.parametrize(
    "key", ["format", "residua", "parameters", "graph", "base", "alpha", "alpha_stderr", "beta", "estimators"]
)
def test_a_table_that_lacks_an_entry_is_refused(key, forge):
    assert refusal(forge(table=without(key)))


def edited(name, edit):
    def change(arrays):
        array = arrays[name].copy()
        return arrays | {name: np.ascontiguousarray(edit(array))}

    return change


def put(index, value):
    def edit(array):
        array[index] = value
        return array

    return edit


@pytest.mark.parametrize(
    "change",
    [
        edited("X", lambda X: X[:-1]),
        edited("X", lambda X: X.astype(np.float32)),
        edited("X", put((0, 0), np.inf)),
        edited("y", put(0, -np.inf)),
        edited("y", lambda y: np.full_like(y, np.nan)),
        edited("residual", lambda r: r[1:]),
        edited("alone", put(0, np.nan)),
        edited("base.coefficients", lambda c: c[1:]),
        edited("base.spread", put(0, 0.0)),
        edited("correlation.covariance", lambda c: c[:, 1:]),
        edited("graph.indptr.0", put(3, 10**12)),
        edited("graph.indptr.0", put(0, -1)),
        edited("graph.indptr.0", lambda p: p.astype(np.int32)),
        edited("graph.indices.0", put(0, N)),
        edited("graph.indices.0", put(0, -1)),
        edited("graph.indices.0", lambda i: np.sort(i)),
        edited("graph.indices.0", lambda i: i[:-1]),
        edited("graph.weights.0", put(0, np.nan)),
        edited("graph.weights.0", put(0, 9.0)),
        edited("graph.weights.0", lambda w: -w),
        edited("graph.weights.0", lambda w: w * 8e307),
        lambda arrays: arrays | {"more": np.zeros(3)},
        without("y"),
        without("graph.indptr.0"),
    ],
)
def test_changed_arrays_are_refused(change, forge):
    assert "damaged" in refusal(forge(arrays=change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited("base.knots", lambda k: k[::-1]), "base.knots are not in order"),
        (edited("base.knots", lambda k: k[1:]), "array base.knots is"),
        (edited("base.knots", put(2, np.inf)), "array base.knots is not finite"),
        (edited("base.knot_counts", put(0, 2)), "base.knot_counts are not those of splines"),
        (edited("base.knot_counts", put(0, 10**12)), "base.knot_counts are not those of splines"),
        (edited("base.knot_counts", put(0, 0)), "array base.knots is"),
        (edited("base.prior_variance", put(3, -1.0)), "base.prior_variance is negative"),
        (edited("base.prior_variance", put(3, np.inf)), "array base.prior_variance is not finite"),
        (edited("base.coefficients", lambda c: c[:-1]), "array base.coefficients is"),
        (edited("base.coefficients", lambda c: c * 1e308), "not finite"),
        (without("base.knots"), "array base.knots is missing"),
    ],
)
def test_changed_splines_are_refused(change, message, forge):
    found = refusal(forge(model=fitted("splines"), arrays=change))
    assert "damaged" in found
    assert message in found


def test_an_array_that_claims_more_than_its_bytes_is_refused(forge):
    header = json.dumps({"y": {"dtype": "F64", "shape": [10**15], "data_offsets": [0, 8 * 10**15]}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(64)
    assert "damaged" in refusal(forge(members={"arrays.safetensors": content}))


# A scikit-learn base holds trusted types alone


class Custom(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (Custom(), f"{Custom.__module__}.Custom"),
        (BASES["boosting"](), TREES[0]),
        (RandomForestRegressor(2), "sklearn.tree._tree.Tree"),
    ],
)
def test_a_type_that_is_not_trusted_is_named_and_refused_until_it_is(base, name, tmp_path):
    model = fitted(base, correlation=None)
    path = tmp_path / "model.residua"
    model.save(path)
    assert f"not trusted by default: {name}; if you know" in refusal(path)
    assert refusal(path).endswith(f"load it with trusted=['{name}'].")
    assert_same(model, load(path, trusted=[name]))
    assert_same(model, load(path, trusted=name))


def test_a_function_in_a_file_is_neither_trusted_nor_called(tmp_path, capfd):
    model = fitted(make_pipeline(FunctionTransformer(np.copy), Ridge()), correlation=None)
    model.save(tmp_path / "model.residua")
    parts = members_of((tmp_path / "model.residua").read_bytes())
    inner = members_of(parts["base.skops"])
    schema, count = re.subn(rb'"copy",\s*"__module__": "numpy"', b'"system", "__module__": "os"', inner["schema.json"])
    assert count == 2  # in the parameter and in the fitted base
    parts["base.skops"] = zipped((inner | {"schema.json": schema}).items())
    (tmp_path / "model.residua").write_bytes(zipped(parts.items()))
    assert "os.system" in refusal(tmp_path / "model.residua")
    assert capfd.readouterr() == ("", "")


def test_a_packed_or_oversized_skops_part_is_refused(forge):
    model = fitted(BASES["pipeline"](), correlation=None)
    path = forge(model)
    inner = members_of(members_of(path.read_bytes())["base.skops"])
    array = next(name for name in inner if name.endswith(".npy"))
    large = io.BytesIO()
    np.lib.format.write_array_header_1_0(large, {"shape": (10**14,), "fortran_order": False, "descr": "<f8"})
    harms = {
        "is compressed": zipped(inner.items(), zipfile.ZIP_DEFLATED),
        "is not of shape (100000000000000,)": zipped((inner | {array: large.getvalue()}).items()),
        "has a member 'x.npz'": zipped((inner | {"x.npz": b""}).items()),
        "has a member 'x.bin'": zipped((inner | {"x.bin": large.getvalue()}).items()),
        "magic string is not correct": zipped((inner | {array: pickle.dumps(print)}).items()),
    }
    for reason, content in harms.items():
        assert reason in refusal(forge(model, members={"base.skops": content}))


def test_trusted_has_to_be_names_or_types(tmp_path):
    for trusted in (True, [3]):
        with pytest.raises(TypeError):
            load(tmp_path / "model.residua", trusted=trusted)


# Files of earlier versions


def test_a_file_written_before_the_fitted_value_says_the_same():
    """``before.residua`` is of ``residua fit``, and ``before.csv`` of ``residua predict``, of November 2026."""
    from residua.io.tables.predictions import prediction_table

    folder = Path(__file__).parent / "data"
    model, expected = residua.load(folder / "before.residua"), pd.read_csv(folder / "before.csv")
    found = prediction_table(model)[list(expected)]
    assert list(found["id"]) == list(expected["id"])
    np.testing.assert_allclose(found.drop(columns="id"), expected.drop(columns="id"), rtol=1e-8, atol=1e-10)
    assert model.recipe_.target == "price"
    low, high = model.correlation_.interval()["edge"]
    assert (round(low, 4), round(high, 4)) == (0.9309, 0.9999)
