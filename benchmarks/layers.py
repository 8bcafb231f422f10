"""The paper's two layers of each kind, forward and backward: on residua's kernels over PyG's layers, in one run.

As in training, what is gathered of the input is computed once on residua's side; PyG's layers keep nothing.
"""

import numpy as np
import torch
from rich.console import Console
from torch_geometric.nn import GCNConv, SAGEConv

from benchmarks.common import best_of_each, watts_strogatz
from residua.bases.networks.layers import GCN, MaxSAGE, MeanSAGE, SelfSAGE

FEATURES, WIDTHS = 8, (16, 8)
SIZES = (3_000, 100_000)
KINDS = {
    "gcn": (GCNConv, GCN),
    "sage": (SAGEConv, MeanSAGE),
    "sage-gcn": (lambda *sizes: SAGEConv(*sizes, root_weight=False), SelfSAGE),  # PyG's without the node itself
    "sage-max": (lambda *sizes: SAGEConv(*sizes, aggr="max"), MaxSAGE),
    "sage-pool": (
        lambda *sizes: SAGEConv(*sizes, aggr="max", project=True),
        lambda *sizes: MaxSAGE(*sizes, project=True),
    ),
}


def step(make, x: torch.Tensor, edge_index: torch.Tensor):
    """A pass through both layers and back."""
    first, second = make(x.shape[1], WIDTHS[0]), make(*WIDTHS)

    def work() -> None:
        second(first(x, edge_index).relu(), edge_index).relu().sum().backward()

    work()  # compiled, and what does not change is gathered
    return work


def run(console: Console | None = None) -> None:
    console = console or Console()
    console.rule("Layers of networks, forward and backward")
    for n in SIZES:
        low, high = watts_strogatz(n)
        edge_index = torch.from_numpy(np.stack([np.append(low, high), np.append(high, low)]).astype(np.int64))
        x = torch.from_numpy(np.random.default_rng(0).standard_normal((n, FEATURES), np.float32))
        for name, makers in KINDS.items():
            theirs, ours = best_of_each(*(step(make, x, edge_index) for make in makers))
            console.print(
                f"{name}, n = {n:,}: {1e3 * ours:.2f} ms, PyG {1e3 * theirs:.2f} ms: {theirs / ours:.1f} times faster",
                highlight=False,
            )
    console.print()


if __name__ == "__main__":
    run()
