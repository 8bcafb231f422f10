"""Exact draws of unknown residuals for beta = 1, which variances are averaged over.

x ~ N(0, G_UU^-1):   G_UU x = b,   Cov b = G_UU
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from residua.linalg import Shifted, Solver
from residua.linalg.workspace import Workspace, cached_property

# Draws are kept up to this many numbers; beyond, they are made anew, so many at a time.
KEPT_NUMBERS, TILE_NUMBERS = 16_000_000, 32_000_000
SINGLE_ALPHA = 0.99  # up to which single precision leaves errors below those of sampling


class Draws(Workspace):
    """The same draws each time they are iterated over, as many columns at a time as memory allows.

    Parameters
    ----------
    G_UU : Shifted
        Their precision.
    solver : Solver
        One solve for each.
    count : int
        How many.
    random_state : int
        Seed.
    alpha : float
        The largest strength of a correlation.

    Attributes
    ----------
    precision : Shifted
        G_UU in the precision that the draws are computed in: single where they are too many to keep and alpha allows.
    """

    def __init__(self, G_UU: Shifted, solver: Solver, count: int, random_state: int, alpha: float):
        self.solver, self.count, self.random_state = solver, count, random_state
        self.largest = int(G_UU.rows.max(G_UU.n_local))
        self.few = count * self.largest <= KEPT_NUMBERS
        self.precision = G_UU if self.few or alpha > SINGLE_ALPHA else G_UU.astype(np.float32)

    @cached_property
    def _kept(self) -> np.ndarray:
        return draw(self.precision, self.solver, self.count, np.random.default_rng(self.random_state))

    def __iter__(self) -> Iterator[np.ndarray]:
        if self.few:
            yield self._kept
            return
        noise = self.precision.noise(np.random.default_rng(self.random_state))
        width = max(8, TILE_NUMBERS // self.largest)
        # Sampling error is a tenth of a variance or so: far more than this tolerance leaves.
        solver = replace(self.solver, cg=replace(self.solver.cg, tol=max(self.solver.cg.tol, 1e-6)))
        for first in range(0, self.count, width):
            yield solver.solve(self.precision, noise(min(width, self.count - first))).X


def draw(G_UU: Shifted, solver: Solver, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return (|U|, count) columns with precision G_UU."""
    return solver.solve(G_UU, G_UU.noise(rng)(count)).X
