"""What a fit will take, estimated before it begins: bytes and seconds from the size of the problem.

    bytes = max over phases of sum of c_k b_k,    seconds = sum of s_k o_k

b_k bytes if each array of part k were there once, o_k numbers that it touches; c_k and s_k were measured by
``python -m benchmarks.memory --write``, which keeps them in ``resources_coefficients.json``. The peak is that of
``fit`` or, after it, ``predict(return_std=True)`` or ``diagnose``, beyond the graph and the features that are there
already. A graph whose factor is cheap takes less.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from residua.bases.registry import MOST_BENDS, find_base
from residua.graph import Graph
from residua.linalg.logdet.stochastic import FIRST_PROBES
from residua.linalg.order import LARGE

COEFFICIENTS = Path(__file__).with_name("resources_coefficients.json")
PARTS = ("matrices", "base", "log-determinant", "variances")
DRAWS = 64  # of which variances are made
STEPS = 60  # of conjugate gradients for them
WIDTHS = 16 + 16 + 8  # of a network's layers
EPOCHS = 300  # of the 500 at most; training stops early
BOOSTERS, VECTORS, ROUNDS = 5, 12, 300  # of trees: in lock step, numbers a node that each keeps, trees of each


class TooLarge(ValueError):
    """A job that would not fit into memory, refused before it begins."""


@dataclass(frozen=True)
class Job:
    """The size of a fit.

    Parameters
    ----------
    nodes : int
        How many there are.
    edges : int
        Likewise.
    labels : int
        Nodes whose label is known.
    features : int
        Columns of X.
    base : str, regressor, torch module or Network
        The base or its name.
    correlation : {"learned", "propagate", None}
        As in ``GraphRegressor``.
    ensemble : int
        Members of a network's ensemble.
    edge_types : int
        How many there are.
    weighted : bool
        Whether edges have weights.
    """

    nodes: int
    edges: int
    labels: int
    features: int = 0
    base: Any = "linear"
    correlation: str | None = "learned"
    ensemble: int = 1
    edge_types: int = 1
    weighted: bool = False

    @classmethod
    def of(cls, graph: Graph, labels: int, features: int, base: Any, correlation: str | None, ensemble: int = 1) -> Job:
        """Return the job of fitting a model on this graph."""
        weighted = any(S.weights is not None for S in graph.operators.values())
        types = len(graph.edge_types)
        return cls(graph.n_nodes, graph.n_edges, labels, features, base, correlation, ensemble, types, weighted)

    @property
    def kind(self) -> str:
        """The kind of the base: "linear", "trees", "regressor" or "network"."""
        return find_base(self.base).kind


@dataclass(frozen=True)
class Need:
    """What a job takes.

    Parameters
    ----------
    job : Job
        Which it is.
    parts : dict of str to float
        Bytes by what asks for them; not all at the same time.
    bytes : float
        At the peak.
    seconds : float
        On one core; a guess within a factor of a few.
    """

    job: Job
    parts: dict[str, float]
    bytes: float
    seconds: float

    def __str__(self) -> str:
        seconds = f"{self.seconds:.0f} s" if self.seconds >= 1 else "less than a second"
        return f"about {gigabytes(self.bytes)} of memory and {seconds}"


def estimate(job: Job) -> Need:
    """Return the bytes and seconds of a job.

    Examples
    --------
    >>> from residua.resources import Job, estimate
    >>> need = estimate(Job(nodes=1_000_000, edges=5_000_000, labels=600_000, base="mean"))
    >>> 1e9 < need.bytes < 1e10
    True
    """
    measured = json.loads(COEFFICIENTS.read_text(encoding="utf-8"))
    phases = [
        {name: by_name[name] * size for name, size in sizes(job).items() if name in by_name}
        for by_name in measured["bytes"].values()
    ]
    for phase in phases:
        phase["base"] = phase.pop(job.kind) + phase.pop("torch", 0.0)
    parts = {name: max(phase.get(name, 0.0) for phase in phases) for name in PARTS}
    seconds = sum(measured["seconds"][name] * count for name, count in operations(job).items())
    return Need(job, parts, max(sum(phase.values()) for phase in phases), seconds)


def sizes(job: Job) -> dict[str, float]:
    """Return the bytes of the arrays of each part, each once; "torch" is there or not."""
    n, unknown, columns = job.nodes, job.nodes - job.labels, job.features + 1
    entry = 4 + (8 if job.weighted else 2)
    copies = (2 if job.edge_types == 1 else 4) + (n >= LARGE)  # large graphs may be worked on in another order
    parts = {
        "matrices": 2 * job.edges * entry * copies + 48.0 * n * job.edge_types,
        "variances": 8.0 * DRAWS * (n + 2 * unknown) + 4.0 * (job.edges + n),
    }
    if job.correlation == "learned":
        parts["log-determinant"] = 8.0 * FIRST_PROBES * (2 * n + unknown)
    if job.kind == "trees":
        return parts | {"trees": 8.0 * n * (BOOSTERS * VECTORS + columns) + 2.0 * job.edges * 12}
    if job.kind != "network":
        columns = _columns(job) + 1
        return parts | {job.kind: 8.0 * columns * (n + job.labels)}
    seen = find_base(job.base).columns * columns
    activations = 16.0 * n * WIDTHS  # of one member: on large graphs they are trained in turn
    return parts | {"torch": 1.0, "network": 8.0 * n * job.features + 20.0 * n * seen + 24.0 * job.edges + activations}


def operations(job: Job) -> dict[str, float]:
    """Return how many numbers each part touches."""
    n, product = job.nodes, 2.0 * job.edges + 3 * job.nodes  # of a product with one column
    unknown = max(0.1, 1 - job.labels / n)
    parts = {
        "variances": DRAWS * (STEPS * product * unknown + 20 * (job.edges + n)),
        "linear": 30 * product * _columns(job),
        "regressor": 6.0 * job.labels * max(job.features, 1),
        "trees": ROUNDS * BOOSTERS * (job.labels * max(job.features, 1) + 15 * product),
        "network": EPOCHS * job.ensemble * (n * (job.features + WIDTHS) * 6 + 40.0 * job.edges + 10 * product),
    }
    parts = {name: count for name, count in parts.items() if name in ("variances", job.kind)}
    if job.correlation == "learned":
        parts["log-determinant"] = FIRST_PROBES * 24 * product * (1 if job.edge_types == 1 else 30)
    return parts


def _columns(job: Job) -> int:
    """Columns that a base other than a network makes of the features; splines have at most so many bends in all."""
    entry = find_base(job.base)
    bent = min((entry.columns - 1) * job.features, MOST_BENDS)
    return job.features + bent if entry.features else 0


LIMITS = (  # of a container, and what it has taken: cgroups of version 2, and of version 1
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_bytes(root: Path = Path("/")) -> float:
    """Return what this process may still take: the least of the machine's, the container's and its own limit."""
    found = [float(psutil.virtual_memory().available)]
    found += [_number(root / limit, float("inf")) - _number(root / used, 0.0) for limit, used in LIMITS]
    if hasattr(psutil, "RLIMIT_AS"):  # not on every system
        process = psutil.Process()
        soft, _ = process.rlimit(psutil.RLIMIT_AS)
        if soft != psutil.RLIM_INFINITY:
            found.append(float(soft - process.memory_info().vms))
    return max(0.0, min(found))


def _number(path: Path, missing: float) -> float:
    with suppress(OSError, ValueError):  # not there, or "max"
        return float(int(path.read_text(encoding="ascii")))
    return missing


def check_memory(job: Job, available: float | None = None) -> Need:
    """Return the estimate of a job, or refuse one that would not fit into ``available`` bytes."""
    need = estimate(job)
    room = available_bytes() if available is None else available
    if need.bytes > room:
        raise TooLarge(
            f"this fit would take {need} for {job.nodes:,} nodes, {job.edges:,} edges and {job.features:,} features, "
            f"but {gigabytes(room)} are available; {_remedies(need)}."
        )
    return need


def _remedies(need: Need) -> str:
    """Say what would make the job smaller, each with what it would then take."""
    job, ways = need.job, []
    if job.kind == "network":
        ways.append(('base="linear"', replace(job, base="linear", ensemble=1)))
    if job.features > 10:
        ways.append(("a tenth of the features", replace(job, features=job.features // 10)))
    smaller = [(text, estimate(other).bytes) for text, other in ways]
    parts = [f"{text} would take {gigabytes(size)}" for text, size in smaller if size < 0.8 * need.bytes]
    if max(need.parts, key=lambda name: need.parts[name]) == "variances":
        parts.append("fit_correlation and a Conditional with fewer draws need no room for 64 of them")
    parts.append("a graph beyond one machine's memory can be dealt to several by residua.distributed (Dask)")
    return "; ".join(parts)


def describe_estimate(job: Job, available: float | None = None) -> str:
    """Describe in a few lines what a job would take, of which how much for what, and what there is."""
    need = estimate(job)
    room = available_bytes() if available is None else available
    lines = [f"{need}, {gigabytes(room)} available"]
    lines += [f"  {gigabytes(size)} for {name}" for name, size in need.parts.items() if size]
    return "\n".join([*lines, "" if need.bytes <= room else f"it would not fit: {_remedies(need)}"]).rstrip()


def gigabytes(size: float) -> str:
    """Return a number of bytes in words."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"
