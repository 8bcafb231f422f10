"""Trained on one graph, asked about another of which few labels are known (the paper's figure of induction).

C-GNN conditions on the labels L' of the new graph, without any training. GNN and MLP are trained on with them: 500
steps of Adam at 5e-4 in batches of 5 %. Scores are on all nodes outside L'. Counties: 2012, then 2016. Ising: spins
drawn anew; the authors' code resets its seed there, so that its new graph has the spins of the old.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from residua.datasets import Dataset, load_county, simulate_ising
from residua.estimator import GraphRegressor
from residua.reproduction.figures.account import publish, records_path
from residua.reproduction.figures.drawing import REPOSITORY, curve, legend, page, panels, reference, reference_key, tidy
from residua.reproduction.figures.scores import counted, mean_and_spread, scores_of
from residua.reproduction.registry import Options, Result, chosen
from residua.reproduction.runs import QUICK, Advance, Record, Task, Values, run
from residua.reproduction.sets import COUPLING, SIGNS, score
from residua.reproduction.splits import only, random_split
from residua.reproduction.transductive import base_of, trained

NAME = "fig-inductive"
DATASETS = ("ising+", "ising-", "election", "unemployment", "income", "education")
METHODS = ("C-GNN", "GNN", "MLP")
LABELS = {"C-GNN": "C-GNN, no training", "GNN": "GNN, fine-tuned", "MLP": "MLP, fine-tuned"}
SHARES = {"": (0, 10, 20, 30, 40, 50, 60), QUICK: (0, 30, 60)}  # percent of the new labels
FINE_TUNING = {"": 500, QUICK: 10}  # steps
# The authors' logs (ten seeds), by percent of labels.
LOGS = {
    ("election", "C-GNN"): {0: 0.387, 10: 0.569, 30: 0.655, 60: 0.693},
    ("election", "GNN"): {0: 0.369, 10: 0.529, 30: 0.568, 60: 0.599},
    ("unemployment", "C-GNN"): {0: 0.355, 10: 0.650, 30: 0.720, 60: 0.751},
    ("unemployment", "GNN"): {0: 0.407, 10: 0.497, 30: 0.532, 60: 0.555},
}


@dataclass(frozen=True)
class Pair:
    """A graph to learn from and one to be asked about."""

    old: Dataset
    new: Dataset


def _pair(name: str, seed: int, setting: str) -> Pair:
    if name in COUPLING:
        size = 12 if setting == QUICK else 35
        old, new = (simulate_ising(size, COUPLING[name], random_state=2 * seed + k) for k in (0, 1))
        return Pair(old, new)
    return Pair(load_county(name, 2012), load_county(name, 2016))


def work(task: Task) -> dict[str, Values]:
    """Train on the old graph, then score at each share of new labels; larger shares include the smaller."""
    pair = _pair(task.dataset, task.seed, task.setting)
    split = random_split(len(pair.old.y), task.seed)
    model = trained(task.method, pair.old.X, split.known(pair.old.y), pair.old.graph, task.seed, task.setting)
    order = np.random.default_rng([task.seed, 1]).permutation(len(pair.new.y))
    scores = []
    for share in SHARES[task.setting]:
        count = round(share / 100 * len(order))
        prediction = _predicted(model, pair.new, only(pair.new.y, order[:count]), FINE_TUNING[task.setting])
        outside = order[count:]
        scores.append(score(task.dataset, pair.new.y[outside], prediction[outside]))
    return {task.method: {"score": scores, "alpha": model.alpha_["edge"], "beta": model.beta_}}


def _predicted(model: GraphRegressor, new: Dataset, known: np.ndarray, steps: int) -> np.ndarray:
    """Predict every node of the new graph."""
    if model.correlation == "learned":
        found: np.ndarray = model.predict(new.X, known, graph=new.graph)
        return found
    if np.isnan(known).all():
        return base_of(model, new.X, new.graph)
    return base_of(model.fine_tune(new.X, known, graph=new.graph, steps=steps), new.X, new.graph)


def fig_inductive(options: Options, advance: Advance) -> Result:
    """Draw accuracy on a new graph by share of its labels: C-GNN conditioned on them, GNN and MLP fine-tuned."""
    names = chosen(options.datasets, DATASETS, "datasets")
    methods = chosen(options.methods, METHODS, "methods")
    tasks = [
        Task(NAME, name, method, seed, options.setting)
        for seed in options.all_seeds
        for name in names
        for method in methods
    ]
    records = run(tasks, work, records_path(options, NAME), jobs=options.jobs, advance=advance)
    shares = SHARES[options.setting]
    rows = [row for name in names for method in methods for row in _rows(records, name, method, shares)]
    ahead = [name for name in names if _leads(records, name, methods)]
    title = "Accuracy on a new graph by share of its labels"
    if "C-GNN" in methods:
        title = (
            f"C-GNN, not trained on the new labels, is best on {len(ahead)} of {len(names)} data sets "
            f"when {shares[-1]} % are known"
        )
    seeds = len(options.all_seeds)
    notes = (
        f"Mean and standard deviation over {counted(seeds, 'seed')}, on all nodes outside the known new labels: "
        "R2, or the share of right signs on Ising. Trained on 60 % of the old labels, the authors' protocol.",
        "Counties: learned from 2012, asked about 2016. Authors: the logs in their repository.",
        "Ising: the new graph has fresh spins, and every seed its own pair of graphs. The authors' code resets its "
        "seed, so that old and new spins are the same; their Ising panels are not comparable.",
    )
    figure = _draw(records, names, methods, shares, title, seeds)
    columns = ("data set", "method", *(f"{share} %" for share in shares))
    return publish(options, NAME, title, figure, columns, rows, notes)


def _rows(records: list[Record], name: str, method: str, shares: tuple[int, ...]) -> list[tuple[str, ...]]:
    scores = scores_of(records, method, dataset=name)
    rows = [(name, LABELS[method], *(mean_and_spread(scores[:, j]) for j in range(len(shares))))]
    if (logs := LOGS.get((name, method))) is not None:
        rows.append((name, f"{method}, authors' logs", *(f"{logs[s]:.3f}" if s in logs else "" for s in shares)))
    return rows


def _leads(records: list[Record], name: str, methods: tuple[str, ...]) -> bool:
    last = {method: scores_of(records, method, dataset=name)[:, -1].mean() for method in methods}
    return max(last, key=lambda method: last[method]) == "C-GNN"


def _draw(
    records: list[Record],
    names: tuple[str, ...],
    methods: tuple[str, ...],
    shares: tuple[int, ...],
    title: str,
    seeds: int,
) -> Any:
    subtitle = "Learned on one graph, tested on another: counties 2012, then 2016; Ising, then fresh spins. "
    subtitle += f"Mean of {counted(seeds, 'seed')}" + (", band: standard deviation" if seeds > 1 else "")
    source = f"Hollow, dashed: the authors' logs ({REPOSITORY}); on Ising theirs are not fresh spins, hence not shown."
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = page(max(3.6 * columns, 8.0), 1.4 + 2.8 * rows, title, subtitle, source)
    axes = panels(figure, rows, columns, head=1.0)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    x = np.array(shares)
    for ax, name in zip(axes.flat, names, strict=False):
        for method in methods:
            curve(ax, x, scores_of(records, method, dataset=name), method, LABELS[method])
            if (name, method) in LOGS:
                reference(ax, LOGS[name, method], method)
        metric = "share of right signs" if name in SIGNS else "R²"
        tidy(ax, name, "labels of the new graph, %", metric)
        ax.set_xticks(x)
    legend(figure, axes.flat[0], [reference_key("authors' logs")])
    return figure
