"""What a fit will take, told before it begins: bytes and seconds from the size of the problem alone.

    bytes = columns of n numbers that are held at the same time, by what asks for them; seconds = products with S

The peak is that of ``fit`` followed by ``predict(return_std=True)`` or ``diagnose``, beyond the graph and the features
that are there already. A graph whose factor is cheap takes less than is told here. ``benchmarks/memory.py`` prints
estimates beside what was measured.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from residua.bases.registry import find_base
from residua.graph import Graph
from residua.linalg.logdet.stochastic import FIRST_PROBES
from residua.linalg.order import LARGE

DRAWS = 64  # of which variances are made
STEPS = 60  # of conjugate gradients for them
NETWORK_BYTES = 300e6  # torch itself
WIDTHS = 16 + 16 + 8  # of a network's layers
EPOCHS = 300  # of the 500 at most; training stops early


class TooLarge(ValueError):
    """A job that would not fit into memory, refused before it begins."""


@dataclass(frozen=True)
class Job:
    """The size of a fit.

    Parameters
    ----------
    nodes, edges, labels, features : how many there are
    base : name of a base, or the base itself
    correlation : "learned", "propagate" or None
    ensemble : members of a network
    edge_types : how many
    weighted : whether edges have weights
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
        """The job of fitting a model on this graph."""
        weighted = any(S.weights is not None for S in graph.operators.values())
        types = len(graph.edge_types)
        return cls(graph.n_nodes, graph.n_edges, labels, features, base, correlation, ensemble, types, weighted)

    @property
    def kind(self) -> str:
        """The kind of the base: "linear", "regressor" or "network"."""
        return find_base(self.base).kind


@dataclass(frozen=True)
class Need:
    """What a job takes."""

    job: Job
    parts: dict[str, float]  # bytes, by what asks for them; not all at the same time
    bytes: float  # at the peak
    seconds: float  # on one core; a guess within a factor of a few

    def __str__(self) -> str:
        seconds = f"{self.seconds:.0f} s" if self.seconds >= 1 else "less than a second"
        return f"about {gigabytes(self.bytes)} of memory and {seconds}"


def estimate(job: Job) -> Need:
    """Bytes and seconds of a job.

    Examples
    --------
    >>> from residua.resources import Job, estimate
    >>> need = estimate(Job(nodes=1_000_000, edges=5_000_000, labels=600_000, base="mean"))
    >>> 1e9 < need.bytes < 1e10
    True
    """
    n, unknown = job.nodes, job.nodes - job.labels
    entry = 4 + (8 if job.weighted else 2)
    copies = (2 if job.edge_types == 1 else 4) + (n >= LARGE)  # large graphs may be worked on in another order
    matrices = 2 * job.edges * entry * copies + 48.0 * n * job.edge_types
    base = _base_bytes(job)
    probes = 8.0 * FIRST_PROBES * (4 * n + 2 * unknown) if job.correlation == "learned" else 0.0
    draws = 8.0 * DRAWS * (2 * n + 4 * unknown) + 8.0 * (job.edges + n)
    parts = {"matrices": matrices, "base": base, "log-determinant": probes, "variances": draws}
    return Need(job, parts, matrices + base + max(probes, draws), _seconds(job))


def _base_bytes(job: Job) -> float:
    n, columns = job.nodes, job.features + 1
    if job.kind == "linear":
        columns = columns if find_base(job.base).features else 1
        return 8.0 * columns * (5 * n + 5 * job.labels)
    if job.kind == "regressor":
        return 8.0 * columns * (n + 4 * job.labels)
    seen = find_base(job.base).columns * columns
    activations = 4.0 * n * WIDTHS * 4 * max(1, job.ensemble)
    return NETWORK_BYTES + 8.0 * n * job.features + 20.0 * n * seen + 24.0 * job.edges + activations


def _seconds(job: Job) -> float:
    n, product = job.nodes, 2 * job.edges + 3 * job.nodes  # numbers touched by a product with one column
    seconds = 1e-9 * DRAWS * STEPS * product * max(0.1, 1 - job.labels / n) + 2e-8 * DRAWS * (job.edges + n)
    if job.correlation == "learned":
        seconds += 2e-9 * FIRST_PROBES * 24 * product * (1 if job.edge_types == 1 else 30)
    if job.kind == "network":
        seconds += 1e-9 * EPOCHS * job.ensemble * (n * (job.features + WIDTHS) * 6 + 2 * job.edges * 20 + 10 * product)
    if job.kind == "regressor":
        seconds += 1e-7 * 6 * job.labels * max(job.features, 1)
    return seconds + 1e-9 * product * job.features * (30 if job.kind == "linear" else 0)


def available_bytes(root: Path = Path("/")) -> float:
    """What this process may still take: the least of the machine's, the container's and the process's own limit."""
    found = [_field(root / "proc/meminfo", "MemAvailable:")]
    for limit, used in (
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        found.append(_number(root / limit) - _number(root / used, 0.0))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft - _field(root / "proc/self/status", "VmSize:", 0.0))
    return max(0.0, min(found))


def _number(path: Path, missing: float = float("inf")) -> float:
    try:
        text = path.read_text().strip()
        return float(text) if text.isdigit() else missing
    except OSError:
        return missing


def _field(path: Path, name: str, missing: float = float("inf")) -> float:
    """A line such as ``MemAvailable: 1024 kB``, in bytes."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return missing
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith(name)), missing)


def check_memory(job: Job, available: float | None = None) -> Need:
    """The estimate of a job, which is refused where it would not fit into ``available`` bytes."""
    need = estimate(job)
    room = available_bytes() if available is None else available
    if need.bytes > room:
        raise TooLarge(
            f"this fit would take {need} for {job.nodes:,} nodes, {job.edges:,} edges and {job.features:,} features, "
            f"but {gigabytes(room)} are available; {_remedies(need)}."
        )
    return need


def _remedies(need: Need) -> str:
    """What would make the job smaller, each with what it would then take."""
    job, ways = need.job, []
    if job.kind == "network":
        if job.ensemble > 1:
            ways.append((f"ensemble=1 instead of {job.ensemble}", replace(job, ensemble=1)))
        ways.append(('base="linear"', replace(job, base="linear", ensemble=1)))
    if job.features > 10 and job.kind != "network":
        ways.append(("a tenth of the features", replace(job, features=job.features // 10)))
    told = [(text, estimate(smaller).bytes) for text, smaller in ways]
    parts = [f"{text} would take {gigabytes(size)}" for text, size in told if size < 0.8 * need.bytes]
    if max(need.parts, key=lambda name: need.parts[name]) == "variances":
        parts.append("fit_correlation and a Conditional with fewer draws need no room for 64 of them")
    return "; ".join(
        [*parts, "a graph beyond one machine's memory can be dealt to several by residua.distributed (Dask)"]
    )


def describe_estimate(job: Job, available: float | None = None) -> str:
    """A few lines for people: what a job would take, of which how much for what, and what there is."""
    need = estimate(job)
    room = available_bytes() if available is None else available
    lines = [f"{need}, {gigabytes(room)} available"]
    lines += [f"  {gigabytes(size)} for {name}" for name, size in need.parts.items() if size]
    return "\n".join([*lines, "" if need.bytes <= room else f"it would not fit: {_remedies(need)}"]).rstrip()


def gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"
