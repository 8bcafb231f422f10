"""What the commands on tables have in common: their options, and how results are printed."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from residua.bases.registry import BASES, NETWORKS, find_base

if TYPE_CHECKING:
    import numpy as np

    from residua.io.tables.graphs import Columns, NodeData

_HELP = {name: f"{name} ({entry.help})" for name, entry in BASES.items()}
BASE_NAMES = ", ".join(text for name, text in _HELP.items() if name not in NETWORKS)
BEST = "best"  # as --base: several, averaged
BASE_NAMES += f"; networks: {', '.join(_HELP[name] for name in NETWORKS)}"
FIT_NAMES = f"{BASE_NAMES}; or {BEST} (several of these, averaged by their errors at labels left out)"
FIT_HELP = (
    f"What explains a node by its features: {FIT_NAMES}. In Python the default is hops, which predicts better; linear "
    "needs no PyTorch, tells its coefficients and is fitted in a second."
)
Output = partial(Option, "--output", "-o")
FIELDS = "normalised, laplacian, or auto: the one with the better leave-one-out score."
Seed = Annotated[int, Option(min=0, help="Seed of everything random.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Trust = Annotated[bool, Option("--trust", help="The file has trees, and I know where it comes from.")]
Units = Annotated[bool, Option("--units", help="Numbers may have a unit or a currency: 652 m², $1,200, 45 %.")]
Duplicates = Annotated[
    str, Option(help="What rows become that list one edge: error, first, sum, mean or max of their weights.")
]
Coordinates = Annotated[
    str, Option(help="What longitude and latitude (or x and y) are for: map, or features, which is both.")
]
SkipUnknown = Annotated[bool, Option("--skip-unknown", help="Leave out edges to nodes not in the node table.")]
ASKED = {  # which no default stands for
    "nodes": Annotated[Path, Argument(help="Node table, CSV, Parquet or a map (GeoPackage ..): a line for each node.")],
    "edges": Annotated[
        Path,
        Argument(
            help="Edge table, CSV or Parquet: a line for each edge. Of a map: queen, rook, knn:4, distance:5000; with "
            ",nearest behind it islands are joined to their nearest place, with ,keep left without a note."
        ),
    ],
    "target": Annotated[str, Option(help="Column to predict; empty where it is unknown.")],
}
NAMES = {
    "id": "Column with the ids of the nodes; by default id, or the first.",
    "features": "Columns to predict from, with commas; by default all that can.",
    "categorical": "Columns of numbers to read as categories, with commas.",
    "exclude": "Columns to leave out, with commas.",
    "source": "Column with one end of an edge; by default source, or the first.",
    "target_node": "Column with the other end; by default target, or the second.",
    "weight": "Column with the weights of the edges; by default all 1.",
    "length": "Column with the lengths of the edges, whose weights are then 1 / length.",
    "edge_type": "Column with the types of the edges; by default there is one.",
    "missing": "Words that mean an empty cell, with commas: NA,n/a.",
    "thousands": "Mark between thousands, as in 358,001; by default none.",
    "decimal": "Decimal mark, . or ,; by default a point.",
}
OF_NETWORKS = {"training": "joint", "ensemble": 1, "checkpoint": None, "device": "cpu"}  # options with their defaults
DATE_PARTS = {
    "days": "days since 2000-01-01",
    "sine": "the sine of the time of the year",
    "cosine": "its cosine",
}
LISTS = ("features", "categorical", "exclude", "missing")


@dataclass(frozen=True)
class Tables:
    """Two tables, and which of their columns are what.

    Parameters
    ----------
    nodes : Path
        The node table.
    edges : Path
        The edge table.
    columns : Columns
        As the options name them.
    """

    nodes: Path
    edges: Path
    columns: Columns


def of_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments and options that say which tables to read and how; it takes them as ``tables``."""
    Parameter = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    shared = [Parameter(name, annotation=kind) for name, kind in ASKED.items()]
    for name, text in NAMES.items():
        kind = Annotated[str | None, Option(f"--{name.replace('_', '-')}", help=text)]
        shared.append(Parameter(name, annotation=kind, default=None))
    shared.append(Parameter("units", annotation=Units, default=False))
    shared.append(Parameter("skip_unknown", annotation=SkipUnknown, default=False))
    shared.append(Parameter("duplicates", annotation=Duplicates, default="error"))
    shared.append(Parameter("coordinates", annotation=Coordinates, default="map"))

    @wraps(command)
    def run(**given: Any) -> None:
        from residua.io.tables.graphs import Columns

        words = {parameter.name: given.pop(parameter.name) for parameter in shared}
        nodes, edges, words["to"] = words.pop("nodes"), words.pop("edges"), words.pop("target_node")
        words |= {name: split_names(words[name]) for name in LISTS}
        columns = Columns(**{name: value for name, value in words.items() if value is not None})
        command(Tables(nodes, edges, columns), **given)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    signature = inspect.Signature([*shared, *(parameter.replace(kind=shared[0].kind) for parameter in own)])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return run


