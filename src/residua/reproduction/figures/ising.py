"""Spins on a grid, and what LP, GNN and C-GNN make of them (the paper's figure of spin configurations).

Where neighbours repel one another, label propagation is worse than a coin and a GNN no better than one; C-GNN learns
the sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from residua.reproduction.figures.account import publish, records_path
from residua.reproduction.figures.drawing import INK, NEGATIVE, POSITIVE, page, panels
from residua.reproduction.registry import Options, Result
from residua.reproduction.runs import QUICK, Advance, Task, Values, run
from residua.reproduction.sets import COUPLING, ROUNDING, draw, score
from residua.reproduction.transductive import propagated, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "fig-ising"
METHODS = ("LP", "GNN", "C-GNN")
TITLES = {"ising+": "neighbours alike", "ising-": "neighbours opposed"}


def work(task: Task) -> dict[str, Values]:
    """Predict with one method at every node."""
    data, split = draw(task.dataset, task.seed, task.setting == QUICK)
    known = split.known(data.y)
    more: Values = {}
    if task.method == "LP":
        prediction = propagated(known, data.graph)
    else:
        model = trained(task.method, data.X, known, data.graph, task.seed, task.setting)
        prediction = np.where(np.isnan(known), model.predict(), known)
        more = {"alpha": model.alpha_["edge"], "beta": model.beta_}
    unknown = np.isnan(known)
    return {
        task.method: {
            "score": score(task.dataset, data.y[unknown], prediction[unknown]),
            "truth": data.y.astype(int).tolist(),
            "known": (~unknown).astype(int).tolist(),
            "prediction": np.round(prediction, 4).tolist(),
            **more,
        }
    }


def fig_ising(options: Options, advance: Advance) -> Result:
    """Draw the spins of Ising+ and Ising-, and of what LP, GNN and C-GNN predict of them."""
    tasks = [Task(NAME, name, method, options.first_seed, options.setting) for name in COUPLING for method in METHODS]
    records = run(tasks, work, records_path(options, NAME), jobs=options.jobs, advance=advance)
    found = {(r.task.dataset, r.task.method): r.results[r.task.method] for r in records}
    right = [_percent(found[name, "C-GNN"]) for name in COUPLING]
    title = f"C-GNN gets {right[0]} of hidden spins right where neighbours agree, {right[1]} where they oppose"
    rows = [(name, *(f"{found[name, method]['score']:.3f}" for method in METHODS)) for name in COUPLING]
    side = round(len(found["ising+", "LP"]["truth"]) ** 0.5)
    notes = (
        f"One draw of spins on a {side} x {side} grid for each sign, coupling ±0.35, field 0.10 (the constants of the "
        "authors' code; the paper's text swaps them). 60 % of the spins are known, the share of right signs is among "
        "the other 40 %.",
        f"C-GNN learned α = {found['ising+', 'C-GNN']['alpha']:.3f} and {found['ising-', 'C-GNN']['alpha']:.3f} "
        "(authors' logs, ten splits: 0.888 and -0.933).",
    )
    figure = _draw(found, title)
    return publish(options, NAME, title, figure, ("data set", *METHODS), rows, notes)


def _percent(values: Values) -> str:
    return f"{100 * values['score']:.0f} %"


def _draw(found: dict[tuple[str, str], Values], title: str) -> Any:
    subtitle = (
        "Spins: +1 red, -1 blue; pale cells were known, full colours are predicted, yellow dots mark the wrong ones"
    )
    figure = page(11.5, 6.6, title, subtitle)
    axes = panels(figure, 2, 1 + len(METHODS), foot=0.1)
    for row, name in zip(axes, COUPLING, strict=True):
        first = found[name, "LP"]
        truth, known = np.array(first["truth"]), np.array(first["known"], bool)
        _spins(row[0], truth, truth, np.zeros_like(known))
        row[0].set_title(f"{name}: truth, {TITLES[name]}", loc="left", fontsize=10.5, color=INK)
        for ax, method in zip(row[1:], METHODS, strict=True):
            values = found[name, method]
            _spins(ax, np.array(values["prediction"]), truth, known)
            ax.set_title(f"{method}: {_percent(values)} right", loc="left", fontsize=10.5, color=INK)
    return figure


def _spins(ax: Axes, values: np.ndarray, truth: np.ndarray, known: np.ndarray) -> None:
    from matplotlib.colors import to_rgb

    side = round(len(values) ** 0.5)
    positive = values > -ROUNDING  # as in the score
    colour = np.where(positive[:, None], to_rgb(POSITIVE), to_rgb(NEGATIVE))
    colour[known] = 1 - 0.15 * (1 - colour[known])
    ax.imshow(colour.reshape(side, side, 3), interpolation="nearest")
    wrong = np.flatnonzero(~known & (positive != (truth > 0)))
    ax.scatter(wrong % side, wrong // side, s=(90 / side) ** 2, c="#ffe14d", linewidths=0)
    ax.axis("off")
