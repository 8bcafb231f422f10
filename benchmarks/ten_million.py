"""Ten million nodes and fifty million edges from Parquet to a mean and a variance for every unknown node.

    python -m benchmarks.ten_million                       every kind and size, each in a process of its own
    python -m benchmarks.ten_million power-law 1250000     one of them; the others stay as they were recorded
    DATA=folder python -m benchmarks.ten_million ...       keep what is drawn there, and use what is there

The graph, its features and its labels are drawn by another process and handed over as Parquet files, so the memory
that is shown is that of residua's work. Truth: y = X a + (M X) b + r, r from the model, alpha 0.9; 60 % are labelled.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import residua
from benchmarks import records
from benchmarks.common import correlated_residuals, peak_gigabytes, warm_up
from residua.field import Likelihood
from residua.metrics import r2
from residua.reproduction.provenance import footer

NAME = "ten-million"
KINDS = ("small-world", "power-law")
SIZES = (1_250_000, 2_500_000, 5_000_000, 10_000_000)
EDGES_PER_NODE, FEATURES, ALPHA, LABELLED = 5, 4, 0.9, 0.6
COMPARED = 2_500_000  # nodes up to which single precision is set beside double
STAGES = ("read", "build", "features", "fit", "mean and variance")


def small_world(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A ring, each node joined to its ten nearest; a tenth of the far ends drawn anew."""
    source = np.repeat(np.arange(n), EDGES_PER_NODE)
    target = (source + np.tile(np.arange(1, EDGES_PER_NODE + 1), n)) % n
    moved = rng.random(len(target)) < 0.1
    target[moved] = rng.integers(0, n, moved.sum())
    return source, target


