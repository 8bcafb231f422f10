"""Messages between the members of a gang: tasks on several workers that run the same code, each on its own rows.

    sum: parts to member 0, added there in order, the total to all        2 (P - 1) messages
    halo: rows of a vector from the member that owns them to those that need them

They travel over the connections of Dask itself, one for each pair of workers that talk. A message carries the gang, the
member, the step and the operation, so members that no longer do the same raise an error and mix nothing.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed.protocol.serialize import to_serialize
from distributed.worker import Worker, get_worker

from residua.linalg.rows import Rows

POLL = 0.5  # seconds between two looks at the connections while a message is awaited
# Compiled kernels take all threads of a worker, and not every kind of threads bears two callers: members in one process
# take turns, and let go of theirs while they wait for a message.
BATON = threading.Lock()
CUTS, FEW = 64, 100_000  # cells of a count, and numbers that may come to one member
LARGE = 1 << 16  # bytes of an array that travels without being copied into the message


class PeerLost(ConnectionError):
    """Another member of a gang has failed, or died."""


class Mailbox:
    """Messages that have come for one member, until it asks for them."""

    def __init__(self) -> None:
        self.messages: dict[tuple[int, int], tuple[str, Any]] = {}  # by step and sender
        self.arrived = threading.Condition()
        self.failure: str | None = None

    def put(self, operation: str, data: Any, step: int = 0, sender: int = 0) -> None:
        """Take in a message; that of a failure, whose data say why, ends all waiting, now and later."""
        with self.arrived:
            if operation == "failed":
                self.failure = self.failure or data
            else:
                self.messages[step, sender] = operation, data
            self.arrived.notify()

    def take(self, sender: int, step: int, operation: str, look: Callable[[], None]) -> Any:
        """Return the message of a member at a step; ``look`` is called while it does not come."""
        with self.arrived:
            while (step, sender) not in self.messages:
                self._check(step, operation)
                if not self.arrived.wait(POLL):
                    look()
            self._check(step, operation)
            return self.messages.pop((step, sender))[1]

    def _check(self, step: int, operation: str) -> None:
        if self.failure is not None:
            raise PeerLost(self.failure)
        for (theirs, sender), (name, _) in self.messages.items():
            if theirs < step or (theirs == step and name != operation):
                raise RuntimeError(
                    f"members of a gang are out of step: this one is at {operation} {step}, member {sender} at "
                    f"{name} {theirs}; this is a fault of residua: please report it."
                )


class Exchange:
    """Mailboxes of one worker, and its connections to others."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self.boxes: dict[tuple[str, int], Mailbox] = {}
        self.connections: dict[str, Any] = {}
        self.turns: dict[str, asyncio.Lock] = {}
        worker.handlers["residua_message"] = self.deliver
        worker.extensions["residua"] = self

    @staticmethod
    def of(worker: Worker) -> Exchange:
        """Return the one of a worker, made at the first call."""
        return worker.extensions.get("residua") or Exchange(worker)

    def deliver(self, token: str, to: int, **message: Any) -> None:
        """Put a message into its box; one for a gang that has ended is dropped."""
        box = self.boxes.get((token, to))
        if box is not None:
            box.put(**message)

    def post(self, address: str, message: dict[str, Any]) -> None:
        """Send a message to a worker; callable from the thread of a task."""
        if address == self.worker.address:
            self.deliver(**message)
        else:
            self.worker.loop.add_callback(self._send, address, message)

    async def _send(self, address: str, message: dict[str, Any]) -> None:
        data = message["data"]
        packed = message if isinstance(data, bytes | str) else message | {"data": to_serialize(data)}
        try:
            async with self.turns.setdefault(address, asyncio.Lock()):
                comm = self.connections.get(address)
                if comm is None or comm.closed():
                    comm = self.connections[address] = await self.worker.rpc.connect(address)
                await comm.write({"op": "residua_message", "reply": False, **packed})
        except (OSError, RuntimeError) as error:
            reason = f"the worker at {address} does not answer ({type(error).__name__})."
            self.deliver(message["token"], message["sender"], operation="failed", data=reason)


def open_boxes(token: str, addresses: Sequence[str], dask_worker: Worker) -> None:
    """Make the boxes of a gang's members on one worker; called there before any of them starts."""
    exchange = Exchange.of(dask_worker)
    for address in [address for address, comm in exchange.connections.items() if comm.closed()]:
        dask_worker.rpc.reuse(address, exchange.connections.pop(address))  # to a worker that died: not used again
    for rank, address in enumerate(addresses):
        if address == dask_worker.address:
            exchange.boxes[token, rank] = Mailbox()


