"""Marginal likelihood of residuals at labelled nodes.

    Omega = -2 log p(r) = beta q(alpha) - |L| log beta - h(alpha) + |L| log 2 pi       (paper, Eq. 12)
    q = r_L' (G_LL - G_LU G_UU^-1 G_UL) r_L,    h = logdet G - logdet G_UU,    G = I - sum_t alpha_t S_t

G precision for beta = 1, L labelled, U unlabelled, r residuals at L. With r_U = -G_UU^-1 G_UL r_L, one solve,
q = r' G r and by the envelope theorem dq/dalpha_t = -r' S_t r, dq/dr_L = 2 (G r)_L. Components without a label add
nothing and are left out. Labels seen through noise are rows of U as well as of L: see ``residua.field.noise``.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from residua.field.noise import Channel
from residua.field.precision import unit_precision
from residua.graph.interface import GraphLike
from residua.linalg import Lanczos, Matrix, Ratio, Shifted, Solver, Strategy
from residua.linalg.combination import Combination
from residua.linalg.factor import Family
from residua.linalg.logdet.choice import auto
from residua.linalg.logdet.strategy import submatrices
from residua.linalg.workspace import cached_property


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
    graph : GraphLike
        The graph.
    labelled : ndarray of bool, shape (n,)
        Which nodes have a label.
    logdet : "auto" or Strategy
        How log-determinants are computed: ``Eigen()``, ``Cholesky()``, ``Lanczos(probes, steps)``.
    solver : Solver or None
        How linear systems are solved.
    random_state : int
        Seed of the probes that "auto" may use.
    gain : ndarray of shape (|L|,) or None
        Of each label in the order of the graph, what noise leaves of its precision; None for labels without noise.

    Attributes
    ----------
    nodes : ndarray of int
        Positions in the graph of the rows that are worked on.
    L, U : ndarray of int
        Which of those rows are labelled, in the order of the graph, and which are not known exactly.
    channel : Channel
        The noise of the labels.
    n_labelled : int
        How many labels there are, in all processes.
    """

    def __init__(
        self,
        graph: GraphLike,
        labelled: np.ndarray,
        logdet: str | Strategy = "auto",
        solver: Solver | None = None,
        random_state: int = 0,
        gain: np.ndarray | None = None,
    ):
        self.rows, reached = graph.rows, graph.reached(labelled)
        self.nodes = in_order(graph, reached)
        terms: list[Matrix] = list(graph.operators.values())
        if self.rows.sum(int(not np.array_equal(self.nodes, np.arange(graph.n_nodes)))):
            terms = [S.submatrix(self.nodes) for S in terms]
        self.terms = terms
        place = np.empty(graph.n_nodes, np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        self.L = place[labelled]
        self.channel = Channel(gain, self.L, len(self.nodes))
        self.U = np.flatnonzero(self.channel.hidden(labelled[self.nodes]))
        self.n_labelled = int(self.rows.sum(len(self.L)))
        self.solver = solver or Solver()
        self.strategy, self.automatic = self._strategy(logdet, random_state), logdet == "auto"
        self._like: Ratio | None = None
        self._precisions: tuple[np.ndarray, tuple[Shifted, Shifted]] | None = None

    def with_gain(self, gain: np.ndarray | None) -> Likelihood:
        """Return the likelihood of the same labels through noise that leaves ``gain`` (|L|,) of their precision."""
        other = copy.copy(self)
        for name in ("ratio", "terms_UU", "_sums"):
            vars(other).pop(name, None)
        like = None if isinstance(self.strategy, Lanczos) else self.ratio
        vars(other).update(_like=like, _precisions=None, channel=Channel(gain, self.L, len(self.nodes)))
        labelled = np.isin(np.arange(len(self.nodes)), self.L)
        other.U = np.flatnonzero(other.channel.hidden(labelled))
        return other

    def _strategy(self, logdet: str | Strategy, random_state: int) -> Strategy:
        if isinstance(logdet, Strategy):
            return logdet
        if logdet != "auto":
            raise ValueError(f'logdet={logdet!r} is unknown; use "auto", Eigen(), Cholesky() or Lanczos().')
        return auto(self.terms, Lanczos(probes=None, random_state=random_state))

    @cached_property
    def ratio(self) -> Ratio:
        """The log-determinants as a function of alpha, before a fit asks for more probes."""
        return self.prepare(self.strategy)

    def prepare(self, strategy: Strategy) -> Ratio:
        """Return the log-determinants as a strategy computes them."""
        return strategy.prepare(self.terms, self.U, self.channel.scale(self.U), self._like)

    @cached_property
    def terms_UU(self) -> list[Matrix]:
        return submatrices(self.terms, self.U, self.channel.scale(self.U))

    @cached_property
    def _sums(self) -> tuple[Combination, Combination] | None:
        """Sums over several edge types, whose pattern is found once."""
        return None if len(self.terms) == 1 else (Combination(self.terms), Combination(self.terms_UU))

    def precisions(self, alpha: np.ndarray) -> tuple[Shifted, Shifted]:
        """Return G and G_UU for beta = 1; kept for the last alpha, since several edge types have to be added up."""
        if self._precisions is None or not np.array_equal(self._precisions[0], alpha):
            if self._sums is None:
                pair = unit_precision(self.terms, alpha), unit_precision(self.terms_UU, alpha)
            else:
                pair = Shifted(self._sums[0](alpha), 1.0), Shifted(self._sums[1](alpha), 1.0)
            self._precisions = np.array(alpha, float), pair
        return self._precisions[1]

    def embed(self, R: np.ndarray) -> np.ndarray:
        """Return columns (|L|, k) as (n, k), zero at U."""
        out = np.zeros((self.terms[0].n_local, R.shape[1]))
        out[self.L] = R
        return out

    def conditional_mean(
        self, R: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None, family: Family | None = None
    ) -> np.ndarray:
        """Return columns R (|L|, k) with their conditional mean at U, one solve each; (n, k).

        Parameters
        ----------
        R : ndarray of shape (|L|, k)
            Columns at L.
        alpha : ndarray of shape (p,)
            Correlation by edge type.
        start : ndarray of shape (n, k) or None
            Near the answer.
        family : Family or None
            Factors of G_UU, where those are the cheaper way.
        """
        full = self.embed(self.channel.seen(R))
        G, G_UU = self.precisions(alpha)
        pull = self.channel.pull(G, full, self.U)
        if family is not None:
            with suppress(np.linalg.LinAlgError):  # singular: the solver may still arrive, and says so where not
                return self.channel.add(full, family.solve(alpha, pull), self.U)
        near = None if start is None else self.channel.start(start, full, self.U)
        return self.channel.add(full, self.solver.solve(G_UU, pull, near).X, self.U)

    def omega_with_noise(
        self, r: np.ndarray, alpha: np.ndarray, beta: float, noise: np.ndarray, step: float = 1e-4
    ) -> Omega:
        """Return the same for labels with noise of variances ``noise`` (|L|,), whose precision is (Sigma_LL + N)^-1.

        The slope of the log-determinant in log beta, on which the gains depend, is a difference over ``step``.
        """

        def logdet(beta: float) -> float:
            likelihood = self.with_gain(1 / (1 + beta * noise))
            h = float(likelihood.ratio.value(alpha).value) + likelihood.channel.logdet(self.rows)
            return self.n_labelled * float(np.log(beta)) + h

        found = self.with_gain(1 / (1 + beta * noise)).omega(r, alpha, beta)
        w = found.residual / 2
        misfit = float(self.rows.sum(w @ (r - noise * w)))
        slope = (logdet(beta * np.exp(step)) - logdet(beta * np.exp(-step))) / (2 * step)
        return replace(found, beta=(misfit - slope) / beta)

    def omega(self, r: np.ndarray, alpha: np.ndarray, beta: float) -> Omega:
        """Return value and gradients at residuals r (|L|,)."""
        full = self.conditional_mean(r[:, None], alpha)
        Gr, n = self.precisions(alpha)[0] @ full, self.n_labelled
        q = float(self.rows.inner(full, Gr)[0] + self.channel.misfit(r[:, None], full, self.rows)[0, 0])
        slope = np.array([-self.rows.inner(full, S @ full)[0] for S in self.terms])
        h, dh = self.ratio.value(alpha), self.ratio.gradient(alpha)
        return Omega(
            value=beta * q - n * np.log(beta) - float(h.value) - self.channel.logdet(self.rows) + n * np.log(2 * np.pi),
            alpha=beta * slope - dh.value,
            beta=q - n / beta,
            residual=2 * beta * self.channel.pulled(r, full[:, 0], Gr[:, 0]),
            stderr=float(h.stderr),
            alpha_stderr=np.asarray(dh.stderr),
        )


def in_order(graph: GraphLike, wanted: np.ndarray) -> np.ndarray:
    """Return the positions at which ``wanted`` (n,) is true, in the order in which work on them is fastest."""
    if graph.near_order is None:
        return np.flatnonzero(wanted)
    return graph.near_order[wanted[graph.near_order]]
