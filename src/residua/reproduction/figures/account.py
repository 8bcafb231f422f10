"""The files of a figure: picture, records, and a page that says what was run, when and with what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from residua.atomic import write_atomically
from residua.reproduction.figures.drawing import DPI
from residua.reproduction.provenance import footer
from residua.reproduction.registry import Options, Result
from residua.reproduction.summary import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKUP = re.compile(r"\[/?[a-z ]*\]")  # of the terminal


def records_path(options: Options, name: str) -> Path:
    """Where the lines of JSON are."""
    return options.folder / f"{name}.jsonl"


def publish(
    options: Options,
    name: str,
    title: str,
    figure: Figure,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    notes: tuple[str, ...],
) -> Result:
    """Write picture and page, and hand back all that was written."""
    picture, page = options.folder / f"{name}.png", options.folder / f"{name}.md"
    if options.quick:
        figure.text(0.99, 0.99, "smoke test", ha="right", va="top", fontsize=9, color="#c0392b")
    about = {"Description": footer()}
    write_atomically(
        picture, lambda file: figure.savefig(file, format="png", dpi=DPI, metadata=about), "writing the figure"
    )
    quick = ("A smoke test (quick): few steps, one seed; the numbers mean nothing.",) if options.quick else ()
    markdown = _markdown(title, picture.name, columns, rows, quick + notes)
    write_atomically(page, lambda file: file.write(markdown.encode()), "writing the account")
    files = [picture, page, records_path(options, name)]
    return Result(name, title, columns, list(rows), markdown, files, quick + notes)


def _markdown(
    title: str, picture: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], notes: tuple[str, ...]
) -> str:
    table = markdown_table(columns, [[MARKUP.sub("", cell) for cell in row] for row in rows])
    listed = "\n".join(f"- {note}" for note in notes)
    return "\n\n".join([f"# {title}", f"![{title}]({picture})", table, listed, footer()]) + "\n"
