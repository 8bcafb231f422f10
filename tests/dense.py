"""The referee: the model in plain dense algebra, written from its covariance and shared with nothing under test.

    C = (beta (I - sum_t alpha_t S_t))^-1,   r_L ~ N(0, C_LL)

S (p, n, n); alpha (p,); labelled (n,) bool; r and y hold values at labelled nodes; Z is a design over all nodes.
"""

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal


def precision(S, alpha, beta=1.0):
    return beta * (np.eye(S.shape[-1]) - np.tensordot(np.atleast_1d(alpha), S, axes=1))


def covariance(S, alpha, beta=1.0):
    return np.linalg.inv(precision(S, alpha, beta))


def block(A, rows, columns=None):
    return A[np.ix_(rows, rows if columns is None else columns)]


def log_ratio(S, alpha, U):
    """logdet(I - M) - logdet((I - M)_UU)."""
    G = precision(S, alpha)
    return np.linalg.slogdet(G)[1] - np.linalg.slogdet(block(G, U))[1]


def log_ratio_gradient(S, alpha, U):
    G = precision(S, alpha)
    whole, part = np.linalg.inv(G), np.linalg.inv(block(G, U))
    return np.array([(part * block(S_t, U)).sum() - (whole * S_t).sum() for S_t in S])


def omega(S, alpha, beta, labelled, r):
    """-2 log p(r)."""
    C = block(covariance(S, alpha, beta), labelled)
    return -2 * multivariate_normal(cov=C).logpdf(r)


def omega_gradient(S, alpha, beta, labelled, r):
    """d/dalpha (p,), d/dbeta, d/dr: from dC = beta C S_t C and dC = -C / beta."""
    whole = covariance(S, alpha, beta)
    inverse = np.linalg.inv(block(whole, labelled))
    w = inverse @ r

    def slope(dC):
        return (inverse * dC).sum() - w @ dC @ w

    by_alpha = np.array([slope(block(beta * whole @ S_t @ whole, labelled)) for S_t in S])
    return by_alpha, slope(-block(whole, labelled) / beta), 2 * w


def schur(S, alpha, labelled):
    """The precision of r_L for beta = 1."""
    return np.linalg.inv(block(covariance(S, alpha), labelled))


def least_squares(S, alpha, labelled, y, Z=None):
    """q, coefficients and their covariance for beta = 1, by generalised least squares; Z over all nodes."""
    root = np.linalg.cholesky(schur(S, alpha, labelled)).T  # whitens: then ordinary least squares by QR
    X = root @ (np.empty((len(y), 0)) if Z is None else Z[labelled])
    Q, R = np.linalg.qr(X)
    theta = np.linalg.solve(R, Q.T @ root @ y)
    inverse = np.linalg.inv(R)
    return ((root @ y - X @ theta) ** 2).sum(), theta, inverse @ inverse.T


def profile(S, alpha, labelled, y, Z=None):
    """-2 log-likelihood at the best beta and coefficients."""
    q, theta, _ = least_squares(S, alpha, labelled, y, Z)
    mean = 0 if Z is None else Z[labelled] @ theta
    return omega(S, alpha, len(y) / q, labelled, y - mean)


def restricted(S, alpha, labelled, y, Z=None):
    """-2 restricted log-likelihood at the best beta: that of orthonormal contrasts K'y, K'Z = 0."""
    Z = np.empty((len(labelled), 0)) if Z is None else Z
    left, size, _ = np.linalg.svd(Z[labelled] / np.maximum(np.linalg.norm(Z[labelled], axis=0), 1e-300))
    K = left[:, (size > 1e-10).sum() :]
    C = K.T @ block(covariance(S, alpha), labelled) @ K
    w, m = K.T @ y, K.shape[1]
    q = w @ np.linalg.solve(C, w)
    return -2 * multivariate_normal(cov=C * q / m).logpdf(w)


def best_alpha(S, labelled, y, Z=None):
    """The alpha of highest restricted likelihood: a fine grid in arctanh(alpha), then a bracketed search."""

    def height(a):
        return restricted(S, [np.tanh(a)], labelled, y, Z)

    grid = np.linspace(-6, 6, 121)
    k = int(np.argmin([height(a) for a in grid]))
    assert 0 < k < len(grid) - 1, "the likelihood has its maximum at the border; choose other data"
    found = minimize_scalar(height, bracket=tuple(grid[k - 1 : k + 2]), tol=1e-10)
    return float(np.tanh(found.x)), float(found.fun)


