"""Work that is killed at any moment: what may be found afterwards, and what the next run has to end with."""

import functools
import hashlib
import http.server
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import residua
from residua.io.model_file import load
from residua.reproduction.runs import read
from soak.processes import Setting, begin, command, command_for, finished, others, said
from tables import town, write

FIT = ("fit", "nodes.csv", "edges.csv", "--target", "price", "--base", "mlp")
EPOCHS = 150  # enough to be killed in
TABLE = ("reproduce", "table1", "--quick", "--datasets", "ising+", "--methods", "LP,MLP,C-MLP", "--jobs", "1")


class Victim(ABC):
    """A kind of work in a folder of its own, done once without harm for reference."""

    seconds: float  # that it takes

    def __init__(self, folder: Path):
        self.folder, self.reference = folder / "killed", folder / "reference"
        for place in (self.folder, self.reference):
            place.mkdir(parents=True)
            self.prepare(place)
        start = time.perf_counter()
        code = finished(self.begin(self.reference))
        assert code == 0, said(self.reference)
        self.seconds = time.perf_counter() - start

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """What the work needs."""

    @abstractmethod
    def begin(self, folder: Path) -> Any:
        """Start the work in a process."""

    @abstractmethod
    def inspect(self) -> None:
        """After a kill: no file that can be read is wrong."""

    @abstractmethod
    def judge(self) -> None:
        """After a run to the end: the result is that of the reference, and nothing else is left."""

    def clean(self) -> None:
        """Begin anew."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                path.unlink()
        self.prepare(self.folder)


class Fit(Victim):
    """``residua fit --checkpoint``, with a checkpoint written all the time."""

    def prepare(self, folder: Path) -> None:
        write(folder, *town())

    def begin(self, folder: Path) -> Any:
        return begin(fit_with_checkpoint, setting=Setting(folder))

    def inspect(self) -> None:
        model = self.folder / "m.residua"
        if model.exists():
            assert model.read_bytes() == (self.reference / "m.residua").read_bytes()

    def judge(self) -> None:
        self.inspect()
        load(self.folder / "m.residua")
        assert not others(self.folder, ("nodes.csv", "edges.csv", "m.residua", "run.ckpt"))


def fit_with_checkpoint(epochs: int = EPOCHS) -> None:
    from residua.bases.networks import checkpoint

    checkpoint.SECONDS = 0.02
    command_for(epochs, *FIT, "--checkpoint", "run.ckpt", "-o", "m.residua")


class Save(Victim):
    """One model saved over another, again and again."""

    def prepare(self, folder: Path) -> None:
        if not (folder.parent / "a").exists():
            graph = residua.Graph.from_edges(range(60), range(1, 61))
            for name, power in (("a", 1.0), ("b", 2.0)):
                y = [float(k % 7) ** power for k in range(61)]
                residua.GraphRegressor("mean").fit(None, y, graph=graph).save(folder.parent / name)

    def begin(self, folder: Path) -> Any:
        return begin(save_in_turn, folder.parent, 40, setting=Setting(folder))

    def inspect(self) -> None:
        path = self.folder / "m.residua"
        if path.exists():
            assert path.read_bytes() in [(self.folder.parent / name).read_bytes() for name in "ab"]
            load(path).predict()

    def judge(self) -> None:
        assert (self.folder / "m.residua").exists()
        self.inspect()
        assert not others(self.folder, ("m.residua",))


def save_in_turn(folder: Path, times: int) -> None:
    models = [load(folder / name) for name in "ab"]
    for k in range(times):
        models[k % 2].save("m.residua")


class Reproduce(Victim):
    """``residua reproduce``, of three small trainings."""

    def prepare(self, folder: Path) -> None:
        pass

    def begin(self, folder: Path) -> Any:
        return begin(command, *TABLE, "--output", "out", setting=Setting(folder))

    def results(self, folder: Path) -> dict[str, Any]:
        return {str(record.task): record.results for record in read(folder / "out" / "table1.jsonl")}

    def inspect(self) -> None:
        whole = self.results(self.reference)
        for task, found in self.results(self.folder).items():
            assert found == whole[task]

    def judge(self) -> None:
        assert self.results(self.folder) == self.results(self.reference)
        page, whole = ((folder / "out" / "table1.md").read_text() for folder in (self.folder, self.reference))
        assert page.splitlines()[:6] == whole.splitlines()[:6]
        assert (self.folder / "out" / "table1.png").read_bytes()[-8:-4] == b"IEND"
        assert not others(self.folder, ("out/table1.jsonl", "out/table1.md", "out/table1.png"))


class Fetch(Victim):
    """``residua data fetch`` from a slow server on this machine."""

    def __init__(self, folder: Path, url: str):
        self.url = url
        super().__init__(folder)

    def prepare(self, folder: Path) -> None:
        pass

    def begin(self, folder: Path) -> Any:
        variables = {"XDG_CACHE_HOME": str(folder), "NO_PROXY": "127.0.0.1", "RESIDUA_DATA": ""}
        return begin(fetch_from, self.url, setting=Setting(folder, variables))

    def inspect(self) -> None:
        for name, content in SERVED.items():
            path = self.folder / "residua" / name
            assert not path.exists() or path.read_bytes() == content

    def judge(self) -> None:
        self.inspect()
        assert all((self.folder / "residua" / name).exists() for name in SERVED)
        left = others(self.folder, [f"residua/{name}" for name in SERVED])
        for name in left:  # the next download takes away what is older than a day
            os.utime(self.folder / name, (0, 0))
        if left:
            (self.folder / "residua" / next(iter(SERVED))).unlink()
            assert finished(self.begin(self.folder)) == 0
            assert not others(self.folder, [f"residua/{name}" for name in SERVED])


SERVED = {
    "transportation/Anaheim/Anaheim_flow.tntp": b"flow\n" * 30_000,
    "transportation/Anaheim/Anaheim_net.tntp": b"net\n" * 60_000,
}


def fetch_from(url: str) -> None:
    from residua.reproduction.datasets import files

    files.BASE_URL = url
    files.checksums = lambda: {name: hashlib.sha256(content).hexdigest() for name, content in SERVED.items()}
    command("data", "fetch", "anaheim")


@contextmanager
def slow_server(pause: float = 0.004) -> Iterator[str]:
    """Serves the files bit by bit; gives its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Slow, pause))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Slow(http.server.BaseHTTPRequestHandler):
    def __init__(self, pause: float, *arguments: Any):
        self.pause = pause
        super().__init__(*arguments)

    def do_GET(self) -> None:
        content = SERVED[self.path.lstrip("/")]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            for at in range(0, len(content), 4096):
                self.wfile.write(content[at : at + 4096])
                time.sleep(self.pause)
        except OSError:
            pass  # the reader was killed

    def log_message(self, *_: Any) -> None:
        pass
