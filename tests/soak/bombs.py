"""Small files that claim to be large: each is refused before the memory is asked for that it claims."""

import io
import json
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import residua
from residua.datasets import load_transport
from residua.io.tables.graphs import Columns, read_tables
from residua.views.page.shapes import read_shapes
from soak.data_files import past_the_checksums, transport
from soak.model_files import Members, good_models, members_of, saved, zipped
from tables import town, write

HUGE = 10**15


class Bomb(NamedTuple):
    """A file that claims too much, and how it is read."""

    name: str
    path: Path
    read: Callable[[], object]


class Outcome(NamedTuple):
    """The error that came, and the memory that was asked for meanwhile."""

    error: Exception | None
    megabytes: float


def go_off(bomb: Bomb) -> Outcome:
    """Read the file under watch, Python's memory and Arrow's."""
    pool = pa.default_memory_pool()
    before, error = pool.max_memory(), None
    tracemalloc.start()
    try:
        bomb.read()
    except Exception as caught:
        error = caught
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return Outcome(error, (peak + max(0, pool.max_memory() - before)) / 1e6)


def bombs(folder: Path) -> list[Bomb]:
    """One of each kind, written to a folder."""
    models = {name: members_of(saved(model)) for name, model in good_models().items()}
    made = {**_of_models(models), **_of_archives(models["linear"])}
    found = []
    for name, content in made.items():
        path = folder / f"{name}.residua"
        path.write_bytes(content)
        found.append(Bomb(name, path, lambda path=path: residua.load(path)))
    return [*found, _table(folder), _roads(folder), _nested(folder)]


def _changed(members: Members, *steps: str, value: object) -> bytes:
    """A model file with another value at a place of its JSON part."""
    table = json.loads(members["model.json"])
    inner = table
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = value
    return zipped([*(members | {"model.json": json.dumps(table).encode()}).items()])


def _of_models(models: dict[str, Members]) -> dict[str, bytes]:
    linear, network, pipeline = (models[name] for name in ("linear", "network", "pipeline"))
    header = json.dumps({"y": {"dtype": "F64", "shape": [HUGE], "data_offsets": [0, 8 * HUGE]}}).encode()
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"shape": (HUGE,), "fortran_order": False, "descr": "<f8"})
    inner = members_of(pipeline["base.skops"])
    first = next(name for name in inner if name.endswith(".npy"))
    return {
        "nodes": _changed(linear, "graph", "n_nodes", value=HUGE),
        "widths": _changed(network, "base", "settings", "widths", value=[10**9, 10**9]),
        "members": _changed(network, "base", "members", value=HUGE),
        "hops": _changed(network, "base", "settings", "hops", value=10**12),
        "steps": _changed(linear, "correlation", "effort", "probes", value=HUGE),
        "digits": _changed(linear, "beta", value=10**4000),
        "array": zipped([*(linear | {"arrays.safetensors": len(header).to_bytes(8, "little") + header}).items()]),
        "header": zipped([*(linear | {"arrays.safetensors": (2**62).to_bytes(8, "little") + header}).items()]),
        "estimator": zipped(
            [*(pipeline | {"base.skops": zipped([*(inner | {first: array.getvalue()}).items()])}).items()]
        ),
        "nesting": zipped([*(linear | {"model.json": b"[" * 10**6}).items()]),
    }


def _of_archives(members: Members) -> dict[str, bytes]:
    large = [*(members | {"model.json": b" " * 10**8}).items()]
    lying = bytearray(zipped([*members.items()]))
    at = lying.rindex(b"PK\x01\x02")  # the last entry of the directory: both sizes of its member
    lying[at + 20 : at + 28] = b"\xff\xff\xff\x7f" * 2
    nested = zipped([("model.json", zipped(large, zipfile.ZIP_DEFLATED))])
    return {"deflated": zipped(large, zipfile.ZIP_DEFLATED), "packed": zipped(large, zipfile.ZIP_LZMA),
            "lying": bytes(lying), "zip in zip": nested}  # fmt: skip


def _table(folder: Path) -> Bomb:
    """Rows without end in a few bytes: a column of one value is kept as that value and a count."""
    place = folder / "table"
    place.mkdir()
    nodes, edges = write(place, *town(), "parquet")
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), pa.array(["x"]))
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"id": column, "price": column}), sink)
    data = sink.getvalue().to_pybytes()
    nodes.write_bytes(_more_rows(data, 1000))
    return Bomb("rows", nodes, lambda: read_tables(nodes, edges, Columns("price")))


def _more_rows(data: bytes, rows: int) -> bytes:
    """Claim many more rows in the directory of a Parquet file; its numbers are zigzag varints."""
    size = int.from_bytes(data[-8:-4], "little")
    footer, few, many = data[-8 - size : -8], _varint(2 * rows), _varint(2 * HUGE)
    footer = footer.replace(b"\x16" + few, b"\x16" + many)  # 16: a field after the last, of 64 bits
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _roads(folder: Path) -> Bomb:
    """A junction with a number beyond all memory, in both files of a network: it is a name and no size."""
    place = folder / "data"
    for name, data in transport(np.random.default_rng(0)).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data.replace(b"388", b"%d" % HUGE))

    def read() -> None:
        with past_the_checksums(place):
            load_transport("anaheim")
        raise ValueError("read, and no more memory than its links need")

    return Bomb("junction", place, read)


def _nested(folder: Path) -> Bomb:
    path = folder / "nested.geojson"
    path.write_bytes(b'{"type": "FeatureCollection", "features": ' + b"[" * 10**6)
    return Bomb("geojson", path, lambda: read_shapes(path, np.array(["a"], object)))


def run(budget_seconds: float, random_state: int) -> dict[str, float]:
    """Every bomb once, whatever the time."""
    with tempfile.TemporaryDirectory() as folder:
        found = [go_off(bomb) for bomb in bombs(Path(folder))]
    assert all(type(outcome.error) in (ValueError, residua.ModelFileError) for outcome in found), found
    assert max(outcome.megabytes for outcome in found) < 30, found
    return {"bombs": len(found), "most megabytes for one": round(max(outcome.megabytes for outcome in found), 1)}
