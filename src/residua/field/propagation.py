"""Label propagation of numbers: the Gaussian's mean in the limit alpha = 1.

(I - S_UU) f_U = S_UL f_L                (paper, section 2.3)
"""

from __future__ import annotations

import numpy as np

from residua.caller import warn
from residua.field.conditional import Conditional
from residua.graph import Graph
from residua.graph.interface import GraphLike
from residua.validation import check_known_values


def propagate(values: np.ndarray, graph: Graph, *, fallback: float | None = None) -> np.ndarray:
    """Fill unknown nodes from known ones by label propagation.

    Values are taken as deviations from zero and scale with the root of a node's degree (the normalised Laplacian of
    the paper): centre them first, or use ``GraphRegressor("mean", "propagate")``, which does.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers in the order of ``graph.nodes``, or a Series by id; NaN where unknown.
    graph : Graph
        All edge types count alike.
    fallback : float, optional
        The number for unreached nodes, in components without a known value; by default the mean of the known values.

    Returns
    -------
    ndarray, shape (n,)
        Known values unchanged. A component without a known value gets ``fallback`` and is named in a warning.

    Examples
    --------
    >>> import numpy as np, residua
    >>> ring = residua.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> residua.propagate([1.0, np.nan, 3.0, np.nan], ring)
    array([1., 2., 3., 2.])
    """
    array, labelled = check_known_values(values, graph, "values", least=1)
    filled, unreached = fill(array, labelled, graph, fallback)
    if unreached.any():
        warn_unreached(graph, unreached, f"they get {filled[unreached][0]:.4g}")
    return filled


def fill(
    values: np.ndarray, labelled: np.ndarray, graph: GraphLike, fallback: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the propagated values (n,), and the mask of nodes that no label reaches, which get ``fallback``."""
    conditional = Conditional(graph, labelled, 1.0)
    filled = conditional.conditional_mean(values)
    if fallback is None:
        total, count = graph.rows.sum(np.array([values[labelled].sum(), labelled.sum()]))
        fallback = float(total / count)
    filled[conditional.unreached] = fallback
    return filled, conditional.unreached


def warn_unreached(graph: Graph, unreached: np.ndarray, outcome: str) -> None:
    """Name the components without a label."""
    empty, all_of_them = len(np.unique(graph.components[unreached])), graph.components.max() + 1
    first = graph.nodes[unreached][:3]
    shown = ", ".join(map(repr, first.tolist())) + (", ..." if unreached.sum() > 3 else "")
    warn(f"{empty} of {all_of_them} components have no label ({unreached.sum()} nodes: {shown}); {outcome}.")
