"""Results of the comparisons: tables that know their numbers, their origin, and the two files they are kept in.

The JSON file holds every number as measured; the Markdown file shows it. A part that is run again replaces itself in
both and leaves the others.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.peers.clock import KIND
from benchmarks.peers.size import QUICK
from residua.reproduction.provenance import provenance

Cell = str | int | float | None

# Module that is imported, and the distribution it comes with.
PEERS = {
    "imate": "imate",
    "linear_operator": "linear_operator",
    "gpytorch": "gpytorch",
    "primate": "scikit-primate",
    "torch_geometric": "torch_geometric",
    "sknetwork": "scikit-network",
    "spreg": "spreg",
    "gpboost": "gpboost",
}
UNDER = ("residua", "numpy", "scipy", "numba", "torch", "libpysal", "scikit-learn")

HEAD = """# residua beside its peers

`make peers`, or `python -m benchmarks.peers --only PART` for one part. Every ratio comes from one run on one machine
with the same threads; what each method got wrong stands beside the time it took. Inputs (graphs, matrices, tensors)
are built before the clock starts, and each method has run once on a small problem before it is timed.
"""


@dataclass(frozen=True)
class Table:
    """Rows that share their columns."""

    title: str
    rows: list[dict[str, Cell]]


@dataclass(frozen=True)
class Part:
    """One comparison: what was asked, what came out, and how to read it."""

    name: str
    title: str
    question: str
    peers: tuple[str, ...]
    tables: list[Table]
    remarks: list[str] = field(default_factory=list)


def installed(peer: str) -> bool:
    """Whether a peer can be imported here."""
    return find_spec(peer) is not None


def absent(peers: tuple[str, ...]) -> list[str]:
    """Distributions of the peers that are not installed."""
    return [PEERS[peer] for peer in peers if not installed(peer)]


def origin(part: Part, threads: int, seconds: float) -> dict:
    """Where the numbers of a part come from."""
    options = [f"--only {part.name}", f"--threads {threads}", f"--clock {KIND}", *["--quick"] * QUICK]
    libraries = (*UNDER, *(PEERS[peer] for peer in part.peers))
    return provenance(" ".join(["python -m benchmarks.peers", *options]), libraries) | {
        "threads": threads,
        "clock": KIND,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "seconds": round(seconds),
        "not installed": absent(part.peers),
    }


def keep(part: Part, origin: dict, folder: Path) -> None:
    """Write a part into ``peers.json`` and ``peers.md``, beside the parts that are there."""
    path = folder / "peers.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept[part.name] = {**_plain(asdict(part)), "origin": origin}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    pages = [_markdown(found) for _, found in sorted(kept.items(), key=lambda item: item[1]["title"])]
    (folder / "peers.md").write_text("\n".join([HEAD, *pages]), encoding="utf-8")


def show(part: Part, console: Console) -> None:
    """Print a part."""
    console.rule(part.title)
    console.print(part.question + "\n", highlight=False, markup=False)
    for table in part.tables:
        grid = Grid(title=table.title)
        for column in table.rows[0]:
            grid.add_column(column, justify="left" if isinstance(table.rows[0][column], str) else "right")
        for row in table.rows:
            grid.add_row(*(shown(cell) for cell in row.values()))
        console.print(grid)
    for remark in part.remarks:
        console.print(f"- {remark}", highlight=False, markup=False)
    console.print()


def shown(cell: Cell) -> str:
    """A number in as few characters as it needs."""
    if cell is None or (isinstance(cell, float) and not np.isfinite(cell)):
        return "-"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 10_000:
        return f"{cell:,.0f}"
    return f"{cell:.2g}" if 0 < abs(cell) < 0.001 else f"{cell:.{max(0, 3 - len(str(int(abs(cell)))) + 1)}f}"


def _plain(value):
    """Numpy numbers as Python's, numbers that are none as null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _markdown(part: dict) -> str:
    about = part["origin"]
    libraries = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    missing = ", ".join(about["not installed"]) or "none"
    lines = [f"## {part['title']}", "", part["question"], ""]
    for table in part["tables"]:
        columns = list(table["rows"][0])
        lines += [f"**{table['title']}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(shown(row[column]) for column in columns) + " |" for row in table["rows"]]
        lines += [""]
    lines += [*(f"- {remark}" for remark in part["remarks"]), ""]
    lines += [
        f"`{about['command']}`, {about['date']}, {about['threads']} threads on {about['cores']} cores, seconds of the "
        f"{'processor' if about['clock'] == 'cpu' else 'wall clock'}, {about['seconds']} s in all, load average "
        f"{about['load']} at the end. {libraries}. Peers not installed: {missing}.",
        "",
    ]
    return "\n".join(lines)
