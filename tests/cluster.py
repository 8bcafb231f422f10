"""Real scheduler and real workers, each a process of its own, over TCP on this machine."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import dask
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context
from tests.soak.processes import PRELOAD

# Workers are forked from a process that has imported what they need, once for all of them.
SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.worker.memory.terminate": False,
    "distributed.comm.timeouts.connect": "4s",  # how long a worker knocks at one that is dead
    "logging.distributed": "critical",
}
WORKERS = ["distributed.nanny", "residua.backends.dask.pipeline"]


@contextmanager
def local_cluster(workers=4):
    """A client of a cluster of ``workers`` processes."""
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload([*PRELOAD, *WORKERS])
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            dashboard_address=":0",
            silence_logs=60,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_worker(client, address):
    """SIGKILL the worker process at an address; its nanny starts another elsewhere."""
    os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)
    return address


def start(*arguments):
    """A process of Dask's own command line."""
    return subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def stop(process):
    """End a process that ``start`` began, and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)


def product(graph, V):
    """Return ``S V`` of a graph on a cluster, moved here."""
    found = graph.gang(lambda graph, V: (None, {"product": graph.S @ V}), graph.vector(V))[1]
    return found["product"].to_numpy()
