"""The run machinery: an interrupted experiment goes on, a torn line is done again."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import residua
from residua.reproduction import runs
from residua.reproduction.runs import Record, Task, read, run

TASKS = [Task("t", name, "m", seed) for seed in range(2) for name in ("a", "b")]


def double(task):
    return {"m": {"score": 2.0 * task.seed}}


def count_calls(calls):
    def work(task):
        calls.append(task)
        return double(task)

    return work


def test_a_finished_file_is_read_and_nothing_is_done_again(tmp_path):
    calls: list[Task] = []
    first = run(TASKS, count_calls(calls), tmp_path / "r.jsonl")
    again = run(TASKS, count_calls(calls), tmp_path / "r.jsonl")
    assert calls == TASKS
    assert again == first
    assert [record.task for record in again] == TASKS


def test_an_interrupted_run_goes_on(tmp_path):
    path = tmp_path / "r.jsonl"

    def stop_at_third(task):
        if task == TASKS[2]:
            raise KeyboardInterrupt
        return double(task)

    with pytest.raises(KeyboardInterrupt):
        run(TASKS, stop_at_third, path)
    assert [record.task for record in read(path)] == TASKS[:2]
    calls: list[Task] = []
    assert [record.task for record in run(TASKS, count_calls(calls), path)] == TASKS
    assert calls == TASKS[2:]


def test_a_line_after_a_torn_one_is_a_line_of_its_own(tmp_path):
    path, record = tmp_path / "r.jsonl", Record(Task("e", "d", "m", 3), {"m": {"score": 0.5}}, 1.0)
    path.write_text(record.line()[:-20])
    runs._append(path, [record.line()])
    assert read(path) == [record]
    runs._append(path, [record.line()])
    assert len(path.read_text().splitlines()) == 3


def test_a_torn_line_is_done_again(tmp_path):
    path = tmp_path / "r.jsonl"
    run(TASKS, double, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-25])
    calls: list[Task] = []
    run(TASKS, count_calls(calls), path)
    assert calls == TASKS[-1:]
    lines = path.read_text().splitlines()
    assert json.loads(lines[-1])["task"]["seed"] == 1
    assert len(read(path)) == len(TASKS)


def test_what_another_version_wrote_is_done_again(tmp_path):
    path = tmp_path / "r.jsonl"
    run(TASKS, double, path)
    path.write_text(
        path.read_text().replace(f'"residua": "{residua.__version__}", "date"', '"residua": "0.0.1", "date"')
    )
    calls: list[Task] = []
    run(TASKS, count_calls(calls), path)
    assert calls == TASKS


def test_lines_without_an_answer_for_every_method_are_done_again(tmp_path):
    path = tmp_path / "r.jsonl"
    run(TASKS, double, path)
    calls: list[Task] = []
    run(TASKS, count_calls(calls), path, answers=lambda task: ("m",))
    assert calls == []
    run(TASKS, count_calls(calls), path, answers=lambda task: ("m", "new") if task.dataset == "a" else ("m",))
    assert [task.dataset for task in calls] == ["a", "a"]


def test_a_file_says_how_its_lines_were_made(tmp_path):
    path = tmp_path / "r.jsonl"
    run(TASKS[:2], double, path)
    run(TASKS, double, path)
    run(TASKS, double, path)  # nothing to do, nothing to say
    heads = [json.loads(line) for line in path.read_text().splitlines() if "task" not in json.loads(line)]
    assert len(heads) == 2
    for about in heads:
        assert about.keys() == {"command", "date", "versions"}
        assert about["versions"]["numpy"] == np.__version__


def test_more_seeds_keep_the_old_ones(tmp_path):
    path = tmp_path / "r.jsonl"
    run(TASKS[:2], double, path)
    seen: list[tuple[int, int, Record | None]] = []
    run(TASKS, double, path, advance=lambda *step: seen.append(step))
    assert [(done, of) for done, of, _ in seen] == [(2, 4), (3, 4), (4, 4)]


def test_a_training_that_was_interrupted_is_no_result(tmp_path):
    def half(task):
        warnings.warn("training was interrupted; the best network so far is kept.", UserWarning, stacklevel=1)
        return double(task)

    with pytest.raises(KeyboardInterrupt):
        run(TASKS, half, tmp_path / "r.jsonl")
    assert read(tmp_path / "r.jsonl") == []


def test_processes_give_the_same_records_in_the_order_of_the_tasks(tmp_path):
    records = run(TASKS, double, tmp_path / "r.jsonl", jobs=2)
    assert [(record.task, record.results) for record in records] == [(task, double(task)) for task in TASKS]
    assert not multiprocessing.active_children()


def fail_on_b(task):
    if task.dataset == "b":
        raise ValueError("b cannot be had")
    return double(task)


def test_a_failing_task_stops_the_run_and_leaves_no_process(tmp_path):
    with pytest.raises(ValueError, match="b cannot be had"):
        run(TASKS, fail_on_b, tmp_path / "r.jsonl", jobs=2)
    assert not multiprocessing.active_children()


def sleeper(task):
    Path(task.setting, f"{task.dataset}{task.seed}.pid").write_text(str(os.getpid()))
    time.sleep(60)
    return {}


def test_no_process_outlives_a_killed_run(tmp_path):
    program = (
        f"import sys; sys.path[:0] = {[str(p) for p in (Path(__file__).parent, Path(__file__).parents[1])]!r}\n"
        "from test_runs import *\n"
        "if __name__ == '__main__':\n"
        f"    tasks = [Task('t', 'a', 'm', seed, {str(tmp_path)!r}) for seed in range(2)]\n"
        f"    run(tasks, sleeper, Path({str(tmp_path)!r}) / 'r.jsonl', jobs=2)\n"
    )
    (tmp_path / "program.py").write_text(program)
    with subprocess.Popen([sys.executable, tmp_path / "program.py"]) as first:
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        first.kill()
    others = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
    wait_until(lambda: not any(Path(f"/proc/{other}").exists() for other in others))


def wait_until(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    record = Record(Task("e", "d", "m", 0), {}, 1.0)
    with pytest.raises(OSError, match="writing the records failed") as caught:
        runs._append(tmp_path, record)  # a folder
    assert caught.value.filename == str(tmp_path)
