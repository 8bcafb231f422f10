"""Model files: a fitted GraphRegressor as JSON, arrays and, for a scikit-learn base, a skops part.

    model.residua = zip, stored, of model.json + arrays.safetensors [+ base.skops]

Nothing in it is code. Members are not compressed, so a file cannot unfold into more than its own size. ``save`` packs
everything in memory first, then replaces the file in one step; ``load`` checks every part before it is used.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import pandas as pd
import safetensors
from safetensors.numpy import save as to_safetensors

from residua import __version__
from residua.estimator import GraphRegressor
from residua.gaussian import CorrelationFit, Likelihood
from residua.gaussian.fit import MAX_PROBES, Profile
from residua.gaussian.precision import check_alpha
from residua.graph import Graph
from residua.graph_build import same
from residua.numerics import Cholesky, Eigen, Lanczos, Strategy
from residua.numerics.stochastic import StochasticRatio
from residua.regressors.base import Base, LinearBase, Outcome, ScikitBase, make_base
from residua.validation import MIN_LABELS, check_choice, check_count

FORMAT = 1
TABLE, ARRAYS, ESTIMATORS = "model.json", "arrays.safetensors", "base.skops"
DTYPES = {"F64": "<f8", "I64": "<i8", "I32": "<i4"}
STRATEGIES: dict[str, type[Strategy]] = {kind.__name__: kind for kind in (Cholesky, Eigen, Lanczos)}
PRECISIONS = {"float32": np.float32, "float64": np.float64}
NOT_FINITE = ("inf", "-inf", "nan")

Table = dict[str, Any]  # a JSON object


class ModelFileError(ValueError):
    """A model file that cannot be used; the message names the file and says what to do."""


def save(model: GraphRegressor, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : a fitted ``GraphRegressor``
    path : the file, such as "model.residua"; an existing one is replaced

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
    write_whole(path, pack(model))


def load(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> GraphRegressor:
    """Read a model that ``model.save`` wrote; runs no code from the file.

    Parameters
    ----------
    path : the file
    trusted : further types, or their names, that a scikit-learn base may hold beyond those that skops trusts. Trees
        (forests, boosting) need it: their arrays steer compiled code, so trust them only where you know the source

    Raises
    ------
    FileNotFoundError
        where there is no such file
    ModelFileError
        a ``ValueError``: the file is damaged, of a newer version, or holds a type that is not trusted
    """
    path = os.fspath(path)
    names: list[str | type] = [trusted] if isinstance(trusted, str | type) else [*trusted]
    if not all(isinstance(name, str | type) for name in names):
        raise TypeError(f"trusted={trusted!r} is not a list of types or of their names.")
    try:
        return unpack(read_members(path), names)
    except ModelFileError as error:
        raise ModelFileError(f"{path} {one_line(error, 2000)}") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} not found; give the path of a file that model.save wrote.") from None
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise ModelFileError(f"{path} cannot be read ({reason}); check the file and its permissions.") from error
    except MemoryError:
        raise ModelFileError(f"{path} needs more memory than there is; load it on a larger machine.") from None
    except Exception as error:  # each parser fails in its own way on bytes that are not what they claim to be
        raise ModelFileError(f"{path} {damaged(one_line(f'{type(error).__name__}: {error}'))}") from error


def damaged(what: str) -> ModelFileError:
    return ModelFileError(f"is damaged or no residua model ({what}); restore a copy, or save the model again.")


def one_line(what: object, length: int = 200) -> str:
    """Text that a file may have a part in, kept short and free of control characters."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(str(what).split())) or type(what).__name__
    return text if len(text) <= length else text[: length - 3] + "..."


# The file: members written whole, and read with care


