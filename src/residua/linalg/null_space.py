"""The null space of ``I - S``: a graph's S has the eigenvector 1/scale with eigenvalue 1 on each component.

S u = u   for   u = 1/scale on one component, 0 elsewhere
"""

from __future__ import annotations

import numpy as np

from residua.linalg.operator import Matrix


class UnitEigenvectors:
    """The eigenvectors of S with eigenvalue 1, one for each component; none where ``1/scale`` is no eigenvector.

    Parameters
    ----------
    S : Matrix
        The matrix.

    Attributes
    ----------
    count : int
        How many there are.
    """

    def __init__(self, S: Matrix):
        self.S, self.u, self.count = S, S.inverse_scale(), 0
        sizes = [np.abs(v).max(initial=0) for v in (self.u, S @ self.u - self.u)]
        largest, away = S.rows.max(np.array(sizes, float))
        if largest > 0 and away <= 1e3 * np.finfo(S.dtype).eps * max(largest, 1.0):
            square = S.component_sums(self.u * self.u)
            self.square = np.where(square > 0, square, 1)
            self.count = round(float(S.rows.sum((self.u * self.u / self.square).sum(dtype=float))))

    def project_out(self, Z: np.ndarray) -> np.ndarray:
        """Return Z (n, k) without its part along them."""
        if not self.count:
            return Z
        Z = Z.copy()
        for k in range(Z.shape[1]):
            Z[:, k] -= self.S.component_sums(self.u * Z[:, k]) / self.square * self.u
        return Z
