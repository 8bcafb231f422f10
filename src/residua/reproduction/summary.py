"""From records to a table: means over seeds beside the paper's, in text and in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from residua.atomic import write_atomically
from residua.reproduction.paper import Reference
from residua.reproduction.provenance import footer
from residua.reproduction.registry import Result
from residua.reproduction.runs import Record, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GIVEN_LATER = "told"  # in records: the score of a model that is conditioned on the validation labels too
BELOW = "▼"  # further below the paper than chance explains
OTHER_SPLITS = (
    "Test score (R2; share of right signs for ising and contacts), mean ± standard deviation over seeds. The paper's "
    "numbers are of seeds 1 to 10, other splits than these, and left out."
)


@dataclass(frozen=True)
class Cell:
    """The scores of a method on a data set, one a seed, and what the paper has."""

    dataset: str
    method: str
    scores: tuple[float, ...]
    reference: Reference | None = None
    given_later: tuple[float, ...] = ()  # scores of the same models, conditioned on the validation labels too

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def sd(self) -> float:
        """Standard deviation over seeds; 0 of a single one."""
        return float(spread(np.array(self.scores)))

    @property
    def difference(self) -> float | None:
        return None if self.reference is None else self.mean - self.reference.goal

    @property
    def below(self) -> bool:
        """Whether our mean falls short of the paper's by more than the spread over seeds explains."""
        return self.reference is not None and self.mean < self.reference.goal - self.reference.slack - 1e-9

    def text(self) -> str:
        """Ours, the paper's and the logs', and the difference, for Markdown."""
        ours = f"{self.mean:.3f} ± {self.sd:.3f}" if len(self.scores) > 1 else f"{self.mean:.3f}"
        if self.reference is None:
            return ours
        logs = "" if self.reference.logs is None else f"; {self.reference.logs:.3f}"
        mark = f" {BELOW}" if self.below else ""
        return f"{ours} ({self.reference.mean:.2f}{logs}) {self.difference:+.3f}{mark}"

    def lines(self) -> str:
        """The same in two lines with colours, for the terminal."""
        ours = f"{self.mean:.3f}" + (f"±{self.sd:.3f}" if len(self.scores) > 1 else "")
        ours = ours.replace("0.", ".")
        if self.reference is None:
            return ours
        difference = f"{self.difference:+.3f}".replace("0.", ".")
        shown = f"{self.reference.goal:.3f} {difference}".replace("0.", ".", 1)
        return f"{ours}\n[red]{shown} {BELOW}[/]" if self.below else f"{ours}\n[dim]{shown}[/]"


Cells = dict[tuple[str, str], Cell]


def spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation over the first axis, the seeds; 0 of a single one."""
    return np.std(values, axis=0, ddof=min(1, len(values) - 1))


def gather(records: Sequence[Record], methods: Sequence[str], references: dict[tuple[str, str], Reference]) -> Cells:
    """Cells by data set and method, of the methods asked for."""
    found: dict[tuple[str, str], list[Values]] = {}
    for record in records:
        for method in methods:
            if method in record.results:
                found.setdefault((record.task.dataset, method), []).append(record.results[method])
    return {(d, m): _cell(d, m, values, references.get((d, m))) for (d, m), values in found.items()}


def _cell(dataset: str, method: str, values: Sequence[Values], reference: Reference | None) -> Cell:
    scores, later = (tuple(v[key] for v in values if key in v) for key in ("score", GIVEN_LATER))
    return Cell(dataset, method, scores, reference, later)


def rows(cells: Cells, methods: Sequence[str]) -> dict[str, list[Cell | None]]:
    """Cells of each data set, in the order of ``methods``."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in cells))
    return {dataset: [cells.get((dataset, method)) for method in methods] for dataset in datasets}


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its first column to the left and the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def learned(records: Sequence[Record], method: str) -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """Mean and standard deviation of the alphas that a method learned, and the mean of beta, by data set."""
    found: dict[str, list[tuple[list[float], float]]] = {}
    for record in records:
        values = record.results.get(method, {})
        if "alpha" in values:
            found.setdefault(record.task.dataset, []).append((values["alpha"], values["beta"]))
    out = {}
    for dataset, pairs in found.items():
        alphas = np.array([alpha for alpha, _ in pairs])
        out[dataset] = alphas.mean(axis=0), spread(alphas), float(np.mean([beta for _, beta in pairs]))
    return out


