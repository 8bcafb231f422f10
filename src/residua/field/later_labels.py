"""Labels that came after a fit, or of another graph, with the variances of their noise.

y_i = f_i + eps_i,    eps_i ~ N(0, N_i)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from residua.by_id import NoisyLabels, labels_by_id
from residua.graph import Graph
from residua.validation import check_noise, check_values


def read_labels(
    given: Any, graph: Graph, own: np.ndarray | None, learned: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return checked labels (n,), NaN where unknown, and the variances (n,) of their noise; None for none.

    Parameters
    ----------
    given : array, Series, mapping, NoisyLabels or None
        As the user gave them.
    graph : Graph
        n nodes.
    own : ndarray of shape (|L|,) or None
        Variances of the labels of the fit; None for labels without noise.
    learned : bool
        Whether they were learned: where they are all the same, later labels have that noise too.
    """
    variance, y = (given.variance, given.y) if isinstance(given, NoisyLabels) else (None, given)
    if y is None:
        return np.full(graph.n_nodes, np.nan), None
    y = check_values(labels_by_id(y, graph), graph, "y")
    known = ~np.isnan(y)
    if isinstance(variance, str):
        raise ValueError(f"noise_variance={variance!r}: give variances of the labels in y; nothing is learned here.")
    if variance is not None:
        found = check_noise(None, labels_by_id(variance, graph, "noise_variance"), graph, known)
        return y, None if found is None else found[0]
    if own is None or not known.any():
        return y, None
    if not learned or own.min() < own.max():
        raise ValueError(
            "y has labels whose noise is not known; give noise_variance= beside it, as in fit (0 for labels without)."
        )
    return y, np.where(known, own[0], np.nan)
