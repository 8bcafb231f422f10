"""A small town in two tables, for the tests of files and of the command line."""

from pathlib import Path

import numpy as np
import pandas as pd

SIDE = 9


def town(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes of a grid with ids such as 007, and its edges; a third of the prices are unknown."""
    rng = np.random.default_rng(seed)
    n = SIDE**2
    row, column = np.divmod(np.arange(n), SIDE)
    smooth = np.sin(row / 2) + np.cos(column / 3)
    size, quarter = rng.normal(size=n), np.array(["north", "south", "old town"])[row % 3]
    price = 2 * size + (quarter == "old town") + smooth + 0.1 * rng.normal(size=n)
    ids = np.array([f"{k:03d}" for k in range(n)])
    nodes = pd.DataFrame({"id": ids, "size": size, "quarter": quarter, "price": price})
    nodes.loc[rng.permutation(n)[: n // 3], "price"] = np.nan
    right, down = np.flatnonzero(column < SIDE - 1), np.flatnonzero(row < SIDE - 1)
    source, target = np.r_[right, down], np.r_[right + 1, down + SIDE]
    kind = np.repeat(["street", "path"], [len(right), len(down)])
    return nodes, pd.DataFrame({"source": ids[source], "target": ids[target], "kind": kind, "width": 1.0 + source % 3})


def write(folder: Path, nodes: pd.DataFrame, edges: pd.DataFrame, suffix: str = "csv") -> tuple[Path, Path]:
    paths = folder / f"nodes.{suffix}", folder / f"edges.{suffix}"
    for path, table in zip(paths, (nodes, edges), strict=True):
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
    return paths


def edit(path: Path, line: int, old: str, new: str) -> None:
    """Change a line of a text file."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("".join(lines), encoding="utf-8")
