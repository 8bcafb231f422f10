"""Time against number of edges (the paper's figure of linear scaling).

    log seconds = c + p log m,    least squares over graphs of 10,000 nodes and more; p = 1 is linear

One evaluation in the paper's manner: T = 128 plain probes of k = 32 Lanczos steps, value and gradient, from nothing.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from residua.field import fit_correlation
from residua.field.likelihood import Likelihood
from residua.graph import Graph
from residua.linalg import Lanczos
from residua.reproduction.figures.account import publish, records_path
from residua.reproduction.figures.clock import best_seconds
from residua.reproduction.figures.drawing import COLOURS, QUIET, legend, page, panels, tidy
from residua.reproduction.figures.small_world import correlated_residuals, watts_strogatz
from residua.reproduction.registry import Options, Result
from residua.reproduction.runs import QUICK, Advance, Record, Task, Values, run

NAME = "fig-scaling"
ALPHA, LABELLED = 0.9, 0.5
SIZES = {"": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000), QUICK: (300, 1_000)}
FITTED = 10_000  # smaller graphs pay for calls, not for edges
LINES = {
    "evaluation": ("one evaluation, as in the paper (128 probes, 32 steps)", "GNN", "s"),
    "fit": ("the whole fit_correlation", "C-GNN", "o"),
}


def work(task: Task) -> dict[str, Values]:
    """Measure seconds on one graph, best of three."""
    n = int(task.dataset.rpartition("-")[2])
    _measure(watts_strogatz(200), 1)  # compiles or loads every kernel
    graph = watts_strogatz(n)
    return _measure(graph, 1 if task.setting == QUICK else 3)


def _measure(graph: Graph, repeats: int) -> dict[str, Values]:
    residual = correlated_residuals(graph, ALPHA, LABELLED)
    size = {"nodes": graph.n_nodes, "edges": graph.n_edges, "threads": numba.get_num_threads()}
    return {
        "evaluation": size | {"seconds": best_seconds(lambda: _evaluate(graph, residual), repeats)},
        "fit": size | {"seconds": best_seconds(lambda: fit_correlation(residual, graph, logdet=Lanczos()), repeats)},
    }


def _evaluate(graph: Graph, residual: np.ndarray) -> None:
    labelled = ~np.isnan(residual)
    likelihood = Likelihood(graph, labelled, Lanczos(128, 32, control_variates=False))
    likelihood.omega(residual[labelled], np.array([ALPHA]), 1.0)


def fig_scaling(options: Options, advance: Advance) -> Result:
    """Draw the time of one likelihood with gradient, and of a whole fit, against the number of edges."""
    sizes = SIZES[options.setting]
    tasks = [Task(NAME, f"watts-strogatz-{n}", "time", 0, options.setting) for n in sizes]
    # One at a time, whatever ``jobs`` says: clocks that run side by side disturb one another.
    records = run(tasks, work, records_path(options, NAME), jobs=1, advance=advance)
    fits = {line: exponent(records, line) for line in LINES}
    title = f"Time grows like edges^{fits['evaluation'][0]:.2f} (one evaluation), edges^{fits['fit'][0]:.2f} (a fit)"
    figure = _draw(records, fits, title)
    rows = [_row(record) for record in records]
    threads = ", ".join(sorted({str(record.results["fit"]["threads"]) for record in records}))
    notes = (
        f"Watts-Strogatz graphs, mean degree 10, half labelled, α = {ALPHA}; best of three, one graph at a time, "
        f"threads: {threads}.",
        "The exponents are fitted over graphs of 10,000 nodes and more."
        if len(_large(records)) > 1
        else "The exponents are fitted over all graphs.",
        "An evaluation is T = 128 plain probes of k = 32 steps on the graph and on its unlabelled part, and one solve.",
    )
    columns = ("nodes", "edges", "one evaluation, s", "whole fit, s", "evaluations a fit costs")
    return publish(options, NAME, title, figure, columns, rows, notes)


def _row(record: Record) -> tuple[str, ...]:
    once, fit = (record.results[line]["seconds"] for line in LINES)
    size = record.results["fit"]
    return f"{size['nodes']:,}", f"{size['edges']:,}", f"{once:.3g}", f"{fit:.3g}", f"{fit / once:.2f}"


def _large(records: list[Record]) -> list[Record]:
    return [record for record in records if record.results["fit"]["nodes"] >= FITTED]


def exponent(records: list[Record], line: str) -> tuple[float, float]:
    """Fit seconds = c edges^p; return p and c."""
    large = _large(records)
    edges, seconds = _points(large if len(large) > 1 else records, line)
    slope, constant = np.polyfit(np.log(edges), np.log(seconds), 1)
    return float(slope), float(constant)


def _points(records: list[Record], line: str) -> tuple[np.ndarray, np.ndarray]:
    found = [record.results[line] for record in records]
    return np.array([v["edges"] for v in found], float), np.array([v["seconds"] for v in found])


def _formula(slope: float, constant: float) -> str:
    digits, power = f"{np.exp(constant):.1e}".split("e")
    return f"$t = {digits} \\cdot 10^{{{int(power)}}}\\, m^{{{slope:.2f}}}$ s"


def _draw(records: list[Record], fits: dict[str, tuple[float, float]], title: str) -> Any:
    subtitle = "Watts-Strogatz graphs, mean degree 10, half labelled"
    source = "Dashed: least squares over graphs of 10,000 nodes and more. Dotted: exactly linear."
    figure = page(8.2, 5.4, title, subtitle, source)
    ax = panels(figure, 1, 1, head=1.0)[0, 0]
    for line, (words, colour, marker) in LINES.items():
        edges, seconds = _points(records, line)
        slope, constant = fits[line]
        ax.plot(edges, seconds, marker, color=COLOURS[colour], markersize=7, markeredgecolor="white", label=words)
        ax.plot(edges, np.exp(constant) * edges**slope, "--", color=COLOURS[colour], linewidth=1.3)
        ax.annotate(
            _formula(slope, constant),
            (edges[-1], np.exp(constant) * edges[-1] ** slope),
            xytext=(-8, 10),
            textcoords="offset points",
            ha="right",
            fontsize=9,
            color=COLOURS[colour],
        )
        ax.plot(edges, seconds[-1] * edges / edges[-1], ":", color=QUIET, linewidth=1.2)
    ax.set(xscale="log", yscale="log")
    ax.margins(y=0.12)
    tidy(ax, "", "edges m", "seconds")
    legend(figure, ax)
    ax.tick_params(which="minor", length=0)
    return figure
