"""Saving and loading: a fitted GraphRegressor, or an Average of some, as the members of a model file, and back."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from types import ModuleType
from typing import Any, TypeVar, overload

import numpy as np
import pandas as pd

from residua import __version__
from residua.atomic import PathLike
from residua.average import Average
from residua.bases.base import Base, Outcome
from residua.bases.linear import LinearBase
from residua.bases.registry import find_base, make_base
from residua.bases.scikit import ScikitBase
from residua.bases.trees.base import TreesBase
from residua.estimator import GraphRegressor
from residua.extras import needs
from residua.field.fitted import FittedField
from residua.field.kinds import FIELDS, NORMALISED, field_graph
from residua.field.precision import check_alpha
from residua.field.protocols import FittedBase
from residua.fitting import check_parameters
from residua.graph import Graph
from residua.graph.adjacency import same
from residua.io.model_file.average import WEIGHTS, pack_average, unpack_average
from residua.io.model_file.container import ARRAYS, ESTIMATORS, TABLE, ModelFileError, damaged, read_zip, write_zip
from residua.io.model_file.correlation import pack_correlation, pack_strategy, unpack_correlation, unpack_strategy
from residua.io.model_file.estimators import pack_estimators, unpack_estimators
from residua.io.model_file.features import pack_features, unpack_features
from residua.io.model_file.linear import pack_linear, unpack_linear
from residua.io.model_file.recipe import unpack_recipe
from residua.io.model_file.spread import pack_spread, unpack_spread
from residua.io.model_file.targets import TARGETS, pack_targets, unpack_targets
from residua.io.model_file.trees import pack_trees, unpack_trees
from residua.io.model_file.values import Arrays, Table, pack_arrays, pack_table, plain, plain_or_none, restore
from residua.linalg import Strategy
from residua.predictor import Predictor
from residua.validation import MIN_LABELS, check_fitted, one_line

log = logging.getLogger(__name__)

FORMAT = 1
Trusted = Iterable[str | type]
Model = TypeVar("Model", bound=Predictor)


def save(model: Predictor, path: PathLike) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : GraphRegressor or Average
        Fitted model.
    path : str or path
        File, such as "model.residua"; an existing one is replaced.

    Examples
    --------
    >>> import numpy as np, residua, tempfile
    >>> ring = residua.Graph.from_edges(np.arange(9), (np.arange(9) + 1) % 9)
    >>> model = residua.GraphRegressor(base="mean").fit(None, np.arange(9.0) ** 2, graph=ring)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.residua")
    ...     again = residua.load(f"{folder}/model.residua")
    >>> again.alpha_ == model.alpha_
    True
    """
    if isinstance(model, Average):
        members = pack_average(model, _pack)
    else:
        members = _pack(model) if model.targets_ is None else pack_targets(model.targets_, _pack)
    write_zip(path, members)
    log.info("wrote %s to %s", type(model).__name__, os.fspath(path))


@overload
def load(path: PathLike, *, trusted: Trusted = ..., module: Any = ..., kind: None = ...) -> Any: ...


@overload
def load(path: PathLike, *, trusted: Trusted = ..., module: Any = ..., kind: type[Model]) -> Model: ...


def load(path: PathLike, *, trusted: Trusted = (), module: Any = None, kind: type[Predictor] | None = None) -> Any:
    """Read a model that ``model.save`` wrote; runs no code from the file.

    Parameters
    ----------
    path : str or path
        File that ``model.save`` wrote.
    trusted : list of str or type
        Further types, or their names, that a scikit-learn base may hold beyond those that skops trusts. Trees (forests,
        boosting) need it: their arrays steer compiled code, so trust them only where you know the source.
    module : torch.nn.Module, optional
        Module of a model that was fitted with one; the file holds its weights and not its code. It is copied, and
        gets the weights of the file in the copy.
    kind : type, optional
        ``GraphRegressor`` or ``Average``: what the file has to hold.

    Returns
    -------
    GraphRegressor or Average
        Model as it was saved.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        Where the file is damaged, of a newer version, or holds another kind of model or a type that is not
        trusted; a ``ValueError``.
    """
    path = os.fspath(path)
    names: list[Any] = [trusted] if isinstance(trusted, str | type) or not isinstance(trusted, Iterable) else [*trusted]
    if not all(isinstance(name, str | type) for name in names):
        raise TypeError(f"trusted={trusted!r} is not a list of types or of their names.")
    unpack = partial(_unpack, trusted=names, module=module)
    try:
        members = read_zip(path)
        stored, found = (Average, "an average of models") if WEIGHTS in members else (GraphRegressor, "one model")
        if kind is not None and stored is not kind:
            raise ModelFileError(f"holds {found}, no {kind.__name__}; load it in Python without kind=.")
        several = unpack_average if stored is Average else unpack_targets if TARGETS in members else None
        model = unpack(members) if several is None else several(members, unpack)
        log.info("read %s from %s", stored.__name__, path)
        return model
    except ModelFileError as error:
        raise ModelFileError(f"{path} {one_line(error, 2000)}") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} not found; give the path of a file that model.save wrote.") from None
    except ImportError as error:
        raise ModelFileError(f"{path} cannot be loaded here: {one_line(error)}") from None
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise ModelFileError(f"{path} cannot be read ({reason}); check the file and its permissions.") from error
    except MemoryError:
        raise ModelFileError(f"{path} needs more memory than there is; load it on a larger machine.") from None
    except Exception as error:  # each parser fails in its own way on bytes that are not what they claim to be
        raise ModelFileError(f"{path} {damaged(one_line(f'{type(error).__name__}: {error}'))}") from error