def score_table(cells: Cells, methods: Sequence[str]) -> str:
    """The scores in Markdown."""
    body = [[d, *(cell.text() if cell else "" for cell in found)] for d, found in rows(cells, methods).items()]
    return markdown_table(["", *methods], body)


def finish(
    name: str,
    title: str,
    cells: Cells,
    methods: Sequence[str],
    blocks: Sequence[str],
    notes: tuple[str, ...],
    folder: Path,
) -> Result:
    """Write the account and the picture, and return both."""
    foot = footer()
    markdown = "\n\n".join([f"# {title}", *blocks, *notes, f"![{title}]({name}.png)", foot]) + "\n"
    text, picture = folder / f"{name}.md", folder / f"{name}.png"
    write_atomically(text, lambda file: file.write(markdown.encode()), "writing the table")
    draw(cells, methods, title, foot, picture)
    body = [(d, *(cell.lines() if cell else "" for cell in found)) for d, found in rows(cells, methods).items()]
    return Result(name, title, ("", *methods), body, markdown, [text, picture, folder / f"{name}.jsonl"], notes)


def draw(cells: Cells, methods: Sequence[str], title: str, foot: str, path: Path) -> None:
    """Draw one panel a data set: ours and the paper's means with standard deviations, the difference above."""
    from matplotlib.figure import Figure

    table = rows(cells, methods)
    across = min(len(table), 2 if len(methods) > 7 else 3)
    down = -(-len(table) // across)
    figure = Figure(figsize=(max(0.75 * len(methods), 4.5) * across, 3.1 * down + 1.0), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, (dataset, found) in zip(panels, table.items(), strict=False):
        _draw_panel(panel, dataset, found)
    for panel in panels[len(table) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    figure.suptitle(title, x=0.01, ha="left")
    figure.supxlabel(foot.replace("`", ""), fontsize=6, color="0.4", x=0.01, ha="left")
    write_atomically(path, lambda file: figure.savefig(file, format="png", dpi=150), "writing the figure")


def _draw_panel(panel: Axes, dataset: str, found: Sequence[Cell | None]) -> None:
    ours = list(enumerate(cell for cell in found if cell is not None))
    paper = [(i, cell.reference) for i, cell in ours if cell.reference is not None]
    panel.errorbar(
        [i - 0.12 for i, _ in ours], [c.mean for _, c in ours], [c.sd for _, c in ours], fmt="o", c="C0", label="ours"
    )
    if paper:
        x, mean, sd = zip(*((i + 0.12, r.mean, r.sd) for i, r in paper), strict=True)
        panel.errorbar(x, mean, sd, fmt="s", c="0.5", mfc="w", label="paper")
    later = [(i, float(np.mean(cell.given_later))) for i, cell in ours if cell.given_later]
    if later:
        panel.plot(*zip(*later, strict=True), "x", c="C2", label="ours, given the validation labels too")
    logs = [(i + 0.3, r.logs) for i, r in paper if r.logs is not None]
    if logs:
        panel.plot(*zip(*logs, strict=True), "_", c="C1", label="authors' logs")
    for i, cell in ours:
        if cell.difference is not None and cell.reference is not None:
            top = max(cell.mean + cell.sd, cell.reference.mean + cell.reference.sd)
            text = f"{cell.difference:+.2f}".replace("0.", ".") + (f"\n{BELOW}" if cell.below else "")
            colour = "C3" if cell.below else "0.3"
            panel.annotate(text, (i, top), (0, 3), textcoords="offset points", ha="center", fontsize=7, color=colour)
    panel.margins(y=0.18)
    panel.set_xticks(range(len(ours)), [cell.method for _, cell in ours], rotation=30, ha="right", fontsize=7)
    panel.tick_params(axis="y", labelsize=7)
    panel.set_title(dataset, fontsize=9)
