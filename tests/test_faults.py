"""Faults: a killed, interrupted or starved process leaves nothing broken, and the next one goes on or begins cleanly.

The same functions run for longer in ``make soak``; here each has a few rounds.
"""

import ast
import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from residua import atomic
from residua.atomic import write_atomically
from residua.bases.networks import checkpoint
from residua.reproduction.datasets import files
from residua.reproduction.provenance import provenance
from soak import faults, full_disks
from soak.__main__ import apart
from soak.parts import PARTS
from soak.results import PACKAGES, Outcome, page, totals, write_results
from soak.verdicts import Rounds
from soak.victims import Fetch, Fit, Reproduce, Save
from tables import town, write

pytest.importorskip("torch_geometric.data")
ROOT = Path(__file__).parents[1]


# Kill -9


@pytest.mark.parametrize("kind", [Fit, Save, Reproduce, Fetch], ids=lambda kind: kind.__name__)
def test_a_process_killed_at_any_moment_leaves_nothing_broken_and_the_next_goes_on(kind):
    with faults.victims((kind,)) as (victim,):
        assert faults.kill_and_finish(victim, np.random.default_rng(0), faults.after_some_changes).total() >= 1


def test_what_a_killed_writer_left_is_taken_away_and_what_is_being_written_is_not(tmp_path):
    path = tmp_path / "m.residua"
    left, other = (tmp_path / f"{atomic._prefix(path)}{name}.tmp" for name in ("left", "busy"))
    left.write_bytes(b"half")
    (tmp_path / ".residua-of-another.tmp").write_bytes(b"half")
    with open(other, "xb") as file:
        assert atomic._locked(file)
        write_atomically(path, lambda new: new.write(b"whole"))
        assert other.exists()
    assert path.read_bytes() == b"whole"
    assert not left.exists()
    assert (tmp_path / ".residua-of-another.tmp").exists()


def test_a_writer_whose_file_is_swept_away_takes_another(tmp_path, monkeypatch):
    locked, taken = atomic._locked, []

    def late(file):
        if not taken:
            taken.append(os.unlink(file.name))
        return locked(file)

    monkeypatch.setattr(atomic, "_locked", late)
    write_atomically(tmp_path / "m", lambda file: file.write(b"whole"))
    assert taken
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("m", b"whole")]


def test_files_are_written_whole_where_there_are_no_unix_locks(tmp_path, monkeypatch):
    """As on Windows: without fcntl, folders that cannot be opened, and open files that cannot be moved."""
    replace = os.replace

    def move(source, target):
        assert not any(os.path.samefile(source, f"/proc/self/fd/{fd}") for fd in open_files())
        replace(source, target)

    def open_files():
        return [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]

    def no_folders(path, *flags):
        raise PermissionError(errno.EACCES, "a folder", str(path))

    monkeypatch.setattr(atomic, "fcntl", None)
    monkeypatch.setattr(atomic.os, "replace", move)
    monkeypatch.setattr(atomic.os, "open", no_folders)
    path = tmp_path / "m"
    left = tmp_path / f"{atomic._prefix(path)}left.tmp"
    left.write_bytes(b"half")
    for text in (b"whole", b"again"):
        write_atomically(path, lambda file, text=text: file.write(text))
        assert path.read_bytes() == text
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_half_a_download_of_yesterday_is_taken_away(tmp_path):
    old, new, known = (tmp_path / name for name in ("tmpold", "tmpnew", "income.csv"))
    for path in (old, new, known):
        path.write_bytes(b"half")
    for path in (old, known):
        os.utime(path, (0, 0))
    files._sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["income.csv", "tmpnew"]


def test_a_checkpoint_with_one_bit_changed_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    checkpoint.Checkpoint(path, "mark").section("0").keep({"net": np.ones(50)})
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"run.ckpt' is damaged \(its checksum is wrong\); remove it"):
        checkpoint.Checkpoint(path, "mark")


# Ctrl-C


def test_ctrl_c_ends_a_training_at_once_and_keeps_the_best(tmp_path):
    write(tmp_path, *town())
    stop = faults.interrupt_training(tmp_path, steps=20)
    assert stop.computing < 1.0
    assert stop.seconds < 20  # a busy machine may take its time; `make soak` prints what it took


def test_ctrl_c_ends_an_experiment_at_once(tmp_path):
    assert faults.interrupt_table(tmp_path, records=1).computing < 1.0


# No room, no rights


def test_a_full_disk_gives_one_line_and_loses_nothing():
    assert full_disks.run(Rounds(24), 0) == {"writes refused": 24, "trainings that went on": 1}


