"""Residuals of several models at once, each of which knows other labels: what they say of the labels it does not know.

    r_U = -G_UU^-1 G_UK r_K,    slope = (G r)_K = Gbar_K r_K,    G = I - sum_t alpha_t S_t

K labels that a model learns from, U all other nodes. The models share alpha, and one pass over the graph.
"""

from __future__ import annotations

import numpy as np

from residua.caller import warn
from residua.field.conditional import Conditional
from residua.field.precision import unit_precision
from residua.graph.interface import GraphLike
from residua.linalg import NotConverged
from residua.linalg.kernels.masked import conditional_means, group_grams

STEPS = 2000  # of conjugate gradients at most
DRAWS = 32  # for precisions, good to a few per cent: targets and weights of a fit need no more


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
        self.graph, self.terms, self.known, self.tol = graph, list(graph.operators.values()), known, tol
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

    def precisions(self) -> np.ndarray:
        """Return diag(Gbar) (n, k): what the others leave of the precision of each known residual; 0 elsewhere."""
        out = np.zeros(self.known.shape)
        alpha = dict(zip(self.graph.edge_types, self.alpha, strict=True))
        for k, known in enumerate(self.known.T):
            out[known, k] = Conditional(self.graph, known, alpha, draws=DRAWS, exact=False).schur_diagonal
        return out

    def grams(self, group: np.ndarray, groups: int) -> np.ndarray:
        """Return ``C' G C`` (k, groups, groups) for the indicators C of the groups (n, k) of nodes."""
        return group_grams(*self.matrix, group, groups)
