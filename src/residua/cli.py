"""The command line: parse, call one function, print."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Predict numbers on the nodes of a graph.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        from residua import __version__

        typer.echo(f"residua {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Predict numbers on the nodes of a graph."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the picture goes.")] = Path("residua-demo.png"),
    base: Annotated[str, typer.Option(help="Base regressor: zero, mean or linear.")] = "linear",
    seed: Annotated[int, typer.Option(help="Which counties keep their label.")] = 0,
) -> None:
    """Fit a real map: turnout of 3,107 US counties in 1980, four in ten of them unknown."""
    from rich.console import Console
    from rich.table import Table

    from residua.demo import run_demo

    if output.is_dir():
        raise ValueError(f"--output {output} is a folder; name a file such as {output / 'maps.png'}.")
    console = Console()
    with console.status("Loading") as status:
        result = run_demo(base, seed, progress=lambda name: status.update(f"Fitting: {name}"))
        status.update("Drawing")
        result.picture(output)
    n, known = len(result.labelled), int(result.labelled.sum())
    table = Table(title=f"Turnout 1980: {n - known:,} of {n:,} counties predicted, base {result.model.base_.name}")
    for column in ("", "R2", "90 % interval covers", "its mean width", "seconds"):
        table.add_column(column, justify="left" if not column else "right")
    for row in result.rows:
        table.add_row(row.name, f"{row.r2:.3f}", f"{row.coverage:.1%}", f"{row.width:.3f}", f"{row.seconds:.2f}")
    console.print(table)
    console.print(str(result.model.diagnose()), highlight=False, markup=False, soft_wrap=True)
    console.print(f"\nMaps: {output}", highlight=False, soft_wrap=True)


def _note(message: Warning | str, *_args: object, **_kwargs: object) -> None:
    typer.secho(f"note: {message}", fg="yellow", err=True)


def main() -> None:
    """Run the command line; wrong input ends with one line and exit code 2."""
    warnings.showwarning = _note
    try:
        app()
    except (ValueError, FileNotFoundError, OSError) as error:
        typer.secho(f"residua: {error}", fg="red", err=True)
        sys.exit(2)
