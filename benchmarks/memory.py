"""``python -m benchmarks.memory``: what fits are expected to take, beside what they took."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

JOBS = [
    ("mean", "learned", 50_000, 0, 1),
    ("mean", "learned", 200_000, 0, 1),
    ("linear", "learned", 50_000, 20, 1),
    ("linear", "learned", 200_000, 20, 1),
    ("linear", None, 100_000, 100, 1),
    ("hops", "learned", 100_000, 20, 1),
    ("sage", "learned", 100_000, 20, 1),
]


def resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def measure(base: str, correlation: str | None, n: int, features: int, ensemble: int) -> dict[str, float]:
    """Peak beyond what was there before, and seconds, of a fit, its deviations and its diagnosis; in this process."""
    from benchmarks.common import warm_up, watts_strogatz
    from residua import Graph, GraphRegressor
    from residua.resources import Job, estimate

    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*watts_strogatz(n), nodes=np.arange(n))
    X = rng.standard_normal((n, features))
    y = np.where(rng.random(n) < 0.6, rng.standard_normal(n), np.nan)
    warm_up()
    need = estimate(Job.of(graph, int((~np.isnan(y)).sum()), features, base, correlation, ensemble))
    Path("/proc/self/clear_refs").write_text("5")  # start the high-water mark anew
    before, start = resident("VmRSS"), time.perf_counter()
    model = GraphRegressor(base, correlation, ensemble=ensemble).fit(X if features else None, y, graph=graph)
    model.predict(return_std=True)
    model.diagnose()
    taken = {"bytes": resident("VmHWM") - before, "seconds": time.perf_counter() - start}
    return taken | {"expected_bytes": need.bytes, "expected_seconds": need.seconds}


def run(jobs=JOBS) -> list[dict[str, float]]:
    """Each in a process of its own."""
    found = []
    for job in jobs:
        command = [sys.executable, "-m", "benchmarks.memory", json.dumps(job)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def main() -> None:
    print(f"{'base':8} {'correlation':12} {'nodes':>9} {'features':>8}   expected  measured   expected  measured")
    for job, one in zip(JOBS, run(), strict=True):
        base, correlation, n, features, _ = job
        print(
            f"{base:8} {correlation or 'none':12} {n:9,} {features:8}   "
            f"{one['expected_bytes'] / 1e6:5.0f} MB  {one['bytes'] / 1e6:5.0f} MB   "
            f"{one['expected_seconds']:6.1f} s  {one['seconds']:6.1f} s"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(*json.loads(sys.argv[1]))))
    else:
        main()
