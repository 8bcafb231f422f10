"""From labels to corrected predictions on the map of the 2016 election (the paper's second figure, six panels).

prediction = base + residual;   residual known at training counties, its conditional mean elsewhere
"""

from __future__ import annotations

from typing import Any

import numpy as np

from residua import metrics
from residua.datasets import load_county
from residua.reproduction.figures.account import publish, records_path
from residua.reproduction.figures.drawing import INK, NEGATIVE, POSITIVE, page, panels, point_map
from residua.reproduction.registry import Options, Result
from residua.reproduction.runs import Advance, Task, Values, run
from residua.reproduction.splits import random_split
from residua.reproduction.transductive import base_of, trained

NAME = "fig-election"
YEAR, SHARE = 2016, 0.3
RESIDUALS = "de"  # the panels that show them


def work(task: Task) -> dict[str, Values]:
    """Compute base and final prediction of one model at every county."""
    data = load_county("election", YEAR)
    split = random_split(len(data.y), task.seed, SHARE)
    known = split.known(data.y)
    model = trained(task.method, data.X, known, data.graph, task.seed, task.setting)
    base = base_of(model, data.X, data.graph)
    final = model.predict()
    unknown = np.isnan(known)
    values: Values = {
        "score": metrics.r2(data.y[unknown], final[unknown]),
        "base score": metrics.r2(data.y[unknown], base[unknown]),
        "known": (~unknown).astype(int).tolist(),
        "base": np.round(base, 5).tolist(),
        "final": np.round(final, 5).tolist(),
        "alpha": model.alpha_["edge"],
        "beta": model.beta_,
        "moran": metrics.morans_i(known - base, data.graph).statistic,
    }
    return {task.method: values}


def fig_election(options: Options, advance: Advance) -> Result:
    """Draw six maps: 30 % of the labels, base prediction, its residuals, their interpolation, the sum."""
    tasks = [Task(NAME, f"election-{YEAR}", method, options.first_seed, options.setting) for method in ("C-GNN", "GNN")]
    records = run(tasks, work, records_path(options, NAME), jobs=options.jobs, advance=advance)
    joint, plain = records[0].results["C-GNN"], records[1].results["GNN"]
    lift = f"from {joint['base score']:.2f} to {joint['score']:.2f}"
    title = f"Neighbours' residuals lift R² {lift} on counties without a label"
    rows = [
        ("base inside C-GNN", f"{joint['base score']:.3f}"),
        ("GNN without correlation", f"{plain['score']:.3f}"),
        ("C-GNN", f"{joint['score']:.3f}"),
    ]
    data = load_county("election", YEAR)
    placed = int(data.nodes["longitude"].notna().sum())
    notes = (
        f"Presidential election {YEAR}, margin (gop - dem) / (gop + dem); {100 * SHARE:.0f} % of the {len(data.y):,} "
        "counties have a label, R2 is on all others. The authors' protocol, one split.",
        f"C-GNN learned α = {joint['alpha']:.3f}, β = {joint['beta']:.1f}. Its base was trained together with the "
        "correlation and is not what a GNN trained without it would say.",
        f"Moran's I of the base's residuals at labelled counties: {joint['moran']:.2f}.",
        f"The {len(data.y) - placed} counties outside the contiguous states or without coordinates are not drawn.",
    )
    return publish(options, NAME, title, _draw(joint, plain, title), ("model", "R2"), rows, notes)


def _draw(joint: Values, plain: Values, title: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    data = load_county("election", YEAR)
    known, base, final = np.array(joint["known"], bool), np.array(joint["base"]), np.array(joint["final"])
    maps = {
        f"a  input: {100 * SHARE:.0f} % of the labels": np.where(known, data.y, np.nan),
        f"b  base prediction, R² {joint['base score']:.2f} (GNN {plain['score']:.2f})": base,
        "c  base prediction at labelled counties": np.where(known, base, np.nan),
        f"d  its residuals there, Moran's I {joint['moran']:.2f}": np.where(known, data.y - base, np.nan),
        "e  residuals predicted elsewhere": np.where(known, np.nan, final - base),
        f"f  base + residuals elsewhere, R² {joint['score']:.2f}": np.where(known, np.nan, final),
    }
    subtitle = f"Election {YEAR} by county: margin (Republican - Democratic) / both; C-GNN, α = {joint['alpha']:.3f}"
    figure = page(
        12.5, 6.9, title, subtitle, "Grey: no value in this panel. Alaska, Hawaii and the territories are not drawn."
    )
    colours = LinearSegmentedColormap.from_list("party", [NEGATIVE, "#9cc3e6", "#e9e0c9", "#f0a58f", POSITIVE])
    placed = data.nodes["longitude"].notna().to_numpy()
    places = data.nodes.loc[placed, ["longitude", "latitude"]].to_numpy(dtype=float).T
    axes = panels(figure, 2, 3)
    for ax, (words, values) in zip(axes.flat, maps.items(), strict=True):
        reach = 0.4 if words[0] in RESIDUALS else 0.8
        dots = point_map(ax, places, values[placed], 3.9, cmap=colours, norm=Normalize(-reach, reach))
        ax.set_title(words, loc="left", fontsize=10.5, color=INK)
        bar = figure.colorbar(dots, ax=ax, orientation="horizontal", shrink=0.45, aspect=28, pad=0.01, extend="both")
        bar.set_ticks([-reach, 0, reach])
        bar.ax.tick_params(labelsize=8, colors=INK, length=2)
        bar.outline.set_visible(False)
    return figure