def information(S, alpha, beta, labelled, r):
    """Second derivatives of -log p in (alpha, beta), by differences of the analytic gradient."""
    at = np.append(alpha, beta)
    H = np.zeros((len(at), len(at)))

    def gradient(x):
        by_alpha, by_beta, _ = omega_gradient(S, x[:-1], x[-1], labelled, r)
        return np.append(by_alpha, by_beta) / 2

    for k in range(len(at)):
        step = np.zeros(len(at))
        step[k] = 1e-5 * (beta if k == len(at) - 1 else 1 - alpha[k] ** 2)
        H[k] = (gradient(at + step) - gradient(at - step)) / (2 * step[k])
    return (H + H.T) / 2


def conditional(S, alpha, beta, labelled, r):
    """Mean and covariance of r_U given r_L."""
    C = covariance(S, alpha, beta)
    L, U = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    weights = np.linalg.solve(block(C, L), block(C, L, U)).T
    return weights @ r, block(C, U) - weights @ block(C, L, U)


def kriging(S, alpha, beta, labelled, y, Z):
    """Mean and covariance of y_U when the coefficients of the mean are estimated from the same labels."""
    L, U = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    _, theta, spread = least_squares(S, alpha, labelled, y, Z)
    shift, spread_U = conditional(S, alpha, beta, labelled, y - Z[L] @ theta)
    C = covariance(S, alpha, beta)
    lever = Z[U] - np.linalg.solve(block(C, L), block(C, L, U)).T @ Z[L]
    return Z[U] @ theta + shift, spread_U + lever @ (spread / beta) @ lever.T


def leave_one_out(S, alpha, beta, labelled, y, Z=None):
    """Errors and variances at L, by taking away each label and predicting it from the others."""
    errors, variances = [], []
    for i in np.flatnonzero(labelled):
        others = labelled.copy()
        others[i] = False
        values = np.full(len(labelled), np.nan)
        values[labelled] = y
        if Z is None:
            mean, spread = conditional(S, alpha, beta, others, values[others])
        else:
            mean, spread = kriging(S, alpha, beta, others, values[others], Z)
        at = np.flatnonzero(np.flatnonzero(~others) == i)[0]
        errors.append(values[i] - mean[at])
        variances.append(spread[at, at])
    return np.array(errors), np.array(variances)


def harmonic(S, labelled, values):
    """Label propagation: (I - S_UU) f_U = S_UL f_L, S summed over types; every component must have a label."""
    total = S.sum(axis=0)
    U = np.flatnonzero(~labelled)
    out = np.array(values, float)
    pull = block(total, U, np.flatnonzero(labelled)) @ out[labelled]
    out[U] = np.linalg.solve(np.eye(len(U)) - block(total, U), pull)
    return out


def draw(S, alpha, beta, rng, count=1):
    """(count, n) draws of N(0, C)."""
    root = np.linalg.cholesky(precision(S, alpha, beta))
    return np.linalg.solve(root.T, rng.standard_normal((len(root), count))).T


def with_prior(S, alpha, beta, Z, variance):
    """Covariance (n, n) of y, coefficients of Z with finite prior variance (in units of 1 / beta) integrated out."""
    bent = np.isfinite(variance)
    return covariance(S, alpha, beta) + (Z[:, bent] * variance[bent]) @ Z[:, bent].T / beta


def predicted(C, labelled, y, Z):
    """Mean and covariance at U of a Gaussian of covariance C around Z theta, theta unknown: universal kriging."""
    L, U = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    inverse = np.linalg.inv(block(C, L))
    spread = np.linalg.inv(Z[L].T @ inverse @ Z[L])
    theta = spread @ Z[L].T @ inverse @ y
    weights = block(C, U, L) @ inverse
    lever = Z[U] - weights @ Z[L]
    mean = Z[U] @ theta + weights @ (y - Z[L] @ theta)
    return mean, block(C, U) - weights @ block(C, L, U) + lever @ spread @ lever.T


def restricted_with_prior(S, alpha, labelled, y, Z, variance):
    """-2 restricted log-likelihood at the best beta, of orthonormal contrasts to the columns without a prior."""
    C = block(with_prior(S, alpha, 1.0, Z, variance), labelled)
    K = null_space(Z[labelled][:, np.isinf(variance)].T)
    C, w = K.T @ C @ K, K.T @ y
    q = w @ np.linalg.solve(C, w)
    return -2 * multivariate_normal(cov=C * q / len(w)).logpdf(w)
