"""A progress bar for work that takes longer than a second, where a person watches: standard error is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE = 1.0  # seconds before a bar appears

Advance = Callable[[float, str], None]  # share done, a few words
Report = Callable[[int, int, float], None]  # step, steps, error


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """Yield a function of the share done, 0 to 1, and a few words; it draws nothing in pipes, logs and tests."""
    if not sys.stderr.isatty():
        yield lambda share, words: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(title), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[words]}")
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=1.0, words="")
    begin = time.monotonic()

    def advance(share: float, words: str) -> None:
        if time.monotonic() - begin > PATIENCE:
            bar.start()  # does nothing once it runs
            bar.update(task, completed=share, words=words)

    try:
        yield advance
    finally:
        with suppress(Exception):  # a terminal that went away does not cost the result
            bar.stop()


def count_on(advance: Advance, name: Callable[[Any], str] = str) -> Callable[[int, int, Any], None]:
    """Return a report on how many pieces of work of how many are done, and on the last one, None before the first."""

    def count(done: int, of: int, last: Any) -> None:
        words = "" if last is None else f": {name(last)}"
        advance(done / max(of, 1), f"{done} of {of}{words}")

    return count


def report_on(advance: Advance, first: int, count: int, of: int) -> Report:
    """Return a report on ``count`` networks from the ``first`` on, which are a part ``of`` the whole."""
    return lambda step, steps, error: advance((first + count * (step + 1) / steps) / of, f"error {error:.3g}")
