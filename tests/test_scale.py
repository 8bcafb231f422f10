"""200,000 nodes: nothing of size n x n is formed, and the answer does not depend on the number of threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import contextlib, hashlib, json, resource, sys, time
from pathlib import Path

resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))  # a dense matrix would take 320 GB: fail at once

import numba, numpy as np
import residua
from graphs import watts_strogatz
from residua.gaussian import Conditional

numba.set_num_threads(int(sys.argv[1]))
n = 200_000
rng = np.random.default_rng(0)
graph = residua.Graph.from_edges(*watts_strogatz(n, 10, 0.1, rng), nodes=np.arange(n))
r = Conditional(graph, np.zeros(n, bool), 0.9, 2.0).sample(1, rng)[0]
y = np.where(rng.random(n) < 0.6, r, np.nan)
residua.fit_correlation(y[:100], residua.Graph.from_edges(np.arange(99), np.arange(1, 100)))  # compile and load


def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


with contextlib.suppress(OSError):  # where it is forbidden, the mark of what came before counts too
    Path("/proc/self/clear_refs").write_text("5")  # start the high-water mark anew
before, start = memory("VmRSS"), time.perf_counter()
fit = residua.fit_correlation(y, graph)
conditional = Conditional(graph, ~np.isnan(y), fit.alpha, fit.beta)
mean = conditional.extend(y)
variance = conditional.variance()
seconds = time.perf_counter() - start
unknown = np.isnan(y)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


print(json.dumps({
    "alpha": fit.alpha["edge"], "stderr": fit.alpha_stderr["edge"], "mc": fit.alpha_mc_error["edge"],
    "beta": fit.beta, "log_likelihood": fit.log_likelihood, "methods": fit.methods, "variance": conditional.method,
    "bytes": memory("VmHWM") - before, "seconds": seconds,
    "digests": [digest(mean), digest(variance.value), digest(variance.stderr)],
    "chi_square": float(np.mean((r - mean)[unknown] ** 2 / variance.value[unknown])), "unknown": int(unknown.sum()),
}))
"""


def run(threads: int) -> dict:
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2", "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def one_thread() -> dict:
    return run(1)


def test_memory_grows_with_the_graph_and_not_with_its_square(one_thread):
    """20 numbers for each of 2 million entries would be 320 MB; a dense matrix 320 GB."""
    assert "Lanczos" in one_thread["methods"]["log-determinant"]
    assert one_thread["variance"].startswith("estimated")
    assert one_thread["bytes"] < 600e6


def test_large_fit_is_right(one_thread):
    assert abs(one_thread["alpha"] - 0.9) < 4 * one_thread["stderr"]
    assert one_thread["mc"] < 0.1 * one_thread["stderr"]
    assert one_thread["beta"] == pytest.approx(2.0, rel=0.05)
    chance = 4 * (2 / one_thread["unknown"]) ** 0.5
    assert one_thread["chi_square"] == pytest.approx(1.0, abs=chance + 0.01)


def test_two_threads_give_the_same_bits_as_one(one_thread):
    two_threads = run(2)
    for name in ("alpha", "stderr", "mc", "beta", "log_likelihood", "digests"):
        assert one_thread[name] == two_threads[name], name
