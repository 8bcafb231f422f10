"""``python -m tests.mutations [--quick]``: break the code in one place at a time; a test has to fail each time.

Works on a copy of the sources and of the tests, with a cache of compiled functions of its own. First the tests have to
pass as things are: only then does a failure mean that a change was noticed. Prints a table, and ends with 1 where a
change went unnoticed. ``--quick`` tries a dozen places, which ones follows from the commit, so that they take turns.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.mutations.mutation import Mutation
from tests.mutations.places import PLACES

ROOT = Path(__file__).parents[2]
DOZEN = 12
PATIENCE = 300.0  # seconds; a change that makes a test hang is noticed


def copy_tree(folder: Path) -> None:
    """All that pytest needs, without caches."""
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    shutil.copy(ROOT / "pyproject.toml", folder)


@contextmanager
def mutated(folder: Path, mutation: Mutation) -> Iterator[None]:
    """The copy with one change, undone at the end."""
    path = folder / "src" / "residua" / mutation.file
    before, times = path.read_text(), path.stat()
    if before.count(mutation.right) != 1:
        raise SystemExit(
            f"{mutation.name}: {mutation.file} has {before.count(mutation.right)} times {mutation.right!r}"
        )
    path.write_text(before.replace(mutation.right, mutation.wrong))
    try:
        yield
    finally:
        path.write_text(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # what was compiled from it stays good


def run_tests(folder: Path, tests: Sequence[str], cache: Path, patience: float) -> tuple[bool, str]:
    """Whether tests of the copy pass, and what pytest says last."""
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
        "RESIDUA_DATA": os.environ.get("RESIDUA_DATA", str(ROOT.parent / "shared" / "data")),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not network", *tests]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        try:
            passed = process.wait(patience) == 0
        except subprocess.TimeoutExpired:
            passed = False
        finally:
            with suppress(ProcessLookupError):  # workers that a test began and did not end
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return passed, said.read()[-3000:]


def check_baseline(folder: Path, chosen: Sequence[Mutation]) -> None:
    """Stop where a test fails, or cannot be found, before anything was changed."""
    tests = list(dict.fromkeys(test for mutation in chosen for test in mutation.tests))
    start = time.perf_counter()
    passed, said = run_tests(folder, tests, folder / "numba", 10 * PATIENCE)
    if not passed:
        raise SystemExit(f"{said}\nThe tests do not pass as things are, so nothing can be said of a change.")
    print(f"all green before any change {time.perf_counter() - start:39.0f} s", flush=True)


def noticed_by(folder: Path, mutation: Mutation) -> str | None:
    """The test that fails; None where all that should pass."""
    # A compiled function that was inlined elsewhere would still be found in a cache as it was.
    fresh = "@compiled" in (folder / "src" / "residua" / mutation.file).read_text()
    with tempfile.TemporaryDirectory() as empty:
        passed, said = run_tests(folder, mutation.tests, Path(empty) if fresh else folder / "numba", PATIENCE)
    failed = re.search(r"^(?:FAILED|ERROR) \S*?(\w+)(?:\[.*)?(?: - .*)?$", said, re.M)
    return None if passed else failed[1] if failed else "none came to its end"


def run(chosen: Sequence[Mutation]) -> dict[str, int]:
    """Try some places; how many changes were noticed, and not."""
    counts = {"killed": 0, "survived": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder)
        check_baseline(folder, chosen)
        for mutation in chosen:
            start = time.perf_counter()
            with mutated(folder, mutation):
                by = noticed_by(folder, mutation)
            outcome = "killed" if by else "survived"
            counts[outcome] += 1
            took = f"{time.perf_counter() - start:4.0f} s"
            print(f"{outcome:9} {mutation.file:32} {mutation.name:44} {took}  {by or ''}".rstrip(), flush=True)
    print(f"{counts['killed']} of {sum(counts.values())} noticed")
    return counts


def turn_of_today() -> str:
    """The commit, or the date where there is none: what decides whose turn it is."""
    found = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or datetime.date.today().isoformat()


def dozen(turn: str) -> list[Mutation]:
    """Twelve places, each of another file, that follow from ``turn``."""
    shuffled = random.Random(turn).sample(PLACES, len(PLACES))
    of_files = {mutation.file: mutation for mutation in shuffled}
    return list(of_files.values())[:DOZEN]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a dozen, which take turns")
    parser.add_argument("--turn", help="whose turn it is; by default the commit's hash")
    parser.add_argument("names", nargs="*", help="names of places, or beginnings of the files that they are in")
    given = parser.parse_args()
    wanted = tuple(given.names)
    chosen = [place for place in PLACES if not wanted or place.name in wanted or place.file.startswith(wanted)]
    if given.quick or given.turn:
        turn = given.turn or turn_of_today()
        print(f"the dozen of --turn {turn}", flush=True)
        chosen = dozen(turn)
    sys.exit(bool(run(chosen)["survived"]))
