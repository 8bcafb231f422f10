"""What a dataset is: a graph, features and one label per node, and an account of how they were made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from residua.graph import Graph


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A graph with features and a label on its nodes; every row follows ``graph.nodes``.

    Parameters
    ----------
    graph : Graph
        n nodes.
    X : DataFrame, shape (n, k)
        Features, indexed by node id.
    y : array, shape (n,)
        The label in float64; NaN where it is unknown.
    nodes : DataFrame, shape (n, any)
        What else is known of the nodes, such as coordinates, indexed by node id.
    name : str
        Short name.
    notes : tuple of str
        What was dropped, filled or scaled, and what a reader of the numbers should know.
    source : str
        Where the data come from and under which licence.

    Examples
    --------
    >>> from residua.datasets import load_elect80
    >>> load_elect80()
    Dataset('elect80': 3,107 nodes, 9,063 edges, 3 features)
    """

    graph: Graph
    X: pd.DataFrame
    y: NDArray[np.float64]
    nodes: pd.DataFrame
    name: str
    notes: tuple[str, ...]
    source: str

    def __repr__(self) -> str:
        size = f"{self.graph.n_nodes:,} nodes, {self.graph.n_edges:,} edges, {self.X.shape[1]} features"
        return f"Dataset({self.name!r}: {size})"
