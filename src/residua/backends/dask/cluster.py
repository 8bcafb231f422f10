"""A Dask cluster as the solvers use it: tasks that live with their block, and waits that end.

Tasks are pure, so what a killed worker held is computed again from what it was made of. What cannot be mended, a lost
scheduler or no worker at all, is one clear error.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError

POLL = 2.0  # seconds between two looks at the cluster while a result is awaited
PATIENCE = 60.0  # seconds without any worker before a fit gives up


class SchedulerLost(ConnectionError):
    """The connection to the scheduler broke, and with it all that was under way."""


class WorkersLost(RuntimeError):
    """Workers that a fit needs have died, or never came."""


class Cluster:
    """Workers behind a client, and the block that each is home to.

    Parameters
    ----------
    client : a connected ``distributed.Client``
    blocks : row blocks; by default one for each worker
    """

    def __init__(self, client: Client, blocks: int | None = None):
        self.client = client
        with self.guarded():
            self.homes = sorted(client.nthreads())
        if not self.homes:
            raise WorkersLost(f"the scheduler at {self.address} has no worker; start one: dask worker {self.address}.")
        self.blocks = blocks or len(self.homes)

    @property
    def address(self) -> str:
        return str(getattr(self.client.scheduler, "address", "an unknown address"))

    def run(self, f: Callable[..., Any], *args: Any, block: int | None = None) -> Future:
        """One task, at the home of ``block`` while that worker lives."""
        key = f"residua-{getattr(f, '__name__', 'task').strip('_')}-{secrets.token_hex(8)}"
        place = {} if block is None else {"workers": [self.homes[block % len(self.homes)]], "allow_other_workers": True}
        return self.client.submit(f, *args, key=key, pure=False, **place)

    def each(self, f: Callable[..., Any], *arguments: Sequence[Any]) -> list[Future]:
        """``f`` for every block, given the block's item of each of ``arguments``."""
        return [self.run(f, *items, block=b) for b, items in enumerate(zip(*arguments, strict=True))]

    def fetch(self, futures: Sequence[Future]) -> list[Any]:
        """Results of the futures, which should be small."""
        with self.guarded():
            self._await(list(futures))
            return self.client.gather(list(futures))

    def keep_twice(self, futures: Sequence[Future]) -> None:
        """A second copy of each result on another worker, so that the loss of one costs no computing before it."""
        if len(self.homes) > 1:
            with self.guarded():
                self._await(list(futures))
                self.client.replicate(list(futures), n=2)

    def _await(self, futures: list[Future]) -> None:
        alone_since = None
        while True:
            if self.client.status != "running":
                raise self._lost()
            try:
                with self.client.as_current():
                    wait(futures, timeout=POLL)
                return
            except TimeoutError:
                if self.client.status == "running" and self.client.nthreads():
                    alone_since = None
                    continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > PATIENCE:
                raise WorkersLost(
                    f"the scheduler at {self.address} has had no worker for {PATIENCE:.0f} s; start workers, then "
                    "run this again."
                )

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever Dask says of a lost connection, as one error."""
        try:
            yield
        except KilledWorker as error:
            raise WorkersLost(
                f"several workers died at the same task ({error.task}), most likely out of memory; use more or larger "
                "workers."
            ) from None
        except (CancelledError, CommClosedError) as error:
            raise self._lost() from error
        except Exception as error:
            # Dask names a future that it gave up by a class of its own, and a closed client by a plain RuntimeError.
            if type(error).__name__ == "FutureCancelledError" or self.client.status != "running":
                raise self._lost() from error
            raise

    def _lost(self) -> SchedulerLost:
        return SchedulerLost(
            f"the connection to the Dask scheduler at {self.address} is lost, and with it this computation; "
            "start the scheduler again and run this anew."
        )
