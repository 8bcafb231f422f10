"""The likelihood as a training loss: a network learns, alpha is held and brought to its best now and then.

    loss(r) = log(q / |L|) - h(alpha) / |L|,    d loss/dr = 2 (G r)_L / q        (beta at its best, |L| / q)

One solve a step, started from the last one's result; the log-determinant is prepared once for all steps.
"""

from __future__ import annotations

import numpy as np

from residua.gaussian.fit import Profile
from residua.gaussian.likelihood import Likelihood, reached_nodes
from residua.gaussian.precision import unit_precision
from residua.graph import Graph
from residua.numerics import CG, Lanczos, Solver, Strategy
from residua.numerics.logdet import EIGEN_NODES


class Objective:
    """Omega of residuals at labelled nodes.

    Parameters
    ----------
    graph : the graph
    labelled : (n,) bool, the nodes whose residuals enter
    logdet, random_state : as in ``Likelihood``; "auto" prefers one preparation for every alpha to exactness
    """

    def __init__(self, graph: Graph, labelled: np.ndarray, logdet: str | Strategy = "auto", random_state: int = 0):
        if logdet == "auto" and len(graph.edge_types) == 1 and graph.n_nodes > EIGEN_NODES:
            logdet = Lanczos(random_state=random_state)
        # A training step moves the residuals by far more than this tolerance.
        solver = Solver(CG(tol=1e-6))
        self.labelled = labelled
        self.reached = reached_nodes(graph, labelled)
        self.likelihood = Likelihood(graph, labelled, logdet, solver, random_state)
        self.alpha = np.zeros(len(graph.edge_types))
        self._a: np.ndarray | None = None
        self._last: np.ndarray | None = None

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at residuals r (|L|,)."""
        self._last = self.likelihood.extend(r[:, None], self.alpha, self._last)
        Gr = unit_precision(self.likelihood.terms, self.alpha) @ self._last
        q = float((self._last * Gr).sum())
        h = float(self.likelihood.ratio.value(self.alpha).value) if self.alpha.any() else 0.0
        return float(np.log(q / len(r))) - h / len(r), 2 * Gr[self.likelihood.L, 0] / q

    def correction(self) -> np.ndarray:
        """(n,) the residuals of the last loss, carried on to the nodes that did not enter; 0 where none reaches."""
        assert self._last is not None
        full = np.zeros(len(self.reached))
        full[self.reached] = self._last[:, 0]
        return full

    def refit(self, r: np.ndarray) -> None:
        """Bring alpha to its best for residuals r."""
        self._a = Profile(self.likelihood, r).optimise(self._a)
        self.alpha = np.tanh(self._a)
