"""A killed worker costs time and changes nothing; a killed scheduler is one clear error."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from distributed import Client, get_worker

import residua
import residua.field
from cluster import kill_worker, local_cluster, product, start, stop
from graphs import small_world
from residua import distributed as rd

STRATEGY = residua.Lanczos(probes=4, steps=12)


def residuals(case):
    return np.where(case.labelled, np.sin(np.arange(case.n) / 9), np.nan)


def again_and_again(call):
    for _ in range(1000):
        call()


def test_a_fit_goes_on_when_a_worker_is_killed(tmp_path, monkeypatch):
    """A member kills its own worker in the middle of a Lanczos run on the unlabelled nodes."""
    case = small_world(n=120)
    r = residuals(case)
    expected = residua.fit_correlation(r, case.graph, logdet=STRATEGY)
    gang = rd.DistributedGraph.gang
    die = partial(_call_and_die, once=tmp_path / "died", n=case.n)
    monkeypatch.setattr(rd.DistributedGraph, "gang", lambda graph, f, *items: gang(graph, partial(die, f), *items))
    with local_cluster() as client:
        graph = rd.DistributedGraph.from_graph(client, case.graph, blocks=3)
        before = set(client.nthreads())
        found = rd.fit_correlation(client, r, graph, logdet=STRATEGY)
        assert (tmp_path / "died").read_text() in before - set(client.nthreads())  # it did not come back as the same
        values = rd.predict(client, r, graph, found, draws=2)
        kill_worker(client, graph.cluster.homes[0])  # what it held has a copy elsewhere
        mean = values.mean.to_numpy()
        np.testing.assert_allclose(found.interval()["edge"], expected.interval()["edge"], rtol=1e-6)
    assert found.alpha["edge"] == pytest.approx(expected.alpha["edge"], rel=1e-8)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-8)
    filled = residua.field.Conditional(case.graph, case.labelled, found.alpha).conditional_mean(r)
    np.testing.assert_allclose(mean, filled, rtol=1e-8, atol=1e-8)


def _call_and_die(f, graph, *items, once, n):
    product = type(graph.S).combine

    def combine(S, *given, **options):
        if S.shape[0] < n and graph.rows.rank == 1 and not once.exists():
            once.write_text(get_worker().address)
            os.kill(os.getpid(), signal.SIGKILL)
        return product(S, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(graph.S), "combine", combine)
        return f(graph, *items)


def test_a_gang_that_kills_a_worker_each_time_gives_up():
    with local_cluster(workers=2) as client:
        graph = rd.DistributedGraph.from_graph(client, small_world(n=50).graph)
        with pytest.raises(rd.WorkersLost, match="died 4 times at the same computation"):
            graph.gang(_die)


def _die(graph):
    if graph.rows.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return graph.rows.sum(1.0), {}


@pytest.fixture
def scheduler():
    """A scheduler and a worker as processes of their own; the process and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    head = start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", address.rsplit(":")[-1], "--no-dashboard"
    )
    worker = start("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    yield head, address
    for process in (worker, head):
        stop(process)


def test_a_killed_scheduler_is_one_clear_error(scheduler, monkeypatch):
    head, address = scheduler
    case = small_world(n=200)
    gang, asked = rd.DistributedGraph.gang, threading.Event()
    with Client(address, timeout="30s", set_as_default=False) as client:
        client.wait_for_workers(1, timeout=30)
        graph = rd.DistributedGraph.from_graph(client, case.graph, blocks=2)
        rd.fit_correlation(client, residuals(case), graph, logdet=STRATEGY)
        monkeypatch.setattr(rd.DistributedGraph, "gang", lambda *given: asked.set() or gang(*given))
        killer = threading.Thread(target=lambda: asked.wait() and head.kill())
        killer.start()
        began = time.monotonic()
        with pytest.raises(rd.SchedulerLost, match=f"scheduler at {address} is lost") as caught:
            again_and_again(lambda: rd.fit_correlation(client, residuals(case), graph, logdet=STRATEGY))
        assert time.monotonic() - began < 20
        assert "run this anew" in str(caught.value)
        killer.join()
        client._timeout = 0.1  # closing need not wait for a scheduler that is gone


def test_a_cluster_without_workers_is_refused(monkeypatch):
    with local_cluster(workers=0) as client, pytest.raises(rd.WorkersLost, match="has no worker; start one"):
        rd.DistributedGraph.from_graph(client, small_world(n=50).graph)


def test_a_fit_whose_workers_never_come_back_ends(monkeypatch):
    from residua.backends.dask import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    monkeypatch.setattr(cluster, "POLL", 0.2)
    with local_cluster(workers=1) as client:
        graph = rd.DistributedGraph.from_graph(client, small_world(n=50).graph)
        client.cluster.scale(0)
        with pytest.raises(rd.WorkersLost, match="has had no worker for"):
            again_and_again(lambda: product(graph, np.ones((50, 1))))


def test_importing_residua_does_not_import_dask():
    code = "import sys, residua; print([m for m in ('dask', 'distributed') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_without_dask_the_error_names_the_extra():
    code = "import sys; sys.modules['distributed'] = None; import residua.distributed"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'in your checkout of residua run: pip install ".[dask]"' in run.stderr.splitlines()[-1]
