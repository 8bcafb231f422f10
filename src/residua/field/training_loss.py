"""The likelihood as a training loss: a network learns, alpha is kept fixed and brought to its best now and then.

    loss(r) = log(q / |L|) - h(alpha) / |L|,    d loss/dr = 2 (G r)_L / q        (beta at its best, |L| / q)

One solve a step, started from the last one's result; the log-determinant is prepared once for all steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize

from residua.field.likelihood import Likelihood
from residua.field.precision import A_MAX, unit_precision
from residua.field.profile import Profile
from residua.field.search import search
from residua.graph.interface import GraphLike
from residua.linalg import CG, Lanczos, Solver, Strategy
from residua.linalg.kernels.conditional_mean import conditional_mean
from residua.linalg.logdet.choice import EIGEN_NODES
from residua.linalg.operator import SMALL_SYSTEM

THOROUGH = {1} | {2 * 4**k for k in range(16)}  # times at which alpha is searched for, not followed


def training_likelihood(
    graph: GraphLike, labelled: np.ndarray, logdet: str | Strategy, random_state: int, tol: float = 1e-3
) -> Likelihood:
    """Return the likelihood as a training asks for it: one preparation for every alpha, rather than exactness."""
    if logdet == "auto" and len(graph.edge_types) == 1 and graph.n_nodes > EIGEN_NODES:
        logdet = Lanczos(random_state=random_state)
    return Likelihood(graph, labelled, logdet, Solver(CG(tol=tol)), random_state)


def _fill(likelihood: Likelihood, r: np.ndarray, alpha: np.ndarray, full: np.ndarray) -> tuple[np.ndarray, float]:
    """Fill ``full`` (n,), a start, with r (|L|,) and its conditional mean at U; returns (G full)_L and full'G full."""
    (G, G_UU), solver = likelihood.precisions(alpha), likelihood.solver
    if G.S.nnz < SMALL_SYSTEM:
        Gr, q, done = conditional_mean(G, G_UU, likelihood.L, likelihood.U, r, full, solver.cg.tol, solver.patience)
        if done:
            return Gr, q
    full[:] = likelihood.conditional_mean(r[:, None], alpha, full[:, None])[:, 0]
    pulled = G @ full
    return pulled[likelihood.L], float(full @ pulled)