def _pack(model: Predictor) -> dict[str, bytes]:
    """Return the members of the file; what cannot be kept is refused here, before anything is written."""
    if type(model) is not GraphRegressor:
        raise ValueError(f"model is a {type(model).__name__}; only a GraphRegressor or an Average can be saved.")
    check_fitted(model)
    field, outcome, names = model.field_, model.field_.outcome, model.field_.feature_names
    arrays = {"y": field.y, "residual": outcome.residual, "alone": outcome.base_out_of_fold_error}
    if outcome.members is not None and outcome.out_of_sample is not None:
        arrays |= {"starts": outcome.members, "held": outcome.out_of_sample.astype(np.int64)}
    if field.noise is not None:
        arrays["noise"] = field.noise[field.labelled]
    estimators: dict[str, Any] = {}
    table = {
        "format": FORMAT,
        "residua": __version__,
        "parameters": _pack_parameters(model, estimators),
        "graph": _pack_graph(field.graph, arrays),
        "feature_names": None if names is None else [plain(name, "feature name") for name in names],
        "features": pack_features(field.X, arrays),
        "base": _pack_base(field.base, arrays, estimators),
        "alpha": dict(field.alpha),
        "alpha_stderr": dict(field.alpha_stderr),
        "beta": field.beta,
        "error_scale": field.error_scale,
        "kind": field.kind,
        "log_scores": dict(field.log_scores),
        "spread": pack_spread(field.known_spread, arrays),
        "random_state": field.random_state,
        "correlation": None if field.correlation is None else pack_correlation(field.correlation, arrays),
        "estimators": sorted(estimators),
        "recipe": None if field.recipe is None else asdict(field.recipe),
    }
    members = {TABLE: pack_table(table), ARRAYS: pack_arrays(arrays)}
    return members | ({ESTIMATORS: pack_estimators(estimators)} if estimators else {})


def _unpack(members: Mapping[str, bytes], trusted: list[str | type], module: Any) -> GraphRegressor:
    """Return the model that these members hold."""
    table = _read_table(members)
    arrays = Arrays(members[ARRAYS])
    estimators = unpack_estimators(members[ESTIMATORS], table["estimators"], trusted) if ESTIMATORS in members else {}
    graph = _unpack_graph(table.need("graph", Table), arrays)
    X = unpack_features(table.get("features"), graph.n_nodes, table.get("feature_names"), arrays)
    y = arrays.take("y", (graph.n_nodes,), finite=False)
    known = ~np.isnan(y)
    if np.isinf(y).any() or known.sum() < MIN_LABELS:
        raise damaged("y is infinite or has too few labels")
    base = _unpack_base(table.need("base", Table), graph, X, arrays, estimators, module)
    if isinstance(X, np.ndarray) and not (np.isfinite(X) | (base.takes_tables & np.isnan(X))).all():
        raise damaged("array X is not finite")
    with np.errstate(all="ignore"):  # numbers that are each finite may overflow together
        if not np.isfinite(base.predict(graph, X)).all():
            raise damaged("its base predicts numbers that are not finite")
    outcome = _unpack_outcome(base, int(known.sum()), arrays)
    names = table.get("feature_names")
    names = None if names is None else restore(names, X.shape[1], "feature names")
    alpha, stderr = (table.numbers(name, graph.edge_types) for name in ("alpha", "alpha_stderr"))
    check_alpha(alpha, graph, limit=True)
    kind = table.need("kind", str) if "kind" in table else NORMALISED
    tried = table.numbers("log_scores", FIELDS) if table.get("log_scores") else {}
    if kind not in FIELDS:
        raise damaged(f"its field is {one_line(kind, 40)}")
    field_graph(graph, kind)  # which refuses a graph that has none
    beta, scale = table.number("beta"), table.number("error_scale") if "error_scale" in table else 1.0
    if not (0 < beta < math.inf and 1 / beta < math.inf and 0 < scale < math.inf):
        raise damaged(f"beta is {beta}, error_scale {scale}")
    recipe = None if table.get("recipe") is None else unpack_recipe(table.need("recipe", Table), names)
    model = _unpack_parameters(table.need("parameters", Table), estimators, module)
    seed = table.need("random_state", int) if "random_state" in table else model.random_state
    spread = unpack_spread(table.get("spread"), X.shape[1], arrays)
    field = FittedField(graph, X, y, base, outcome, alpha, stderr, beta, names, seed, recipe, error_scale=scale)
    field = replace(field, kind=kind, log_scores=tried, spread_setting=spread, noise=_unpack_noise(known, arrays))
    if table.get("correlation") is not None:
        fit = unpack_correlation(table.need("correlation", Table), field, arrays)
        field = replace(field, outcome=replace(outcome, correlation=fit))
    if arrays.left:
        raise damaged(f"it has unknown arrays {one_line(sorted(arrays.left))}")
    model.field_ = field
    return model


