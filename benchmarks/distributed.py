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
from residua.backends.dask import iteration, lanczos, ratio
from residua.backends.dask.blocks import Block
from residua.reproduction.provenance import footer, versions

WORKERS = (1, 2, 4)
ROWS, DEGREE, COLUMNS, STEPS, SMALL = 100_000, 10, 8, 10, 40
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
    """Of Lanczos on some columns, the first steps not counted."""
    Z = ratio.signs(graph.S, 0, 0, columns)
    states = lanczos.start_columns(graph.S, Z)
    states = iteration.advance(graph.S, states, 2)
    iteration.total(graph.S, states)
    seconds, _ = clock(lambda: iteration.total(graph.S, iteration.advance(graph.S, states, steps)))
    return seconds / steps


def seconds_of_work(graph: rd.DistributedGraph) -> float:
    """Of the product of one block and the updates beside it, on its worker, alone."""
    cluster = graph.cluster
    return min(cluster.fetch([cluster.run(_work, graph.S.blocks[0], COLUMNS, block=0)])[0] for _ in range(3))


def _work(block: Block, columns: int) -> float:
    V = np.random.default_rng(0).standard_normal((len(block.ids), columns))
    state = lanczos._first_column_state(block, V)
    product = np.concatenate([state.product, np.zeros((len(V) - block.rows, columns))])
    return clock(lambda: state.advance(block, product, state.partial))[0]


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
        overhead = min(seconds_a_step(small, COLUMNS, 20) for _ in range(2))
        build, graph = clock(lambda: _built(client, folder))
        work = seconds_of_work(graph)
        step = min(seconds_a_step(graph, COLUMNS, STEPS) for _ in range(2))
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


def _built(client: Client, folder: Path) -> rd.DistributedGraph:
    graph = rd.DistributedGraph.from_parquet(client, folder / "edges", folder / "nodes")
    graph.S.totals(_rows)
    return graph


def _rows(block: Block) -> int:
    return block.rows


def plan(runs: list[dict]) -> dict:
    """10^9 edges on 10 machines, a worker each, from the measured work and overhead."""
    machines, cores = PLAN["machines"], PLAN["cores"]
    n = 2 * PLAN["edges"] / DEGREE
    # Tasks grow with the square of the blocks: overhead = a + b P^2.
    squares = np.array([run["workers"] ** 2 for run in runs])
    seconds = np.array([run["overhead_seconds"] for run in runs])
    slope, base = np.polyfit(squares, seconds, 1)
    one = runs[0]
    work = one["work_seconds"] / one["nodes"] * n / machines / cores
    last = runs[-1]
    outside = last["halo_rows"] / last["nodes"] / (1 - 1 / last["workers"])  # of rows, were no block home to any
    rows = outside * n * (1 - 1 / machines) / machines
    sent = rows * COLUMNS * 8 / 1e9
    step = max(base, 0) + slope * machines**2 + work + sent / PLAN["network_gigabytes_a_second"]
    entries, own = 2 * PLAN["edges"] / machines, n / machines
    matrix = (5 * entries + 32 * (own + rows)) / 1e9
    vectors = 2 * 3 * COLUMNS * 8 * (own + rows) / 1e9  # a state and the next one
    return {
        **PLAN,
        "nodes": n,
        "overhead_seconds_a_step": max(base, 0) + slope * machines**2,
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
            f"{1e3 * run['overhead_seconds']:.0f}",
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
        f"least twice that of two. A step is one of Lanczos on {COLUMNS} columns. Work: the product and updates of one "
        f"block, alone on its worker. Overhead: a step on a graph of {SMALL} nodes a worker, where there is no work. "
        "Halo: rows that one product moves, as a share of all. Fit: 8 probes of 24 steps. Predict: the mean, and "
        "variances from 8 draws. Load: processes that wanted a core, those of other programs included.\n\n"
        + records.table(header, rows)
        + "\n## A plan from these figures\n\n"
        f"{PLAN['edges']:.0e} edges, mean degree {DEGREE}, on {PLAN['machines']} machines of {PLAN['cores']} cores, a "
        f"network of {PLAN['network_gigabytes_a_second']} GB/s. Work is divided by the cores; overhead grows with the "
        "square of the blocks, as it was measured to; the halo is that of this kind of graph.\n\n"
        + records.table(["", "value"], planned)
        + "\n"
        + footer(record)
        + "\n"
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