def write_whole(path: str | os.PathLike[str], members: Mapping[str, bytes]) -> None:
    """Write the members to a new file beside ``path``, then move it there."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file; give a file name such as model.residua.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: folder {target.parent} does not exist; create it first.")
    temporary = target.with_name(f".residua-{secrets.token_hex(8)}.tmp")
    try:
        write_members(temporary, members)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise OSError(error.errno or errno.EIO, f"saving the model failed: {reason}", str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_members(path: Path, members: Mapping[str, bytes]) -> None:
    with open(path, "xb") as file:
        with ZipFile(file, "w", ZIP_STORED) as archive:
            for name, data in members.items():
                info = ZipInfo(name)  # without the time of day: the same model gives the same bytes
                info.external_attr = (stat.S_IFREG | 0o644) << 16
                archive.writestr(info, data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot sync folders
            raise
    finally:
        os.close(handle)


def read_members(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The members of a stored zip; zipfile compares them with their checksums."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError("is not a regular file; give a file that model.save wrote.")
    with open(path, "rb") as file, ZipFile(file) as archive:
        size = os.fstat(file.fileno()).st_size
        return {info.filename: archive.read(info) for info in sound_members(archive, size)}


def sound_members(archive: ZipFile, size: int) -> list[ZipInfo]:
    """The members of a zip of ``size`` bytes in which none is hidden behind another, nor larger than its bytes."""
    members = archive.infolist()
    if len({info.filename for info in members}) < len(members):
        raise damaged("two members have one name")
    for info in members:
        if info.compress_type != ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise damaged(f"member {info.filename!r} is compressed or encrypted")
    if sum(info.file_size for info in members) > size:
        raise damaged("its members are larger than the file")
    return members


def read_table(members: Mapping[str, bytes]) -> Table:
    """The JSON part, of a version that this residua knows, with just the members that it announces."""
    if TABLE not in members:
        raise damaged(f"it has no {TABLE}")
    table = json.loads(members[TABLE], parse_constant=refuse_constant)
    if type(table) is not dict:
        raise damaged(f"{TABLE} is not an object")
    version, writer = need(table, "format", int), need(table, "residua", str)
    if version > FORMAT:
        raise ModelFileError(
            f"was written by a newer residua ({one_line(writer, 20)}, file format {version}; this is {__version__} "
            f"and reads up to {FORMAT}); upgrade residua."
        )
    if version < 1:
        raise damaged(f"format is {version}")
    expected = {TABLE, ARRAYS, *([ESTIMATORS] if need(table, "estimators", list) else [])}
    if members.keys() != expected:
        raise damaged(f"members are {one_line(sorted(members))}, not {sorted(expected)}")
    return table


def refuse_constant(text: str) -> NoReturn:
    raise damaged(f"{TABLE} has {text}")


# A model as members


def pack(model: GraphRegressor) -> dict[str, bytes]:
    """The members of the file; what cannot be kept is refused here, before anything is written."""
    if type(model) is not GraphRegressor:
        raise ValueError(f"model is a {type(model).__name__}; only a GraphRegressor can be saved.")
    arrays = {"X": model.X_, "y": model.y_, "residual": model.outcome_.residual, "alone": model.outcome_.alone}
    estimators: dict[str, Any] = {}
    names = getattr(model, "feature_names_in_", None)
    table = {
        "format": FORMAT,
        "residua": __version__,
        "parameters": pack_parameters(model, estimators),
        "graph": pack_graph(model.graph_, arrays),
        "feature_names": None if names is None else [plain(name, "feature name") for name in names],
        "base": pack_base(model.base_, arrays, estimators),
        "alpha": numbers(model.alpha_),
        "alpha_stderr": numbers(model.alpha_stderr_),
        "beta": number(model.beta_),
        "correlation": None if model.correlation_ is None else pack_correlation(model.correlation_, arrays),
        "estimators": sorted(estimators),
    }
    members = {TABLE: json.dumps(table, allow_nan=False).encode(), ARRAYS: pack_arrays(arrays)}
    return members | ({ESTIMATORS: pack_estimators(estimators)} if estimators else {})


def unpack(members: Mapping[str, bytes], trusted: list[str | type]) -> GraphRegressor:
    """The model that these members hold."""
    table = read_table(members)
    arrays = Arrays(members[ARRAYS])
    estimators = unpack_estimators(members.get(ESTIMATORS), table["estimators"], trusted)
    graph = unpack_graph(need(table, "graph", dict), arrays)
    X = arrays.take("X", (graph.n_nodes, None))
    y = arrays.take("y", (graph.n_nodes,), finite=False)
    known = ~np.isnan(y)
    if np.isinf(y).any() or known.sum() < MIN_LABELS:
        raise damaged("y is infinite or has too few labels")
    base = unpack_base(need(table, "base", dict), X, arrays, estimators)
    outcome = Outcome(arrays.take("residual", (known.sum(),)), arrays.take("alone", (known.sum(),)))
    names = unpack_names(table.get("feature_names"), X.shape[1])
    alpha, stderr = (read_numbers(table, name, graph) for name in ("alpha", "alpha_stderr"))
    check_alpha(alpha, graph, limit=True)
    beta = read_number(table.get("beta"))
    if not 0 < beta < math.inf:
        raise damaged(f"beta is {beta}")
    fit = None
    if table.get("correlation") is not None:
        seen = Seen.by(base, graph, X, y, outcome)
        fit = unpack_correlation(need(table, "correlation", dict), alpha, stderr, seen, arrays)
        outcome = replace(outcome, correlation=None if seen.design is None else fit)
    arrays.check_empty()
    model = GraphRegressor(**unpack_parameters(need(table, "parameters", dict), estimators))
    return model._store(graph, X, names, y, base, outcome, fit, alpha, stderr, beta)


def pack_parameters(model: GraphRegressor, estimators: dict[str, Any]) -> Table:
    """Constructor parameters; a scikit-learn base goes to ``estimators``."""
    packed: Table = {}
    values = model.get_params(deep=False)
    check_parameters(values)
    for name, value in values.items():
        if isinstance(value, Strategy):
            packed[name] = pack_strategy(value)
        elif name == "base" and not isinstance(value, str):
            estimators["parameter"] = value
            packed[name] = {"estimator": "parameter"}
        else:
            packed[name] = None if value is None else plain(value, f"parameter {name}")
    return packed


def unpack_parameters(table: Table, estimators: Mapping[str, Any]) -> dict[str, Any]:
    values = GraphRegressor().get_params(deep=False)
    unknown = sorted(table.keys() - values.keys())
    if unknown:
        raise ModelFileError(f"has parameters {one_line(unknown)} that residua {__version__} lacks; upgrade residua.")
    for name, value in table.items():
        values[name] = unpack_strategy(value) if name == "logdet" and type(value) is dict else value
    if type(values["base"]) is dict:
        values["base"] = estimators["parameter"]
    check_parameters(values)
    return values


def check_parameters(values: Mapping[str, Any]) -> None:
    """As ``fit`` does, for they may have been set since."""
    make_base(values["base"])
    check_choice(values["correlation"], ("learned", "propagate", None), "correlation")
    check_count(values["folds"], "folds", 2)
    check_count(values["random_state"], "random_state", 0)
    if not isinstance(values["logdet"], str | Strategy):
        raise ValueError(f'logdet={one_line(repr(values["logdet"]), 40)} is unknown; use "auto" or a strategy.')


def pack_strategy(strategy: Strategy) -> Table:
    if type(strategy) not in STRATEGIES.values():
        raise ValueError(
            f'logdet={one_line(repr(strategy), 80)} cannot be saved; use "auto" or one of {", ".join(STRATEGIES)}.'
        )
    fields = asdict(cast(Any, strategy))
    if "dtype" in fields:
        fields["dtype"] = np.dtype(fields["dtype"]).name
    values = {name: None if v is None else plain(v, f"logdet {name}") for name, v in fields.items()}
    return {"strategy": type(strategy).__name__, **values}


def unpack_strategy(table: Table) -> Strategy:
    fields = dict(table)
    kind = STRATEGIES[fields.pop("strategy")]
    if "dtype" in fields:
        fields["dtype"] = PRECISIONS[fields["dtype"]]
    counts = [value for name, value in fields.items() if name != "dtype"]
    if any(type(value) not in (int, bool, type(None)) or (value or 0) < 0 for value in counts):
        raise damaged(f"logdet is {one_line(table, 80)}")
    return kind(**fields)


# The graph


def pack_graph(graph: Graph, arrays: dict[str, np.ndarray]) -> Table:
    """Integer ids and adjacencies go to ``arrays``; other ids stay in the table."""
    arrays.update({f"graph.{name}": array for name, array in graph.arrays().items()})
    ids = None
    if graph.nodes.dtype == np.int64:
        arrays["graph.nodes"] = graph.nodes
    else:
        ids = [plain(node, "node id") for node in graph.nodes]
    return {"n_nodes": graph.n_nodes, "edge_types": list(graph.edge_types), "nodes": ids}


def unpack_graph(table: Table, arrays: Arrays) -> Graph:
    n, types, ids = need(table, "n_nodes", int), need(table, "edge_types", list), table.get("nodes")
    if not types or any(type(name) is not str for name in types) or len(set(types)) < len(types):
        raise damaged("edge types are not distinct names")
    nodes = arrays.take("graph.nodes", (n,), np.int64) if ids is None else restore_all(ids, n, "nodes")
    if not pd.Index(nodes, dtype=nodes.dtype, tupleize_cols=False).is_unique:
        raise damaged("a node id occurs twice")
    parts: dict[str, np.ndarray] = {}
    for k in range(len(types)):
        parts[f"indptr.{k}"] = arrays.take(f"graph.indptr.{k}", (n + 1,), np.int64)
        parts[f"indices.{k}"] = arrays.take(f"graph.indices.{k}", (None,), np.int32)
        if f"graph.weights.{k}" in arrays:
            parts[f"weights.{k}"] = arrays.take(f"graph.weights.{k}", parts[f"indices.{k}"].shape)
    with np.errstate(over="ignore"):  # weights that add up to infinity are refused below
        graph = Graph.from_arrays(parts, nodes, types)
    check_symmetric(graph)
    return graph


def check_symmetric(graph: Graph) -> None:
    """Factorisations walk both triangles of a matrix in compiled code and rely on their being alike."""
    for name in graph.edge_types:
        A = graph.adjacency(name)
        if not (A.has_canonical_format and (A.data > 0).all() and same(A, A.T.tocsr())):
            raise damaged(f"edges of type {name!r} are not symmetric with positive weights")
    if not np.isfinite(graph.degree).all():
        raise damaged("edge weights add up to infinity")


# The base


def pack_base(base: Base, arrays: dict[str, np.ndarray], estimators: dict[str, Any]) -> Table:
    if isinstance(base, LinearBase):
        for name in ("coefficients", "centre", "spread"):
            arrays[f"base.{name}"] = getattr(base, name)
        return {"kind": "linear", "name": base.name}
    if isinstance(base, ScikitBase):
        estimators["fitted"] = base.estimator
        return {"kind": "scikit"}
    raise ValueError(f"base {base.name!r} cannot be saved; use a linear or a scikit-learn base.")


def unpack_base(table: Table, X: np.ndarray, arrays: Arrays, estimators: Mapping[str, Any]) -> Base:
    kind = need(table, "kind", str)
    if kind == "scikit":
        return ScikitBase(estimators["fitted"])
    base = make_base(table.get("name"))
    if kind != "linear" or not isinstance(base, LinearBase):
        raise damaged(f"base is {one_line(table, 80)}")
    base.centre = arrays.take("base.centre", X.shape[1:])
    base.spread = arrays.take("base.spread", X.shape[1:])
    if not (base.spread > 0).all():
        raise damaged("base.spread is not positive")
    base.coefficients = arrays.take("base.coefficients", (base.design(X[:1]).shape[1],))
    return base


def pack_estimators(estimators: dict[str, Any]) -> bytes:
    """A skops part that is known to load."""
    import skops.io  # takes two seconds, and only a scikit-learn base needs it

    try:
        data = skops.io.dumps(estimators)
        unpack_estimators(data, sorted(estimators), skops.io.get_untrusted_types(data=data))
    except Exception as error:
        names = ", ".join(sorted({type(estimator).__name__ for estimator in estimators.values()}))
        raise ValueError(
            f"base {names} cannot be kept in a model file ({one_line(error)}); "
            "use estimators and functions that can be imported by name, without sparse matrices or bytes."
        ) from error
    return data


def unpack_estimators(data: bytes | None, names: list, trusted: list) -> dict[str, Any]:
    """Scikit-learn regressors by name, made of trusted types alone."""
    if data is None:
        return {}
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    check_skops(data)
    try:
        found = skops.io.loads(data, trusted=trusted)
    except UntrustedTypesFoundException:
        wanted = skops.io.get_untrusted_types(data=data)
        raise ModelFileError(
            f"has a base with types that are not trusted by default: {', '.join(wanted)}; "
            f"if you know where the file comes from, load it with trusted={wanted}."
        ) from None
    if type(found) is not dict or sorted(found) != names:
        raise damaged(f"{ESTIMATORS} does not hold {one_line(names)}")
    if not all(isinstance(make_base(estimator), ScikitBase) for estimator in found.values()):
        raise damaged(f"{ESTIMATORS} does not hold regressors")
    return found


def check_skops(data: bytes) -> None:
    """No member of a skops file is packed, and no array claims a shape beyond its bytes."""
    with ZipFile(io.BytesIO(data)) as archive:
        for info in sound_members(archive, len(data)):
            if info.filename.endswith(".npy"):
                check_npy(archive, info)
            elif info.filename != "schema.json":  # such as a sparse matrix, which is a compressed zip in its turn
                raise damaged(f"{ESTIMATORS} has a member {info.filename!r}")


def check_npy(archive: ZipFile, info: ZipInfo) -> None:
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(info) as file:
        shape, _, dtype = headers[np.lib.format.read_magic(file)](file)
        if dtype.hasobject or min(shape, default=0) < 0:
            raise damaged(f"{info.filename!r} holds objects")
        if math.prod(shape) * dtype.itemsize != info.file_size - file.tell():
            raise damaged(f"{info.filename!r} is not of shape {shape}")


# The correlation


@dataclass(frozen=True)
class Effort:
    """How far a fit went: its log-determinants, steps of its quadratic form (None: a solve each), probes."""

    strategy: Strategy
    steps: int | None
    probes: int | None

    @classmethod
    def of(cls, profile: Profile | SavedProfile) -> Effort:
        if isinstance(profile, SavedProfile):
            return profile.effort
        form, ratio = profile.form, profile.likelihood.ratio
        run = 0 if form.run is None else form.run.steps
        probes = ratio.probes if isinstance(ratio, StochasticRatio) else None
        return cls(profile.likelihood.strategy, None if form.rule is None else run, probes)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a correlation was fitted to."""

    graph: Graph
    labelled: np.ndarray  # (n,) bool
    y: np.ndarray  # (|L|,)
    design: np.ndarray | None  # (|L|, c) of a linear base

    @classmethod
    def by(cls, base: Base, graph: Graph, X: np.ndarray, y: np.ndarray, outcome: Outcome) -> Seen:
        labelled, design = ~np.isnan(y), base.design(X)
        if design is None:
            return cls(graph, labelled, outcome.residual, None)
        return cls(graph, labelled, y[labelled], design[labelled])


