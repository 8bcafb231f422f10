"""The precision matrix of the residuals.

    Gamma = beta (I - sum_t alpha_t S_t)      (paper, Eq. 5 and section 2.4)

beta is kept apart: solvers and log-determinants work on the part in brackets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from residua.graph.interface import GraphLike
from residua.linalg import Matrix, Shifted, weighted_sum

# Beyond this |alpha| the matrix is singular to working precision.
ALPHA_MAX = 1 - 1e-6
A_MAX = float(np.arctanh(ALPHA_MAX))


def unit_precision(terms: Sequence[Matrix], alpha: np.ndarray) -> Shifted:
    """Return ``I - sum_t alpha_t S_t``."""
    if len(terms) == 1:
        return Shifted(terms[0], float(alpha[0]))
    return Shifted(weighted_sum(list(terms), alpha), 1.0)


def check_alpha(alpha: float | Mapping[str, float], graph: GraphLike, *, limit: bool = False) -> np.ndarray:
    """Return one alpha for each edge type of the graph, inside (-1, 1); ``limit`` admits 1, label propagation."""
    if isinstance(alpha, Mapping):
        missing = [t for t in graph.edge_types if t not in alpha]
        if missing or len(alpha) != len(graph.edge_types):
            raise ValueError(f"alpha has types {list(alpha)} but graph has {list(graph.edge_types)}; give one each.")
        values = np.array([alpha[t] for t in graph.edge_types], float)
    else:
        values = np.broadcast_to(np.asarray(alpha, float), (len(graph.edge_types),)).copy()
    if limit and (values == 1).all():
        return values
    if not (np.abs(values) < 1).all():
        raise ValueError(f"alpha={alpha} is outside (-1, 1); the precision matrix would not be positive definite.")
    return values
