"""What the commands on tables have in common: their options, and how results are printed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.bases.registry import BASES, NETWORKS

if TYPE_CHECKING:
    from rich.console import Console

    from residua.io.tables import Columns, NodeData

BASE_NAMES = f"{', '.join(name for name in BASES if name not in NETWORKS)}; networks: {', '.join(NETWORKS)}"
Nodes = Annotated[Path, typer.Argument(help="Node table, CSV or Parquet: a line for each node.", show_default=False)]
Edges = Annotated[Path, typer.Argument(help="Edge table, CSV or Parquet: a line for each edge.", show_default=False)]
Target = Annotated[str, typer.Option(help="Column to predict; empty where it is unknown.", show_default=False)]
Id = Annotated[str | None, typer.Option("--id", help="Column with the ids of the nodes; by default id, or the first.")]
Features = Annotated[str | None, typer.Option(help="Columns to predict from, with commas; by default all that can.")]
Categorical = Annotated[str | None, typer.Option(help="Columns of numbers to read as categories, with commas.")]
Exclude = Annotated[str | None, typer.Option(help="Columns to leave out, with commas.")]
Source = Annotated[str | None, typer.Option(help="Column with one end of an edge; by default source, or the first.")]
TargetNode = Annotated[str | None, typer.Option(help="Column with the other end; by default target, or the second.")]
Weight = Annotated[str | None, typer.Option(help="Column with the weights of the edges; by default all 1.")]
EdgeType = Annotated[str | None, typer.Option(help="Column with the types of the edges; by default there is one.")]
Missing = Annotated[str | None, typer.Option(help="Words that mean an empty cell, with commas: NA,n/a.")]
SkipUnknown = Annotated[bool, typer.Option("--skip-unknown", help="Leave out edges to nodes not in the node table.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_names(text: str | None) -> tuple[str, ...] | None:
    """Names with commas between them; a name with a comma in it goes in quotes."""
    if text is None:
        return None
    import csv

    return tuple(name for part in next(csv.reader([text], skipinitialspace=True), []) if (name := part.strip()))


def columns(
    target: str,
    id: str | None,
    features: str | None,
    categorical: str | None,
    exclude: str | None,
    source: str | None,
    target_node: str | None,
    weight: str | None,
    edge_type: str | None,
    missing: str | None,
    skip_unknown: bool,
) -> Columns:
    """The options of a command as one value."""
    from residua.io.tables import Columns

    return Columns(
        target=target,
        id=id,
        features=split_names(features),
        categorical=split_names(categorical) or (),
        exclude=split_names(exclude) or (),
        source=source,
        to=target_node,
        weight=weight,
        edge_type=edge_type,
        missing=split_names(missing) or (),
        skip_unknown=skip_unknown,
    )


def facts_of(data: NodeData) -> dict[str, Any]:
    """What was read, for people and for JSON."""
    recipe = data.recipe
    known = int((data.y == data.y).sum())  # NaN is unlike itself
    report = data.graph.describe()
    return {
        "nodes": data.graph.n_nodes,
        "labelled": known,
        "labelled_share": known / data.graph.n_nodes,
        "edges": report.edges,
        "isolates": report.isolates,
        "components": report.components,
        "columns": {name: getattr(recipe, name) for name in ("id", "target", "source", "to", "weight", "edge_type")},
        "numbers": {name: {"median": m, "empty": data.filled.get(name, 0)} for name, m in recipe.medians.items()},
        "categories": {
            name: {"values": list(values), "empty": data.filled.get(name, 0)} for name, values in recipe.values.items()
        },
        "left_out": data.left_out,
        "edge_columns_left_out": data.edge_columns_left,
        "notes": data.notes,
    }


def print_facts(facts: dict[str, Any], console: Console) -> None:
    """What was read, and the rules by which cells became features."""
    types = facts["edges"]
    by_type = f" ({', '.join(f'{name} {count:,}' for name, count in types.items())})" if len(types) > 1 else ""
    told = facts["columns"]
    say(console, "Nodes", f"{facts['nodes']:,} (ids: {told['id']}); {facts['isolates']:,} of them without an edge")
    say(console, "Edges", f"{sum(types.values()):,}{by_type} (ends: {told['source']}, {told['to']})")
    share = f"{facts['labelled_share']:.1%}"
    say(console, "Labels", f"{told['target']} is known at {facts['labelled']:,} nodes, {share.replace('%', ' %')}")
    print_features(facts, console)
    unused = [f"{name} ({reason})" for name, reason in facts["left_out"].items()]
    if facts["edge_columns_left_out"]:
        unused.append(f"of the edges: {', '.join(facts['edge_columns_left_out'])} (see --weight, --edge-type)")
    if unused:
        say(console, "Left out", "; ".join(unused))
    for text in facts["notes"]:
        say(console, "Note", text)


def print_features(facts: dict[str, Any], console: Console) -> None:
    numbers, categories = facts["numbers"], facts["categories"]
    if numbers:
        filled = [f"{name} {f['median']:.4g} in {cells(f['empty'])}" for name, f in numbers.items() if f["empty"]]
        rule = f"an empty cell takes the column's median: {', '.join(filled)}" if filled else "no cell is empty"
        say(console, "Numbers", f"{', '.join(numbers)} ({rule})")
    if categories:
        named = ", ".join(f"{name} with {len(f['values'])} values" for name, f in categories.items())
        filled = [f"{name} in {cells(f['empty'])}" for name, f in categories.items() if f["empty"]]
        rule = f"; an empty cell is a value of its own: {', '.join(filled)}" if filled else ""
        say(console, "Text", f"{named} (each value a column{rule})")
    if not numbers and not categories:
        say(console, "Features", "none")


def cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"


def say(console: Console, label: str, text: str) -> None:
    """A line with its label; on a terminal, long ones go on below their beginning."""
    from rich.table import Table
    from rich.text import Text

    if not console.is_terminal:
        console.print(f"{label:<9} {text}", highlight=False, markup=False, soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(min_width=9, no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_row(Text(label, style="bold"), Text(text))
    console.print(grid)


def note(text: object) -> None:
    """A line beside the result."""
    typer.secho(f"note: {text}", fg="yellow", err=True)


@contextmanager
def name_labels(nodes: Path, target: str) -> Iterator[None]:
    """Errors of a fit name the file and the column that its numbers come from."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{nodes}, target {target!r}: {error}") from error


def print_json(value: Any) -> None:
    """One JSON document; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