@dataclass(frozen=True, eq=False)
class SavedProfile:
    """Stands for the ``Profile`` of a loaded fit, which is rebuilt when an interval first asks for it."""

    seen: Seen
    effort: Effort

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "profile":
            raise AttributeError(name)
        return getattr(self.profile, name)

    @cached_property
    def profile(self) -> Profile:
        """As the fit left it: just as many steps and probes give the same numbers."""
        likelihood = Likelihood(self.seen.graph, self.seen.labelled, self.effort.strategy)
        profile = Profile(likelihood, self.seen.y, self.seen.design)
        form, ratio = profile.form, likelihood.ratio
        if self.effort.steps is None:
            form.rule = None
        while form.rule and form.run and form.run.steps < (self.effort.steps or 0) and not form.run.exhausted:
            if form.run.steps >= 20 and len(form.rule.values) > form.MAX_SIZE:
                break  # further than any fit goes
            form.rule = form.run.extend(8)
        if isinstance(ratio, StochasticRatio) and (self.effort.probes or 0) > ratio.probes:
            ratio.add_probes(cast(int, self.effort.probes))
        return profile


SCALARS = ("beta", "beta_stderr", "log_likelihood", "p_value")


def pack_correlation(fit: CorrelationFit, arrays: dict[str, np.ndarray]) -> Table:
    arrays["correlation.coefficients"] = fit.coefficients
    arrays["correlation.covariance"] = fit.coefficient_covariance
    effort = None if fit.profile is None else Effort.of(fit.profile)
    return {
        **{name: number(getattr(fit, name)) for name in SCALARS},
        "alpha_mc_error": numbers(fit.alpha_mc_error),
        "n_labelled": fit.n_labelled,
        "methods": dict(fit.methods),
        "effort": effort and {**vars(effort), "strategy": pack_strategy(effort.strategy)},
    }


