"""How well probes estimate the log-determinant and its slope (the paper's figure of estimation error).

    h = logdet(I - alpha S) - logdet((I - alpha S)_UU) = logdet of the marginal precision at L, beta = 1

T probes, k Lanczos steps; the truth is dense algebra. The slope with respect to beta is |L| / beta, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from residua.linalg import Eigen, Lanczos, Ratio, Sparse
from residua.reproduction.figures.account import publish, records_path
from residua.reproduction.figures.drawing import COLOURS, INK, QUIET, page, panels, tidy
from residua.reproduction.figures.small_world import watts_strogatz
from residua.reproduction.registry import Options, Result
from residua.reproduction.runs import QUICK, Advance, Record, Task, Values, run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "fig-accuracy"
NODES, ALPHA = 500, np.array([0.999])
DEFAULT = (128, 32)  # the paper's T and k
KINDS = {"plain": False, "control variates": True}
QUANTITIES = {"value": "log-determinant", "slope": "slope with respect to α"}
RUNS_PER_SEED = 10  # ten seeds are the paper's hundred runs


@dataclass(frozen=True)
class Grid:
    """The T and k tried; curves are drawn at ``steps_shown``, the table has those of ``probes_shown``."""

    probes: tuple[int, ...]
    steps: tuple[int, ...]
    probes_shown: int
    steps_shown: int


GRIDS = {
    "": Grid((4, 8, 16, 32, 64, 128, 256, 512), (4, 8, 16, 32, 64), *DEFAULT),
    QUICK: Grid((4, 16, 64), (8, 16), 64, 16),
}


@cache
def _problem() -> tuple[list[Sparse], np.ndarray, float, float]:
    """Return S, the unlabelled half, and the true h and slope."""
    terms = list(watts_strogatz(NODES).operators.values())
    unlabelled = np.sort(np.random.default_rng(1).permutation(NODES)[: NODES // 2])
    exact = Eigen().prepare(terms, unlabelled)
    return terms, unlabelled, float(exact.value(ALPHA).value), float(np.asarray(exact.gradient(ALPHA).value)[0])


def work(task: Task) -> dict[str, Values]:
    """Measure relative errors (steps, probes) of both estimators with the probes of one seed."""
    grid = GRIDS[task.setting]
    return {kind: _errors(grid, control, task.seed) for kind, control in KINDS.items()}


def _errors(grid: Grid, control: bool, seed: int) -> Values:
    terms, unlabelled, value, slope = _problem()
    found = np.empty((2, len(grid.steps), len(grid.probes)))
    for i, steps in enumerate(grid.steps):
        ratio: Ratio = Lanczos(grid.probes[0], steps, control, seed).prepare(terms, unlabelled)
        for j, probes in enumerate(grid.probes):
            if probes > ratio.effort[0]:
                ratio = ratio.with_effort((probes, steps))  # keeps the first ones
            estimates = ratio.value(ALPHA).value, np.asarray(ratio.gradient(ALPHA).value)[0]
            found[:, i, j] = estimates[0] / value - 1, estimates[1] / slope - 1
    return {"value": found[0].tolist(), "slope": found[1].tolist()}


def fig_accuracy(options: Options, advance: Advance) -> Result:
    """Draw the error of the log-determinant and its slope over probes and steps, with and without control variates."""
    grid = GRIDS[options.setting]
    runs = 6 if options.quick else RUNS_PER_SEED * options.seeds
    seeds = range(options.first_seed, options.first_seed + runs)
    tasks = [Task(NAME, f"watts-strogatz-{NODES}", "lanczos", seed, options.setting) for seed in seeds]
    records = run(tasks, work, records_path(options, NAME), jobs=options.jobs, advance=advance)
    errors = {kind: {q: errors_of(records, kind, q) for q in QUANTITIES} for kind in KINDS}
    gain = {q: rms(errors["plain"][q]) / rms(errors["control variates"][q]) for q in QUANTITIES}
    at = grid.steps.index(grid.steps_shown), grid.probes.index(grid.probes_shown)
    times = [f"{gain[q][at]:.0f}" for q in QUANTITIES]
    title = f"Control variates make the log-determinant {times[0]} and its slope {times[1]} times more accurate"
    subtitle = (
        f"Relative error against dense algebra, {runs} runs; Watts-Strogatz graph, n = {NODES}, mean degree 10, "
        "half labelled, α = 0.999, β = 1"
    )
    figure = _draw(grid, errors, title, subtitle)
    rows = [
        (kind, QUANTITIES[q], str(T), f"{100 * rms(e)[at[0], j]:.3f} %", _bias(e[:, at[0], j]))
        for kind, by in errors.items()
        for q, e in by.items()
        for j, T in enumerate(grid.probes)
    ]
    notes = (
        f"{subtitle}; the table is at k = {grid.steps_shown} steps.",
        f"At {grid.probes_shown} probes and {grid.steps_shown} steps the plain estimate of the log-determinant errs by "
        f"{100 * rms(errors['plain']['value'])[at]:.2f} % (the paper, T = 128, k = 32: below 5 %), with control "
        f"variates by {100 * rms(errors['control variates']['value'])[at]:.3f} %.",
        "The slope with respect to β is |L| / β exactly and needs no probe.",
    )
    columns = ("estimator", "of", "probes", "root mean square error", "mean error ± its standard error")
    return publish(options, NAME, title, figure, columns, rows, notes)


def errors_of(records: list[Record], kind: str, quantity: str) -> np.ndarray:
    """(runs, steps, probes) relative errors."""
    return np.array([record.results[kind][quantity] for record in records])


def rms(errors: np.ndarray) -> np.ndarray:
    """Root mean square over the runs."""
    return np.sqrt(np.mean(errors**2, axis=0))


def _bias(errors: np.ndarray) -> str:
    return f"{100 * errors.mean():+.3f} ± {100 * errors.std(ddof=1) / np.sqrt(len(errors)):.3f} %"


def _draw(grid: Grid, errors: dict[str, dict[str, np.ndarray]], title: str, subtitle: str) -> Any:
    figure = page(
        10.5,
        7.6,
        title,
        subtitle,
        "Dashed red: the k of the lower row. Dotted: T^(-1/2). Star: the paper's default, T = 128, k = 32.",
    )
    axes = panels(figure, 2, 2)
    shown = {kind: rms(by["value"]) for kind, by in errors.items()}
    limits = min(e.min() for e in shown.values()), max(e.max() for e in shown.values())
    for ax, (kind, table) in zip(axes[0], shown.items(), strict=True):
        image = _heat(ax, grid, table, limits)
        tidy(ax, f"{kind}: error of the log-determinant, %", "probes T", "Lanczos steps k")
        ax.grid(visible=False)
    bar = figure.colorbar(image, ax=axes[0, 1], pad=0.02, aspect=18)
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.set_label("root mean square relative error", fontsize=8.5, color=INK)
    bar.outline.set_visible(False)
    i = grid.steps.index(grid.steps_shown)
    sizes = {q: {kind: np.abs(errors[kind][q][:, i]) for kind in KINDS} for q in QUANTITIES}
    quantiles = np.quantile(list(sizes["value"].values()) + list(sizes["slope"].values()), (0.1, 0.9), axis=1)
    for ax, (quantity, words) in zip(axes[1], QUANTITIES.items(), strict=True):
        for kind, colour in zip(KINDS, (COLOURS["GNN"], COLOURS["C-GNN"]), strict=True):
            _decay(ax, grid.probes, sizes[quantity][kind], colour, kind)
        ax.set_ylim(quantiles[0].min() / 2, quantiles[1].max() * 4)
        tidy(ax, f"{words}, k = {grid.steps_shown}: median and 10-90 %", "probes T", "|relative error|")
    return figure


def _heat(ax: Axes, grid: Grid, table: np.ndarray, limits: tuple[float, float]) -> Any:
    from matplotlib.colors import LogNorm

    image = ax.imshow(table, norm=LogNorm(*limits), cmap="cividis_r", origin="lower", aspect="auto")
    ax.set_xticks(range(len(grid.probes)), map(str, grid.probes))
    ax.set_yticks(range(len(grid.steps)), map(str, grid.steps))
    middle = np.sqrt(limits[0] * limits[1])
    for (i, j), error in np.ndenumerate(table):
        colour = "white" if error > middle else INK
        ax.text(j, i, f"{100 * error:.2g}", ha="center", va="center", fontsize=8, color=colour)
    ax.axhline(grid.steps.index(grid.steps_shown) - 0.5, color="#c0392b", linestyle="--", linewidth=1)
    ax.axhline(grid.steps.index(grid.steps_shown) + 0.5, color="#c0392b", linestyle="--", linewidth=1)
    if DEFAULT[0] in grid.probes and DEFAULT[1] in grid.steps:
        x, y = grid.probes.index(DEFAULT[0]), grid.steps.index(DEFAULT[1])
        ax.plot(x, y + 0.32, marker="*", color="#F0E442", markeredgecolor=INK, markeredgewidth=0.5, markersize=11)
    return image


def _decay(ax: Axes, probes: tuple[int, ...], size: np.ndarray, colour: str, kind: str) -> None:
    """Median and the middle eight tenths of the errors (runs, probes), and what T^-1/2 would be."""
    T = np.array(probes)
    low, middle, high = np.quantile(size, (0.1, 0.5, 0.9), axis=0)
    ax.fill_between(T, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(T, middle, color=colour, marker="o", markersize=4.5, linewidth=1.8)
    ax.plot(T, np.exp(np.mean(np.log(middle * np.sqrt(T)))) / np.sqrt(T), color=QUIET, linestyle=":", linewidth=1.3)
    ax.set(xscale="log", yscale="log")
    ax.annotate(
        kind, (T[0], high[0]), xytext=(0, 5), textcoords="offset points", fontsize=9, color=colour, weight="bold"
    )
    ax.set_xticks(T, map(str, probes))
    ax.minorticks_off()