def check_network_options(parameters: Mapping[str, Any]) -> None:
    """Refuse options that the base would not look at."""
    base = parameters["base"]
    for option, default in OF_NETWORKS.items():
        if base not in NETWORKS and parameters.get(option, default) != default:
            raise ValueError(f"--{option} is for networks, and --base {base} is none; leave it out.")


def split_names(text: str | None) -> tuple[str, ...] | None:
    """Split names at the commas between them; a name with a comma in it goes in quotes."""
    if text is None:
        return None
    import csv

    return tuple(name for part in next(csv.reader([text], skipinitialspace=True), []) if (name := part.strip()))


def known(y: np.ndarray) -> int:
    """Return how many labels are known; NaN, which is unlike itself, is not."""
    return int((y == y).sum())


def facts_of(data: NodeData) -> dict[str, Any]:
    """Return what was read, for people and for JSON."""
    recipe, report, filled = data.recipe, data.graph.describe(), data.filled
    labelled = known(data.y)
    return {
        "nodes": data.graph.n_nodes,
        "labelled": labelled,
        "labelled_share": labelled / data.graph.n_nodes,
        "edges": report.edges,
        "edge_rows": asdict(data.rows),
        "neighbours": data.neighbours,
        "isolates": report.isolates,
        "components": report.components,
        "columns": {
            name: getattr(recipe, name) for name in ("id", "target", "source", "to", "weight", "edge_type", "length")
        },
        "numbers": {name: {"median": m, "empty": filled.get(name, 0)} for name, m in recipe.medians.items()},
        "categories": {name: {"values": list(v), "empty": filled.get(name, 0)} for name, v in recipe.values.items()},
        "dates": {name: list(made_of) for name, made_of in recipe.dates.items()},
        "positions": list(recipe.positions),
        "as_they_are": recipe.as_is,
        "left_out": data.left_out,
        "edge_columns_left_out": data.edge_columns_left,
        "notes": data.notes,
    }


