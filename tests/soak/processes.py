"""Processes to do harm to, forked from one that has everything imported, so that each is at work at once."""

import ctypes
import inspect
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

CONTEXT = multiprocessing.get_context("forkserver")
# All that the commands import, if only when they need it. One server forks for all, so who adds to it keeps this.
PRELOAD = [
    "encodings.idna",
    "pooch",
    "requests",
    "residua.cli",
    "residua.cli.fit",
    "residua.cli.predict",
    "residua.cli.reproduce",
    "residua.comparison",
    "residua.datasets",
    "residua.reproduction.datasets.files",
    "residua.reproduction.tables",
    "residua.io.model_file.networks",
    "residua.bases.networks.base",
    "residua.views.page.html",
    "residua.io.tables.predictions",
    "rich.progress",
]
CONTEXT.set_forkserver_preload(PRELOAD)
CAPABILITIES = 0x20080522  # the version of Linux's header for capset
LOG, CLOCK = "log.txt", "clock.txt"  # what a process printed, and how long it computed


@dataclass(frozen=True)
class Setting:
    """What is done in a process before its work: where it is, and what it may do."""

    folder: Path
    variables: dict[str, str] | None = None
    file_size: int | None = None  # no file may grow beyond
    plain: bool = False  # has the rights of any user, even where it belongs to root


def begin(work: Callable[..., Any], *arguments: Any, setting: Setting) -> Any:
    """Start a process that does ``work``; what it prints goes to a file of its folder."""
    process = CONTEXT.Process(target=_do, args=(setting, work, arguments))
    process.start()
    return process


def _do(setting: Setting, work: Callable[..., Any], arguments: tuple) -> None:
    os.environ.update(setting.variables or {})
    os.chdir(setting.folder)
    log = os.open(setting.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream in (1, 2):
        os.dup2(log, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if setting.file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (setting.file_size, resource.RLIM_INFINITY))
    if setting.plain:
        _drop_capabilities()
    try:
        work(*arguments)
    finally:
        (setting.folder / CLOCK).write_text(str(time.process_time()))


def _drop_capabilities() -> None:
    """Give up what root may do beyond its own files' rights; Python's own files stay within reach, whoever has them."""
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none):
        raise OSError(ctypes.get_errno(), "capset")


def command(*words: str) -> None:
    """A command of residua, in this process."""
    from residua.cli.app import main

    sys.argv = ["residua", *words]
    main()


def command_for(epochs: int, *words: str) -> None:
    """The same, with networks that are trained for so many epochs."""
    from residua import Network

    names = inspect.signature(Network).parameters
    defaults = dict(zip(names, Network.__init__.__defaults__, strict=True)) | {"epochs": epochs, "patience": epochs}
    Network.__init__.__defaults__ = tuple(defaults.values())
    command(*words)


def finished(process: Any, seconds: float = 120.0) -> int:
    """The exit code of a process that comes to its end."""
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"a process was still at work after {seconds:.0f} s")
    return process.exitcode


def said(folder: Path) -> list[str]:
    """The lines that the last process in a folder printed."""
    return (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()


def wait_for_changes(process: Any, folder: Path, count: int, seconds: float = 120.0) -> None:
    """Wait until files of a folder were seen to change so often, or the process has come to its end."""
    before, end = _looks(folder), time.monotonic() + seconds
    while count and process.exitcode is None:
        assert time.monotonic() < end, said(folder)
        process.join(0.002)
        now = _looks(folder)
        count, before = count - (now != before), now


def _looks(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file below a folder."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(OSError):  # it was moved meanwhile
            found[str(path)] = (path.stat().st_size, path.stat().st_mtime_ns)
    return found


def killed(process: Any) -> bool:
    """Kill a process; False where it had come to its end."""
    if process.exitcode is None:
        os.kill(process.pid, signal.SIGKILL)
    return finished(process) == -signal.SIGKILL


class Stop(NamedTuple):
    """How long a process took to end: by the clock, and of computing, on which other programs have no say."""

    seconds: float
    computing: float


def interrupted(process: Any, folder: Path) -> Stop:
    """Send Ctrl-C, and wait for the end."""
    used, start = _computed(process.pid), time.perf_counter()
    os.kill(process.pid, signal.SIGINT)
    finished(process)
    return Stop(time.perf_counter() - start, float((folder / CLOCK).read_text()) - used)


def _computed(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def others(folder: Path, known: Sequence[str]) -> list[str]:
    """Files below a folder beside those that should be there."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return [name for name in found if name not in (*known, LOG, CLOCK)]