def unpack_correlation(
    table: Table, alpha: dict[str, float], stderr: dict[str, float], seen: Seen, arrays: Arrays
) -> CorrelationFit:
    methods, n_labelled = need(table, "methods", dict), need(table, "n_labelled", int)
    if n_labelled != len(seen.y) or any(type(text) is not str for text in methods.values()):
        raise damaged("correlation does not fit the labels")
    columns = 0 if seen.design is None else seen.design.shape[1]
    effort = table.get("effort") and unpack_effort(need(table, "effort", dict))
    return CorrelationFit(
        **{name: read_number(table.get(name)) for name in SCALARS},
        alpha=alpha,
        alpha_stderr=stderr,
        n_labelled=n_labelled,
        alpha_mc_error=read_numbers(table, "alpha_mc_error", seen.graph),
        methods=methods,
        coefficients=arrays.take("correlation.coefficients", (columns,)),
        coefficient_covariance=arrays.take("correlation.covariance", (columns, columns)),
        profile=cast(Profile, SavedProfile(seen, effort)) if effort else None,
    )


def unpack_effort(table: Table) -> Effort:
    strategy = unpack_strategy(need(table, "strategy", dict))
    steps, probes = need(table, "steps", int, type(None)), need(table, "probes", int, type(None))
    if (steps or 0) < 0 or not 0 <= (probes or 0) <= (getattr(strategy, "probes", None) or MAX_PROBES):
        raise damaged(f"effort is {one_line(table, 80)}")
    return Effort(strategy, steps, probes)


