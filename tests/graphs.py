"""Small graphs to test on, each as a plain list of edges: what a dense matrix needs, and what `Graph` is built from."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from residua.graph import Graph


@dataclass(frozen=True)
class Case:
    """Edges (source, target, weight, type) over nodes 0 .. n-1, and which nodes have a label."""

    n: int
    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    type: np.ndarray
    labelled: np.ndarray

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.type.tolist()))

    @cached_property
    def graph(self) -> Graph:
        return Graph.from_edges(self.source, self.target, self.weight, self.type, nodes=np.arange(self.n))

    @cached_property
    def terms(self) -> list:
        """The package's operators, one for each edge type."""
        return list(self.graph.operators.values())

    @cached_property
    def S(self) -> np.ndarray:
        """(p, n, n) dense, each type normalised by the total degree: D^-1/2 A_t D^-1/2."""
        A = np.zeros((len(self.types), self.n, self.n))
        for i, j, w, t in zip(self.source, self.target, self.weight, self.type, strict=True):
            A[self.types.index(t), i, j] = A[self.types.index(t), j, i] = w
        degree = A.sum(axis=(0, 2))
        root = np.array([d**-0.5 if d > 0 else 0.0 for d in degree])
        return root[:, None] * A * root

    @cached_property
    def laplacian(self) -> np.ndarray:
        """(n, n) dense D - A of all types together, which self-loops have no part in."""
        A = np.zeros((self.n, self.n))
        for i, j, w in zip(self.source, self.target, self.weight, strict=True):
            A[i, j] = A[j, i] = A[i, j] + w * (i != j)
        return np.diag(A.sum(axis=0)) - A

    @property
    def L(self) -> np.ndarray:
        return np.flatnonzero(self.labelled)

    @property
    def U(self) -> np.ndarray:
        return np.flatnonzero(~self.labelled)

    def with_labels(self, positions) -> "Case":
        """The same graph, labelled at ``positions`` and nowhere else."""
        labelled = np.zeros(self.n, bool)
        labelled[positions] = True
        return replace(self, labelled=labelled)

    def permuted(self, order: np.ndarray) -> "Case":
        """The same graph with node ``order[i]`` at place i."""
        place = np.argsort(order)
        return replace(self, source=place[self.source], target=place[self.target], labelled=self.labelled[order])


def case(n, edges, labels, type="edge") -> Case:
    """A case from rows (source, target[, weight[, type]])."""
    rows = [(*edge, 1.0, type)[:4] if len(edge) == 2 else (*edge, type)[:4] for edge in edges]
    source, target, weight, types = zip(*rows, strict=True)
    return Case(
        n,
        np.array(source),
        np.array(target),
        np.array(weight, float),
        np.array(types, dtype=object),
        np.isin(np.arange(n), labels),
    )


def watts_strogatz(n: int, degree: int, rewire: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a ring whose nodes know their ``degree`` nearest, a share ``rewire`` of the ends moved at random."""
    source = np.repeat(np.arange(n), degree // 2)
    target = (source + np.tile(np.arange(1, degree // 2 + 1), n)) % n
    moved = rng.random(len(source)) < rewire
    target = np.where(moved, rng.integers(0, n, len(source)), target)
    keep = source != target
    low, high = np.minimum(source, target)[keep], np.maximum(source, target)[keep]
    code = np.unique(low * n + high)
    return code // n, code % n


def small_world(n=500, degree=10, rewire=0.1, share=0.5, types=1, seed=0) -> Case:
    """A Watts-Strogatz case, a share of it labelled, its edges dealt to ``types`` types."""
    rng = np.random.default_rng(seed)
    source, target = watts_strogatz(n, degree, rewire, rng)
    names = np.array([f"type {t}" for t in range(types)] if types > 1 else ["edge"], dtype=object)
    kind = names[np.arange(len(source)) % types if types > 1 else np.zeros(len(source), int)]
    kind = rng.permutation(kind)
    labelled = np.zeros(n, bool)
    labelled[rng.permutation(n)[: round(share * n)]] = True
    return Case(n, source, target, np.ones(len(source)), kind, labelled)


def grid(rows: int, columns: int, share=0.5, seed=0) -> Case:
    """A rectangular grid."""
    at = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    source, target = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    labelled = np.random.default_rng(seed).random(at.size) < share
    kind = np.full(len(source), "edge", dtype=object)
    return Case(at.size, source, target, np.ones(len(source)), kind, labelled)


_chords = [(i, (i + 1) % 12, 0.1 + 3 * (i % 4), "edge") for i in range(12)] + [
    (0, 6, 20.0, "edge"),
    (2, 9, 0.01, "edge"),
]

CASES = {
    "path": case(8, [(i, i + 1) for i in range(7)], [0, 3, 4, 6]),
    "star": case(7, [(0, i) for i in range(1, 7)], [1, 2, 5, 6]),
    "labelled hub": case(7, [(0, i) for i in range(1, 7)], [0, 2, 5]),
    "isolate": case(8, [(0, 1), (1, 2), (2, 0), (2, 4), (4, 5)], [0, 3, 5, 4]),  # 3, 6, 7 alone, 3 labelled
    "two components": case(9, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 4), (6, 7), (7, 8)], [0, 2, 4, 7]),
    "component without label": case(8, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (7, 4)], [0, 2, 3]),
    "weighted": case(12, _chords, [0, 1, 4, 6, 9, 10]),
    "self-loops": case(
        8,
        [(i, i + 1, 1.0 + i, "edge") for i in range(7)] + [(0, 0, 2.0), (4, 4, 0.5), (5, 5, 30.0)],
        [0, 2, 5, 6],
    ),
    "two types": case(
        9,
        [(i, i + 1, 1.0, "road") for i in range(8)]
        + [
            (0, 4, 2.0, "rail"),
            (4, 8, 1.0, "rail"),
            (1, 6, 0.5, "rail"),
            (2, 3, 3.0, "rail"),
            (8, 0, 1.0, "rail"),
        ],
        [0, 3, 5, 6, 8],
    ),
    "two types, loops and isolate": case(
        8,
        [
            *[(0, 1, 1.0, "a"), (1, 2, 2.0, "a"), (2, 2, 1.0, "a"), (3, 4, 1.0, "a"), (4, 5, 1.0, "a")],
            *[(0, 2, 1.0, "b"), (1, 2, 2.0, "b"), (3, 5, 4.0, "b"), (3, 3, 0.5, "b"), (5, 2, 1.0, "b")],
        ],
        [0, 2, 4, 7],
    ),
}
ONE_TYPE = [name for name, c in CASES.items() if len(c.types) == 1]
TWO_TYPES = [name for name, c in CASES.items() if len(c.types) == 2]
