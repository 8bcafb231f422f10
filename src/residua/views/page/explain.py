"""Why a node is predicted as it is: what its features add, which neighbours move it, and what its label would change.

    correction_i = sum_j w_ij r_j,    w_ij = -G_ij / G_ii
    E[y | y_i = t] - E[y] = (t - E[y_i]) c / c_i,    c = G_UU^-1 e_i / beta + P P_i'

G precision for beta = 1, r residuals, those of unknown nodes as they are expected; P rows of what the uncertainty of
coefficients does to predictions. The page's script does both, from arrays that this file packs.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from scipy import sparse

from residua.linalg.factor import identity_minus
from residua.views.contents import Contents

MAX_ENTRIES = 200_000  # of G, and of features: more would make a page of many megabytes


def explanation(contents: Contents) -> dict[str, Any]:
    """Return what the script needs; parts that are too large, or that a base cannot give, are None."""
    return {"features": _features(contents), "field": _field(contents)}


def _features(contents: Contents) -> dict[str, Any] | None:
    """Return names and values of the features, and what each adds to the base prediction of each node."""
    model = contents.model
    X, base = model.X_, model.base_
    if not 0 < model.n_features_in_ * contents.graph.n_nodes <= MAX_ENTRIES or sparse.issparse(X):
        return None
    added = base.contributions(X)  # type: ignore[attr-defined]
    if added is None:
        return None
    given = model.field_.feature_names
    names = [f"feature {j}" for j in range(X.shape[1])] if given is None else [str(name) for name in given]
    columns = [X.iloc[:, j].to_numpy() for j in range(X.shape[1])] if hasattr(X, "iloc") else list(X.T)
    values = [packed(column, "f4") if column.dtype.kind in "fiub" else [str(v) for v in column] for column in columns]
    average = float(np.mean(contents.base))
    return {"names": names, "values": values, "added": [packed(column, "f4") for column in added.T], "average": average}


def _field(contents: Contents) -> dict[str, Any] | None:
    """Return G by rows, without its diagonal, the residuals, and the lever of the coefficients."""
    own = contents.own
    if not any(contents.model.alpha_.values()) or contents.graph.n_edges > MAX_ENTRIES / 2:
        return None
    G = sparse.csr_array(identity_minus(own.conditional.G))
    diagonal = G.diagonal()
    rest = sparse.csr_array(G - sparse.diags_array(diagonal))
    rest.eliminate_zeros()
    found = {
        "start": packed(rest.indptr, "i4"),
        "to": packed(rest.indices, "i4"),
        "entry": packed(rest.data, "f8"),
        "diagonal": packed(diagonal, "f8"),
        "residual": packed(own.conditional.conditional_mean(own.residual), "f8"),
        "known": packed(own.known, "i4"),
        "beta": own.conditional.beta,
        "lever": None,
        "whatIf": not contents.left_out and not own.unreached.any(),
    }
    coefficients = own.conditional.coefficients
    if coefficients is not None and found["whatIf"]:
        lever = coefficients.lever @ coefficients.root.T
        found |= (
            {"lever": [packed(column, "f8") for column in lever.T]} if lever.size <= MAX_ENTRIES else {"whatIf": False}
        )
    return found


def packed(values: np.ndarray, kind: str) -> dict[str, str]:
    """Return an array as text that a script reads at once, without a loss."""
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"kind": kind, "data": base64.b64encode(data).decode()}
