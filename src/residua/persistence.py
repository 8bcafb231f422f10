"""Model files: a fitted GraphRegressor as JSON, arrays and, for a scikit-learn base, a skops part.

    model.residua = zip, stored, of model.json + arrays.safetensors [+ base.skops]

Nothing in it is code. Members are not compressed, so a file cannot unfold into more than its own size. ``save`` packs
everything in memory first, then replaces the file in one step; ``load`` checks every part before it is used.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from residua import __version__
from residua.estimator import GraphRegressor
from residua.gaussian.precision import check_alpha
from residua.numerics import Cholesky, Eigen, Lanczos
from residua.regressors.base import Outcome
from residua.validation import MIN_LABELS

FORMAT = 1
TABLE, ARRAYS, ESTIMATORS = "model.json", "arrays.safetensors", "base.skops"
STRATEGIES = {kind.__name__: kind for kind in (Cholesky, Eigen, Lanczos)}
DTYPES = {"F64": np.float64, "I64": np.int64, "I32": np.int32}
PRECISIONS = {"float32": np.float32, "float64": np.float64}
NOT_FINITE = {"inf", "-inf", "nan"}
MAX_EFFORT = 100_000  # Lanczos steps or probes that a file may ask for

Member = dict[str, Any]  # a JSON object


class ModelFileError(ValueError):
    """A model file that cannot be read; the message names the file and what to do."""


def save(model: GraphRegressor, path: str | os.PathLike) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : a fitted ``GraphRegressor``
    path : the file, such as "model.residua"; an existing one is replaced

    Examples
    --------
    >>> import numpy as np, residua, tempfile
    >>> ring = residua.Graph.from_edges(np.arange(9), (np.arange(9) + 1) % 9)
    >>> model = residua.GraphRegressor(base="mean").fit(None, np.arange(9.0), graph=ring)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.residua")
    ...     again = residua.load(f"{folder}/model.residua")
    >>> again.alpha_ == model.alpha_
    True
    """
    write_whole(path, pack(model))


def load(path: str | os.PathLike, *, trusted: Iterable[str | type] = ()) -> GraphRegressor:
    """Read a model that ``model.save`` wrote. Runs no code from the file.

    Parameters
    ----------
    path : the file
    trusted : names of further types that a scikit-learn base may hold, beyond those that skops trusts by default.
        Trees (forests, boosting) need this: their arrays steer compiled code, so trust them only from a known source

    Raises
    ------
    FileNotFoundError
        if there is no such file
    ModelFileError
        a ``ValueError``: the file is damaged, of a newer version, or holds a type that is not trusted
    """
    trusted = [trusted] if isinstance(trusted, str | type) else list(trusted)
    try:
        return unpack(read_members(path), trusted)
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from error.__cause__
    except FileNotFoundError:
        raise
    except Exception as error:  # each parser fails in its own way on bytes that are not what they claim
        raise ModelFileError(f"{path} {damaged(one_line(error))}") from error


def damaged(what: str) -> ModelFileError:
    return ModelFileError(f"is damaged or was changed ({what}); restore a copy, or save the model again.")


def one_line(error: object, length: int = 200) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= length else text[: length - 3] + "..."


# A model as parts


def pack(model: GraphRegressor) -> dict[str, bytes]:
    """The members of the file. All that cannot be kept is refused here, before the disk is touched."""
    if type(model) is not GraphRegressor:
        raise ValueError(f"model is a {type(model).__name__}; save keeps a GraphRegressor.")
    arrays = {"X": model.X_, "y": model.y_, "residual": model.outcome_.residual, "alone": model.outcome_.alone}
    estimators: dict[str, Any] = {}
    table = {
        "format": FORMAT,
        "residua": __version__,
        "parameters": pack_parameters(model, estimators),
        "graph": pack_graph(model.graph_, arrays),
        "feature_names": [plain(name, "feature name") for name in getattr(model, "feature_names_in_", ())] or None,
        "base": pack_base(model.base_, arrays, estimators),
        "alpha": numbers(model.alpha_),
        "alpha_stderr": numbers(model.alpha_stderr_),
        "beta": number(model.beta_),
        "correlation": pack_correlation(model.correlation_, arrays) if model.correlation_ else None,
        "estimators": sorted(estimators),
    }
    members = {TABLE: json.dumps(table, allow_nan=False).encode(), ARRAYS: pack_arrays(arrays)}
    return members | ({ESTIMATORS: pack_estimators(estimators)} if estimators else {})


def unpack(members: Mapping[str, bytes], trusted: list[str | type]) -> GraphRegressor:
    """The model of these members."""
    table = read_table(members)
    check_members(members, table)
    arrays = Arrays.read(members[ARRAYS])
    estimators = unpack_estimators(members.get(ESTIMATORS), need(table, "estimators", list), trusted)
    graph = unpack_graph(need(table, "graph", dict), arrays)
    X = arrays.take("X", (graph.n_nodes, None))
    y = arrays.take("y", (graph.n_nodes,), finite=False)
    known = ~np.isnan(y)
    if np.isinf(y).any() or known.sum() < MIN_LABELS:
        raise damaged("y has infinite or too few values")
    base = unpack_base(need(table, "base", dict), X, arrays, estimators)
    outcome = Outcome(*(arrays.take(name, (known.sum(),)) for name in ("residual", "alone")))
    model = GraphRegressor(**unpack_parameters(need(table, "parameters", dict), estimators))
    alpha, stderr = (read_numbers(need(table, name, dict)) for name in ("alpha", "alpha_stderr"))
    beta = read_number(table.get("beta"))
    check_alpha(alpha, graph, limit=True)
    if list(alpha) != list(stderr) or not 0 < beta < math.inf:
        raise damaged("alpha, its standard error or beta is not possible")
    fit = None
    if table.get("correlation") is not None:
        source = Source(graph, y[known], known, None)
        design = base.design(X)
        source = Source(
            graph, outcome.residual if design is None else y[known], known, None if design is None else design[known]
        )
        fit = unpack_correlation(need(table, "correlation", dict), alpha, stderr, source, arrays)
        outcome = Outcome(outcome.residual, outcome.alone, fit if design is not None else None)
    arrays.check_empty()
    model._store(graph, X, feature_names(table, X.shape[1]), y, base, outcome)
    model.correlation_, model.alpha_, model.alpha_stderr_, model.beta_ = fit, alpha, stderr, beta
    return model
