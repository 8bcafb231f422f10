"""The command ``compare``: parse, call one function, print the table of methods."""

from __future__ import annotations

import csv
import io
import math
import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from residua.bases.progress import count_on, progress
from residua.bases.registry import BASES, COMPARED
from residua.cli import options

if TYPE_CHECKING:
    from residua.comparison import Comparison, Row
    from residua.io.tables.graphs import Columns

PARTS = (("", "mean"), ("_spread", "spread"))
SCORES = ("r2", "rmse", "coverage", "seconds")


@options.of_tables
def compare(
    tables: options.Tables,
    bases: Annotated[str | None, Option(help=f"Bases to try, with commas; by default {','.join(COMPARED)}.")] = None,
    splits: Annotated[int, Option(min=1, help="How often labels are held out anew.")] = 5,
    split: Annotated[str, Option(help="random: single nodes held out. blocked: a connected ball of nodes.")] = "random",
    share: Annotated[float, Option(help="Share of the known labels that is held out.")] = 0.25,
    field: Annotated[str, Option(help=f"Precision of the residuals: {options.FIELDS}")] = "normalised",
    seed: options.Seed = 0,
    as_json: options.Json = False,
    output: Annotated[
        Path | None, options.Output(help="Where the table goes, .csv, beside it a picture, .png.", show_default=False)
    ] = None,
) -> None:
    """Which method predicts best: label propagation, and bases plain, propagated and learned.

    ``residua fit --base best`` averages several of them.
    """
    from residua.io.tables.predictions import check_output

    if output is not None:
        check_output(output, (".csv",), (tables.nodes, tables.edges))
    with progress("comparing") as advance:
        from residua.comparison import compare as run
        from residua.io.tables.graphs import read_tables

        asked_for = options.split_names(bases) or COMPARED
        as_is = any(name in BASES and BASES[name].tables for name in asked_for)
        data = read_tables(tables.nodes, tables.edges, replace(tables.columns, as_is=as_is))
        with options.name_labels(tables):
            asked: dict[str, Any] = {"splits": splits, "split": split, "share": share, "random_state": seed}
            asked |= {"field": field, "bases": asked_for}
            found = run(data.features, data.y, data.graph, **asked, progress=count_on(advance))
    facts = options.facts_of(data)
    command = next_command(found, tables) if found.best else None
    written = [] if output is None else write_comparison(found, output)
    if as_json:
        options.print_json(facts | described(found) | {"next": command, "files": written})
        return
    _print(facts, found)
    if written:
        typer.echo(f"Written: {' and '.join(written)}")
    if command:
        typer.echo(f"Next: {command}")


def next_command(found: Comparison, tables: options.Tables) -> str | None:
    """Return the command that fits the best method to all labels, with the options of the comparison."""
    best = found.best
    if best is None:
        return None
    words = ["residua", "fit", str(tables.nodes), str(tables.edges), *option_words(tables.columns)]
    kind = {None: "none", "propagate": "propagate", "learned": "learned"}[best.correlation]
    words += ["--base", best.base, *([] if kind == "learned" else ["--correlation", kind])]
    return shlex.join(words)


def option_words(columns: Columns) -> list[str]:
    """Return the options that ask for these columns."""
    words: list[str] = []
    for part in fields(columns):
        value = getattr(columns, part.name)
        if value == part.default:
            continue
        option = "--" + {"to": "target-node"}.get(part.name, part.name.replace("_", "-"))
        if value is True:
            words.append(option)
        elif isinstance(value, tuple):
            line = io.StringIO()
            csv.writer(line).writerow(value)
            words += [option, line.getvalue().strip()]
        else:
            words += [option, str(value)]
    return words


def write_comparison(found: Comparison, path: Path) -> list[str]:
    """Write the table of methods as CSV, and beside it a picture of R2; return the names of both files."""
    from residua.io.tables.predictions import write_plain
    from residua.views.methods import write_methods

    rows = [row for row in found.rows if row.scores]
    columns = {
        f"{score}{part}": [getattr(row, kind)(score) for row in rows] for score in SCORES for part, kind in PARTS
    }
    names = {"method": "name", "base": "base", "correlation": "correlation"}
    write_plain({**{k: [getattr(row, name) for row in rows] for k, name in names.items()}, **columns}, path)
    picture = path.with_suffix(".png")
    write_methods(found, picture)
    return [str(path), str(picture)]


def described(found: Comparison) -> dict[str, Any]:
    """Return a comparison for JSON."""
    return {
        "split": found.split,
        "splits": found.splits,
        "held_out": found.n_held_out,
        "best": found.best.name if found.best else None,
        "advice": found.advice or None,
        "methods": [_method(row) for row in found.rows],
        "skipped": list(found.skipped),
        "warnings": list(found.notes),
    }


def _method(row: Row) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": row.name, "base": row.base, "correlation": row.correlation, "failure": row.failure}
    for score in SCORES if row.scores else ():
        facts[score] = {"mean": row.mean(score), "spread": row.spread(score), "values": row.values(score)}
    return facts


def _print(facts: dict[str, Any], found: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    kind = {"random": "random nodes", "blocked": "a connected ball of nodes"}[found.split]
    held_out = f"{found.n_held_out:,} of {found.n_labelled:,} labels held out"
    options.say_all((*options.fact_lines(facts), ("Splits", f"{found.splits}, each with {held_out}: {kind}")))
    table = Table("", "method", box=None, padding=(0, 1))
    for title in ("R2", "RMSE", "90 % covers", "seconds"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        best = row is found.best
        cells = _cells(row) if row.scores else ["failed", "", "", ""]
        table.add_row("*" if best else "", row.name, *cells, style="bold green" if best else None)
    console.print(table)
    if found.best:
        spread = "mean ± standard deviation over the splits; " if found.splits > 1 else ""
        console.print(f"{spread}* highest R2: {found.best.name}", highlight=False, soft_wrap=True)
        console.print(f"residua fit --base {options.BEST} averages several bases", highlight=False, soft_wrap=True)
    if found.advice:
        console.print(found.advice, highlight=False, soft_wrap=True)
    failed = [f"{row.name} failed: {row.failure}" for row in found.rows if row.failure]
    for text in (*failed, *found.skipped, *found.notes):
        options.note(text)


def _cells(row: Row) -> list[str]:
    digits = max(0, 2 - math.floor(math.log10(row.mean("rmse") or 1.0)))  # three that count
    forms = {"r2": ".3f", "rmse": f".{digits}f", "coverage": ".1%"}
    return [*(_cell(row, score, form) for score, form in forms.items()), f"{row.mean('seconds'):.2f}"]


def _cell(row: Row, score: str, form: str) -> str:
    mean, spread = row.mean(score), row.spread(score)
    text = f"{mean:{form}}" if math.isnan(spread) else f"{mean:{form}} ± {spread:{form}}"
    return text.replace("% ±", " ±").replace("%", " %")
