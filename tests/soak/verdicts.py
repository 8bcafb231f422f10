"""What may come of a hostile input: it is accepted, or refused in one line of a known kind. All else is a fault."""

import contextlib
import hashlib
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from residua import ModelFileError
from residua.reproduction.datasets.files import DataFileError

KINDS = (ValueError, FileNotFoundError, ModelFileError, DataFileError)  # just these, and not what is derived from them
SLOW = 30.0  # seconds for one input: a file that keeps residua busy for longer is an attack that worked
RUNNING_CODE = (
    "pickle.find_class",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "socket.__new__",
    "socket.connect",
    "shutil.rmtree",
    "ctypes.dlopen",
    "webbrowser.open",
)


class PromiseBroken(AssertionError):
    """An input did what no input may do."""


class Judge:
    """Tries inputs one by one and counts what came of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(inputs=0, accepted=0, refused=0)

    def judge(self, data: bytes, call: Callable[[], object], named: str = "") -> bool:
        """Whether ``call``, which reads ``data``, accepts it; a refusal has to contain the text ``named``."""
        self.counts["inputs"] += 1
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        except PromiseBroken:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            complaint = _complaint(error, named)
            if complaint:
                raise PromiseBroken(f"{complaint}; the input is {_kept(data)}") from error
            accepted = False
        else:
            accepted = True
        seconds = time.perf_counter() - begin
        if seconds > SLOW:
            raise PromiseBroken(f"one input took {seconds:.0f} s; it is {_kept(data)}")
        self.counts["accepted" if accepted else "refused"] += 1
        return accepted


def _complaint(error: BaseException, named: str) -> str | None:
    """What is wrong with an error, if anything."""
    text = str(error)
    if type(error) not in KINDS:
        return f"{type(error).__name__} came out: {text[:300]!r}"
    if not text.strip() or len(text.splitlines()) != 1 or not text.isprintable():
        return f"the message is not one line: {text[:300]!r}"
    if named not in text:
        return f"the message does not name {named}: {text[:300]!r}"
    return None


def _kept(data: bytes) -> Path:
    """The input in a file, to try it again."""
    path = Path(tempfile.gettempdir()) / f"residua-hostile-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


@dataclass(frozen=True)
class Rounds:
    """A budget that is counted and not timed: the same work on every machine, however busy."""

    count: int


Budget = float | Rounds  # seconds, or rounds


def until(budget: Budget) -> Iterator[int]:
    """Count rounds until there were enough or the time is over; there is one at least."""
    if isinstance(budget, Rounds):
        yield from range(budget.count)
        return
    end, k = time.monotonic() + budget, 0
    while k == 0 or time.monotonic() < end:
        yield k
        k += 1


class _Watch:
    """Tells what a process does behind one's back; Python's audit hooks cannot be taken out, so there is one."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple) -> None:
        if self.seen is None:
            return
        if event in RUNNING_CODE or (event == "open" and _writes(arguments)):
            self.seen.append(f"{event}{arguments!r:.200}")


def _writes(arguments: tuple) -> bool:
    mode = arguments[1]
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


_watch: _Watch | None = None


@contextlib.contextmanager
def nothing_runs() -> Iterator[None]:
    """Whoever starts a process, opens a socket, unpickles or writes a file in here breaks the promise."""
    global _watch
    _watch = _watch or _Watch()
    _watch.seen = seen = []
    try:
        yield
    finally:
        _watch.seen = None
        if seen:
            raise PromiseBroken(f"reading a file did this: {seen[0]}")
