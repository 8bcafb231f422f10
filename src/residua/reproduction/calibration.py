"""Do intervals cover what they promise? Coverage, CRPS and NLL on labels held out, at random or by region.

    coverage at p = share of held-out labels inside the interval of p,    p = 50, 80, 90, 95 %

A quarter of the labels is held out: single nodes ("random"), or a connected ball of them ("blocked"), for which the
labels left out during the fit are no fair sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from residua.atomic import write_atomically
from residua.diagnosis import LEVELS
from residua.model_selection import SPLITS, held_out
from residua.reproduction import sets
from residua.reproduction.forecasts import GPBOOST, KINDS, METHODS, THIRDS, gpboost_installed
from residua.reproduction.provenance import footer
from residua.reproduction.registry import Options, Result, chosen
from residua.reproduction.runs import QUICK, Advance, Record, Task, Values, read, run
from residua.reproduction.summary import markdown_table

SHARE = 0.25
SIGNED = " *"
NOTES = (
    "Coverage: share of the held-out labels inside the interval, in per cent, for intervals of 50, 80, 90 and 95 %; "
    "mean over seeds, and over data sets where several are taken together. A quarter of the labels is held out, single "
    "nodes (random) or a connected ball (blocked).",
    "C-linear: linear base on hop features with the learned correlation; with field=auto, of the normalised field and "
    "the Laplacian that with the better leave-one-out log score (edges of several types have the normalised one). "
    "C-trees: boosted trees on hop features, grown through the likelihood. C-hops: the default network, 200 epochs, "
    "one member. All with Gaussian and with conformal intervals, and with both of a learned spread, whose tails are "
    "Student's. GNN: GraphSAGE-mean without correlation, 200 epochs, "
    "split-conformal: one width for all nodes, from the residuals of 15 % of the known labels that were kept out of "
    "its training. GPBoost: linear mean of hop features and a Matern 3/2 process over coordinates (Vecchia), Gaussian "
    "intervals; for data with coordinates, and nodes that have them.",
    "CRPS and NLL (lower is better): CRPS of the conformal forecast is that of mean plus std times the scores of the "
    "labels left out, of either sign; NLL is that of a normal (with a learned spread, of Student's t) with "
    "the same mean and std, which conformal intervals share. The std of GNN is the root mean square of its residuals.",
    "Small / large: the third of the held-out labels whose predicted standard deviation is smallest, and that where it "
    "is largest; GNN has one for all.",
    "Marked *: labels are -1 or +1. They are a matter of classification, and treated as numbers: an interval covers "
    "one label, both or none, so its coverage moves in jumps.",
    "diagnose() warns: share of the fits whose diagnosis says that Gaussian intervals are off (any of the four), and "
    "that labels are missing by region.",
)

Key = tuple[str, str, str, str]  # split, data set, method, kind
Found = dict[Key, list[Values]]


def calibration(options: Options, advance: Advance) -> Result:
    """Measure coverage, CRPS and NLL of intervals, on every data set and for both kinds of splits."""
    path = options.folder / "calibration.jsonl"
    methods = chosen(options.methods, tuple(METHODS), "methods")
    todo = list(_possible(tasks(options, methods), {record.task for record in read(path)}))
    if not todo:
        raise ValueError(f"methods={GPBOOST} needs the package gpboost; install it, or leave out --methods.")
    found = by_interval(run(todo, work, path, jobs=options.jobs, advance=advance))
    title = "Do intervals cover what they promise?"
    title = f"{title} Smoke test" if options.quick else f"{title} Mean of {options.seeds} seeds"
    notes = (*NOTES, *_on_gpboost(found)) if GPBOOST in methods else NOTES
    markdown = "\n\n".join([f"# {title}", *blocks(found), *notes, footer()]) + "\n"
    page = options.folder / "calibration.md"
    write_atomically(page, lambda file: file.write(markdown.encode()), "writing the account")
    head, body = summary(found)
    return Result("calibration", title, tuple(head), [tuple(row) for row in body], markdown, [page, path], notes)


def _possible(todo: Sequence[Task], done: set[Task]) -> Iterator[Task]:
    """Leave GPBoost out where it is neither installed nor measured before: residua does not depend on it."""
    yield from (task for task in todo if task.method != GPBOOST or task in done or gpboost_installed())


def _on_gpboost(found: Found) -> Iterator[str]:
    versions = sorted({v["version"] for (*_, method, _), runs in found.items() if method == GPBOOST for v in runs})
    yield f"gpboost {', '.join(versions)}." if versions else f"{GPBOOST} is left out: gpboost is not installed."


def tasks(options: Options, methods: Sequence[str]) -> list[Task]:
    """List every fit, seed by seed so that an early stop leaves whole rows."""
    mark = f" {QUICK}" if options.quick else ""
    return [
        Task("calibration", dataset, method, seed, split + mark)
        for seed in options.all_seeds
        for dataset in sets.asked(options, sets.ELEVEN)
        for method in methods
        for split in SPLITS
    ]


def work(task: Task) -> dict[str, Values]:
    """Fit one method to one split, and return what came of each kind of interval."""
    split, _, quick = task.setting.partition(" ")
    data = sets.load(task.dataset, task.seed, bool(quick))
    rng = np.random.default_rng([task.seed, SPLITS.index(split)])
    hidden = held_out(data.graph, ~np.isnan(data.y), split, SHARE, rng)
    with sets.no_word_of_islands():
        return METHODS[task.method](data, hidden, task.seed, bool(quick))


def by_interval(records: Sequence[Record]) -> Found:
    """Results of all seeds, by split, data set, method and kind of interval."""
    found: Found = {}
    for record in records:
        task = record.task
        for kind, values in record.results.items():
            key = task.setting.partition(" ")[0], task.dataset, task.method, kind
            found.setdefault(key, []).append(values)
    return found


def coverage(runs: Sequence[Values]) -> np.ndarray:
    """(levels,) mean over seeds of the share of labels inside."""
    return np.mean([np.array(values["inside"]) / values["labels"] for values in runs], axis=0)


def summary(found: Found) -> tuple[list[str], list[list[str]]]:
    """One line for each split, method and kind: means over data sets, and the extremes at 90 %."""
    head = ["", "interval", "splits", "data sets", *(f"{100 * p:.0f} %" for p in LEVELS), "90 %: lowest to highest"]
    body = []
    for split, method, kind in _lines(found):
        each = {d: coverage(runs) for (s, d, m, k), runs in found.items() if (s, m, k) == (split, method, kind)}
        worst, best = (pick(each, key=lambda d: each[d][LEVELS.index(0.9)]) for pick in (min, max))
        ends = " to ".join(f"{100 * each[d][LEVELS.index(0.9)]:.1f} ({d})" for d in (worst, best))
        means = [f"{100 * mean:.1f}" for mean in np.mean(list(each.values()), axis=0)]
        body.append([method, kind, split, str(len(each)), *means, ends])
    return head, body


def _lines(found: Found) -> Iterator[tuple[str, str, str]]:
    for split in SPLITS:
        for method, kind in columns(found):
            if any((s, m, k) == (split, method, kind) for s, _, m, k in found):
                yield split, method, kind


def columns(found: Found) -> list[tuple[str, str]]:
    """Method and kind of what was measured, in the order of the tables."""
    measured = {(method, kind) for _, _, method, kind in found}
    return [(method, kind) for method in METHODS for kind in KINDS if (method, kind) in measured]


def blocks(found: Found) -> Iterator[str]:
    """The tables in Markdown, each with its heading."""
    head, body = summary(found)
    yield markdown_table(head, body)
    for split in dict.fromkeys(split for split, *_ in found):
        yield f"## {split.capitalize()} splits"
        for title, table in _tables(found, split):
            if table:
                yield from (title, table)


def _tables(found: Found, split: str) -> Iterator[tuple[str, str]]:
    """The tables of one kind of splits, with their titles; empty where no record has what they tell of."""
    yield "Coverage of 50 / 80 / 90 / 95 % intervals", _by_set(found, split, _coverages)
    yield "CRPS", _by_set(found, split, lambda runs: _mean(runs, "crps"))
    plain, learned = ({k: v for k, v in found.items() if ("learned" in k[3]) is which} for which in (False, True))
    yield "NLL", _by_set(plain, split, lambda runs: _mean(runs, "nll"), once=True)
    yield "NLL with a learned spread", _by_set(learned, split, lambda runs: _mean(runs, "nll"), once=True)
    yield "Mean width of 90 % intervals", _by_set(found, split, lambda runs: _mean(runs, "width"))
    yield "Mean width of 95 % intervals", _by_set(found, split, lambda runs: _mean(runs, "width95"))
    title = "Coverage of 90 % intervals where the predicted standard deviation is small / large"
    yield title, _by_set(found, split, _by_scale)
    yield "diagnose() warns: Gaussian intervals off; labels missing by region", _warned(found, split)


def _by_set(found: Found, split: str, cell: Callable[[Sequence[Values]], str], once: bool = False) -> str:
    """Tabulate data sets down, methods across; ``once`` gives one column to both kinds of a method. Empty if all is."""
    across = columns(found)
    if once:
        across = list({method: (method, kind) for method, kind in reversed(across)}.values())[::-1]
    head = ["", *(method if once else f"{method}, {kind}" for method, kind in across)]
    body = []
    for dataset in dict.fromkeys(dataset for s, dataset, *_ in found if s == split):
        runs = [found.get((split, dataset, method, kind)) for method, kind in across]
        body.append([_shown(dataset), *(cell(one) if one else "" for one in runs)])
    return markdown_table(head, body) if any(text for _, *cells in body for text in cells) else ""


def _shown(dataset: str) -> str:
    return dataset + SIGNED * (dataset in sets.SIGNS)


def _coverages(runs: Sequence[Values]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in coverage(runs))


def _mean(runs: Sequence[Values], name: str) -> str:
    """The mean of a score over the seeds; empty where a run has no such score."""
    return f"{np.mean([values[name] for values in runs]):.3f}" if all(name in values for values in runs) else ""


def _by_scale(runs: Sequence[Values]) -> str:
    """Shares inside, in the thirds of the labels of smallest and largest standard deviation; empty where all agree."""
    if any(THIRDS[0] not in values for values in runs):
        return ""
    shares = (np.mean([values[name][0] / values[name][1] for values in runs]) for name in (THIRDS[0], THIRDS[-1]))
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def _warned(found: Found, split: str) -> str:
    def cell(runs: Sequence[Values]) -> str:
        return f"{np.mean([bool(v['off']) for v in runs]):.0%}; {np.mean([v['remote'] for v in runs]):.0%}"

    diagnosed = {key: runs for key, runs in found.items() if "off" in runs[0]}
    return _by_set(diagnosed, split, cell, once=True)
