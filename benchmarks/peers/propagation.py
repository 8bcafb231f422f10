"""Label propagation of numbers, every method to the same residual of the harmonic system.

    (I - S_UU) f_U = S_UL f_L,     residual = |S_UL f_L - (I - S_UU) f_U| / |S_UL f_L|

U unknown, L known. residua solves it by conjugate gradients; PyG's LabelPropagation (alpha = 1, known labels put back
after each step) and scikit-network's Dirichlet repeat f <- S f, so they are given the steps that they need. Dirichlet
walks with D^-1 A, which is the same system for f / sqrt(degree).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.clock import best_seconds
from benchmarks.peers.grids import grid
from benchmarks.peers.record import Cell, Part, Table, installed
from benchmarks.peers.size import QUICK
from residua import Graph, propagate
from residua.reproduction.figures.small_world import watts_strogatz

PEERS = ("torch_geometric", "sknetwork")
GOAL = 1e-6
MAX_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class Harmonic:
    """A graph, and values that are known (NaN elsewhere)."""

    graph: Graph
    values: np.ndarray
    threads: int = 1

    @cached_property
    def S(self) -> sp.csr_array:
        return self.graph.operators["edge"].to_scipy()

    @cached_property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.values)

    @cached_property
    def root_degree(self) -> np.ndarray:
        return np.sqrt(np.asarray(self.graph.adjacency().sum(axis=1)).ravel())

    def from_known(self, start: np.ndarray | float = 0.0) -> np.ndarray:
        return np.where(self.known, self.values, start)

    @cached_property
    def pull(self) -> float:
        return float(np.linalg.norm((self.S @ self.from_known())[~self.known]))

    def residual(self, f: np.ndarray) -> float:
        """Of f, with the known values put back."""
        f = self.from_known(f)
        return float(np.linalg.norm((f - self.S @ f)[~self.known])) / self.pull

    def steps_to(self, goal: float, start: np.ndarray | float = 0.0) -> int:
        """How often f <- S f has to be repeated from ``start``; MAX_STEPS where that is not enough."""
        f = self.from_known(start)
        for step in range(MAX_STEPS):
            after = self.from_known(self.S @ f)
            if np.linalg.norm(after - f) <= goal * self.pull:
                return max(step, 1)
            f = after
        return MAX_STEPS


def problem(graph: Graph, share: float, threads: int, seed: int = 0) -> Harmonic:
    """Independent normal values at a share of the nodes."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(graph.n_nodes) < share, rng.standard_normal(graph.n_nodes), np.nan)
    return Harmonic(graph, values, threads)


Solve = Callable[[], np.ndarray]


def pyg(task: Harmonic, goal: float) -> tuple[int, Solve]:
    """Steps, and the run: float64, S as a sparse CSR tensor, which is the fastest of PyG's inputs here."""
    import torch
    from torch_geometric.nn import LabelPropagation

    torch.set_num_threads(task.threads)
    S = task.S
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its CSR tensors a beta
        parts = (torch.as_tensor(part.astype(np.int64)) for part in (S.indptr, S.indices))
        matrix = torch.sparse_csr_tensor(*parts, torch.as_tensor(S.data), S.shape)
    weight = torch.as_tensor(S.data)  # read only to see that the weights are given
    y, mask = torch.as_tensor(task.from_known())[:, None], torch.as_tensor(task.known)
    labels, steps = y[mask], task.steps_to(goal)

    def put_back(out):
        out[mask] = labels
        return out

    def solve() -> np.ndarray:
        model = LabelPropagation(steps, 1.0)
        return model(y, matrix, mask=mask, edge_weight=weight, post_step=put_back)[:, 0].numpy()

    return steps, solve


class Walk:
    """Values as scikit-network takes them: over sqrt(degree), none below zero, unknown -1."""

    def __init__(self, task: Harmonic):
        # A node without neighbours is known or stays where it is.
        self.root = np.where(task.root_degree > 0, task.root_degree, 1.0)
        scaled = task.values / self.root
        self.shift = -float(np.nanmin(scaled))
        self.values = np.where(task.known, scaled + self.shift, -1.0)
        self.adjacency = sp.csr_matrix(task.graph.adjacency())

    def back(self, values: np.ndarray) -> np.ndarray:
        return (values - self.shift) * self.root


