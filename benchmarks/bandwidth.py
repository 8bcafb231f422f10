"""The sparse product S @ X beside the machine's copy bandwidth, MKL and scipy, all in one run.

    python -m benchmarks.bandwidth [nodes]

Bytes that must move: indices, row borders and scale once, X read once, the result written once. Bytes gathered: one
row of X for every entry of S instead. MKL is asked through ``sparse_dot_mkl`` where that is installed; it reads stored
values, residua the pattern and, beside each entry, a byte that tells its column's scale.

X begins with a cache line, as the blocks of our solvers do; what that saves is said too. Before each product that is
compared X is written anew by all threads, as each step of a solver does; that is not timed. The two take turns, so that
a disturbance of the machine meets both; scipy comes after, since it would warm the cache with MKL's matrix. Where
arrays come to lie changes times by a tenth, so all are laid down anew several times. Times are medians over turns and
places, and so is the ratio of two that followed one another.
"""

import os

os.environ.setdefault("KMP_BLOCKTIME", "0")  # else MKL's threads spin on into the next contender's turn

import sys
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numba import njit, prange
from rich.console import Console
from scipy.sparse.csgraph import reverse_cuthill_mckee

import residua
from benchmarks import records
from benchmarks.common import watts_strogatz
from residua.linalg.operator import on_lines
from residua.reproduction.provenance import footer

try:
    from sparse_dot_mkl import dot_product_mkl
except ImportError:
    dot_product_mkl = None

NAME = "bandwidth"
COLUMNS = {1: 40, 16: 20, 64: 8}  # and how many turns each contender has
PLACES = 4
COPIED = 60_000_000  # numbers: past every cache


@njit(parallel=True)
def copy(source, target):
    for i in prange(len(source)):
        target[i] = source[i]


