"""Many small runs, in parallel processes, each a line of JSON in a file: an interrupted experiment goes on from there.

A task is one training; it may answer for several methods that share it. Its line is written in one piece when it is
done, and a line torn by a power cut is not read. What another version of residua wrote is not read either: it may have
done something else. A line without a task says with which command and versions the lines below it were made.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from residua import __version__
from residua.reproduction.provenance import provenance

Values = dict[str, Any]  # what one method has reached: "score", "alpha", ...
QUICK = "quick"  # as Task.setting: a smoke test
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Task:
    """One run. ``setting`` has what the other fields do not say."""

    experiment: str
    dataset: str
    method: str
    seed: int
    setting: str = ""


@dataclass(frozen=True)
class Record:
    """What came of a task, by method."""

    task: Task
    results: dict[str, Values]
    seconds: float

    def line(self) -> str:
        return json.dumps(
            {"task": asdict(self.task), "results": self.results, "seconds": self.seconds, **_written_by()}
        )


def _written_by() -> dict[str, str]:
    return {"residua": __version__, "date": time.strftime("%Y-%m-%d")}


Work = Callable[[Task], dict[str, Values]]
Advance = Callable[[int, int, Record | None], None]  # done, of, the last one


def run(
    tasks: Sequence[Task],
    work: Work,
    path: Path,
    *,
    jobs: int = 1,
    advance: Advance = lambda *_: None,
    answers: Callable[[Task], Collection[str]] = lambda _: (),
) -> list[Record]:
    """Do the tasks that ``path`` has no line of, and return the records of all, in the order of ``tasks``.

    Parameters
    ----------
    tasks : sequence of Task
        What to do.
    work : callable
        A function of a task, importable by name since it runs in other processes.
    path : Path
        The file of JSON lines, appended to; made if there is none.
    jobs : int
        Processes, each of one thread.
    advance : callable
        Called with how many are done, of how many, and the last record.
    answers : callable
        Returns the methods that a task has to answer for; a line that lacks one is not taken for done.
    """
    done = {record.task: record for record in read(path) if record.results.keys() >= set(answers(record.task))}
    left = [task for task in tasks if task not in done]
    advance(len(tasks) - len(left), len(tasks), None)
    _make(path.parent)
    for k, record in enumerate(_each(left, work, jobs)):
        _append(path, [record.line()] if k else [json.dumps(provenance()), record.line()])
        done[record.task] = record
        advance(sum(task in done for task in tasks), len(tasks), record)
    return [done[task] for task in tasks]


def _each(tasks: Sequence[Task], work: Work, jobs: int) -> Iterable[Record]:
    if jobs <= 1 or len(tasks) <= 1:
        yield from (_timed(work, task) for task in tasks)
        return
    before = {name: os.environ.get(name) for name in THREADS}
    # Inherited by the processes: more threads than cores only wait for one another.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _serve)
    try:
        for future in as_completed([pool.submit(_timed, work, task) for task in tasks]):
            yield future.result()
    except BaseException:  # Ctrl-C, or a task that failed: what is still under way will not be kept
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _serve() -> None:
    """Begin a process: Ctrl-C is answered by the first one for all, and none outlives it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def _timed(work: Work, task: Task) -> Record:
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*training was interrupted")
        try:
            results = work(task)
        except UserWarning as warning:
            if "training was interrupted" not in str(warning):
                raise
            raise KeyboardInterrupt(str(warning)) from None  # a network trained half is no result
    return Record(task, results, time.perf_counter() - begin)


def read(path: Path) -> list[Record]:
    """The records of a file, none if there is no file."""
    if not path.exists():
        return []
    return [record for line in path.read_text(encoding="utf-8").splitlines() if (record := _parsed(line))]


def _parsed(line: str) -> Record | None:
    try:
        found = json.loads(line)
        if found["residua"] != __version__:
            return None
        return Record(Task(**found["task"]), found["results"], float(found["seconds"]))
    except (ValueError, KeyError, TypeError):
        return None  # torn by a crash, its task is done again; or no task


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"folder {folder} cannot be made ({reason}); name one that can be written to.") from None


def _append(path: Path, lines: Sequence[str]) -> None:
    try:
        with open(path, "a+b") as file:
            torn = file.tell() > 0 and not _ends_in_newline(file)
            file.write(b"\n" * torn + "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise OSError(error.errno, f"writing the records failed: {error.strerror or error}", str(path)) from error


def _ends_in_newline(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