def close_boxes(token: str, dask_worker: Worker) -> None:
    """End what is left of a gang on one worker."""
    boxes = Exchange.of(dask_worker).boxes
    for key in [key for key in boxes if key[0] == token]:
        boxes.pop(key).put("failed", "the gang was ended.")


class Gang(Rows):
    """One member of a gang, which holds some of the rows.

    Parameters
    ----------
    token : str
        Name of the gang.
    rank : int
        Which member this is.
    addresses : sequence of str
        The worker of each member.
    """

    def __init__(self, token: str, rank: int, addresses: Sequence[str]):
        self.token, self.rank, self.addresses, self.size, self.step = token, rank, addresses, len(addresses), 0
        self.exchange = Exchange.of(get_worker())
        box = self.exchange.boxes.get((token, rank))
        if box is None:
            raise PeerLost("this gang has ended; a result of it was lost with its workers.")
        self.box = box

    @contextmanager
    def working(self) -> Iterator[Gang]:
        """Hold the baton; end when all members do, and tell them of an error here."""
        with BATON:
            try:
                yield self
                self._through_first("end", None, lambda parts: None)
            except BaseException as error:
                reason = f"member {self.rank} failed: {type(error).__name__}: {error}"
                self._send({r: reason for r in range(self.size) if r != self.rank}, "failed")
                raise
            finally:
                self.exchange.boxes.pop((self.token, self.rank), None)

    def _send(self, data: Mapping[int, Any], operation: str) -> None:
        head = {"token": self.token, "sender": self.rank, "step": self.step, "operation": operation}
        for to, piece in data.items():
            self.exchange.post(self.addresses[to], {**head, "to": to, "data": piece})

    def _hear(self, sender: int, operation: str) -> Any:
        BATON.release()
        try:
            data = self.box.take(sender, self.step, operation, self._look)
        finally:
            BATON.acquire()
        return pickle.loads(data) if isinstance(data, bytes) else data

    def _look(self) -> None:
        for address in self.addresses:
            connection = self.exchange.connections.get(address)
            if connection is not None and connection.closed():
                raise PeerLost(f"the connection to the worker at {address} broke.")

    def _through_first(self, operation: str, part: Any, f: Callable[[list[Any]], Any]) -> Any:
        """Return ``f`` of the parts of all members, computed by member 0: the same bits everywhere, errors too."""
        self.step += 1
        if self.rank:
            self._send({0: pickle.dumps(part)}, operation)
            result, error = self._hear(0, operation)
        else:
            parts = [part, *(self._hear(sender, operation) for sender in range(1, self.size))]
            try:
                result, error = f(parts), None
            except Exception as raised:
                result, error = None, raised
            self._send(dict.fromkeys(range(1, self.size), pickle.dumps((result, error))), operation)
        if error is not None:
            raise error
        return result

    def sum(self, partial: Any, then: Callable[[Any], Any] | None = None) -> Any:
        finish = then or (lambda total: total)
        return self._through_first("sum", partial, lambda parts: finish(np.sum(parts, axis=0)))

    def max(self, partial: Any) -> Any:
        return self._through_first("max", partial, lambda parts: np.max(parts, axis=0))

    def gather(self, part: Any, then: Callable[[Sequence[Any]], Any] | None = None) -> Any:
        return self._through_first("gather", part, then or list)

    def agree(self, value: Any) -> Any:
        return self._through_first("agree", value if self.rank == 0 else None, lambda parts: parts[0])

    def kth_smallest(self, values: np.ndarray, k: int) -> float:
        """Return the k-th smallest of all values: narrowed down by counting until few are left, then gathered."""
        low, high = -self.max(-values.min(initial=np.inf)), self.max(values.max(initial=-np.inf))
        while True:
            cuts = np.linspace(low, high, CUTS + 1)
            cell = np.clip(np.searchsorted(cuts, values, side="right") - 1, 0, CUTS - 1)
            counts = np.cumsum([0, *self.sum(np.bincount(cell, minlength=CUTS))])
            here = int(np.searchsorted(counts, k)) - 1
            values, k, inside = values[cell == here], k - int(counts[here]), counts[here + 1] - counts[here]
            if inside <= FEW or high <= np.nextafter(low, np.inf):
                return float(np.sort(np.concatenate(self.gather(values)))[k - 1])
            low, high = cuts[here], cuts[here + 1]

    def swap(self, pieces: Mapping[int, np.ndarray], senders: Sequence[int]) -> list[np.ndarray]:
        """Send each piece to its member, and take those of ``senders``."""
        self.step += 1
        data = {to: piece if piece.nbytes > LARGE else pickle.dumps(piece) for to, piece in pieces.items()}
        self._send(data, "halo")
        return [self._hear(sender, "halo") for sender in senders]