def erdos_renyi(n: int, degree: int = 10, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Edges between nodes drawn at random, each once."""
    rng = np.random.default_rng(seed)
    source, target = np.sort(rng.integers(0, n, (2, n * degree // 2)), axis=0)
    key = np.unique(source[source < target] * n + target[source < target])
    return key // n, key % n


def take_turns(
    contenders: dict[str, Callable[[], object]], turns: int, before: Callable[[], object] = lambda: None
) -> dict[str, np.ndarray]:
    """Milliseconds (turns,) of each; ``before`` is called before each and not timed."""
    times = {name: np.zeros(turns + 1) for name in contenders}
    for turn in range(turns + 1):
        for name, task in contenders.items():
            before()
            start = time.perf_counter()
            task()
            times[name][turn] = (time.perf_counter() - start) * 1e3
    return {name: found[1:] for name, found in times.items()}  # the first compiles and touches memory


def copy_bandwidth() -> float:
    """GB/s, read and written bytes counted."""
    source, target = np.ones(COPIED), np.zeros(COPIED)
    return 16e-9 * COPIED / (take_turns({"copy": lambda: copy(source, target)}, 10)["copy"].min() * 1e-3)


def measure(graph: residua.Graph, dtype: type, columns: int) -> dict:
    """Milliseconds of every contender on one product, and the bytes of it."""
    operator = graph.operators["edge"].astype(dtype)
    found = [product_times(operator, columns) for _ in range(PLACES)]
    size, n = np.dtype(dtype).itemsize, graph.n_nodes
    once = 4 * operator.nnz + 8 * (n + 1) + size * n + size * n * columns
    times = {name: np.concatenate([times[name] for times in found]) for name in found[0]}
    ratio = {"ratio": float(np.median(times["MKL"] / times["residua"]))} if "MKL" in times else {}
    return ratio | {
        "milliseconds": {name: float(np.median(every)) for name, every in times.items()},
        "moved": once + size * n * columns,
        "gathered": once + size * operator.nnz * columns,
    }


def product_times(operator: residua.linalg.Sparse, columns: int) -> dict[str, np.ndarray]:
    """Milliseconds of every contender, each array at a new place."""
    S = residua.linalg.Sparse(operator.indptr.copy(), operator.indices.copy(), None, operator.scale.copy())
    matrix = sp.csr_matrix(S.to_scipy())
    matrix.indptr = matrix.indptr.astype(np.int32)
    source = np.random.default_rng(2).standard_normal((S.shape[0], columns)).astype(S.dtype)
    X = on_lines(source)
    out, by_mkl, ones = np.zeros_like(X), np.zeros_like(X), np.ones(columns)
    contenders = {"residua": lambda: S.combine(X, ones, out=out, inner=False)}
    if dot_product_mkl:
        shape = (-1,) if columns == 1 else X.shape  # one column is a vector: its product has a faster way of its own
        flat, flat_out = X.reshape(shape), by_mkl.reshape(shape)
        contenders["MKL"] = lambda: dot_product_mkl(matrix, flat, out=flat_out, out_scalar=0.0)

    def before() -> None:
        copy(source.ravel(), X.ravel())

    times = take_turns(contenders, COLUMNS[columns], before) | take_turns({"scipy": lambda: matrix @ X}, 1, before)
    for found in (out, by_mkl) if dot_product_mkl else (out,):
        assert np.allclose(found, matrix @ X, atol=1e-4 if S.dtype == np.float32 else 1e-12)
    return times


def node_orders(n: int, columns: int = 16) -> dict[str, float]:
    """Milliseconds of a product on one small world whose ids are in order, shuffled, and ordered anew."""
    source, target = watts_strogatz(n)
    name = np.random.default_rng(3).permutation(n)
    shuffled = residua.Graph.from_edges(name[source], name[target], nodes=np.arange(n))
    start = time.perf_counter()
    order = reverse_cuthill_mckee(sp.csr_matrix(shuffled.adjacency()), symmetric_mode=True)
    seconds = time.perf_counter() - start
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    graphs = {
        "in order": residua.Graph.from_edges(source, target, nodes=np.arange(n)),
        "shuffled": shuffled,
        "reverse Cuthill-McKee": residua.Graph.from_edges(place[name[source]], place[name[target]], nodes=np.arange(n)),
    }
    source, ones = np.ones((n, columns)), np.ones(columns)
    X, out = on_lines(source), np.zeros_like(source)
    operators = {name: graph.operators["edge"] for name, graph in graphs.items()}
    times = take_turns(
        {k: lambda S=S: S.combine(X, ones, out=out, inner=False) for k, S in operators.items()},
        COLUMNS[columns],
        lambda: copy(source.ravel(), X.ravel()),
    )
    return {name: float(np.median(every)) for name, every in times.items()} | {"ordering": seconds * 1e3}


def line_places(n: int, columns: int = 16) -> dict[str, float]:
    """Milliseconds of a product on a random graph where X begins with a cache line, and 16 bytes past one."""
    S = residua.Graph.from_edges(*erdos_renyi(n), nodes=np.arange(n)).operators["edge"]
    room, ones, out = on_lines(np.ones(n * columns + 2)), np.ones(columns), np.zeros((n, columns))
    X = {"on a line": room[:-2].reshape(n, columns), "16 bytes past": room[2:].reshape(n, columns)}
    times = take_turns({k: lambda V=V: S.combine(V, ones, out=out, inner=False) for k, V in X.items()}, 30)
    return {name: float(np.median(every)) for name, every in times.items()}


def run(n: int, console: Console) -> None:
    graphs = {"Watts-Strogatz": watts_strogatz, "Erdos-Renyi": erdos_renyi}
    speeds, results = [copy_bandwidth()], []
    for kind, draw in graphs.items():
        graph = residua.Graph.from_edges(*draw(n), nodes=np.arange(n))
        for dtype in (np.float64, np.float32):
            for columns in COLUMNS:
                found = {"graph": kind, "type": dtype.__name__, "columns": columns} | measure(graph, dtype, columns)
                results.append(found)
                console.print(kind, dtype.__name__, columns, found["milliseconds"], highlight=False)
        speeds.append(copy_bandwidth())
    about = records.about(f"python -m benchmarks.bandwidth {n}")
    record = {"about": about, "nodes": n, "copy_gigabytes_per_second": speeds, "results": results}
    record |= {"lines": {size: line_places(size) for size in (n // 20, n)}}
    record |= {"orders": node_orders(n), "load": os.getloadavg()[1]}
    records.write(NAME, record, report(record))
    console.print(report(record), highlight=False, markup=False)


def report(record: dict) -> str:
    copied = max(record["copy_gigabytes_per_second"])
    rows = []
    for found in record["results"]:
        ms = found["milliseconds"]
        speed = {what: found[what] / ms["residua"] * 1e-6 / copied for what in ("moved", "gathered")}
        mkl = [f"{ms['MKL']:.1f}", f"{found['ratio']:.2f}"] if "MKL" in ms else ["not installed", ""]
        where = [found["graph"], found["type"], str(found["columns"])]
        reached = [f"{speed[what]:.2f}" for what in ("moved", "gathered")]
        rows.append([*where, f"{ms['residua']:.1f}", *mkl, f"{ms['scipy']:.1f}", *reached])
    header = ["graph", "type", "columns", "residua (ms)", "MKL (ms)", "MKL / residua", "scipy, one thread (ms)"]
    header += ["bytes moved / copy", "bytes gathered / copy"]
    speeds = ", ".join(f"{speed:.1f}" for speed in record["copy_gigabytes_per_second"])
    orders = ", ".join(f"{name} {ms:.0f} ms" for name, ms in record["orders"].items())
    lines = "; ".join(
        f"{size:,} nodes: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in found.items())
        for size, found in record["lines"].items()
    )
    return (
        f"# S @ X beside the copy bandwidth\n\n{record['nodes']:,} nodes, mean degree 10. Copy bandwidth before, "
        f"between and after: {speeds} GB/s (read and written). Fractions are of the largest. "
        f"Load of the machine {record['load']:.1f}: above the number of threads, other programs shared it.\n\n"
        f"{records.table(header, rows)}\nThe order of nodes, Watts-Strogatz, 16 columns of float64: "
        f"{orders}.\n\nWhere X begins, Erdos-Renyi, 16 columns of float64. {lines}.\n\n{footer(record['about'])}\n"
    )


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, Console(width=150))