class Objective:
    """Omega of residuals at labelled nodes.

    Parameters
    ----------
    graph : GraphLike
        The graph.
    labelled : ndarray of bool, shape (n,)
        The nodes whose residuals enter.
    logdet : str or Strategy
        As in ``Likelihood``; "auto" prefers one preparation for every alpha to exactness.
    random_state : int
        Seed of probes.
    tol : float
        Tolerance of the solve, relative to the residuals, which a training step moves by far more.
    """

    def __init__(
        self,
        graph: GraphLike,
        labelled: np.ndarray,
        logdet: str | Strategy = "auto",
        random_state: int = 0,
        tol: float = 1e-3,
    ):
        self.n = graph.n_nodes
        self.likelihood = training_likelihood(graph, labelled, logdet, random_state, tol)
        self._in_place = np.array_equal(self.likelihood.nodes, np.arange(self.n))
        self.alpha = np.zeros(len(graph.edge_types))
        self.ratio = self.likelihood.ratio
        self._logdet, self._q = 0.0, 0.0  # h at alpha, and the quadratic form
        self._a: np.ndarray | None = None
        self._refits, self._curvature = 0, 0.0
        # Residuals of the last loss at every node, and of the one before.
        self._last = self._before = np.zeros(self.likelihood.terms[0].n_local)

    def loss(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient at residuals r (|L|,)."""
        # Training moves on as it moved before: the start is a step ahead.
        self._before, self._last = self._last, 2 * self._last - self._before
        Gr, self._q = _fill(self.likelihood, r, self.alpha, self._last)
        value = float(np.log(self._q / len(r))) - self._logdet / len(r)
        return value, 2 * Gr / self._q

    def slope(self, at: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the gradient at some labels after their residuals became r; others are as they were in ``loss``."""
        rows = self.likelihood.L[at]
        self._last[rows] = r
        pull = sum(a * S.product_at(rows, self._last) for a, S in zip(self.alpha, self.likelihood.terms, strict=True))
        return 2 * (r - pull) / self._q

    def correction(self) -> np.ndarray:
        """Return the residuals (n,) of the last loss, and their conditional mean at the nodes that did not enter.

        It is 0 where none reaches. To be read, not written to.
        """
        if self._in_place:
            return self._last
        full = np.zeros(self.n)
        full[self.likelihood.nodes] = self._last
        return full

    def refit(self, r: np.ndarray) -> None:
        """Bring alpha to its best for residuals r: thoroughly the 1st, 2nd, 8th, 32nd ... time.

        It moves less and less; in between, a Newton step follows it. Several edge types wait for the 4th, 16th ... time
        instead, since each of their slopes takes a factorisation.
        """
        self._refits += 1
        often = len(self.alpha) > 1 and self._refits & (self._refits - 1) == 0
        if self._a is None or often or self._refits in THOROUGH:
            a, profile = search(Profile(self.likelihood, r, ratio=self.ratio), self._a, rough=True)
            self.ratio = profile.ratio
            self._curvature = float(profile.hessian(a)[0, 0]) if len(a) == 1 else 0.0
            self._set(a)
        elif len(self._a) == 1:
            self._newton()

    def _newton(self, reach: float = 0.3) -> None:
        """One step on the slope of Omega in a, at the residuals of the last loss; its curvature changes little."""
        assert self._a is not None
        pull = float(self._last @ (self.likelihood.terms[0] @ self._last))
        slope = -len(self.likelihood.L) * pull / self._q - np.asarray(self.ratio.gradient(self.alpha).value)[0]
        slope = float(slope * (1 - self.alpha[0] ** 2))
        move = -slope / self._curvature if self._curvature > 0 else -np.sign(slope) * reach
        self._set(np.clip(self._a + np.clip(move, -reach, reach), -A_MAX, A_MAX))

    def _set(self, a: np.ndarray) -> None:
        self._a, self.alpha = a, np.tanh(a)
        self._logdet = float(self.ratio.value(self.alpha).value)

    def state(self) -> dict[str, np.ndarray]:
        """Return what a later training has to know to go on as this one would have."""
        found = {"last": self._last, "before": self._before, "refits": np.array([self._refits, self._curvature])}
        found["probes"] = np.array(self.ratio.effort, int)
        return found if self._a is None else found | {"a": self._a}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from ``state``."""
        self._last, self._before = state["last"].copy(), state["before"].copy()
        self._refits, self._curvature = int(state["refits"][0]), float(state["refits"][1])
        if state["probes"].size:
            self.ratio = self.ratio.with_effort(state["probes"].ravel()[-2:].tolist())
        if "a" in state:
            self._set(state["a"])


class PaperObjective:
    """Algorithm 2 as the authors ran it: theta on mini-batches of the quadratic form, alpha and beta on all labels.

    A batch is a labelling of its own: every other node, labelled or not, is marginalised out.
    """

    def __init__(
        self, graph: GraphLike, labelled: np.ndarray, logdet: str | Strategy, random_state: int, lbfgs: bool = False
    ):
        self.likelihood = training_likelihood(graph, labelled, logdet, random_state, 1e-6)
        self.terms = list(graph.operators.values())
        self.lbfgs = lbfgs
        self.a, self.b = np.zeros(len(self.terms)), 3.0

    def batch_slope(self, batch: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the gradient of the quadratic form of r at nodes ``batch``, divided by their number."""
        G = unit_precision(self.terms, np.tanh(self.a))
        others = np.delete(np.arange(G.shape[0]), batch)
        G_UU, full, solver = G.submatrix(others), np.zeros(G.shape[0]), self.likelihood.solver
        Gr, _, done = conditional_mean(G, G_UU, batch, others, r, full, solver.cg.tol, solver.patience)
        if not done:
            full[others] = 0
            full[others] = solver.solve(G_UU, -(G @ full)[others]).X
            Gr = (G @ full)[batch]
        return 2 * np.exp(self.b) * Gr / len(r)

    def update(self, r: np.ndarray) -> None:
        """Move alpha and beta, given residuals r at all labels."""
        self._minimise(r) if self.lbfgs else self._descend(r)

    def _omega(self, v: np.ndarray, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Omega divided by the number of labels, and its gradient in (a, b)."""
        alpha, beta = np.tanh(v[:-1]), np.exp(v[-1])
        found = self.likelihood.omega(r, alpha, beta)
        return found.value / len(r), np.append(found.alpha * (1 - alpha**2), found.beta * beta) / len(r)

    def _descend(self, r: np.ndarray, rate: float = 0.1) -> None:
        """One plain gradient step."""
        v = np.append(self.a, self.b)
        v -= rate * self._omega(v, r)[1]
        self.a, self.b = v[:-1], float(v[-1])

    def _minimise(self, r: np.ndarray, bound: float = 7.0) -> None:
        """Minimise inside the bounds, from several initial values."""
        starts = [np.append(self.a, self.b), *(np.append(np.full(len(self.a), a), 1.0) for a in (-2, -1, 0, 1, 2))]
        limits = [(-bound, bound)] * len(starts[0])
        runs = [minimize(self._omega, s, (r,), jac=True, method="L-BFGS-B", bounds=limits) for s in starts]
        best = min(runs, key=lambda run: run.fun)
        self.a, self.b = best.x[:-1], float(best.x[-1])

    def state(self) -> dict[str, np.ndarray]:
        """Return what a later training has to know to go on as this one would have."""
        return {"v": np.append(self.a, self.b)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from ``state``."""
        self.a, self.b = state["v"][:-1], float(state["v"][-1])
