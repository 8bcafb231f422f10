"""Weak scaling on Dask: 1, 2 and 4 worker processes, as many nodes for each, and what a step costs besides its work.

    python -m benchmarks.distributed

Writes docs/results/distributed.json and .md, with a plan for 10^9 edges computed from the same run.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import residua
import residua.backends.dask as rd
from benchmarks import records
from benchmarks.common import watts_strogatz
from residua.backends.dask.blocks import Block
from residua.backends.dask.matrix import BlockGraph, RowBlock
from residua.linalg import Sparse
from residua.linalg.lanczos import tridiagonal
from residua.linalg.rows import LOCAL
from residua.reproduction.provenance import footer, versions

WORKERS = (1, 2, 4)
ROWS, DEGREE, COLUMNS, STEPS, SMALL, REPEATS = 100_000, 10, 8, 10, 40, 20
PLAN = {"edges": 1e9, "machines": 10, "cores": 16, "network_gigabytes_a_second": 1.25}


def write_tables(folder: Path, n: int) -> None:
    """Edges and nodes of a small world, its residuals smooth along the ring and known at 60 % of nodes."""
    rng = np.random.default_rng(0)
    source, target = watts_strogatz(n, DEGREE)
    residual = np.sin(np.arange(n) / 50) + rng.standard_normal(n)
    residual[rng.random(n) >= 0.6] = np.nan
    parts = 2 * max(WORKERS)
    for name, columns in (
        ("edges", {"source": source, "target": target}),
        ("nodes", {"id": np.arange(n), "residual": residual}),
    ):
        (folder / name).mkdir()
        frame = pd.DataFrame(columns)
        for k, piece in enumerate(np.array_split(np.arange(len(frame)), parts)):
            frame.iloc[piece].to_parquet(folder / name / f"part.{k:03d}.parquet", index=False)


def clock(call):
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def seconds_a_step(graph: rd.DistributedGraph, columns: int, steps: int) -> float:
    """Of Lanczos on some columns: the best of several runs, since others may want the machine's cores."""
    return graph.gang(_seconds_a_step, columns=columns, steps=steps)[0]


def _seconds_a_step(graph: BlockGraph, columns: int, steps: int) -> tuple[float, dict]:
    Z = residua.Lanczos().signs(graph.S, 0, columns)
    return min(clock(lambda: tridiagonal(graph.S, Z, steps))[0] for _ in range(REPEATS)) / steps, {}


class Alone(RowBlock):
    """A block whose halo is zero: the work of its rows without a message."""

    def with_halo(self, V: np.ndarray) -> np.ndarray:
        return np.concatenate([V, np.zeros((len(self.ids) - len(V), *V.shape[1:]))])


def seconds_of_work(graph: rd.DistributedGraph) -> float:
    """Of the same steps on the rows of one block, on its worker, alone."""
    cluster = graph.cluster
    return cluster.fetch([cluster.run(_work, graph.blocks[0], COLUMNS, block=0)])[0]


def _work(block: Block, columns: int) -> float:
    local = Sparse(block.indptr, block.indices, block.weights, np.full(len(block.ids), DEGREE**-0.5))
    S = Alone(local, block.ids, {}, [], LOCAL)
    Z = residua.Lanczos().signs(S, 0, columns)
    return min(clock(lambda: tridiagonal(S, Z, STEPS))[0] for _ in range(REPEATS)) / STEPS


