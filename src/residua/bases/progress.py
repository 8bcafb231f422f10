"""A progress bar for work that takes longer than a second, where a person watches: standard error is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

PATIENCE = 1.0  # seconds before a bar appears
EVERY = 1.0  # seconds between printed lines

Advance = Callable[[float, str], None]  # share done, a few words
Report = Callable[[int, int, float], None]  # step, steps, error


@contextmanager
def progress(title: str, verbose: bool = False) -> Iterator[Advance]:
    """Yield a function of the share done, 0 to 1, and a few words; it draws nothing in pipes, logs and tests.

    ``verbose`` prints a line now and then instead, wherever standard output goes.
    """
    if verbose:
        yield _printed(title)
        return
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


def _printed(title: str) -> Advance:
    """Return a function that prints a line at most every ``EVERY`` seconds, the first time at once."""
    last = -np.inf

    def advance(share: float, words: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            print(f"{title}: {share:.0%} of the most there can be, {words}", flush=True)

    return advance


def count_on(advance: Advance, name: Callable[[Any], str] = str) -> Callable[[int, int, Any], None]:
    """Return a report on how many pieces of work of how many are done, and on the last one, None before the first."""

    def count(done: int, of: int, last: Any) -> None:
        words = "" if last is None else f": {name(last)}"
        advance(done / max(of, 1), f"{done} of {of}{words}")

    return count


def report_on(advance: Advance, first: int, count: int, of: int) -> Report:
    """Return a report on ``count`` networks from the ``first`` on, which are a part ``of`` the whole."""
    return lambda step, steps, error: advance((first + count * (step + 1) / steps) / of, f"error {error:.3g}")


def noted(report: Report, network: int, history: list[dict[str, Any]]) -> Report:
    """Return the same report, which also keeps every step in ``history``: of several networks at once, by the first."""

    def report_and_keep(step: int, steps: int, error: float) -> None:
        history.append({"network": network, "step": step, "error": error})
        report(step, steps, error)

    return report_and_keep
