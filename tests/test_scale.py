"""200,000 nodes: nothing of size n x n is formed, and the answer does not depend on the number of threads."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import small_world
from residua.field import Conditional, draws
from residua.linalg import lanczos
from residua.linalg.rows import LOCAL
from residua.linalg.sampling import inverse_diagonal

SCRIPT = """
import contextlib, hashlib, json, resource, sys, time
from pathlib import Path

resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))  # a dense matrix would take 320 GB: fail at once

import numba, numpy as np
import residua
from graphs import watts_strogatz
from residua.field import Conditional

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
mean = conditional.conditional_mean(y)
variance = conditional.variance()
seconds = time.perf_counter() - start
unknown = np.isnan(y)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


print(json.dumps({
    "alpha": fit.alpha["edge"], "stderr": fit.alpha_stderr["edge"], "mc": fit.alpha_mc_error["edge"],
    "beta": fit.beta, "log_likelihood": fit.log_likelihood, "methods": fit.methods, "exact": conditional.exact,
    "bytes": memory("VmHWM") - before, "seconds": seconds,
    "digests": [digest(mean), digest(variance.value), digest(variance.stderr)],
    "chi_square": float(np.mean((r - mean)[unknown] ** 2 / variance.value[unknown])), "unknown": int(unknown.sum()),
}))
"""


def run(threads: int) -> dict:
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
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
    assert not one_thread["exact"]
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


@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_draws_made_some_at_a_time_give_variances_within_their_error(single, monkeypatch):
    case = small_world(n=400, seed=6)
    exact = Conditional(case.graph, case.labelled, 0.9, 2.0, exact=True)
    monkeypatch.setattr(draws, "KEPT_NUMBERS", 0)
    monkeypatch.setattr(draws, "TILE_NUMBERS", 10 * len(exact.U))
    monkeypatch.setattr(draws, "SINGLE_ALPHA", 0.99 if single else 0.0)
    tiled = Conditional(case.graph, case.labelled, 0.9, 2.0, exact=False)
    assert [X.shape[1] for X in tiled.draws] == [10] * 6 + [4]
    assert {X.dtype for X in tiled.draws} == {np.dtype(np.float32 if single else np.float64)}
    value, error = tiled.variance()
    U = exact.U
    z = (value[U] - exact.variance().value[U]) / error[U]
    assert 0.5 < np.mean(z**2) < 2
    assert_allclose(tiled.variance().value, value, rtol=0)  # the same draws each time
    residual = np.where(case.labelled, np.random.default_rng(0).standard_normal(case.n), np.nan)
    assert_allclose(tiled.leave_one_out(residual).variance, exact.leave_one_out(residual).variance, rtol=0.1)


def test_draws_all_at_once_and_some_at_a_time_average_alike(rng):
    case = small_world(n=400, seed=6)
    one = Conditional(case.graph, case.labelled, 0.9, exact=False)
    (X,) = one.draws
    whole = inverse_diagonal(one.G_UU, [X])
    parts = inverse_diagonal(one.G_UU, iter([X[:, :5], X[:, 5:40], X[:, 40:]]))
    assert_allclose(parts.value, whole.value, rtol=1e-12)
    assert_allclose(parts.stderr, whole.stderr, rtol=1e-9)


@pytest.mark.parametrize("tilt", [0.0, 0.9, 0.99])
def test_blocks_become_orthonormal_by_their_inner_products_as_by_qr(tilt, rng):
    W = rng.standard_normal((3000, 7))
    W[:, 1:] = (1 - tilt) * W[:, 1:] + tilt * W[:, :1]
    Q, C = lanczos._by_gram(W, LOCAL)
    assert_allclose(Q @ C, W, atol=1e-12)
    assert_allclose(Q.T @ Q, np.eye(7), atol=1e-14)


def test_blocks_with_nearly_equal_columns_are_left_to_qr(rng):
    W = rng.standard_normal((3000, 3))
    W[:, 2] = W[:, 0] + 1e-9 * W[:, 1]
    assert lanczos._by_gram(W, LOCAL) is None
    Q, C = lanczos._orthonormal(W, LOCAL)
    assert_allclose(Q @ C, W, atol=1e-12)
    assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-14)
