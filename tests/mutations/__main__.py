"""``python -m tests.mutations [--quick]``: break the mathematics in one place at a time; a test has to fail each time.

Works on a copy of the sources and of the tests, with a cache of compiled functions of its own. Prints a table, and ends
with 1 where a change went unnoticed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.mutations.places import PLACES, QUICK, Mutation

ROOT = Path(__file__).parents[2]


def copy_tree(folder: Path) -> None:
    """All that pytest needs, without caches."""
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "data", "*.nb?"))
    shutil.copytree(ROOT / "src/residua/datasets/data", folder / "src/residua/datasets/data")
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


def survives(folder: Path, mutation: Mutation) -> bool:
    """Whether the tests that should fail pass."""
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.tests]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{mutation.name}: pytest could not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def run(names: Sequence[str] = (), budget_seconds: float = float("inf")) -> dict[str, int]:
    """Try the named places, or all, while there is time; how many were noticed, and not."""
    begin, counts = time.perf_counter(), {"killed": 0, "survived": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder)
        for mutation in PLACES:
            if (names and mutation.name not in names) or time.perf_counter() - begin > budget_seconds:
                continue
            start = time.perf_counter()
            with mutated(folder, mutation):
                outcome = "survived" if survives(folder, mutation) else "killed"
            counts[outcome] += 1
            print(f"{outcome:9} {mutation.file:24} {mutation.name:32} {time.perf_counter() - start:5.0f} s", flush=True)
    print(f"{counts['killed']} of {sum(counts.values())} noticed")
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--quick", action="store_true", help="three of them")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    sys.exit(bool(run(QUICK if given.quick else given.names)["survived"]))