def _unpack_noise(known: np.ndarray, arrays: Arrays) -> np.ndarray | None:
    """Return the variances (n,) of the labels' noise, NaN where there is no label; None where they have none."""
    if "noise" not in arrays.left:
        return None
    noise = np.full(len(known), np.nan)
    noise[known] = arrays.take("noise", (int(known.sum()),))
    if (noise < 0).any():
        raise damaged("a variance is negative")
    return noise


def _unpack_outcome(base: Base, n_labelled: int, arrays: Arrays) -> Outcome:
    """Return what the base left over; a member's errors are known at labels it was not trained on, NaN at others."""
    count = len(base.ensemble.theta) if isinstance(base, TreesBase) else len(getattr(base, "members", ()))
    several = count > 0 and (not isinstance(base, TreesBase) or "starts" in arrays.left)
    error = arrays.take("alone", (n_labelled,), finite=not several)
    if np.isinf(error).any():
        raise damaged("an error is infinite")
    outcome: Outcome = Outcome(arrays.take("residual", (n_labelled,)), error)
    if not several:
        return outcome
    members = arrays.take("starts", (None, n_labelled))
    if len(members) not in (1, count):
        raise damaged("members are not as many as networks or boosters")
    out_of_sample = arrays.take("held", members.shape, np.int64)
    if not np.isin(out_of_sample, (0, 1)).all():
        raise damaged("held is neither true nor false")
    return replace(outcome, members=members, out_of_sample=out_of_sample.astype(bool))


def _read_table(members: Mapping[str, bytes]) -> Table:
    """Return the JSON part, of a version that this residua knows, with just the members that it announces."""
    if TABLE not in members:
        raise damaged(f"it has no {TABLE}")
    table = Table.read(members[TABLE], FORMAT)
    expected = {TABLE, ARRAYS, *([ESTIMATORS] if table.need("estimators", list) else [])}
    if members.keys() != expected:
        raise damaged(f"members are {one_line(sorted(members))}, not {sorted(expected)}")
    return table


def _pack_parameters(model: GraphRegressor, estimators: dict[str, Any]) -> dict[str, Any]:
    """Return constructor parameters: a scikit-learn base goes to ``estimators``, a torch module is but a name."""
    check_parameters(model)  # they may have been set since the fit
    # A file and a device of the machine that did the training are not those of another.
    packed = model.get_params(deep=False) | {"checkpoint": None, "device": "cpu"}
    if isinstance(model.logdet, Strategy):
        packed["logdet"] = pack_strategy(model.logdet)
    if not isinstance(model.base, str) and find_base(model.base).kind == "network":
        packed["base"] = _networks().pack_parameter(model.base)
    elif not isinstance(model.base, str):
        estimators["parameter"] = model.base
        packed["base"] = {"estimator": "parameter"}
    return {name: v if type(v) is dict else plain_or_none(v, f"parameter {name}") for name, v in packed.items()}


