"""A training that was killed goes on from its checkpoint and ends at the same numbers."""

import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import residua
from residua import GraphRegressor, Lanczos, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import dropout, problem  # noqa: E402
from residua.bases.base import Task  # noqa: E402
from residua.bases.networks import checkpoint  # noqa: E402
from residua.bases.registry import make_base  # noqa: E402
from residua.field import Correlator  # noqa: E402


def settings(kind, training, lanczos=False):
    network = Network(kind, epochs=30, patience=4, steps=30, batch_size=40 if kind == "hops" else 10**6)
    return {"base": network, "training": training, "ensemble": 2, "logdet": Lanczos() if lanczos else "auto"}


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    ("kind", "training", "lanczos"),
    [("sage", "joint", True), ("hops", "joint", False), (None, "joint", False), ("mlp", "paper", True)],
)
@pytest.mark.parametrize("at", [5, 20])
def test_a_killed_training_goes_on_to_the_same_bits(kind, training, lanczos, at, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    graph, X, y, _ = problem()
    given = settings(kind or dropout(), training, lanczos)
    whole = GraphRegressor(**given).fit(X, y, graph=graph)
    path, writes, write = tmp_path / "half.ckpt", [], checkpoint.Checkpoint._write

    def stop(self):
        write(self)
        writes.append(1)
        if len(writes) == at:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "_write", stop)
        with pytest.raises(Killed):
            GraphRegressor(**given, checkpoint=path).fit(X, y, graph=graph)
    resumed = GraphRegressor(**given, checkpoint=path).fit(X, y, graph=graph)
    np.testing.assert_array_equal(resumed.predict(), whole.predict())
    assert resumed.alpha_ == whole.alpha_
    again = GraphRegressor(**given, checkpoint=str(path)).fit(X, y, graph=graph)
    np.testing.assert_array_equal(again.predict(), whole.predict())


@pytest.mark.parametrize("at", [1, 12, -2, -1])
def test_a_training_killed_after_any_step_ends_in_the_same_file(at, tmp_path, monkeypatch):
    """After the last one too, when all that is left is the correlation: its network is not judged once more."""
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    graph, X, y, _ = problem()
    writes, write = [], checkpoint.Checkpoint._write

    def fit(path, last=None):
        def count(self):
            write(self)
            writes.append(1)
            if len(writes) == last:
                raise Killed

        writes.clear()
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint.Checkpoint, "_write", count)
            return GraphRegressor(Network("mlp", epochs=25), checkpoint=path).fit(X, y, graph=graph)

    fit(tmp_path / "whole.ckpt").save(tmp_path / "whole")
    with pytest.raises(Killed):
        fit(tmp_path / "half.ckpt", last=at % (len(writes) + 1))
    fit(tmp_path / "half.ckpt").save(tmp_path / "half")
    assert (tmp_path / "half").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_process_killed_at_any_time_leaves_a_checkpoint_that_can_be_used(tmp_path):
    path = tmp_path / "run.ckpt"
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from networks import GraphRegressor, Network, problem
        from residua.bases.networks import checkpoint
        checkpoint.SECONDS = 0.0
        graph, X, y, _ = problem()
        print("ready", flush=True)
        GraphRegressor(Network("mlp", epochs=10**6, patience=10**6), checkpoint={str(path)!r}).fit(X, y, graph=graph)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        seen = set()  # checkpoints: each is a new file, moved into place
        while len(seen) < 20:
            assert process.poll() is None
            with suppress(FileNotFoundError):
                seen.add(path.stat().st_mtime_ns)
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    graph, X, y, _ = problem()
    base = Network("mlp", epochs=10**6, patience=10**6)
    kept = (
        checkpoint.Checkpoint(path, checkpoint_mark(GraphRegressor(base, checkpoint=path), graph, X, y))
        .section("0")
        .state()
    )
    assert kept["run"][0] > 10
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".residua-")] == ["run.ckpt"]


def checkpoint_mark(model, graph, X, y):
    """The mark that a fit of this model writes."""
    labelled = ~np.isnan(y)
    correlate = Correlator(graph, labelled, model.logdet, model.random_state)
    return make_base(model.base)._mark(Task(graph, X, y, labelled, model.folds, model.random_state), correlate)


@pytest.mark.parametrize("change", ["y", "X", "random_state", "ensemble", "epochs", "correlation"])
def test_a_checkpoint_of_another_fit_is_refused(change, tmp_path):
    graph, X, y, _ = problem(80)
    path = tmp_path / "a.ckpt"

    def fit(X=X, y=y, epochs=3, **parameters):
        return GraphRegressor(Network("mlp", epochs=epochs), checkpoint=path, **parameters).fit(X, y, graph=graph)

    fit()
    other = {"y": y + 1, "X": X + 1, "random_state": 1, "ensemble": 2, "epochs": 4, "correlation": None}
    with pytest.raises(ValueError, match=r"belongs to another fit .*remove this one"):
        fit(**{change: other[change]})


def test_a_broken_checkpoint_and_a_missing_folder_are_named(tmp_path):
    graph, X, y, _ = problem(80)
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match=r"a.ckpt' cannot be read .* remove it to start anew"):
        GraphRegressor("mlp", checkpoint=path).fit(X, y, graph=graph)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*; create it first"):
        GraphRegressor("mlp", checkpoint=tmp_path / "none" / "a.ckpt").fit(X, y, graph=graph)


def test_a_saved_model_forgets_its_checkpoint(tmp_path):
    graph, X, y, _ = problem(80)
    model = GraphRegressor(Network("mlp", epochs=3), checkpoint=tmp_path / "a.ckpt").fit(X, y, graph=graph)
    model.save(tmp_path / "m.residua")
    assert residua.load(tmp_path / "m.residua").checkpoint is None


@pytest.mark.parametrize("seed", range(3))
def test_a_completed_fit_is_found_again_in_its_checkpoint(seed, tmp_path):
    """After members that ended by patience: the kept state must not change when the network takes its best weights."""
    graph, X, y, _ = problem(150)
    given = {"base": Network("hops", epochs=300, patience=8), "ensemble": 3, "random_state": seed}
    first, second = (
        GraphRegressor(**given, checkpoint=tmp_path / "a.ckpt").fit(X, y, graph=graph).predict() for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_another_module_is_another_fit(tmp_path):
    graph, X, y, _ = problem(80)
    fit = lambda module: GraphRegressor(Network(module, epochs=3), checkpoint=tmp_path / "a").fit(X, y, graph=graph)  # noqa: E731
    fit(dropout())
    other = dropout()
    other.inner[2].p = 0.9
    with pytest.raises(ValueError, match="belongs to another fit"):
        fit(other)


def test_a_damaged_checkpoint_is_told_of_in_one_printable_line(tmp_path):
    """The library that reads it says what it found there, whatever that does to a terminal."""
    header = b'{"x":{"dtype":"\x7f32\\u001b[2J","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "half.ckpt"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ValueError, match="cannot be read") as told:
        checkpoint.Checkpoint(path, "mark")
    assert str(told.value).isprintable()
