"""The likelihood from a random batch of labels, unbiased: in value, and in the gradients of residuals, alpha and beta.

    q = r' P r,   P = G_LL - G_LU G_UU^-1 G_UL,   r = m + d,   m remembered, d = r - m known at the batch B only
    q_B = m' P m + 2 w m' P d_B + c d_B' P d_B + (w - c) (s d_B)' P (s d_B)
    w = |L| / |B|,   c = |L| (|L| - 1) / (|B| (|B| - 1)),   s random signs,   d_B zero outside of B

A label is in B with probability 1 / w, a pair with 1 / c. So the third term has every pair once in the mean, and the
squares P_ii d_i^2 c / w times; the last term puts that right, since over the signs only squares are left of it.
E q_B = q for every r and alpha, and every m that is fixed before B is drawn, and so for its derivatives. With B = L,
q_B = q. The nearer m is to r, the less is left to chance. One solve for three columns.

Pairs are rare in small batches, and c large. Without signs the others are taken to be as they are remembered: q_B is
that of m + d_B, and its gradient at B is w times 2 (P (m + d_B))_B. That is unbiased only as far as m is right, and has
no noise of pairs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from residua.field.likelihood import Likelihood, Omega


def batch_omega(
    likelihood: Likelihood,
    at: np.ndarray,
    r: np.ndarray,
    remembered: np.ndarray,
    signs: np.ndarray | None,
    alpha: np.ndarray,
    beta: float,
) -> Omega:
    """Return an estimate of ``likelihood.omega``; its ``residual`` is the gradient at the batch.

    Parameters
    ----------
    likelihood : Likelihood
        Of all labels.
    at : ndarray of int, shape (|B|,)
        Which labels are in the batch, drawn without replacement; all, or at least two.
    r : ndarray of shape (|B|,)
        Their residuals.
    remembered : ndarray of shape (|L|,)
        Residuals of all labels, as far as they are known.
    signs : ndarray of shape (|B|,) or None
        Random, -1 or 1; None to take the other labels to be as remembered.
    alpha : ndarray of shape (p,)
        Correlation by edge type.
    beta : float
        Precision.
    """
    n, b = likelihood.n_labelled, len(at)
    if signs is None:
        now = remembered.copy()
        now[at] = r
        found = likelihood.omega(now, alpha, beta)
        return replace(found, residual=n / b * found.residual[at])
    w, c = n / b, n * (n - 1) / (b * (b - 1)) if b < n else 1.0
    columns = np.zeros((len(likelihood.L), 3))
    columns[:, 0] = remembered
    columns[at, 1] = r - remembered[at]
    columns[at, 2] = signs * columns[at, 1]
    full = likelihood.conditional_mean(columns, alpha)
    Gr = likelihood.precisions(alpha)[0] @ full
    weights = np.array([[1, w, 0], [w, c, 0], [0, 0, w - c]])
    q = float(np.sum(weights * (full.T @ Gr)))
    slope = np.array([-np.sum(weights * (full.T @ (S @ full))) for S in likelihood.terms])
    pulled = Gr[likelihood.L[at]]
    h, dh = likelihood.ratio.value(alpha), likelihood.ratio.gradient(alpha)
    return Omega(
        value=beta * q - n * np.log(beta) - float(h.value) + n * np.log(2 * np.pi),
        alpha=beta * slope - dh.value,
        beta=q - n / beta,
        residual=2 * beta * (w * pulled[:, 0] + c * pulled[:, 1] + (w - c) * signs * pulled[:, 2]),
        stderr=float(h.stderr),
        alpha_stderr=np.asarray(dh.stderr),
    )