def power_law(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ends drawn in proportion to weights whose tail falls like d^-2.5; ids say nothing of who is a neighbour."""
    name = rng.permutation(n)
    source, target = (name[(n * rng.random(int(1.1 * EDGES_PER_NODE * n)) ** 3).astype(np.int64)] for _ in range(2))
    return source, target


def each_once(n: int, source: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(2, at most 5 n) int32 edges, no self-loop and none twice."""
    key = np.minimum(source, target) * n + np.maximum(source, target)
    key.sort()
    key = key[(np.diff(key, prepend=-1) > 0) & (key // n != key % n)]
    surplus = len(key) - EDGES_PER_NODE * n
    if surplus > 0:
        key = np.delete(key, rng.choice(len(key), surplus, replace=False, shuffle=False))
    return np.array([key // n, key % n], np.int32)


def generate(kind: str, n: int, folder: Path) -> None:
    """Draw a graph with features and labels; write ``edges.parquet`` and ``nodes.parquet``."""
    rng = np.random.default_rng(0)
    draw = small_world if kind == "small-world" else power_law
    edges = each_once(n, *draw(n, rng), rng)
    pq.write_table(pa.table({"source": edges[0], "target": edges[1]}), folder / "edges.parquet")
    graph = residua.Graph.from_edges(*edges, nodes=np.arange(n))
    X = rng.standard_normal((n, FEATURES))
    around = residua.NeighbourFeatures(hops=1, degree=False).fit_transform(X, graph=graph)
    truth = around @ rng.standard_normal(around.shape[1]) + correlated_residuals(graph, ALPHA, 1.0, 1.0, seed=1)
    label = np.where(rng.random(n) < LABELLED, truth, np.nan)
    columns = {"truth": truth, "label": label} | {f"x{i}": X[:, i] for i in range(FEATURES)}
    pq.write_table(pa.table(columns), folder / "nodes.parquet")


class Clock:
    """Seconds of each stage, by the wall and of the processors, and the largest memory up to its end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self.gigabytes: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start, used = time.perf_counter(), time.process_time()
        yield
        self.seconds[name] = time.perf_counter() - start
        self.processor[name] = time.process_time() - used
        self.gigabytes[name] = peak_gigabytes()
        print(f"{name}: {self.seconds[name]:.1f} s, peak {self.gigabytes[name]:.1f} GB", file=sys.stderr, flush=True)


def measure(kind: str, n: int, folder: Path) -> dict:
    """From the Parquet files to means and variances, stage by stage."""
    warm_up()
    clock = Clock()
    with clock.stage("read"):
        edges = pq.read_table(folder / "edges.parquet")
        nodes = pq.read_table(folder / "nodes.parquet", columns=["label", *(f"x{i}" for i in range(FEATURES))])
        source, target = (edges[name].to_numpy() for name in ("source", "target"))
        X = np.column_stack([nodes[f"x{i}"].to_numpy() for i in range(FEATURES)])
        y = nodes["label"].to_numpy()
        del edges, nodes
    with clock.stage("build"):
        graph = residua.Graph.from_edges(source, target, nodes=np.arange(n))
        del source, target
    with clock.stage("features"):
        around = residua.NeighbourFeatures(hops=1).fit_transform(X, graph=graph)
        del X
    with clock.stage("fit"):
        model = residua.GraphRegressor(base="linear").fit(around, y, graph=graph)
    with clock.stage("mean and variance"):
        mean, std = model.predict(return_std=True)
    found = {"kind": kind, "nodes": n, "edges": graph.n_edges, "largest degree": int(graph.degree.max())}
    found |= {"seconds": clock.seconds, "processor": clock.processor, "gigabytes": clock.gigabytes}
    found |= {"peak": peak_gigabytes(), "load": os.getloadavg()[1]}
    found |= accuracy(model, mean, std, folder)
    return found | single_precision(model) if n <= COMPARED else found


def accuracy(model: residua.GraphRegressor, mean: np.ndarray, std: np.ndarray, folder: Path) -> dict:
    """What came out beside what was put in, at the unknown nodes."""
    truth = pq.read_table(folder / "nodes.parquet", columns=["truth"])["truth"].to_numpy()
    unknown = np.isnan(model.y_)
    missed = (truth - mean)[unknown]
    return {
        "alpha": model.alpha_["edge"],
        "alpha_stderr": model.alpha_stderr_["edge"],
        "beta": model.beta_,
        "r2": r2(truth[unknown], mean[unknown]),
        "chi_square": float(np.mean((missed / std[unknown]) ** 2)),
        "covered": float(np.mean(np.abs(missed) <= 1.6449 * std[unknown])),
        "methods": model.correlation_.methods,
    }


def single_precision(model: residua.GraphRegressor) -> dict:
    """The log-determinant from the same probes in float32 and in float64, and its own error."""
    labelled, alpha = ~np.isnan(model.y_), np.array([model.alpha_["edge"]])
    found, seconds = {}, {}
    for dtype in (np.float64, np.float32):
        start = time.perf_counter()
        likelihood = Likelihood(model.graph_, labelled, residua.Lanczos(probes=8, dtype=dtype))
        found[dtype] = likelihood.ratio.value(alpha)
        seconds[dtype] = time.perf_counter() - start
        del likelihood
    double, single = found[np.float64], found[np.float32]
    S = model.graph_.operators["edge"]
    x = np.random.default_rng(2).standard_normal(len(labelled))
    product, rough = S @ x, S.astype(np.float32) @ x.astype(np.float32)
    return {
        "float32": {
            "logdet": float(double.value),
            "logdet_stderr": float(double.stderr),
            "logdet_difference": float(single.value - double.value),
            "seconds": {"float64": seconds[np.float64], "float32": seconds[np.float32]},
            "product_error": float(np.linalg.norm(rough - product) / np.linalg.norm(product)),
        }
    }


def one(kind: str, n: int) -> None:
    """Draw and measure, each in a process of its own, and record."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(os.environ.get("DATA", made)) / f"{kind}-{n}"
        folder.mkdir(parents=True, exist_ok=True)
        for step in ("measure",) if (folder / "nodes.parquet").exists() else ("generate", "measure"):
            command = [sys.executable, "-m", "benchmarks.ten_million", step, kind, str(n), str(folder)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    about = records.about(f"python -m benchmarks.ten_million {kind} {n}")
    run = json.loads(done.stdout.splitlines()[-1]) | {"about": about}
    runs = records.read(NAME).get("runs", {}) | {f"{kind} {n}": run}
    runs = {f"{k} {n}": runs[f"{k} {n}"] for k in KINDS for n in SIZES if f"{k} {n}" in runs}
    records.write(NAME, {"runs": runs}, report(list(runs.values())))


def exponent(runs: list[dict]) -> str:
    """How the time of all stages grows with the edges."""
    edges = np.log([run["edges"] for run in runs])
    wall, used = (np.log([sum(run[what].values()) for run in runs]) for what in ("seconds", "processor"))
    slopes = [np.polyfit(edges, logs, 1)[0] for logs in (wall, used)]
    return f"Time grows like edges^{slopes[0]:.2f} by the wall, edges^{slopes[1]:.2f} of the processors"


def report(runs: list[dict]) -> str:
    parts = [
        "# Ten million nodes on one machine\n\n"
        "Seconds by stage, from Parquet to mean and variance. A load above the number of threads says that other "
        "programs shared the two processors, which lengthens seconds by the wall.\n"
    ]
    for kind in KINDS:
        chosen = [run for run in runs if run["kind"] == kind]
        if not chosen:
            continue
        rows = [
            [f"{run['nodes']:,}", f"{run['edges']:,}"]
            + [f"{seconds:.1f}" for seconds in (*run["seconds"].values(), sum(run["seconds"].values()))]
            + [f"{sum(run['processor'].values()):.1f}", f"{run['load']:.1f}", f"{run['peak']:.1f}"]
            for run in chosen
        ]
        header = ["nodes", "edges", *STAGES, "total", "processor seconds", "load", "peak memory (GB)"]
        grows = f"\n{exponent(chosen)} (least squares).\n" if len(chosen) > 1 else ""
        parts.append(f"## {kind}\n\n{records.table(header, rows)}{grows}\n{quality(chosen)}")
    parts.append("".join(footer(run["about"]) + "\n\n" for run in runs))
    return "\n".join(parts)


def quality(runs: list[dict]) -> str:
    rows = []
    for run in runs:
        row = [f"{run['nodes']:,}", f"{run['alpha']:.4f} ± {run['alpha_stderr']:.4f}", f"{run['r2']:.4f}"]
        row += [f"{run['chi_square']:.3f}", f"{run['covered']:.3f}"]
        single = run.get("float32")
        if single:
            row.append(f"{single['logdet_difference']:+.3g} of {single['logdet']:.6g} ± {single['logdet_stderr']:.2g}")
            row.append(f"{single['seconds']['float64']:.1f} / {single['seconds']['float32']:.1f}")
            row.append(f"{single['product_error']:.1e}")
        rows.append(row + ["not compared"] * (8 - len(row)))
    header = ["nodes", "alpha (true 0.9)", "R2", "mean of (error / std)^2", "inside 90 % intervals"]
    header += ["log-determinant, float32 minus float64", "its seconds, float64 / float32", "S x in float32, error"]
    return records.table(header, rows)


def main(words: list[str]) -> None:
    if words and words[0] in ("generate", "measure"):
        kind, n, folder = words[1], int(words[2]), Path(words[3])
        if words[0] == "generate":
            generate(kind, n, folder)
        else:
            print(json.dumps(measure(kind, n, folder)))
        return
    for kind in [words[0]] if words else KINDS:
        for n in map(int, words[1:] or SIZES):
            one(kind, n)


if __name__ == "__main__":
    main(sys.argv[1:])
