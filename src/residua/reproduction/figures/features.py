"""Income from the first d of six features (the paper's figure of the crossover of LP and GNN).

Label propagation needs no feature, a GNN many; C-GNN has both to draw on. d = 0 is a constant in place of features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from residua import metrics
from residua.datasets import load_county
from residua.reproduction.figures.account import publish, records_path
from residua.reproduction.figures.drawing import REPOSITORY, curve, legend, page, panels, reference, reference_key, tidy
from residua.reproduction.figures.scores import counted, mean_and_spread, scores_of
from residua.reproduction.paper import CELLS1
from residua.reproduction.registry import Options, Result
from residua.reproduction.runs import QUICK, Advance, Record, Task, Values, run
from residua.reproduction.splits import random_split
from residua.reproduction.transductive import measure, training_of

NAME = "fig-features"
METHODS = ("LP", "GNN", "LP-GNN", "C-GNN")
TRAININGS = tuple(dict.fromkeys(map(training_of, METHODS)))
COUNTS = {"": (0, 1, 2, 3, 4, 5, 6), QUICK: (0, 6)}
FULL = 6


def work(task: Task) -> dict[str, Values]:
    """Measure test R2 with the first d features of one split."""
    data = load_county("income", 2012)
    d = int(task.dataset.rpartition("-")[2])
    X = data.X.iloc[:, :d] if d else pd.DataFrame({"constant": 1.0}, index=data.X.index)
    return measure(task, replace(data, X=X), random_split(len(data.y), task.seed), metrics.r2)


def fig_features(options: Options, advance: Advance) -> Result:
    """Draw accuracy for county incomes by number of features: LP, GNN, LP-GNN and C-GNN."""
    counts = COUNTS[options.setting]
    tasks = [
        Task(NAME, f"income-{d}", method, seed, options.setting)
        for seed in options.all_seeds
        for d in counts
        for method in TRAININGS
    ]
    records = run(tasks, work, records_path(options, NAME), jobs=options.jobs, advance=advance)
    scores = {method: _by_count(records, method, counts) for method in METHODS}
    means = {method: table.mean(axis=0) for method, table in scores.items()}
    ahead = int(((means["C-GNN"] > means["LP"]) & (means["C-GNN"] > means["GNN"])).sum())
    overtakes = [d for d, lp, gnn in zip(counts, means["LP"], means["GNN"], strict=True) if gnn > lp]
    crossing = f"GNN passes LP at {overtakes[0]} features" if overtakes else "GNN stays below LP"
    title = f"{crossing}; C-GNN beats both for {ahead} of {len(counts)} feature counts"
    rows = [(str(d), *(mean_and_spread(scores[method][:, j]) for method in METHODS)) for j, d in enumerate(counts)] + [
        ("6, authors' logs", *(f"{CELLS1['income', method].logs:.3f}" for method in METHODS))
    ]
    names = ", ".join(load_county("income", 2012).X.columns)
    notes = (
        f"Median household income of US counties, 2012; the first d of: {names}. Test R2, mean and standard deviation "
        f"over {counted(len(options.all_seeds), 'random split')} (60 % training, 20 % test), the authors' protocol.",
        "d = 0 is a constant in place of features.",
        "The logs are those of the authors' repository; the paper's own table has income from another column (.75 for "
        "GNN, .81 for LP-GNN and C-GNN).",
    )
    figure = _draw(counts, scores, title, len(options.all_seeds))
    return publish(options, NAME, title, figure, ("features", *METHODS), rows, notes)


def _by_count(records: list[Record], method: str, counts: tuple[int, ...]) -> np.ndarray:
    """Scores (seeds, counts)."""
    return np.stack([scores_of(records, method, dataset=f"income-{d}") for d in counts], axis=1)


def _draw(counts: tuple[int, ...], scores: dict[str, np.ndarray], title: str, seeds: int) -> Any:
    subtitle = f"Median household income of US counties, 2012: test R², mean of {counted(seeds, 'split')}"
    source = f"Hollow marks at 6 features, dashed line for LP: the authors' logs ({REPOSITORY})."
    figure = page(8.2, 5.4, title, subtitle + (", band: standard deviation" if seeds > 1 else ""), source)
    ax = panels(figure, 1, 1, head=1.0)[0, 0]
    x = np.array(counts)
    for method in METHODS:
        curve(ax, x, scores[method], method)
        logs = CELLS1["income", method].logs
        assert logs is not None
        reference(ax, dict.fromkeys((0, FULL), logs) if method == "LP" else {FULL: logs}, method)
    tidy(ax, "", "number of features d", "R² on test counties")
    columns = load_county("income", 2012).X.columns
    ax.set_xticks(x, [f"{d}\n+ {columns[d - 1]}" if d else "0\nconstant" for d in counts])
    legend(figure, ax, [reference_key("authors' logs")])
    return figure
