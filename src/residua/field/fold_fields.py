"""Residuals of several models at once, each of which knows other labels: what they say of the labels it does not know.

    r_U = -G_UU^-1 G_UK r_K,    slope = (G r)_K = Gbar_K r_K,    G = I - sum_t alpha_t S_t

K labels that a model learns from, U all other nodes. The models share alpha, and one pass over the graph.
"""

from __future__ import annotations

import numpy as np

from residua.caller import warn
from residua.field.precision import unit_precision
from residua.graph.interface import GraphLike
from residua.linalg import NotConverged
from residua.linalg.kernels.masked import conditional_means, group_grams

STEPS = 2000  # of conjugate gradients at most


class FoldFields:
    """The fields of k models with one alpha.

    Parameters
    ----------
    graph : GraphLike
        The graph.
    known : ndarray of bool, shape (n, k)
        The labels that each model learns from.
    tol : float
        Tolerance of the solves, relative to the residuals.
    """

    def __init__(self, graph: GraphLike, known: np.ndarray, tol: float = 1e-3):
        self.terms, self.known, self.tol = list(graph.operators.values()), known, tol
        self.set_alpha(np.zeros(len(self.terms)))

    def set_alpha(self, alpha: np.ndarray) -> None:
        """Go over to another alpha (edge types,)."""
        self.alpha = np.array(alpha, float)
        M = unit_precision(self.terms, self.alpha)
        S = M.S.to_scipy()
        self.matrix = S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data * M.alpha

    def complete(self, R: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        """Fill columns R (n, k) with their conditional means where they are not known; return ``G R`` (n, k)."""
        pulled, steps = conditional_means(*self.matrix, self.known if known is None else known, R, self.tol, STEPS)
        if steps >= STEPS:
            warn(f"CG stopped after {steps} steps at alpha={self.alpha}, relative residual > {self.tol}.", NotConverged)
        return pulled

    def grams(self, group: np.ndarray, groups: int) -> np.ndarray:
        """Return ``C' G C`` (k, groups, groups) for the indicators C of the groups (n, k) of nodes."""
        return group_grams(*self.matrix, group, groups)
