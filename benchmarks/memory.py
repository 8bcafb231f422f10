"""``python -m benchmarks.memory``: what fits are expected to take, beside what they took.

With ``--write`` the coefficients of ``residua.resources`` are fitted to what was measured, by least squares of relative
errors, and written to the file that it reads; with ``--write bytes`` those of memory alone, where the machine does
other work beside and seconds are not to be believed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.ensemble import HistGradientBoostingRegressor

BOOSTING = "HistGradientBoostingRegressor"  # stands for scikit-learn's regressors
JOBS = [  # base, correlation, nodes, features, degree
    ("mean", "learned", 50_000, 0, 10),
    ("mean", "learned", 200_000, 0, 10),
    ("mean", "learned", 50_000, 0, 80),
    ("mean", "propagate", 100_000, 0, 40),
    ("linear", "learned", 50_000, 20, 10),
    ("linear", "learned", 200_000, 20, 10),
    ("linear", None, 100_000, 100, 10),
    ("trees", "learned", 50_000, 20, 10),
    ("trees", "learned", 100_000, 10, 10),
    (BOOSTING, "learned", 50_000, 20, 10),
    (BOOSTING, None, 100_000, 50, 10),
    ("hops", "learned", 20_000, 20, 10),
    ("hops", "learned", 100_000, 20, 10),
    ("hops", None, 100_000, 60, 10),
    ("sage", "learned", 50_000, 20, 20),
]
PHASES = {"fit": "log-determinant", "predict": "variances"}  # and what each of them has besides matrices and base


def measure(base: Any, correlation: str | None, n: int, features: int, degree: int) -> dict[str, dict[str, float]]:
    """Peak beyond what was there before, and seconds, of a fit and of its deviations and diagnosis; in this process."""
    from benchmarks.common import warm_up, watts_strogatz
    from residua import Graph, GraphRegressor
    from residua.resources import Job, estimate, operations, sizes

    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*watts_strogatz(n, degree), nodes=np.arange(n))
    X = rng.standard_normal((n, features)) if features else None
    y = np.where(rng.random(n) < 0.6, rng.standard_normal(n), np.nan)
    warm_up()
    if base == BOOSTING:
        base = HistGradientBoostingRegressor()
    job = Job.of(graph, int((~np.isnan(y)).sum()), features, base, correlation)
    need, before = estimate(job), resident("VmRSS")
    model = GraphRegressor(base, correlation)
    work = {
        "fit": lambda: model.fit(X, y, graph=graph),
        "predict": lambda: (model.predict(return_std=True), model.diagnose()),
    }
    found = {"bytes": {}, "seconds": {}}
    for phase, run_phase in work.items():
        Path("/proc/self/clear_refs").write_text("5")  # start the high-water mark anew
        start = time.perf_counter()
        run_phase()
        found["seconds"][phase] = time.perf_counter() - start
        found["bytes"][phase] = resident("VmHWM") - before
    expected = {"bytes": need.bytes, "seconds": need.seconds}
    return found | {"expected": expected, "sizes": sizes(job), "operations": operations(job)}


def resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def run(jobs=JOBS) -> list[dict[str, dict[str, float]]]:
    """Each in a process of its own."""
    found = []
    for job in jobs:
        command = [sys.executable, "-m", "benchmarks.memory", "--job", json.dumps(job)]
        # Arrays that are freed go back to the system, else those of the graph's making would be used again unseen.
        frugal = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | frugal)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def fitted(rows: list[tuple[dict[str, float], float, float]]) -> dict[str, float]:
    """Coefficients, none negative, of parts whose weighted sum is nearest to what was measured, relative to a whole."""
    names = sorted({name for parts, _, _ in rows for name in parts})
    A = np.array([[parts.get(name, 0.0) / whole for name in names] for parts, _, whole in rows])
    scale = A.max(axis=0)
    found, _ = nnls(A / scale, np.array([measured / whole for _, measured, whole in rows]))
    return {name: float(f"{value:.3g}") for name, value in zip(names, found / scale, strict=True)}


def coefficients(found: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Those of ``residua.resources``: in each phase, the other phase's part is not there."""
    held, spent = {phase: [] for phase in PHASES}, []
    for one in found:
        for phase, own in PHASES.items():
            others = set(PHASES.values()) - {own}
            parts = {k: v for k, v in one["sizes"].items() if k not in others}
            held[phase].append((parts, one["bytes"][phase], max(one["bytes"].values())))
            parts = {k: v for k, v in one["operations"].items() if (k == "variances") == (phase == "predict")}
            spent.append((parts, one["seconds"][phase], sum(one["seconds"].values())))
    return {
        "bytes": {phase: fitted(rows) for phase, rows in held.items()},
        "seconds": fitted(spent),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--write", nargs="?", const="all", choices=["all", "bytes"], help="write the coefficients that fit best"
    )
    parser.add_argument("--job", help="measure one in this process")
    given = parser.parse_args()
    if given.job:
        print(json.dumps(measure(*json.loads(given.job))))
        return
    found = run()
    head = f"{'base':8} {'correlation':12} {'nodes':>9} {'features':>8} {'degree':>6}"
    print(head, "  expected  measured" * 2)
    for (base, correlation, n, features, degree), one in zip(JOBS, found, strict=True):
        print(
            f"{base:8} {correlation or 'none':12} {n:9,} {features:8} {degree:6}   "
            f"{one['expected']['bytes'] / 1e6:5.0f} MB  {max(one['bytes'].values()) / 1e6:5.0f} MB   "
            f"{one['expected']['seconds']:6.1f} s  {sum(one['seconds'].values()):6.1f} s"
        )
    if given.write:
        from residua.resources import COEFFICIENTS

        best = coefficients(found)
        if given.write == "bytes":
            best = json.loads(COEFFICIENTS.read_text(encoding="utf-8")) | {"bytes": best["bytes"]}
        text = json.dumps(best, indent=2)
        COEFFICIENTS.write_text(f"{text}\n", encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