def dirichlet(task: Harmonic, goal: float) -> tuple[int, Solve]:
    from sknetwork.regression import Dirichlet

    walk = Walk(task)
    start = walk.back(np.full(task.graph.n_nodes, walk.values[task.known].mean()))
    steps = task.steps_to(goal, start)
    return steps, lambda: walk.back(Dirichlet(steps).fit_predict(walk.adjacency, values=walk.values))


def diffusion(task: Harmonic, steps: int) -> np.ndarray:
    """Free diffusion, which lets the known values go as well."""
    from sknetwork.regression import Diffusion

    walk = Walk(task)
    return walk.back(Diffusion(steps, 1.0).fit_predict(walk.adjacency, values=walk.values))


METHODS = {
    "PyG LabelPropagation": ("torch_geometric", pyg),
    "scikit-network Dirichlet": ("sknetwork", dirichlet),
}


def compare(name: str, task: Harmonic) -> list[dict[str, Cell]]:
    """Rows: residua, then each peer to GOAL and to the residual that residua reached."""
    seconds = best_seconds(lambda: propagate(task.values, task.graph))
    reached = task.residual(propagate(task.values, task.graph))
    head = {"graph": name, "known": f"{task.known.mean():.0%}"}
    rows: list[dict[str, Cell]] = [
        {**head, "method": "residua.propagate", "steps": None, "residual": reached, "seconds": seconds, "times": 1.0}
    ]
    for method, (peer, prepare) in METHODS.items():
        for goal in (GOAL, reached) if installed(peer) else ():
            steps, solve = prepare(task, goal)
            repeats = 3 if steps < 200 else 1
            taken = best_seconds(solve, repeats)
            row = {**head, "method": method, "steps": steps, "residual": task.residual(solve())}
            rows.append({**row, "seconds": taken, "times": taken / seconds})
    return rows


def run(threads: int) -> Part:
    large, medium, side = (50_000, 20_000, 60) if QUICK else (1_000_000, 100_000, 300)
    flat = f"grid {side} x {side}"
    cases = [
        (f"Watts-Strogatz, n = {large:,}", watts_strogatz(large), 0.6),
        (f"Watts-Strogatz, n = {medium:,}", watts_strogatz(medium), 0.05),
        *((flat, grid(side), share) for share in (0.6, 0.05, 0.01)),
    ]
    compare("warm-up", problem(grid(30), 0.5, threads))
    rows = [row for name, graph, share in cases for row in compare(name, problem(graph, share, threads))]
    tables = [Table("Seconds to the residual named; 'times' is over residua", rows)]
    return Part(
        "propagation",
        "2. Label propagation",
        "Numbers at some nodes, spread to the others. Each peer runs twice: until the relative residual of the "
        "harmonic system is 1e-6, and until it is what residua.propagate reached; residua has one tolerance.",
        PEERS,
        tables,
        remarks(rows, problem(grid(side), 0.05, threads)),
    )


def remarks(rows: list[dict[str, Cell]], task: Harmonic) -> list[str]:
    found = []
    for method in METHODS:
        times = [float(row["times"] or 0) for row in rows if row["method"] == method]
        loose, tight = times[::2], times[1::2]
        if tight:
            found.append(
                f"{method}: {min(loose):.2g} to {max(loose):.2g} times residua's time to a residual of 1e-6 (where "
                f"residua goes on to its own), {min(tight):.2g} to {max(tight):.2g} times to the same residual."
            )
    if installed("sknetwork"):
        left = [task.residual(diffusion(task, steps)) for steps in (3, 30, 300)]
        found.append(
            "scikit-network's Diffusion lets known values go, so it does not solve this system: on the grid with 5 % "
            f"known its residual is {left[0]:.2f}, {left[1]:.2f} and {left[2]:.2f} after 3, 30 and 300 steps."
        )
    found.append("PyG propagates many columns, such as classes, in one call; residua.propagate takes one.")
    return found
