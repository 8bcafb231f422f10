"""The Laplacian of a graph as the normalised adjacency of another: self-loops give every node the highest degree.

    S = I - (D - A) / c = (A + C) / c,    C = diag(c - d_i),    c = max_i d_i

A weights without self-loops, D their degrees d_i. A + C has degree c everywhere, so S is its normalised adjacency, its
eigenvalues lie from -1 to 1, and the constant on each component is an eigenvector with eigenvalue 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from residua.graph.adjacency import CSR

if TYPE_CHECKING:
    from residua.graph.graph import Graph


def evened_matrices(graph: Graph) -> dict[str, CSR]:
    """Return A + C of the one edge type of a graph."""
    if len(graph.edge_types) > 1:
        raise ValueError(
            f'field="laplacian" takes one edge type and the graph has {list(graph.edge_types)}; join them to one, '
            'Graph.from_scipy(graph.adjacency(), graph.nodes), or take field="normalised".'
        )
    A = graph.adjacency()
    A.setdiag(0.0)
    A.eliminate_zeros()
    degree = np.asarray(A.sum(axis=1)).ravel()
    if not degree.any():
        raise ValueError('field="laplacian" takes differences along edges, and the graph has self-loops only.')
    even = sp.csr_array(A + sp.diags_array(degree.max() - degree))
    even.eliminate_zeros()
    even.sort_indices()
    return {graph.edge_types[0]: CSR(even.indptr, even.indices, None if (even.data == 1).all() else even.data)}