# Values in JSON, each of the type it should have


def need(table: Table, key: str, *kinds: type) -> Any:
    """The value of ``key``, just of one of these types (True is no int)."""
    if key not in table or type(table[key]) not in kinds:
        raise damaged(f"{key} is missing or of a wrong type")
    return table[key]


def number(value: float) -> float | str:
    """A float; JSON has no infinity."""
    return float(value) if math.isfinite(value) else str(float(value))


def numbers(values: Mapping[str, float]) -> dict[str, float | str]:
    return {name: number(value) for name, value in values.items()}


def read_number(value: Any) -> float:
    if type(value) not in (int, float) and value not in NOT_FINITE:
        raise damaged(f"a number is {one_line(repr(value), 40)}")
    return float(value)


def read_numbers(table: Table, key: str, graph: Graph) -> dict[str, float]:
    """One number for each edge type."""
    values = need(table, key, dict)
    if tuple(values) != graph.edge_types:
        raise damaged(f"{key} has other edge types than the graph")
    return {name: read_number(value) for name, value in values.items()}


def plain(value: Any, name: str) -> Any:
    """An id or a name as JSON keeps it: tuples become lists, numpy's scalars Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is tuple:
        return [plain(part, name) for part in value]
    if type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    raise ValueError(
        f"{name} {one_line(repr(value), 60)} is of type {type(value).__name__}, which a model file does not keep; "
        "use int, str, finite float, bool or tuples of these."
    )


def restore(value: Any) -> Hashable:
    """The id that ``plain`` made this of."""
    if type(value) is list:
        return tuple(restore(part) for part in value)
    if type(value) not in (bool, int, str, float):
        raise damaged(f"an id or a name is {one_line(repr(value), 40)}")
    return value


def restore_all(values: Any, count: int, name: str) -> np.ndarray:
    """(count,) array of ids or names."""
    if type(values) is not list or len(values) != count:
        raise damaged(f"{name} are not {count}")
    return np.fromiter(map(restore, values), object, count)


def unpack_names(values: Any, count: int) -> np.ndarray | None:
    return None if values is None else restore_all(values, count, "feature names")


# Arrays


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays by name; one that lies column by column keeps its layout, since sums depend on it in the last bit."""
    packed = {}
    for name, array in arrays.items():
        by_column = array.flags.f_contiguous and not array.flags.c_contiguous
        packed[f"{name}.T" if by_column else name] = np.ascontiguousarray(array.T if by_column else array)
    return to_safetensors(packed)


