"""Methods side by side as a picture: R2 of each with its spread over the splits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from residua.atomic import write_atomically
from residua.views.figures import BLUE, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_methods(found: Any) -> Figure:
    """Return a figure with a line for each method, the best at the top and in colour; the least R2 shown is -.5.

    Parameters
    ----------
    found : Comparison
        What ``residua.comparison.compare`` returned.
    """
    from matplotlib.figure import Figure

    rows = sorted((row for row in found.rows if row.scores), key=lambda row: row.mean("r2"))
    figure = Figure(figsize=(7, 1 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for k, row in enumerate(rows):
        colour = BLUE if row is found.best else GREY
        spread = row.spread("r2")
        axes.errorbar(row.mean("r2"), k, xerr=None if spread != spread else spread, fmt="o", color=colour, capsize=2)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_xlim(left=max(axes.get_xlim()[0], -0.5))
    axes.set_xlabel(f"R2 at {found.n_held_out:,} labels held out, mean ± standard deviation of {found.splits} splits")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def write_methods(found: Any, path: str | os.PathLike[str]) -> None:
    """Write the same to a PNG file, whole or not at all."""
    figure = draw_methods(found)

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format="png", dpi=150)

    write_atomically(path, write, "writing the picture")
