"""What a model says of every node, as a table and in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from residua.atomic import PathLike, check_folder_of, write_atomically
from residua.average import Average
from residua.estimator import GraphRegressor
from residua.io.tables.graphs import NodeData
from residua.maps import WRITTEN

NUMBERS = ("prediction", "std", "lower", "upper", "base", "correction", "leave_one_out")
ENDS = ("prediction", "lower", "upper")  # the label itself, where it is known
DIGITS = 12  # of the spread of the predictions
STDOUT = Path("-")
SUFFIXES = (".csv", ".parquet", *WRITTEN)


def prediction_table(
    model: GraphRegressor | Average,
    data: NodeData | None = None,
    coverage: float = 0.9,
    later: np.ndarray | None = None,
    left_out: str = "auto",
) -> pd.DataFrame:
    """Return one row a node: id, prediction, std, lower, upper, base, correction, known, leave_one_out.

    Parameters
    ----------
    model : GraphRegressor or Average
        Fitted model.
    data : NodeData, optional
        Tables of another graph; by default predictions are of the training graph.
    coverage : float
        Share of nodes that the interval from lower to upper should cover.
    later : (n,) array, optional
        Labels of the training graph that came after the fit, NaN elsewhere.
    left_out : "auto", "nodes" or "blocks"
        As in ``predict_interval``.
    """
    known, graph = (later, None) if data is None else (data.y, data.graph)
    width = model.interval_width(coverage, left_out=left_out, y=known, graph=graph)
    if isinstance(model, Average):
        nodes = model.graph_.nodes if data is None else data.graph.nodes
        if data is not None:
            columns = model.columns_on(data.graph, data.features, data.y, width)
        else:
            columns = model.predict_frame(y=later, coverage=coverage, left_out=left_out).to_dict("series")
        kept = ("prediction", "std", "lower", "upper", "base", "correction", "known", "leave_one_out")
        return pd.DataFrame({"id": nodes, **{name: np.asarray(columns[name]) for name in kept}})
    found = model.field_.given(y=later) if data is None else model.field_.on(data.graph, data.features, data.y)
    columns = found.columns(width)
    return pd.DataFrame({"id": found.graph.nodes, **columns, "known": found.known, "leave_one_out": found.left_out})


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return predictions with some twelve digits of their spread; labels stay as they are."""
    if "known" not in table:
        return table
    known = table["known"].to_numpy()
    spread = float(np.ptp(table["prediction"])) or float(abs(table["prediction"]).max()) or 1.0
    digits = max(0, DIGITS - int(np.floor(np.log10(spread))))
    return table.assign(
        **{name: np.where(known & np.isin(name, ENDS), table[name], table[name].round(digits)) for name in NUMBERS}
    )


def check_output(path: PathLike, suffixes: tuple[str, ...], inputs: tuple[Any, ...] = ()) -> None:
    """Refuse, before the work is done, a file that could not be written after it or should not be."""
    path = Path(path)
    if path == STDOUT:
        return
    if path.is_dir():
        raise ValueError(f"--output {path} is a folder; name a file such as {path / ('out' + suffixes[0])}.")
    check_folder_of(path, f"--output {path}")
    if len(suffixes) > 1 and path.suffix.lower() not in suffixes:
        raise ValueError(f"--output {path} should end in {' or '.join(suffixes)}, which says how to write it.")
    others = [Path(given) for given in inputs if given is not None and Path(given).exists()]
    if path.exists() and any(path.samefile(other) for other in others):
        raise ValueError(f"--output {path} is also an input and would be lost; name another file.")


def write_plain(columns: dict[str, Any], path: PathLike) -> None:
    """Write columns to a CSV file, whole or not at all."""
    text = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")
    if Path(path) == STDOUT:
        sys.stdout.write(text)
        return
    write_atomically(path, lambda file: file.write(text.encode()), "writing the table")


def write_table(table: pd.DataFrame, path: PathLike) -> None:
    """Write a table to a CSV or Parquet file, whole or not at all."""

    def write(file: BinaryIO) -> None:
        if Path(path).suffix.lower() == ".parquet":
            table.to_parquet(file, index=False, engine="pyarrow")
        else:
            rounded(table).to_csv(file, index=False, lineterminator="\n")

    if Path(path) == STDOUT:
        sys.stdout.write(rounded(table).to_csv(index=False, lineterminator="\n"))
        return
    write_atomically(path, write, "writing the predictions")