def test_commands_without_room_say_so_in_one_line():
    told = full_disks.commands_without_room()
    assert len(told) == 7
    assert all("File too large" in line for line in told)


def test_commands_without_rights_say_so_in_one_line():
    told = full_disks.commands_without_rights()
    assert len(told) == 7
    assert [line for line in told if "ermission" not in line] == []


# Several at a time


def test_processes_that_share_a_folder_do_not_disturb_one_another():
    counts = faults.shared_folders(Rounds(1), 0)
    assert counts["downloads into one cache"] == 3
    assert counts["saves over one model"] == 40
    assert counts["reads meanwhile"] > 0


# No network, and the same answer twice

OFFLINE = """
import sys
def refuse(event, arguments):
    if event == "socket.getaddrinfo" or event == "socket.connect" or (
        event == "socket.__new__" and arguments[1] in (2, 10)
    ):
        raise RuntimeError(f"the network was asked for: {event}")
sys.addaudithook(refuse)
from residua.cli.app import main
for words in WORDS:
    sys.argv = ["residua", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""
COMMANDS = [
    ["fit", "nodes.csv", "edges.csv", "--target", "price", "-o", "m.residua"],
    ["fit", "nodes.csv", "edges.csv", "--target", "price", "--base", "mlp", "-o", "net.residua"],
    ["predict", "net.residua", "-o", "p.csv"],
    ["report", "m.residua", "-o", "r.html"],
    ["demo", "-o", "demo.png"],
]


def offline(folder, commands, **variables):
    """Run commands in a process that has no network."""
    program = OFFLINE.replace("WORDS", repr(commands))
    variables = {"XDG_CACHE_HOME": str(folder / "cache"), "RESIDUA_DATA": ""} | variables
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=os.environ | variables, capture_output=True, text=True
    )


def answers(folder, commands, seed):
    """The files that commands write without a network, under a seed of Python's hashing."""
    write(folder, *town())
    done = offline(folder, commands, PYTHONHASHSEED=seed)
    assert done.returncode == 0, done.stderr
    return {name: (folder / name).read_bytes() for name in ("m.residua", "net.residua", "p.csv")}


@pytest.fixture(scope="module")
def first_answers(tmp_path_factory):
    return answers(tmp_path_factory.mktemp("first"), COMMANDS[:3], "1")


def test_no_network_unless_asked(first_answers, tmp_path):
    for name, content in first_answers.items():
        (tmp_path / name).write_bytes(content)
    done = offline(tmp_path, COMMANDS[3:])
    assert done.returncode == 0, done.stderr
    assert {"r.html", "demo.png"} <= {path.name for path in tmp_path.iterdir()}


def test_the_same_answer_twice_whatever_the_seed_of_hashing(first_answers, tmp_path):
    assert answers(tmp_path, COMMANDS[:3], "2") == first_answers


def test_a_download_is_what_asks_for_the_network(tmp_path):
    done = offline(tmp_path, [["data", "fetch", "anaheim"]])
    assert "the network was asked for" in done.stderr


# The page of promises, and the soak


def promised_tests():
    """The tests that the page names, as (file, function)."""
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    return re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)


def test_every_test_that_the_page_of_promises_names_exists():
    named = promised_tests()
    assert len(named) > 15
    for file, function in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, (file, function)


def test_every_file_that_the_page_of_promises_names_exists():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert not [file for file in re.findall(r"`((?:tests|src|docs)/[\w/.]+\.\w+)`", text) if not (ROOT / file).exists()]


def test_every_part_of_the_soak_is_there_and_on_the_page():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for name, part in PARTS.items():
        assert callable(part.find())
        assert f"| {name} |" in text


def test_a_broken_promise_is_told_by_the_soak_and_its_page(tmp_path, monkeypatch):
    good = Outcome("maps", {"inputs": 5, "accepted": 1, "refused": 4}, 1.0)
    bad = Outcome("kill -9", {}, 1.0, "exit code 1: PromiseBroken")
    assert totals([good, bad]) == {"inputs tried": 5, "faults survived": 0, "promises broken": 1}
    about = provenance("python -m tests.soak", PACKAGES)
    assert "| kill -9 | exit code 1: PromiseBroken | 1 |" in page([good, bad], about)
    write_results(tmp_path, [good, bad], about)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reliability.json", "reliability.md"]


def test_a_part_that_fails_is_an_outcome_and_no_end():
    outcome = apart("no such part", 1.0, 0)
    assert outcome.broken.startswith("exit code 2")
