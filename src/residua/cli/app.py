"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from residua.cli import options
from residua.cli.compare import compare
from residua.cli.edges import edges
from residua.cli.fit import fit
from residua.cli.predict import load_single, predict
from residua.cli.reproduce import data, reproduce

WRONG_INPUT = (ValueError, OSError, ImportError, MemoryError)
POSITIONS = "Column of the node table with positions, {}; by default {}."
INTERRUPTED = 130  # by Ctrl-C, as shells say it

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
    version: Annotated[bool, Option("--version", callback=_show_version, is_eager=True, help="The version.")] = False,
    debug: Annotated[bool, Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Predict numbers on the nodes of a graph."""


@app.command()
def demo(
    output: Annotated[Path, options.Output(help="Where the picture goes.")] = Path("residua-demo.png"),
    base: Annotated[str, Option(help=f"Base: {options.BASE_NAMES}.")] = "linear",
    seed: Annotated[int, Option(min=0, help="Which counties keep their label.")] = 0,
) -> None:
    """Fit a real map: turnout of 3,107 US counties in 1980, four in ten of them unknown."""
    from rich.console import Console
    from rich.table import Table

    from residua.cli.demo import run_demo
    from residua.io.tables.predictions import check_output

    check_output(output, (".png",))
    console = Console()
    with console.status("Loading") as status:
        result = run_demo(base, seed, progress=lambda name: status.update(f"Fitting: {name}"))
        status.update("Drawing")
        result.picture(output)
    n, known = len(result.labelled), int(result.labelled.sum())
    table = Table(title=f"Turnout 1980: {n - known:,} of {n:,} counties predicted, base {result.model.base_.name}")
    for column in ("", "R2", "90 % interval covers", "its mean width", "seconds"):
        table.add_column(column, justify="left" if not column else "right")
    for name, found in result.scores.items():
        table.add_row(name, f"{found.r2:.3f}", f"{found.coverage:.1%}", f"{found.width:.3f}", f"{found.seconds:.2f}")
    console.print(table)
    console.print(str(result.model.diagnose()), highlight=False, markup=False, soft_wrap=True)
    console.print(f"\nMaps: {output}", highlight=False, soft_wrap=True)


app.command()(fit)
app.command()(predict)
app.command()(compare)
app.command()(edges)


@app.command()
def report(
    models: Annotated[
        list[Path],
        Argument(help="Files that `residua fit` wrote: the model, and others to compare it with.", show_default=False),
    ],
    nodes: Annotated[Path | None, Option(help="Node table of the fit, for names and positions.")] = None,
    x: Annotated[str | None, Option(help=POSITIONS.format("eastward", "longitude"))] = None,
    y: Annotated[str | None, Option(help=POSITIONS.format("northward", "latitude"))] = None,
    polygons: Annotated[Path | None, Option(help="A map with an area for each id: GeoPackage, GeoJSON ..")] = None,
    title: Annotated[str | None, Option(help="Of the page.")] = None,
    trust: options.Trust = False,
    output: Annotated[Path, options.Output(help="Where the page goes.")] = Path("report.html"),
) -> None:
    """Write a page on what a model found, to open in a browser."""
    from residua.io.tables.coordinates import as_positions
    from residua.io.tables.graphs import rows_like
    from residua.io.tables.predictions import check_output

    check_output(output, (".html",), (*models, nodes, polygons))
    if (x is None) != (y is None) or (x and nodes is None):
        raise ValueError("give --x and --y together, and with them --nodes, the table that has these columns.")
    with options.status():
        from residua.views.page.html import write_report

        fitted, *rest = (load_single(model, trust) for model in models)
        others = dict(zip(map(str, models[1:]), rest, strict=True))
        recipe = getattr(fitted, "recipe_", None)
        target = recipe.target if recipe else None
        if x is None and polygons is None and recipe is not None and recipe.positions:
            if nodes is None:
                columns = " and ".join(recipe.positions)
                options.note(f"the node table has positions, {columns}; for a map in place of a layout give --nodes.")
            else:
                x, y = recipe.positions
        table = None if nodes is None else rows_like(nodes, fitted.graph_, recipe, (x, y) if x and y else ())
        positions = None if table is None or not (x and y) else as_positions(table, (x, y))
        given: dict[str, Any] = {"positions": positions, "polygons": polygons, "others": others}
        write_report(fitted, output, title=title, target=target, nodes=table, **given)
    typer.echo(f"{output}")


app.command()(reproduce)
app.add_typer(data, name="data")


_interrupted: list[str] = []  # trainings that Ctrl-C ended; what they had reached was kept


def _show_warning(message: Warning | str, *_args: object, **_kwargs: object) -> None:
    if "was interrupted" in str(message):
        _interrupted.append(str(message))
    options.note(message)


def main() -> None:
    """Run the command line; wrong input ends with one line and exit code 2, --debug shows where it was found."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"] or ["--help"]
    warnings.showwarning = _show_warning
    _interrupted.clear()
    try:
        code = app(arguments, prog_name="residua", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if not isinstance(error, WRONG_INPUT) and not hasattr(error, "format_message"):  # typer's has, on a command
            raise
        if "--debug" in sys.argv:
            traceback.print_exception(error)
        typer.secho(f"residua: {' '.join(_explained(error).split())}", fg="red", err=True)
        sys.exit(2)
    if code == INTERRUPTED or _interrupted:
        code = INTERRUPTED
        typer.secho("residua: interrupted", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _explained(error: Any) -> str:
    """What is wrong; with a command, of which typer tells, where to look too."""
    if isinstance(error, WRONG_INPUT):
        return str(error)
    message = error.format_message().strip().rstrip(".")
    return f"{message}; see {error.ctx.command_path} --help." if error.ctx else message
