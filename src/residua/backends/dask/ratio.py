"""Log-determinants on row blocks, from the same probes as on one machine.

    h(alpha) = logdet(I - alpha S) - logdet(I - alpha S_UU),    Lanczos quadrature on random signs

The two matrices are probed side by side; what is known exactly is taken out as in ``residua.linalg.logdet.stochastic``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Future

from residua.backends.dask import iteration, lanczos
from residua.backends.dask.components import Components, DistributedConstants
from residua.backends.dask.matrix import BlockMatrix
from residua.backends.dask.vectors import Vector, chosen
from residua.linalg import Lanczos
from residua.linalg.logdet.stochastic import FIRST_PROBES, Side, _Cached, _method

MOST_COLUMNS = 16  # of probes at a time


class DistributedSide(Side):
    """One matrix of the ratio, and what is known of it exactly."""

    def __init__(self, S: BlockMatrix, strategy: Lanczos, components: Components | None):
        self.matrix, self.control = S, strategy.control_variates
        # Within components that all have a label, S_UU has no constant eigenvector.
        self.constants = DistributedConstants(S, components) if self.control and components else None
        self.kernel: Any = self.constants  # ``estimate`` asks for its count
        self.moments = np.zeros(0)
        if self.control:
            self.moments = S.moments - (self.constants.count if self.constants else 0)
        self.tridiagonals: list[np.ndarray] = []

    def start(self, Z: Vector, steps: int) -> list[Future]:
        """Set Lanczos going from the columns of Z."""
        Z = self.constants.project_out(Z) if self.constants else Z
        states = lanczos.start_columns(self.matrix, Z)
        return iteration.advance(self.matrix, states, min(steps, self.matrix.n) - 1)

    def finish(self, states: list[Future]) -> None:
        """Take in its result."""
        self.add(lanczos.finish_columns(self.matrix, states))


class DistributedRatio(_Cached):
    """h for every alpha, its quadratures taken on the cluster.

    Parameters
    ----------
    strategy : probes, steps, seed
    S : the matrix
    components : of S
    S_UU, U : its submatrix and the mask of its rows; None where every row is labelled
    """

    def __init__(
        self, strategy: Lanczos, S: BlockMatrix, components: Components, S_UU: BlockMatrix | None, U: Vector | None
    ):
        self.strategy, self.probes, self.steps = strategy, 0, strategy.steps
        self.history = []
        self.U = U
        self.whole = DistributedSide(S, strategy, components)
        self.part = None if S_UU is None else DistributedSide(S_UU, strategy, None)
        self.sides = [self.whole] if self.part is None else [self.whole, self.part]
        self.add_probes(strategy.probes or FIRST_PROBES)

    def add_probes(self, total: int) -> None:
        for first in range(self.probes, total, MOST_COLUMNS):
            Z = signs(self.whole.matrix, self.strategy.random_state, first, min(first + MOST_COLUMNS, total))
            whole, part = self.whole.start(Z, self.steps), None
            if self.part is not None and self.U is not None:
                part = self.part.start(Z.map(chosen, self.U, sizes=self.part.matrix.sizes), self.steps)
            self.whole.finish(whole)
            if self.part is not None and part is not None:
                self.part.finish(part)
        self.probes = total
        self.history.append((total, self.steps))
        self.method = _method(self)


def signs(matrix: BlockMatrix, random_state: int, first: int, last: int) -> Vector:
    """Probes ``first`` to ``last``: each row has the sign that ``Lanczos.signs`` gives it on one machine."""
    ends = np.cumsum(matrix.sizes)
    starts = ends - matrix.sizes
    run = matrix.cluster.run
    parts = [
        run(_signs, random_state, first, last, int(a), int(b), block=k)
        for k, (a, b) in enumerate(zip(starts, ends, strict=True))
    ]
    return Vector(matrix.cluster, parts, matrix.sizes)


def _signs(random_state: int, first: int, last: int, start: int, stop: int) -> np.ndarray:
    """Rows ``start`` to ``stop``: eight signs take one number of the generator, so earlier ones can be skipped."""
    out = np.empty((stop - start, last - first))
    for k, probe in enumerate(range(first, last)):
        generator = np.random.PCG64([random_state, probe])  # that of ``default_rng``
        generator.advance(start // 8)
        rng = np.random.Generator(generator)
        out[:, k] = rng.integers(0, 2, stop - 8 * (start // 8), np.int8)[start % 8 :]
    return 2 * out - 1
