"""Hostile tables: CSV and Parquet files of nodes and edges, read as ``residua fit``, ``predict`` and ``report`` do."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from residua.io.tables.graphs import Columns, read_again, read_tables, rows_like
from soak.mutations import damaged
from soak.verdicts import Budget, Judge, nothing_runs, until
from tables import town, write

COLUMNS = Columns("price", edge_type="kind", weight="width")


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Read damaged tables beside good ones."""
    judge = Judge()
    with tempfile.TemporaryDirectory() as folder:
        good = {suffix: write(Path(folder), *town(), suffix) for suffix in ("csv", "parquet")}
        content = {path: path.read_bytes() for paths in good.values() for path in paths}
        fitted = read_tables(*good["csv"], COLUMNS)
        for k in until(budget):
            rng = np.random.default_rng([random_state, k])
            suffix = ("csv", "parquet")[k % 2]
            which = int(rng.integers(2))
            path = good[suffix][which]
            change = _odd_columns if suffix == "parquet" and rng.random() < 0.5 else damaged
            data = change(content[path], rng)
            path.write_bytes(data)
            paths = good[suffix]
            judge.judge(data, lambda paths=paths: _read(paths), str(folder))
            if which == 0 and k % 5 == 0:
                judge.judge(data, lambda paths=paths: read_again(*paths, fitted.recipe), str(folder))
                judge.judge(data, lambda path=path: rows_like(path, fitted.graph, fitted.recipe), str(folder))
            path.write_bytes(content[path])
    return dict(judge.counts)


def _read(paths: tuple[Path, Path]) -> None:
    with nothing_runs():
        data = read_tables(*paths, COLUMNS)
    assert data.X is None or np.isfinite(data.X.to_numpy(float)).all()
    assert not np.isinf(data.y).any()


def _odd_columns(content: bytes, rng: np.random.Generator) -> bytes:
    """A sound Parquet file, one column of which is of another type or has odd values."""
    table = parquet.read_table(pa.BufferReader(content))
    n, at = table.num_rows, int(rng.integers(table.num_columns))
    column = _columns(n, rng)[rng.integers(17)]
    changed = table.set_column(at, table.column_names[at], column)
    if rng.random() < 0.1:
        changed = changed.append_column(table.column_names[at], column)
    sink = pa.BufferOutputStream()
    parquet.write_table(changed, sink)
    return sink.getvalue().to_pybytes()


def _columns(n: int, rng: np.random.Generator) -> list[pa.Array]:
    odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0]
    return [
        pa.array(rng.choice(odd, n)),
        pa.array(np.full(n, 1e308)),
        pa.array(np.full(n, 2**64 - 1, np.uint64)),
        pa.array([2**63 - 1] * (n - 1) + [None], pa.int64()),
        pa.array([True, False, None] * n, pa.bool_())[:n],
        pa.array([b"\xff\x00"] * n),
        pa.array([[1.0, None]] * n),
        pa.array([{"a": 1}] * n),
        pa.nulls(n),
        pa.nulls(n, pa.float64()),
        pa.array(["\x00", "a\nb", "<script>", "", None, "\x1b[2J"] * n)[:n],
        pa.array(np.arange(n) * 10**14, pa.timestamp("us")),
        pa.array(np.arange(n), pa.duration("s")),
        pa.array(np.arange(n, dtype=np.int32), pa.date32()),
        pa.array(["x"] * n).dictionary_encode(),
        pa.array((np.arange(n) * 0.5).astype(np.float16)),
        pa.array([None if i % 2 else i for i in range(n)], pa.int64()).cast(pa.decimal128(38, 10)),
    ]
