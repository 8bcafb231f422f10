"""The likelihood as a training loss: a network learns, alpha is held and brought to its best now and then.

    loss(r) = log(q / |L|) - h(alpha) / |L|,    d loss/dr = 2 (G r)_L / q        (beta at its best, |L| / q)

One solve a step, started from the last one's result; the log-determinant is prepared once for all steps.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from residua.gaussian.fit import CorrelationFit, Profile, fit_profile
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
        self._height = 0.0  # h at alpha
        self._a: np.ndarray | None = None
        self._last: np.ndarray | None = None

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at residuals r (|L|,)."""
        self._last = self.likelihood.extend(r[:, None], self.alpha, self._last)
        Gr = unit_precision(self.likelihood.terms, self.alpha) @ self._last
        q = float((self._last * Gr).sum())
        return float(np.log(q / len(r))) - self._height / len(r), 2 * Gr[self.likelihood.L, 0] / q

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
        self._height = float(self.likelihood.ratio.value(self.alpha).value)


class Correlator:
    """What a base is handed to fit itself together with the correlation: a fit of residuals, or a training loss."""

    def __init__(self, graph: Graph, labelled: np.ndarray, logdet: str | Strategy = "auto", random_state: int = 0):
        self.graph, self.labelled = graph, labelled
        self.logdet, self.random_state = logdet, random_state
        self.likelihood = Likelihood(graph, labelled, logdet, random_state=random_state)

    def __call__(self, y: np.ndarray, design: np.ndarray | None = None) -> CorrelationFit:
        """Fit alpha, beta and the coefficients of a linear mean to y (|L|,)."""
        return fit_profile(self.likelihood, y, self.graph.edge_types, design)

    def objective(self, labelled: np.ndarray) -> Objective:
        """A training loss on the residuals at ``labelled``, a part of the labelled nodes."""
        return Objective(self.graph, labelled, self.logdet, self.random_state)

    def paper_objective(self) -> PaperObjective:
        """The paper's own updates on all labelled nodes."""
        return PaperObjective(self.graph, self.labelled, self.logdet, self.random_state)


class PaperObjective:
    """Algorithm 2 as the authors ran it: theta on mini-batches of the quadratic form, alpha and beta on all labels.

    A batch is a labelling of its own: every other node, labelled or not, is marginalised out.
    """

    def __init__(self, graph: Graph, labelled: np.ndarray, logdet: str | Strategy, random_state: int):
        self.terms = list(graph.operators.values())
        self.whole = Objective(graph, labelled, logdet, random_state)
        self.a, self.b = np.zeros(len(self.terms)), 3.0

    def batch_loss(self, batch: np.ndarray, r: np.ndarray) -> tuple[float, np.ndarray]:
        """The quadratic form of r at nodes ``batch``, divided by their number, and its gradient."""
        G = unit_precision(self.terms, np.tanh(self.a))
        others = np.delete(np.arange(G.shape[0]), batch)
        full = np.zeros(G.shape[0])
        full[batch] = r
        full[others] = self.whole.likelihood.solver.solve(G.submatrix(others), -(G @ full)[others]).X
        Gr = np.exp(self.b) * (G @ full)[batch]
        return float(r @ Gr) / len(r), 2 * Gr / len(r)

    def step(self, r: np.ndarray, rate: float = 0.1) -> None:
        """One plain gradient step on a and b, from Omega of all labels divided by their number."""
        alpha, beta = np.tanh(self.a), np.exp(self.b)
        omega = self.whole.likelihood.omega(r, alpha, beta)
        self.a = self.a - rate * omega.alpha * (1 - alpha**2) / len(r)
        self.b = self.b - rate * omega.beta * beta / len(r)

    def minimise(self, r: np.ndarray, bound: float = 7.0) -> None:
        """The alternative to ``step``: a and b to their optimum inside the bounds, from several starts."""
        likelihood = self.whole.likelihood

        def omega(v: np.ndarray) -> tuple[float, np.ndarray]:
            alpha, beta = np.tanh(v[:-1]), np.exp(v[-1])
            found = likelihood.omega(r, alpha, beta)
            return found.value / len(r), np.append(found.alpha * (1 - alpha**2), found.beta * beta) / len(r)

        starts = [np.append(self.a, self.b), *(np.append(np.full(len(self.a), a), 1.0) for a in (-2, -1, 0, 1, 2))]
        limits = [(-bound, bound)] * len(starts[0])
        best = min(
            (minimize(omega, s, jac=True, method="L-BFGS-B", bounds=limits) for s in starts), key=lambda m: m.fun
        )
        self.a, self.b = best.x[:-1], float(best.x[-1])
