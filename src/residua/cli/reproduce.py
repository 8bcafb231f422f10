"""The commands ``reproduce`` and ``data``: parse, call one function, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from residua.bases.progress import count_on, progress
from residua.cli.options import Output, split_names

if TYPE_CHECKING:
    from rich.console import Console

    from residua.reproduction.registry import Result
    from residua.reproduction.runs import Record

data = typer.Typer(help="The paper's data sets: what there is, and their files.", no_args_is_help=True)
EXPERIMENT = (
    "table1, table2, fig-accuracy, fig-scaling, fig-features, fig-inductive, fig-ising, fig-election, calibration, "
    "inference, networks-coverage, all."
)


def reproduce(
    context: typer.Context,
    experiment: Annotated[str, Argument(help=EXPERIMENT)],
    seeds: Annotated[int, Option(min=1, help="Random splits.")] = 10,
    first_seed: Annotated[int, Option(min=0, help="The first; in the tables 1 to 10 are the authors' own.")] = 1,
    datasets: Annotated[str | None, Option(help="Only these, with commas: election,twitch.")] = None,
    methods: Annotated[str | None, Option(help="Show only these, with commas: GNN,C-GNN.")] = None,
    jobs: Annotated[int, Option(min=1, help="Processes side by side.")] = 2,
    protocol: Annotated[str, Option(help="paper: as its authors ran it. best: as well as we can.")] = "paper",
    output: Annotated[Path, Output(help="Folder of records, tables and pictures.")] = Path("residua-results"),
    quick: Annotated[bool, Option("--quick", help="A smoke test: one seed, few steps, sets without files.")] = False,
) -> None:
    """Measure the paper's tables and figures anew. An interrupted run goes on where it stopped."""
    from rich.console import Console

    from residua.reproduction.registry import EXPERIMENTS, PROTOCOLS, Options, find, refuse_unheeded
    from residua.validation import check_choice

    check_choice(protocol, PROTOCOLS, "protocol")
    if output.exists() and not output.is_dir():
        raise ValueError(f"--output {output} is a file; name a folder.")
    found = [(name, find(name)) for name in (EXPERIMENTS if experiment == "all" else (experiment,))]
    sources = {name: context.get_parameter_source(name) for name in context.params}
    refuse_unheeded(experiment, [name for name, source in sources.items() if source and source.name == "COMMANDLINE"])
    options = Options(seeds, split_names(datasets), split_names(methods), jobs, protocol, output, quick, first_seed)
    console = Console()
    for name, run in found:
        with progress(name) as advance:
            result = run(options, count_on(advance, _name))
        show(result, console)


def _name(record: Record) -> str:
    return f"{record.task.dataset} {record.task.method} seed {record.task.seed}"


def show(result: Result, console: Console) -> None:
    """The table of a result, in blocks of columns as wide as the terminal, its notes and its files."""
    from rich.table import Table

    cells = [result.columns, *result.rows]
    widths = [max(console.measure(row[k]).maximum for row in cells) for k in range(len(result.columns))]
    for k, block in enumerate(_blocks(widths, console.width)):
        table = Table(title=None if k else result.title, title_justify="left")
        for column in block:
            table.add_column(result.columns[column], justify="right" if column else "left", no_wrap=True)
        for row in result.rows:
            table.add_row(*(row[column] for column in block))
        console.print(table)
    for note in result.notes:
        console.print(note, style="dim", highlight=False, markup=False, soft_wrap=True)
    for file in result.files:
        console.print(str(file), highlight=False, markup=False, soft_wrap=True)


def _blocks(widths: list[int], available: int) -> list[list[int]]:
    """Columns that fit side by side, the first one in every block; a frame takes three characters a column."""
    blocks = [[0]]
    used = first = widths[0] + 4
    for column, width in enumerate(widths[1:], start=1):
        if used + width + 3 > available and len(blocks[-1]) > 1:
            blocks.append([0])
            used = first
        blocks[-1].append(column)
        used += width + 3
    return blocks


@data.command("list")
def list_sets() -> None:
    """What data sets there are, under which terms, and whether their files are here."""
    from rich.console import Console
    from rich.table import Table

    from residua.datasets import available

    table = Table("name", "here", "what", "terms", show_lines=True)
    for entry in available():
        here = {True: "[green]yes[/]", False: "[yellow]fetch[/]", None: "own copy"}[entry.present]
        table.add_row(entry.name, here, entry.description, entry.terms)
    Console().print(table)


@data.command("fetch")
def fetch_sets(names: Annotated[list[str] | None, Argument(help="By default all that can be had.")] = None) -> None:
    """Download and verify the files of data sets that are not here yet; with RESIDUA_DATA set, verify those there."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TextColumn

    from residua.datasets import available, fetch

    console = Console()
    asked = names or [entry.name for entry in available() if entry.files]
    with Progress(TextColumn("{task.description}"), DownloadColumn(), console=console, transient=True) as bar:
        line = bar.add_task("", total=None)
        for name in asked:
            paths = fetch(name, lambda file, n, of: bar.update(line, description=file, completed=n, total=of or None))
            where = f"{len(paths)} files in {paths[0].parent}" if paths else "needs no files"
            console.print(f"{name}: {where}", highlight=False, markup=False, soft_wrap=True)