class Arrays:
    """The arrays of a file: each is taken once, and checked."""

    def __init__(self, data: bytes):
        self.left: dict[str, np.ndarray] = {}
        # safetensors itself refuses shapes that differ from the bytes there are.
        for name, view in safetensors.deserialize(data):
            array = np.frombuffer(view["data"], DTYPES[view["dtype"]]).reshape(view["shape"])
            array = array.astype(array.dtype.newbyteorder("="), order="C", copy=True)
            by_column = name.endswith(".T")
            if name.removesuffix(".T") in self.left:
                raise damaged(f"array {name!r} comes twice")
            self.left[name.removesuffix(".T")] = array.T if by_column else array

    def __contains__(self, name: str) -> bool:
        return name in self.left

    def take(self, name: str, shape: tuple, dtype: type = np.float64, finite: bool = True) -> np.ndarray:
        """The array of that name, of that dtype and shape (None: any length)."""
        array = self.left.pop(name, None)
        if array is None:
            raise damaged(f"array {name} is missing")
        fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
        if array.dtype != dtype or not fits:
            raise damaged(f"array {name} is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of {shape}")
        if finite and not np.isfinite(array).all():
            raise damaged(f"array {name} is not finite")
        return array

    def check_empty(self) -> None:
        if self.left:
            raise damaged(f"it has unknown arrays {one_line(sorted(self.left))}")
