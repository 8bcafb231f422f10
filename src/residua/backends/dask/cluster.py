"""A Dask cluster as the model uses it: tasks that live with their block, gangs of them, and waits that end.

Tasks are pure, so what a killed worker held is computed again from what it was made of; a gang that lost a member
starts anew on those that live. What cannot be mended, a lost scheduler or no worker at all, is one clear error.
"""

from __future__ import annotations

import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numba
from distributed import Client, Future, KilledWorker, get_worker, secede, wait
from distributed.comm.core import CommClosedError
from numba.core import config

from residua.backends.dask.exchange import Gang, PeerLost, close_boxes, open_boxes
from residua.caller import warn

POLL = 2.0  # seconds between two looks at the cluster while a result is awaited
PATIENCE = 60.0  # seconds without any worker before a fit gives up
ATTEMPTS = 4  # at a gang whose workers die, as Dask has for a task
OUT_OF_MEMORY = "most likely out of memory; use more or larger workers."


class SchedulerLost(ConnectionError):
    """The connection to the scheduler broke, and with it all that was under way."""


class WorkersLost(RuntimeError):
    """Workers that a fit needs have died, or never came."""


class Cluster:
    """Workers behind a client, and the block that each is home to.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    blocks : int or None
        Row blocks; by default one for each worker.
    """

    def __init__(self, client: Client, blocks: int | None = None):
        self.client = client
        with self.guarded():
            self.homes = sorted(client.nthreads())
        if not self.homes:
            raise WorkersLost(f"the scheduler at {self.address} has no worker; start one: dask worker {self.address}.")
        self.blocks = blocks or len(self.homes)
        self.homes = self.homes[: self.blocks]
        self.token = secrets.token_hex(4)  # in the names of all its tasks

    @property
    def address(self) -> str:
        return str(getattr(self.client.scheduler, "address", "an unknown address"))

    def run(self, f: Callable[..., Any], *args: Any, block: int | None = None, **shared: Any) -> Future:
        """Submit one task, at the home of ``block`` while that worker lives."""
        key = f"residua-{getattr(f, '__name__', 'task').strip('_<>')}-{self.token}{secrets.token_hex(8)}"
        place = {} if block is None else {"workers": [self._home(block)], "allow_other_workers": True}
        with self.guarded():
            return self.client.submit(f, *args, key=key, pure=False, **place, **shared)

    def _home(self, block: int) -> str:
        return self.homes[block % len(self.homes)]

    def each(self, f: Callable[..., Any], *arguments: Iterable[Any], **shared: Any) -> list[Future]:
        """Submit ``f`` for every block, given the block's item of each of ``arguments``, and ``shared``."""
        return [self.run(f, *items, block=b, **shared) for b, items in enumerate(zip(*arguments, strict=True))]

    def fetch(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results of the futures, which should be small."""
        with self.guarded():
            self._await(futures)
            return self.client.gather(list(futures))

    def gang(self, f: Callable[..., Any], *arguments: Sequence[Any]) -> tuple[Any, dict[str, list[Future]]]:
        """Run ``f(gang, ...)`` for all blocks at once, given the block's item of each of ``arguments``.

        Parameters
        ----------
        f : callable
            Returns a small value, the same for every member, and arrays by name.
        arguments : sequences
            Items by block.

        Returns
        -------
        value : Any
        columns : dict of str to list of Future
            The arrays, block by block, each on two workers where there are two.
        """
        items = list(zip(*arguments, strict=True))
        with self.guarded():
            self._await([x for row in items for x in row if isinstance(x, Future)])
            for _ in range(ATTEMPTS):
                futures = self._try_gang(f, items)
                if futures is not None:
                    return self._results(futures)
        raise WorkersLost(f"workers died {ATTEMPTS} times at the same computation, {OUT_OF_MEMORY}")

    def _try_gang(self, f: Callable[..., Any], items: Sequence[tuple]) -> list[Future] | None:
        """Run a gang; None where a worker died in the meantime, an error of a member as itself."""
        self._replace_dead()
        token = self.token + secrets.token_hex(8)
        addresses = [self._home(b) for b in range(len(items))]
        try:
            self.client.run(open_boxes, token, addresses, workers=list(set(addresses)))
        except (OSError, KeyError, ValueError):
            self.client.run(close_boxes, token, on_error="ignore")
            return None
        futures = [
            # There and nowhere else: the others send their messages to this worker.
            self.client.submit(
                _member, f, token, b, addresses, *row, key=f"residua-gang-{token}-{b}", pure=False, workers=[address]
            )
            for b, (address, row) in enumerate(zip(addresses, items, strict=True))
        ]
        if self._all_finish(token, futures, addresses):
            return futures
        errors = [future.exception() for future in futures if future.status == "error"]
        self.client.cancel(futures)
        for error in errors:
            if not isinstance(error, PeerLost):
                raise error
        return None

    def _all_finish(self, token: str, futures: list[Future], addresses: Sequence[str]) -> bool:
        """Wait until all members have a result; as soon as one fails or dies, end the others: False once they have."""
        pending, failed = dict(zip(futures, addresses, strict=True)), False
        while pending:
            before = failed
            try:
                with self.client.as_current():
                    done = wait(list(pending), timeout=POLL, return_when="FIRST_COMPLETED").done
                failed = failed or any(future.status == "error" for future in done)
            except TimeoutError:
                alive = self._alive()
                done = {future for future, address in pending.items() if address not in alive}
                failed = failed or not alive.issuperset(addresses)
                if not failed:
                    self._check_stranded()
            if failed and not before:
                self.client.run(close_boxes, token, on_error="ignore")
            pending = {future: address for future, address in pending.items() if future not in done}
        return not failed

    def _results(self, futures: list[Future]) -> tuple[Any, dict[str, list[Future]]]:
        if len(self.homes) > 1:  # the loss of one worker costs no computing before it
            self.client.replicate(futures, n=2)
        small = self.fetch(self.each(lambda result: result[0], futures))
        for category, message in dict.fromkeys(warning for _, _, recorded in small for warning in recorded):
            warn(message, category)
        value, names, _ = small[0]
        return value, {name: self.each(lambda result, name: result[1][name], futures, name=name) for name in names}

    def _replace_dead(self) -> None:
        """Give the blocks of dead workers to others, new ones first."""
        alive = sorted(self._alive())
        others = cycle([*(address for address in alive if address not in self.homes), *alive])
        stays = [home in alive and home not in self.homes[:k] for k, home in enumerate(self.homes)]
        self.homes = [home if stay else next(others) for home, stay in zip(self.homes, stays, strict=True)]

    def _alive(self) -> set[str]:
        """Return the workers' addresses, of which there has to be one before long."""
        since = time.monotonic()
        while self.client.status == "running":
            found = self.client.nthreads()
            if found:
                return set(found)
            if time.monotonic() - since > PATIENCE:
                raise WorkersLost(
                    f"the scheduler at {self.address} has had no worker for {PATIENCE:.0f} s; start some, then go on."
                )
            time.sleep(min(POLL, PATIENCE) / 4)
        raise self._lost()

    def _await(self, futures: Sequence[Future]) -> None:
        while futures:
            if self.client.status != "running":
                raise self._lost()
            try:
                with self.client.as_current():
                    wait(futures, timeout=POLL)
                return
            except TimeoutError:
                self._alive()
                self._check_stranded()

    def _check_stranded(self) -> None:
        """Refuse to wait for a task that no worker may run: the one that it belongs to has died with all copies."""
        stuck = self.client.run_on_scheduler(lambda dask_scheduler: [str(t.key) for t in dask_scheduler.unrunnable])
        if any(self.token in key for key in stuck):
            raise WorkersLost("results were lost with all workers that had a copy; build the graph anew, then go on.")

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Raise whatever Dask says of a lost connection as one error."""
        try:
            yield
        except KilledWorker as error:
            raise WorkersLost(f"several workers died at the same task ({error.task}), {OUT_OF_MEMORY}") from None
        except Exception as error:  # of a closed client a plain RuntimeError
            if isinstance(error, CancelledError | CommClosedError) or self.client.status != "running":
                raise self._lost() from error
            raise

    def _lost(self) -> SchedulerLost:
        return SchedulerLost(
            f"the connection to the Dask scheduler at {self.address} is lost, and with it this computation; "
            "start the scheduler again and run this anew."
        )


def _member(f: Callable[..., Any], token: str, rank: int, addresses: Sequence[str], *items: Any) -> tuple[Any, dict]:
    """Run one member of a gang; outside the worker's pool of threads, where two of them might wait for one place."""
    secede()
    numba.set_num_threads(min(get_worker().state.nthreads, config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    with _recorder as recorded, Gang(token, rank, addresses).working() as gang:
        value, columns = f(gang, *items)
    return (value, list(columns), [(warning.category, str(warning.message)) for warning in recorded]), columns


class _Recorder:
    """Warnings of all members in this process: ``catch_warnings`` is not for several threads at once."""

    lock, members = threading.Lock(), 0

    def __enter__(self) -> list[warnings.WarningMessage]:
        with self.lock:
            if not self.members:
                self.catcher = warnings.catch_warnings(record=True, action="always")
                self.recorded: Any = self.catcher.__enter__()
            self.members += 1
            return self.recorded

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.members -= 1
            if not self.members:
                self.catcher.__exit__(None, None, None)


_recorder = _Recorder()
