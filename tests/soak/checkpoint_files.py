"""Damaged checkpoints: none is gone on from, whatever byte was changed."""

import tempfile
from pathlib import Path

import numpy as np

from residua.bases.networks.checkpoint import Checkpoint, _read
from soak.mutations import damaged
from soak.verdicts import Budget, Judge, PromiseBroken, nothing_runs, until

MARK = "of this fit"


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Read damaged checkpoints; what is accepted is what was written."""
    judge = Judge()
    state = {"run": np.arange(3.0), "net.weight": np.ones((4, 3), np.float32), "adam.0.step": np.array(7.0)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ckpt"
        Checkpoint(path, MARK).section("0").keep(state)
        good = path.read_bytes()
        for k in until(budget):
            data = damaged(good, np.random.default_rng([random_state, k]))
            path.write_bytes(data)
            judge.judge(data, lambda: _use(path, state), str(path))
    return dict(judge.counts)


def _use(path: Path, state: dict[str, np.ndarray]) -> None:
    with nothing_runs():
        found = _read(path, MARK)
    whole = {f"0.{name}": array for name, array in state.items()}
    if found.keys() != whole.keys() or any(not np.array_equal(found[name], whole[name]) for name in whole):
        raise PromiseBroken("a damaged checkpoint was read as good")
