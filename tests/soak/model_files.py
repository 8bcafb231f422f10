"""Hostile model files: residua.load of damaged, forged and packed ones."""

import io
import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import residua
from residua import Graph, GraphRegressor
from residua.io.tables.graphs import Columns, read_tables
from soak.mutations import damaged, damaged_json
from soak.verdicts import Budget, Judge, PromiseBroken, nothing_runs, until
from tables import town, write

N = 40
Members = dict[str, bytes]


@cache
def good_models() -> dict[str, GraphRegressor]:
    """A fitted model of every kind that a file can hold."""
    from residua import Network

    rng = np.random.default_rng(0)
    ids = np.array([f"köln {i}" for i in range(N)], object)
    ends = np.r_[np.arange(N), np.arange(0, N, 3)], np.r_[(np.arange(N) + 1) % N, (np.arange(0, N, 3) + 7) % N]
    kind = np.resize(np.array(["road", "rail"], object), len(ends[0]))
    graph = Graph.from_edges(ids[ends[0]], ids[ends[1]], rng.uniform(0.5, 2, len(kind)), kind, nodes=ids)
    X = rng.normal(size=(N, 2))
    y = np.where(rng.random(N) < 0.35, np.nan, X[:, 0] + np.sin(np.arange(N) / 3) + 0.3 * rng.normal(size=N))
    bases = {
        "linear": "linear",
        "splines": "splines",
        "mean": "mean",
        "pipeline": make_pipeline(StandardScaler(), Ridge()),
        "network": Network("hops", epochs=3, widths=(4,)),
    }
    models = {name: GraphRegressor(base).fit(X, y, graph=graph) for name, base in bases.items()}
    with tempfile.TemporaryDirectory() as folder:
        data = read_tables(*write(Path(folder), *town()), Columns("price"))
    models["tables"] = GraphRegressor("linear", "propagate").fit(data.X, data.y, graph=data.graph)
    models["tables"].recipe_ = data.recipe
    return models


def saved(model: GraphRegressor) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


# Kinds of damage: each makes a file out of the members of a good one.


def _raw(members: Members, rng: np.random.Generator) -> bytes:
    return damaged(zipped([*members.items()]), rng)


def _member(members: Members, rng: np.random.Generator) -> bytes:
    """Damage that the zip's checksums do not see."""
    name = list(members)[rng.integers(len(members))]
    return zipped([*(members | {name: damaged(members[name], rng)}).items()])


def _table(members: Members, rng: np.random.Generator) -> bytes:
    return zipped([*(members | {"model.json": damaged_json(members["model.json"], rng)}).items()])


def _arrays(members: Members, rng: np.random.Generator) -> bytes:
    """Arrays with odd values, of other shapes and types, all in a well-formed file."""
    arrays = from_safetensors(members["arrays.safetensors"])
    name = list(arrays)[rng.integers(len(arrays))]
    return zipped(
        [*(members | {"arrays.safetensors": to_safetensors(arrays | {name: _odd(arrays[name], rng)})}).items()]
    )


def _odd(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    array = array.copy()
    if rng.random() < 0.2:
        return np.ascontiguousarray(array[: len(array) // 2]) if array.ndim else array.reshape(1)
    if rng.random() < 0.2:
        kinds = (np.float32, np.int32, np.uint8, np.bool_, np.float16)
        with np.errstate(all="ignore"):
            return array.astype(kinds[rng.integers(len(kinds))])
    floats = (np.nan, np.inf, -1e308, 1e308, 5e-324, 0.0, -1.0, 1e30)
    whole = (-1, 2**62, -(2**62), 0, 1, 10**6)
    chosen = floats if array.dtype.kind == "f" else whole
    with np.errstate(all="ignore"):
        for _ in range(rng.integers(1, 5)):
            if array.size:
                array.reshape(-1)[rng.integers(array.size)] = np.array(chosen[rng.integers(len(chosen))]).astype(
                    array.dtype
                )
    return array


def _header(members: Members, rng: np.random.Generator) -> bytes:
    """A safetensors header that tells lies."""
    data = members["arrays.safetensors"]
    size = int.from_bytes(data[:8], "little")
    header = damaged_json(data[8 : 8 + size], rng)
    length = len(header) if rng.random() < 0.8 else int(rng.integers(2**62))
    return zipped(
        [*(members | {"arrays.safetensors": length.to_bytes(8, "little") + header + data[8 + size :]}).items()]
    )


def _skops(members: Members, rng: np.random.Generator) -> bytes:
    """A scikit-learn part whose schema or arrays are others."""
    if "base.skops" not in members:
        return _member(members, rng)
    inner = members_of(members["base.skops"])
    name = list(inner)[rng.integers(len(inner))] if rng.random() < 0.5 else "schema.json"
    change = damaged_json if name == "schema.json" and rng.random() < 0.7 else damaged
    return zipped([*(members | {"base.skops": zipped([*(inner | {name: change(inner[name], rng)}).items()])}).items()])


def _archive(members: Members, rng: np.random.Generator) -> bytes:
    """A zip that is packed, has members where none should be, or two of one name."""
    names = (
        "../../.profile",
        "/etc/cron.d/x",
        "..\\x",
        "model.json/",
        " ",
        "a" * 60_000,
        "model.json",
        "base.skops",
        "x\x00y",
    )
    more = (names[rng.integers(len(names))], rng.bytes(50))
    packed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)[rng.integers(4)]
    listed = [*members.items(), more]
    return zipped([listed[k] for k in rng.permutation(len(listed))], packed)


def _version(members: Members, rng: np.random.Generator) -> bytes:
    table = json.loads(members["model.json"])
    versions = (0, -1, 2, 10**30, "1", None, 1.0, True)
    table["format"] = versions[rng.integers(len(versions))]
    return zipped([*(members | {"model.json": json.dumps(table).encode()}).items()])


KINDS: tuple[Callable[[Members, np.random.Generator], bytes], ...] = (
    _raw,
    _member,
    _table,
    _table,
    _arrays,
    _header,
    _skops,
    _archive,
    _version,
)


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Load damaged model files; one that loads has to predict finite numbers, or say why it does not."""
    models = [members_of(saved(model)) for model in good_models().values()]
    judge = Judge()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hostile.residua"
        for members in models:
            path.write_bytes(zipped([*members.items()]))
            _use(path)  # what is imported on first use is here before anybody watches
        for k in until(budget):
            rng = np.random.default_rng([random_state, k])
            data = KINDS[k % len(KINDS)](models[rng.integers(len(models))], rng)
            path.write_bytes(data)
            judge.judge(data, lambda: _use(path))
    return dict(judge.counts)


def _use(path: Path) -> None:
    with nothing_runs():
        model = residua.load(path)
    with np.errstate(all="ignore"):
        try:
            answers = [*model.predict(return_std=True), *model.predict_interval()]
        except ValueError:
            return  # the model says what is wrong with it
    if not all(np.isfinite(answer).all() for answer in answers[:2]):
        raise PromiseBroken("a model loads and predicts what is not finite")
