"""Marginal likelihood of residuals at labelled nodes.

    Omega = -2 log p(r) = beta q(alpha) - |L| log beta - h(alpha) + |L| log 2 pi       (paper, Eq. 12)
    q = r_L' (G_LL - G_LU G_UU^-1 G_UL) r_L,    h = logdet G - logdet G_UU,    G = I - sum_t alpha_t S_t

G precision for beta = 1, L labelled, U unlabelled, r residuals at L. With r_U = -G_UU^-1 G_UL r_L, one solve,
q = r' G r and by the envelope theorem dq/dalpha_t = -r' S_t r, dq/dr_L = 2 (G r)_L. Components without a label add
nothing and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from residua.field.precision import unit_precision
from residua.graph import Graph
from residua.linalg import Lanczos, Ratio, Shifted, Solver, Sparse, Strategy
from residua.linalg.lanczos import BlockLanczos, BlockQuadrature
from residua.linalg.logdet.exact import auto


@dataclass(frozen=True)
class Omega:
    """-2 log-likelihood and its gradients."""

    value: float
    alpha: np.ndarray  # (p,) d/dalpha
    beta: float  # d/dbeta
    residual: np.ndarray  # (|L|,) d/dr_L
    stderr: float  # of value, from the log-determinant; 0 where exact
    alpha_stderr: np.ndarray  # (p,)


class Likelihood:
    """The likelihood of one labelling of a graph; residuals, alpha and beta vary.

    Parameters
    ----------
    graph : the graph
    labelled : (n,) bool
    logdet : "auto", or a strategy such as ``Eigen()``, ``Cholesky()``, ``Lanczos(probes, steps)``
    solver : how linear systems are solved
    random_state : seed of the probes that "auto" may use

    Attributes
    ----------
    nodes : positions in the graph of the rows that are worked on
    L, U : which of those rows are labelled, in the order of the graph, and which are not
    """

    def __init__(
        self,
        graph: Graph,
        labelled: np.ndarray,
        logdet: str | Strategy = "auto",
        solver: Solver | None = None,
        random_state: int = 0,
    ):
        self.nodes = in_order(graph, reached_nodes(graph, labelled))
        terms = list(graph.operators.values())
        if not np.array_equal(self.nodes, np.arange(graph.n_nodes)):
            terms = [S.submatrix(self.nodes) for S in terms]
        self.terms: list[Sparse] = terms
        place = np.empty(graph.n_nodes, np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        self.L, self.U = place[labelled], np.flatnonzero(~labelled[self.nodes])
        self.solver = solver or Solver()
        self.strategy = self._strategy(logdet, random_state)
        self._precisions: tuple[np.ndarray, tuple[Shifted, Shifted]] | None = None

    def _strategy(self, logdet: str | Strategy, random_state: int) -> Strategy:
        if isinstance(logdet, Strategy):
            return logdet
        if logdet != "auto":
            raise ValueError(f'logdet={logdet!r} is unknown; use "auto", Eigen(), Cholesky() or Lanczos().')
        return auto(self.terms, Lanczos(probes=None, random_state=random_state))

    @cached_property
    def ratio(self) -> Ratio:
        """The log-determinants as a function of alpha; replaced by one with more probes where a fit asks for it."""
        return self.strategy.prepare(self.terms, self.U)

    @cached_property
    def terms_UU(self) -> list[Sparse]:
        return [S.submatrix(self.U) for S in self.terms]

    def precisions(self, alpha: np.ndarray) -> tuple[Shifted, Shifted]:
        """G and G_UU for beta = 1; kept for the last alpha, since several edge types have to be added up."""
        if self._precisions is None or not np.array_equal(self._precisions[0], alpha):
            pair = unit_precision(self.terms, alpha), unit_precision(self.terms_UU, alpha)
            self._precisions = np.array(alpha, float), pair
        return self._precisions[1]

    def embed(self, R: np.ndarray) -> np.ndarray:
        """Columns (|L|, k) as (n, k), zero at U."""
        out = np.zeros((self.terms[0].shape[0], R.shape[1]))
        out[self.L] = R
        return out

    def extend(self, R: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """Columns R (|L|, k) carried on to U by their conditional mean, one solve each; (n, k)."""
        full = self.embed(R)
        G, G_UU = self.precisions(alpha)
        pull = -(G @ full)[self.U]
        full[self.U] = self.solver.solve(G_UU, pull, None if start is None else start[self.U]).X
        return full

    def omega(self, r: np.ndarray, alpha: np.ndarray, beta: float) -> Omega:
        """Value and gradients at residuals r (|L|,)."""
        full = self.extend(r[:, None], alpha)
        Gr = self.precisions(alpha)[0] @ full
        q = float((full * Gr).sum())
        slope = np.array([-(full * (S @ full)).sum() for S in self.terms])
        h, dh = self.ratio.value(alpha), self.ratio.gradient(alpha)
        return Omega(
            value=beta * q - len(self.L) * np.log(beta) - float(h.value) + len(self.L) * np.log(2 * np.pi),
            alpha=beta * slope - dh.value,
            beta=q - len(self.L) / beta,
            residual=2 * beta * Gr[self.L, 0],
            stderr=float(h.stderr),
            alpha_stderr=np.asarray(dh.stderr),
        )


def in_order(graph: Graph, wanted: np.ndarray) -> np.ndarray:
    """Positions at which ``wanted`` (n,) is true, in the order in which work on them is fastest."""
    if graph.near_order is None:
        return np.flatnonzero(wanted)
    return graph.near_order[wanted[graph.near_order]]


def reached_nodes(graph: Graph, labelled: np.ndarray) -> np.ndarray:
    """(n,) bool: nodes in a component that has a label."""
    has_label = np.zeros(graph.components.max() + 1, bool)
    has_label[graph.components[labelled]] = True
    return has_label[graph.components]


class QuadraticForm:
    """``Q(alpha) = R' (G_LL - G_LU G_UU^-1 G_UL) R`` of columns R (|L|, k), for every alpha.

    For one edge type, one block Lanczos run on S_UU from B = S_UL R serves all of them:
    ``Q = R'R - alpha R' S_LL R - alpha^2 B' (I - alpha S_UU)^-1 B``. For several, or where that run grows too long,
    each alpha costs a solve.
    """

    MAX_SIZE = 900  # of the projected matrix

    def __init__(self, likelihood: Likelihood, R: np.ndarray):
        self.likelihood, self.R = likelihood, R
        self.rule: BlockQuadrature | None = None
        self.run: BlockLanczos | None = None
        self._solved_at = (np.empty(0), np.empty(0))
        if len(likelihood.terms) == 1:
            self._start_run()

    def _start_run(self) -> None:
        S, L, U = self.likelihood.terms[0], self.likelihood.L, self.likelihood.U
        SR = S @ self.likelihood.embed(self.R)
        self.constant, self.linear = self.R.T @ self.R, self.R.T @ SR[L]
        if len(U):
            self.run = BlockLanczos(self.likelihood.terms_UU[0], SR[U])
            self.rule = self.run.more_steps(12)
        else:
            self.rule = BlockQuadrature(np.zeros(0), np.zeros((0, self.R.shape[1])))

    @property
    def method(self) -> str:
        if self.rule is None:
            return "a linear solve for each alpha"
        return f"one Lanczos run of {self.run.steps if self.run else 0} steps for all alphas"

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        if self.rule is None:
            full = self._extended(alpha)
            return full.T @ (self.likelihood.precisions(alpha)[0] @ full)
        a = float(alpha[0])
        return self.constant - a * self.linear - a * a * self.rule.apply(lambda x: 1 / (1 - a * x))

    def slopes(self, alpha: np.ndarray) -> np.ndarray:
        """``dQ/dalpha_t``, shape (p, k, k)."""
        full = self._extended(alpha)
        return np.array([-(full.T @ (S @ full)) for S in self.likelihood.terms])

    def refine(self, alphas: np.ndarray, tol: float = 1e-11) -> bool:
        """Take more steps if Q has not settled at each of ``alphas``; False once it has."""
        if self.rule is None or self.run is None or self.run.exhausted:
            return False
        before = np.array([self(np.array([a])) for a in alphas])
        self.rule = self.run.more_steps(max(8, self.run.steps // 2))
        change = np.abs(np.array([self(np.array([a])) for a in alphas]) - before)
        root = np.sqrt(np.diagonal(before, axis1=1, axis2=2))
        if (change <= tol * root[:, :, None] * root[:, None, :]).all():
            return False
        if len(self.rule.values) > self.MAX_SIZE:
            self.rule = None
        return True

    def forget(self) -> None:
        """Drop the last solve, so that what comes next does not depend on what was asked before."""
        self._solved_at = (np.empty(0), np.empty(0))

    def _extended(self, alpha: np.ndarray) -> np.ndarray:
        """R carried on to U at alpha; the last one is kept, as start for the next and for the slopes."""
        at, full = self._solved_at
        if not np.array_equal(at, alpha):
            full = self.likelihood.extend(self.R, alpha, full if full.size else None)
            self._solved_at = (np.array(alpha), full)
        return full
