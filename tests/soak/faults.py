"""Faults from outside: processes killed or interrupted at random moments, and several in one folder."""

import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from residua import load
from residua.reproduction.runs import read
from soak.processes import (
    Setting,
    Stop,
    begin,
    command,
    finished,
    interrupted,
    killed,
    others,
    said,
    wait_for_changes,
)
from soak.verdicts import Budget, until
from soak.victims import SERVED, Fetch, Fit, Reproduce, Save, Victim, fit_with_checkpoint, save_in_turn, slow_server
from tables import town, write

LONG = 10**7  # epochs: nobody waits for that many
INTERRUPTED = 130


@contextmanager
def victims(kinds: tuple[type[Victim], ...] = (Fit, Save, Reproduce, Fetch)) -> Iterator[list[Victim]]:
    """One of each kind, in folders that vanish."""
    with tempfile.TemporaryDirectory() as folder, slow_server() as url:
        yield [
            kind(Path(folder) / kind.__name__, *([url] if kind is Fetch else []))  # type: ignore[arg-type]
            for kind in kinds
        ]


def kills(budget: Budget, random_state: int, kinds: tuple[type[Victim], ...] | None = None) -> dict[str, float]:
    """Kill -9 at random moments, once to three times in a row, then let the work come to its end."""
    counts: Counter[str] = Counter()
    with victims(*([kinds] if kinds else [])) as found:
        for k in until(budget):
            rng = np.random.default_rng([random_state, k])
            victim = found[k % len(found)]
            victim.clean()
            counts.update(kill_and_finish(victim, rng))
    return {"kills survived": sum(counts.values())} | {f"kills of {name}": n for name, n in sorted(counts.items())}


def at_any_moment(victim: Victim, process: Any, rng: np.random.Generator) -> None:
    """Wait for a part of the time that the work takes."""
    process.join(rng.uniform(0, victim.seconds))


def after_some_changes(victim: Victim, process: Any, rng: np.random.Generator) -> None:
    """Wait until the work has changed some files, however long that takes on a busy machine."""
    wait_for_changes(process, victim.folder, int(rng.integers(1, 6)))


def kill_and_finish(
    victim: Victim,
    rng: np.random.Generator,
    wait: Callable[[Victim, Any, np.random.Generator], None] = at_any_moment,
) -> Counter[str]:
    """Kill the work some times, look at what is left, and let it come to its end; how many kills there were."""
    counts: Counter[str] = Counter()
    for _ in range(rng.integers(1, 4)):
        process = victim.begin(victim.folder)
        wait(victim, process, rng)
        counts[type(victim).__name__.lower()] += killed(process)
        victim.inspect()
    code = finished(victim.begin(victim.folder))
    assert code == 0, f"after a kill: {said(victim.folder)}"
    victim.judge()
    return counts


def interrupts(budget: Budget, random_state: int) -> dict[str, float]:
    """Ctrl-C at random moments of a long training and of a long experiment."""
    stops: list[Stop] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, *town())
        for k in until(budget):
            rng = np.random.default_rng([random_state, k])
            if k % 3 == 2:
                stops.append(interrupt_table(folder, int(rng.integers(3))))
            else:
                stops.append(interrupt_training(folder, int(rng.integers(1, 500))))
            assert stops[-1].computing < 1.0, stops[-1]
    return {
        "interrupts survived": len(stops),
        "median seconds to stop": round(statistics.median(stop.seconds for stop in stops), 3),
        "longest": round(max(stop.seconds for stop in stops), 3),
        "longest, of computing": round(max(stop.computing for stop in stops), 3),
    }


def interrupt_training(folder: Path, steps: int) -> Stop:
    """Ctrl-C when a checkpoint has so many steps of a training: the best network is in the model, or there."""
    for name in ("m.residua", "run.ckpt"):
        (folder / name).unlink(missing_ok=True)
    process = begin(fit_with_checkpoint, LONG, setting=Setting(folder))
    wait_for(lambda: kept_steps(folder / "run.ckpt") >= steps, process, folder)
    stop = interrupted(process, folder)
    text = said(folder)
    assert process.exitcode == INTERRUPTED, text
    assert text[-1] == "residua: interrupted", text
    if (folder / "m.residua").exists():
        assert any("so far" in line and "kept" in line for line in text), text
        assert np.isfinite(load(folder / "m.residua").predict()).all()
    else:  # between two members
        assert kept_steps(folder / "run.ckpt") > 0
    return stop


def kept_steps(path: Path) -> float:
    """Steps of the first member that a checkpoint holds."""
    return float(load_file(path).get("0.run", [0.0])[0]) if path.exists() else 0.0


def interrupt_table(folder: Path, records: int) -> Stop:
    """Ctrl-C in an experiment after so many records: a word at the end, and what was stopped is no result."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    words = ("reproduce", "table1", "--datasets", "ising+", "--methods", "MLP", "--jobs", "1", "--seeds", "1000")
    process = begin(command, *words, "--output", "out", setting=Setting(folder))
    done = folder / "out" / "table1.jsonl"
    wait_for(lambda: (folder / "out").exists() and len(read(done)) >= records, process, folder)
    stop = interrupted(process, folder)
    assert process.exitcode == INTERRUPTED, said(folder)
    assert said(folder)[-1] == "residua: interrupted", said(folder)
    assert all(record.results for record in read(done))
    return stop


def wait_for(happened: Callable[[], bool], process: Any, folder: Path, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert process.exitcode is None, said(folder)
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def shared_folders(budget: Budget, random_state: int) -> dict[str, float]:
    """Processes that download into one cache, and that save one model while it is read."""
    downloads = saves = reads = 0
    with victims((Save,)) as (save,), slow_server(0.0005) as url, tempfile.TemporaryDirectory() as name:
        for k in until(budget):
            cache = Path(name) / str(k)
            cache.mkdir()
            fetch = Fetch.__new__(Fetch)
            fetch.url = url
            processes = [fetch.begin(cache) for _ in range(3)]
            assert [finished(process) for process in processes] == [0, 0, 0], said(cache)
            assert not others(cache, [f"residua/{name}" for name in SERVED])
            assert all((cache / "residua" / name).read_bytes() == content for name, content in SERVED.items())
            downloads += len(processes)
            place = Setting(save.folder)
            processes = [begin(save_in_turn, save.folder.parent, 20, setting=place) for _ in range(2)]
            while any(process.exitcode is None for process in processes):
                save.inspect()
                reads += 1
            assert [process.exitcode for process in processes] == [0, 0]
            save.judge()
            saves += 40
    return {"downloads into one cache": downloads, "saves over one model": saves, "reads meanwhile": reads}
