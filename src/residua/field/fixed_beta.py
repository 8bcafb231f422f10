"""beta where alpha is given, 0 or 1, and not learned.

beta = (|L| - free) / q,    q = r_L' Gbar r_L

free counts the coefficients without a prior, or the levels of propagation: one on each component that has a label.
"""

from __future__ import annotations

import numpy as np

from residua.field.coefficients import Design
from residua.field.conditional import Conditional
from residua.graph import Graph


def fixed_beta(
    residual: np.ndarray, graph: Graph, y: np.ndarray, alpha: dict[str, float], design: Design | None
) -> float:
    """Return beta of residuals (|L|,) of labels y (n,), NaN where unknown, under an alpha that is given, 0 or 1.

    ``design`` is the linear mean of the base, if it has one.
    """
    labelled = ~np.isnan(y)
    conditional = Conditional(graph, labelled, alpha)
    full = np.full(graph.n_nodes, np.nan)
    full[labelled] = residual
    q = conditional.quadratic_form(full)
    size, n = graph.rows.sum(np.array([residual @ residual, len(residual)]))
    highest, lowest = (sign * graph.rows.max((sign * y[labelled]).max(initial=-np.inf)) for sign in (1, -1))
    rounding = n * float(max(1e-13 * (highest - lowest), 4e-15 * max(highest, -lowest))) ** 2
    if size <= rounding or q <= 1e-13 * max(float(size), np.finfo(float).tiny):
        raise ValueError(
            f"the base leaves no residual at the {n:.0f} labels (a constant y, as many features as labels, or, "
            "with propagation, one label in each component); "
            "there is nothing to learn."
        )
    # Propagation leaves one free level on each component, a linear mean its coefficients without a prior.
    free = 0
    if conditional.improper:
        free = graph.count_components(labelled)
    elif design is not None:
        columns = design.matrix()[labelled]
        free = graph.rows.column_basis(columns[:, np.isinf(design.variance(columns.shape[1]))])[0].shape[1]
        q += design.misfit
    return max(float(n) - free, 1) / q