def _unpack_parameters(table: Table, estimators: Mapping[str, Any], module: Any) -> GraphRegressor:
    """Return the model that has these parameters, not fitted yet."""
    values = GraphRegressor().get_params(deep=False)
    unknown = sorted(table.keys() - values.keys())
    if unknown:
        raise ModelFileError(f"has parameters {one_line(unknown)} that residua {__version__} lacks; upgrade residua.")
    values |= {"spread": "constant"} | table  # as it was in files that do not have it
    if isinstance(values["logdet"], Table):
        values["logdet"] = unpack_strategy(values["logdet"])
    base = values["base"]
    if isinstance(base, Table):
        own = "estimator" in base
        values["base"] = estimators["parameter"] if own else _networks().unpack_parameter(base, module)
    model = GraphRegressor(**values)
    check_parameters(model)
    return model


def _networks() -> ModuleType:
    """Import the part that needs PyTorch."""
    try:
        from residua.io.model_file import networks
    except ImportError as error:
        raise ModelFileError(needs("holds a network, which", "PyTorch", "gnn", error)) from None
    return networks


def _pack_graph(graph: Graph, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Put integer ids and adjacencies into ``arrays``; other ids stay in the table."""
    arrays |= {f"graph.{name}": array for name, array in graph.arrays().items()}
    integers = graph.nodes.dtype == np.int64
    if integers:
        arrays["graph.nodes"] = graph.nodes
    ids = None if integers else [plain(node, "node id") for node in graph.nodes]
    return {"n_nodes": graph.n_nodes, "edge_types": list(graph.edge_types), "nodes": ids, "found": graph.nodes_found}


def _unpack_graph(table: Table, arrays: Arrays) -> Graph:
    n, types, ids = table.need("n_nodes", int), table.need("edge_types", list), table.get("nodes")
    if not types or any(type(name) is not str for name in types) or len(set(types)) < len(types):
        raise damaged("edge types are not distinct names")
    nodes = arrays.take("graph.nodes", (n,), np.int64) if ids is None else restore(ids, n, "nodes")
    if not pd.Index(nodes, dtype=nodes.dtype, tupleize_cols=False).is_unique:
        raise damaged("a node id occurs twice")
    parts: dict[str, np.ndarray] = {}
    for k in range(len(types)):
        parts[f"indptr.{k}"] = arrays.take(f"graph.indptr.{k}", (n + 1,), np.int64)
        parts[f"indices.{k}"] = arrays.take(f"graph.indices.{k}", (None,), np.int32)
        if f"graph.weights.{k}" in arrays.left:
            parts[f"weights.{k}"] = arrays.take(f"graph.weights.{k}", parts[f"indices.{k}"].shape)
    if "graph.edge_attr" in arrays.left:
        parts["edge_attr"] = arrays.take("graph.edge_attr", (None, None))
    with np.errstate(over="ignore"):  # weights that add up to infinity are refused below
        graph = Graph.from_arrays(parts, nodes, types)
    # Factorisations walk both triangles of a matrix in compiled code and rely on their being alike.
    for name, A in ((name, graph.adjacency(name)) for name in types):
        if not (A.has_canonical_format and (A.data > 0).all() and same(A, A.T.tocsr())):
            raise damaged(f"edges of type {name!r} are not symmetric with positive weights")
    if not np.isfinite(graph.degree).all():
        raise damaged("edge weights add up to infinity")
    return replace(graph, nodes_found=table.get("found") is True)


def _pack_base(base: FittedBase, arrays: dict[str, np.ndarray], estimators: dict[str, Any]) -> dict[str, Any]:
    if isinstance(base, LinearBase):
        pack_linear(base, arrays)
        return {"kind": "linear", "name": base.name}
    if isinstance(base, TreesBase):
        return pack_trees(base, arrays)
    if isinstance(base, ScikitBase):
        estimators["fitted"] = base.estimator
        return {"kind": "scikit"}
    return _networks().pack_network(base, arrays)


def _unpack_base(
    table: Table, graph: Graph, X: np.ndarray, arrays: Arrays, estimators: Mapping[str, Any], module: Any
) -> Base:
    kind = table.need("kind", str)
    if kind == "scikit":
        return ScikitBase(estimators["fitted"])
    if kind == "network":
        return _networks().unpack_network(table, graph, X, arrays, module)
    if kind == "trees":
        return unpack_trees(table, X.shape[1], arrays)
    base = make_base(table.get("name"))
    if kind != "linear" or not isinstance(base, LinearBase):
        raise damaged(f"base is {one_line(table, 80)}")
    return unpack_linear(base, X.shape[1], arrays)
