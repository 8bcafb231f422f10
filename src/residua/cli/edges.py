"""The command ``edges``: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from residua.cli import options


def edges(
    nodes: Annotated[Path, Argument(help="Node table, a line for each node.", show_default=False)],
    nearest: Annotated[int | None, Option(min=1, help="Join each node to so many nearest ones.")] = None,
    within: Annotated[str | None, Option(help="Join nodes that are not farther apart: 10km, 500m, 3mi.")] = None,
    polygons: Annotated[Path | None, Option(help="A map with an area for each id; give --queen or --rook.")] = None,
    queen: Annotated[bool, Option("--queen", help="Join areas that share a point.")] = False,
    rook: Annotated[bool, Option("--rook", help="Join areas that share an edge.")] = False,
    id_column: Annotated[str | None, Option("--id", help="Column with the ids; by default id, or the first.")] = None,
    x: Annotated[str | None, Option(help="Column eastward; by default longitude, lon or x.")] = None,
    y: Annotated[str | None, Option(help="Column northward; by default latitude, lat or y.")] = None,
    output: Annotated[Path, options.Output(help="Where the edge table goes, .csv, or - for the screen.")] = Path(
        "edges.csv"
    ),
) -> None:
    """Write an edge table from where nodes are, for those who have none."""
    from residua.io.tables.columns import Table
    from residua.io.tables.graphs import named_column
    from residua.io.tables.neighbours import near_edges, read_distance, touching_edges
    from residua.io.tables.predictions import check_output, write_plain

    ways = [nearest is not None, within is not None, polygons is not None]
    if sum(ways) != 1:
        raise ValueError("give one of --nearest 5, --within 10km, or --polygons map.gpkg with --queen or --rook.")
    if (queen or rook) != (polygons is not None) or (queen and rook):
        raise ValueError(
            "--queen and --rook are for --polygons map.gpkg, one of them: do corners join areas, or sides?"
        )
    if (x is None) != (y is None):
        raise ValueError("give --x and --y together.")
    check_output(output, (".csv",), (nodes, polygons))
    with options.status():
        table = Table.read(nodes)
        name = named_column(table, id_column)
        unit = ""
        if polygons is not None:
            found = touching_edges(table, name, polygons, "queen" if queen else "rook")
        else:
            reach, given = (None, "") if within is None else read_distance(within)
            found, unit = near_edges(table, name, (x, y) if x and y else None, nearest, reach)
            if given and unit != "metres":
                options.note(f"--within {within}: {unit} are taken to be metres.")
        write_plain({str(column): found[column] for column in found}, output)
    joined = len(set(found["source"]) | set(found["target"]))
    said = f"{output}: {len(found):,} edges of {len(table.frame):,} nodes"
    said += f", {len(table.frame) - joined:,} of them without an edge" if joined < len(table.frame) else ""
    typer.echo(said + (f"; distance in {unit}" if unit else ""), err=str(output) == "-")