def measure(workers: int) -> dict:
    with (
        tempfile.TemporaryDirectory() as name,
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
        folder = Path(name)
        n = ROWS * workers
        write_tables(folder, n)
        tiny = residua.Graph.from_edges(*watts_strogatz(SMALL * workers, DEGREE))
        small = rd.DistributedGraph.from_graph(client, tiny)
        seconds_a_step(small, COLUMNS, 5)
        rd.fit_correlation(client, np.sin(np.arange(tiny.n_nodes)), small, logdet=residua.Lanczos(probes=2, steps=4))
        overhead = seconds_a_step(small, COLUMNS, STEPS)
        build, graph = clock(lambda: rd.DistributedGraph.from_parquet(client, folder / "edges", folder / "nodes"))
        work = seconds_of_work(graph)
        step = seconds_a_step(graph, COLUMNS, STEPS)
        fit, found = clock(
            lambda: rd.fit_correlation(client, "residual", graph, logdet=residua.Lanczos(probes=8, steps=24))
        )
        mean, _ = clock(lambda: rd.predict(client, "residual", graph, found, draws=8).mean.total(np.sum))
        return {
            "workers": workers,
            "nodes": n,
            "edges": graph.n_edges,
            "halo_rows": graph.S.moved_rows,
            "build_seconds": build,
            "step_seconds": step,
            "work_seconds": work,
            "overhead_seconds": overhead,
            "fit_seconds": fit,
            "predict_seconds": mean,
            "alpha": found.alpha["edge"],
            "alpha_stderr": found.alpha_stderr["edge"],
            "load": os.getloadavg()[0],
        }


def plan(runs: list[dict]) -> dict:
    """10^9 edges on 10 machines, a worker each, from the measured work and overhead."""
    machines, cores = PLAN["machines"], PLAN["cores"]
    n = 2 * PLAN["edges"] / DEGREE
    # Messages grow with the workers, and so at most does what they cost: as much for each as it was at the worst.
    overhead = machines * max(run["overhead_seconds"] / run["workers"] for run in runs)
    one = runs[0]
    work = one["work_seconds"] / one["nodes"] * n / machines / cores
    last = runs[-1]
    outside = last["halo_rows"] / last["nodes"] / (1 - 1 / last["workers"])  # of rows, were no block home to any
    rows = outside * n * (1 - 1 / machines) / machines
    sent = rows * COLUMNS * 8 / 1e9
    step = overhead + work + sent / PLAN["network_gigabytes_a_second"]
    entries, own = 2 * PLAN["edges"] / machines, n / machines
    matrix = (5 * entries + 32 * (own + rows)) / 1e9
    vectors = COLUMNS * 8 * (3 * own + rows) / 1e9  # two of Lanczos, and one with its halo
    return {
        **PLAN,
        "nodes": n,
        "overhead_seconds_a_step": overhead,
        "work_seconds_a_step": work,
        "halo_gigabytes_a_machine_a_step": sent,
        "seconds_a_step": step,
        "steps_of_a_fit": 24 + 24 + 30,
        "fit_minutes": (24 + 24 + 30) * step / 60,
        "matrix_gigabytes_a_machine": 1.6 * matrix,  # S, and S_UU at 60 % labelled
        "vector_gigabytes_a_machine": vectors,
    }


def text(record: dict) -> str:
    rows = [
        [
            str(run["workers"]),
            f"{run['nodes']:,}",
            f"{run['edges']:,}",
            f"{100 * run['halo_rows'] / run['nodes']:.1f} %",
            f"{run['build_seconds']:.1f}",
            f"{1e3 * run['overhead_seconds']:.1f}",
            f"{1e3 * run['work_seconds']:.0f}",
            f"{1e3 * run['step_seconds']:.0f}",
            f"{run['fit_seconds']:.1f}",
            f"{run['predict_seconds']:.1f}",
            f"{run['alpha']:.4f}",
            f"{run['load']:.1f}",
        ]
        for run in record["runs"]
    ]
    header = [
        "workers",
        "nodes",
        "edges",
        "halo",
        "build, s",
        "overhead, ms a step",
        "work, ms a step",
        "step, ms",
        "fit, s",
        "predict, s",
        "alpha",
        "load",
    ]
    planned = [[name.replace("_", " "), f"{value:,.3g}"] for name, value in record["plan"].items()]
    return (
        "# Distributed: weak scaling on Dask\n\n"
        f"{ROWS:,} nodes and five times as many edges for each worker process (Watts-Strogatz, 10 % rewired), a "
        f"thread each, on a machine of {record['cores']} cores: four workers share them, so a step with four costs at "
        f"least twice that of two. A step is one of Lanczos on {COLUMNS} columns. Work: a step on the rows of one "
        f"block, alone on its worker. Overhead: a step on a graph of {SMALL} nodes a worker, where there is no work. "
        "Halo: rows that one product moves, as a share of all. Fit: 8 probes of 24 steps. Predict: the mean, and "
        "variances from 8 draws. Load: processes that wanted a core, those of other programs included.\n\n"
        + records.table(header, rows)
        + "\n## A plan from these figures\n\n"
        f"{PLAN['edges']:.0e} edges, mean degree {DEGREE}, on {PLAN['machines']} machines of {PLAN['cores']} cores, a "
        f"network of {PLAN['network_gigabytes_a_second']} GB/s. Work is divided by the cores; overhead is taken "
        "to grow with the workers, as much for each as the most that was measured; the halo is that of this kind of "
        "graph.\n\n" + records.table(["", "value"], planned) + "\n" + footer(record) + "\n"
    )


def run() -> None:
    about = records.about("python -m benchmarks.distributed")
    about["versions"] |= versions(("dask", "distributed"))
    runs = [measure(workers) for workers in WORKERS]
    record = about | {"threads": 1, "cores": os.cpu_count(), "runs": runs, "plan": plan(runs)}
    records.write("distributed", record, text(record))
    print(text(record))


if __name__ == "__main__":
    run()
