"""Labels seen through noise.

    y_L = f_L + eps,   eps_i ~ N(0, N_i),   f ~ N(0, (beta G)^-1),   G = I - alpha S

With the gains m_i = 1 / (1 + beta N_i), M = diag(m), and C = diag(c), c_i = sqrt(1 - m_i) at labels and 1 elsewhere,
the precision of y_L for beta = 1, and what it says of f, are those of labels without noise on a scaled operator:

    Gbar = M - alpha M S M - alpha^2 M S C (I - alpha C S C)^-1 C S M
    f | y = M y + alpha C (I - alpha C S C)^-1 C S M y,    Cov(f | y) = C (I - alpha C S C)^-1 C / beta
    logdet Gbar = sum log m + logdet(I - alpha S) - logdet(I - alpha C S C)

(M y is 0 where there is no label). A label without noise has m = 1 and c = 0: its row drops out of C S C, and with all
of them these are the formulas without noise. So for given m one Lanczos run on C S C serves every alpha.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from residua.linalg.rows import Rows

if TYPE_CHECKING:
    from residua.linalg import Shifted

LITTLE = 1e-6  # noise, relative to the field, beside which one less the share that it explains has lost its digits


@dataclass(frozen=True, eq=False)
class Noise:
    """What is known of the noise of some labels: N = sigma^2 v.

    Parameters
    ----------
    relative : ndarray of shape (|L|,)
        v, at least 0: the variances themselves where they are known.
    learned : bool
        Whether sigma^2 is learned; else it is 1.
    """

    relative: np.ndarray
    learned: bool

    def gain(self, t: float) -> np.ndarray:
        """Return m (|L|,) where t is log(beta sigma^2)."""
        return 1 / (1 + np.exp(t) * self.relative)


class Channel:
    """What lies between the field and the labels: nothing, or noise.

    Parameters
    ----------
    gain : ndarray of shape (|L|,) or None
        m, positive and at most 1; None for labels without noise.
    L : ndarray of int, shape (|L|,)
        The rows that have labels.
    n : int
        Number of rows.
    """

    def __init__(self, gain: np.ndarray | None, L: np.ndarray, n: int):
        self.gain, self.L = gain, L
        if gain is not None:
            self.root = np.ones(n)
            self.root[L] = np.sqrt(1 - gain)

    @property
    def noisy(self) -> bool:
        """Whether there is noise."""
        return self.gain is not None

    @property
    def precision(self) -> np.ndarray | None:
        """K (|L|,), the precision of the noise for beta = 1; None where there is a label with little noise or none."""
        if self.gain is None or (self.gain > 1 - LITTLE).any():
            return None
        return self.gain / (1 - self.gain)

    def hidden(self, labelled: np.ndarray) -> np.ndarray:
        """Return the mask (n,) of rows that are not known exactly, given that of labelled ones."""
        return ~labelled if self.gain is None else self.root > 0

    def scale(self, U: np.ndarray) -> np.ndarray | None:
        """Return c at rows U; None for all 1."""
        return None if self.gain is None else self.root[U]

    def seen(self, R: np.ndarray) -> np.ndarray:
        """Return ``M R`` of columns R (|L|, k)."""
        return R if self.gain is None else self.gain[:, None] * R

    def scaled(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Return ``C X`` of columns X (|U|, k) at rows U."""
        return X if self.gain is None else self.root[U, None] * X

    def pull(self, G: Shifted, full: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Return ``alpha C S full`` at rows U, for ``full`` (n, k): M R at labels and 0 elsewhere."""
        if self.gain is None:
            return -(G @ full)[U]
        return self.scaled((full - G @ full)[U], U)

    def add(self, full: np.ndarray, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Add ``C X`` to ``full`` (n, k) at rows U, in place: from M R to the conditional mean; returns it."""
        if self.gain is None:
            full[U] = X
        else:
            full[U] += self.root[U, None] * X
        return full

    def start(self, near: np.ndarray, full: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Return the X that ``add`` would take from ``full`` to ``near``."""
        return near[U] if self.gain is None else (near - full)[U] / self.root[U, None]

    def pulled(self, R: np.ndarray, full: np.ndarray, Gfull: np.ndarray) -> np.ndarray:
        """Return ``Gbar R`` of R (|L|, ..), given its conditional mean ``full`` (n, ..) and G times that."""
        there = Gfull[self.L]
        if self.gain is None:
            return there
        gain = self.gain.reshape(-1, *[1] * (R.ndim - 1))
        return gain * (there + R - full[self.L])

    def reach(self, G: Shifted, full: np.ndarray) -> np.ndarray:
        """Return ``-alpha M S full`` at labels, for ``full`` (n, k) that is 0 at nodes known exactly."""
        if self.gain is None:
            return (G @ full)[self.L]
        return self.gain[:, None] * (G @ full - full)[self.L]

    def coupling(self, G: Shifted, U: np.ndarray) -> sp.csr_array:
        """Return ``alpha M S C``, its rows at labels and its columns at U."""
        rows = G.alpha * G.S.to_scipy()[self.L][:, U]
        if self.gain is None:
            return rows
        return sp.csr_array(sp.diags_array(self.gain) @ rows @ sp.diags_array(self.root[U]))

    def misfit(self, R: np.ndarray, full: np.ndarray, rows: Rows) -> np.ndarray:
        """Return ``(R - f)' K (R - f)`` (k, k), the part of ``R' Gbar R`` that noise has."""
        if self.gain is None:
            return np.zeros((R.shape[1], R.shape[1]))
        off, exact = R - full[self.L], self.gain == 1
        K = np.where(exact, 0.0, self.gain / np.where(exact, 1.0, 1 - self.gain))
        return rows.gram(off, K[:, None] * off)

    def logdet(self, rows: Rows) -> float:
        """Return ``sum log m``."""
        return 0.0 if self.gain is None else float(rows.sum(np.log(self.gain).sum()))