def alpha_facts(alpha: Mapping[str, float], ends: Mapping[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    """Return each edge type's alpha with the ends of its interval, for people and for JSON."""
    return {name: {"value": a, "lower": ends[name][0], "upper": ends[name][1]} for name, a in alpha.items()}


def fact_lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was read as labelled lines, and the rules by which cells became features."""
    types = facts["edges"]
    by_type = f" ({', '.join(f'{name} {count:,}' for name, count in types.items())})" if len(types) > 1 else ""
    columns = facts["columns"]
    yield "Nodes", f"{facts['nodes']:,} (ids: {columns['id']}); {facts['isolates']:,} of them without an edge"
    ends = (
        f"neighbours: {facts['neighbours']}" if facts["neighbours"] else f"ends: {columns['source']}, {columns['to']}"
    )
    yield "Edges", f"{sum(types.values()):,}{by_type} ({ends}){_rows_text(facts['edge_rows'])}"
    share = f"{facts['labelled_share']:.1%}"
    yield "Labels", f"{columns['target']} is known at {facts['labelled']:,} nodes, {share.replace('%', ' %')}"
    yield from _feature_lines(facts)
    if facts["dates"]:
        by_column: dict[str, list[str]] = {}
        for column, part in facts["dates"].values():
            by_column.setdefault(column, []).append(part)
        words = [f"{column} as {', '.join(DATE_PARTS[part] for part in parts)}" for column, parts in by_column.items()]
        yield "Dates", "; ".join(words)
    if facts["positions"]:
        yield "Map", f"{' and '.join(facts['positions'])} are the positions of the nodes"
    unused = [f"{name} ({reason})" for name, reason in facts["left_out"].items()]
    if facts["edge_columns_left_out"]:
        unused.append(
            f"of the edges: {', '.join(facts['edge_columns_left_out'])} (see --weight, --length, --edge-type)"
        )
    if unused:
        yield "Left out", "; ".join(unused)
    yield from (("Note", text) for text in facts["notes"])


def _rows_text(rows: Mapping[str, int]) -> str:
    """Say what became of the rows of the edge table, where not each is an edge of its own."""
    kinds = {
        "repeated": "list an edge again",
        "both_ways": "list one the other way round",
        "zero": "of weight 0 left out",
        "unknown": "to unknown nodes left out",
    }
    words = [f"{rows[name]:,} {text}" for name, text in kinds.items() if rows[name]]
    loops = [f"{rows['self_loops']:,} from a node to itself"] if rows["self_loops"] else []
    return "".join(
        [*(f"; {text}" for text in loops), f"; of {rows['rows']:,} rows {', '.join(words)}" if words else ""]
    )


def _feature_lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield which columns are features, and what stands for their empty cells."""
    numbers, categories = facts["numbers"], facts["categories"]
    as_is = facts["as_they_are"]
    if numbers:
        said = (lambda name, f: name) if as_is else (lambda name, f: f"{name} {f['median']:.4g}")
        filled = [f"{said(name, f)} in {cells(f['empty'])}" for name, f in numbers.items() if f["empty"]]
        what = "left to trees as it is" if as_is else "takes the column's median"
        rule = f"an empty cell {what}: {', '.join(filled)}" if filled else "no cell is empty"
        yield "Numbers", f"{', '.join(numbers)} ({rule})"
    if categories:
        named = ", ".join(f"{name} with {len(f['values'])} values" for name, f in categories.items())
        filled = [f"{name} in {cells(f['empty'])}" for name, f in categories.items() if f["empty"]]
        rule = (
            f"; an empty cell is {'missing' if as_is else 'a value of its own'}: {', '.join(filled)}" if filled else ""
        )
        yield "Text", f"{named} ({'categories, to trees as they are' if as_is else 'each value a column'}{rule})"
    if not numbers and not categories:
        yield "Features", "none"


def cells(count: int) -> str:
    """Return a number of cells in words."""
    return "1 cell" if count == 1 else f"{count:,} cells"


def say_all(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines with their labels; on a terminal, long ones go on below their beginning."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for label, text in lines:
        if not console.is_terminal:
            console.print(f"{label:<9} {text}", highlight=False, markup=False, soft_wrap=True)
            continue
        grid = Table.grid(padding=(0, 1))
        grid.add_column(min_width=9, no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_row(Text(label, style="bold"), Text(text))
        console.print(grid)


def note(text: object) -> None:
    """Print a line beside the result."""
    typer.secho(f"note: {text}", fg="yellow", err=True)


@contextmanager
def name_labels(tables: Tables) -> Iterator[None]:
    """Let errors of a fit name the file and the column that its numbers come from."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{tables.nodes}, target {tables.columns.target!r}: {error}") from error


def print_json(value: Any) -> None:
    """Print one JSON document; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def status(base: str = "linear") -> AbstractContextManager[Any]:
    """Show something that turns while a person waits; a network has a bar of its own."""
    if find_base(base).kind == "network" or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("Working")
