"""What an experiment is, and which there are.

An experiment is a function ``(options, advance) -> Result``. It runs its tasks through ``runs.run``, which keeps them
in a file of the output folder, and calls ``advance`` as that does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from residua.reproduction.runs import QUICK, Advance
from residua.validation import check_choice

PROTOCOLS = ("paper", "best")
FOLDER = Path("residua-results")
AUTHORS_SEEDS = 10  # seeds 1 to 10 have the authors' own splits and spins

SEEDS = ("seeds", "first_seed")
NAMES = ("datasets", "methods")

# Name on the command line -> module and function, imported when asked for, and the options that it heeds besides
# jobs, folder and quick.
EXPERIMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "table1": ("residua.reproduction.tables:table1", (*SEEDS, *NAMES, "protocol")),
    "table2": ("residua.reproduction.tables:table2", (*SEEDS, *NAMES)),
    "fig-accuracy": ("residua.reproduction.figures:fig_accuracy", SEEDS),
    "fig-scaling": ("residua.reproduction.figures:fig_scaling", ()),
    "fig-features": ("residua.reproduction.figures:fig_features", SEEDS),
    "fig-inductive": ("residua.reproduction.figures:fig_inductive", (*SEEDS, *NAMES)),
    "fig-ising": ("residua.reproduction.figures:fig_ising", ("first_seed",)),
    "fig-election": ("residua.reproduction.figures:fig_election", ("first_seed",)),
    "calibration": ("residua.reproduction.calibration:calibration", (*SEEDS, *NAMES)),
    "counts": ("residua.reproduction.counts:counts", SEEDS),
    "inference": ("residua.reproduction.inference:inference", (*SEEDS, "datasets")),
    "networks-coverage": ("residua.reproduction.networks_coverage:networks_coverage", (*SEEDS, *NAMES)),
}


@dataclass(frozen=True)
class Options:
    """What one asks of an experiment.

    Parameters
    ----------
    seeds : int
        How many random splits.
    datasets, methods : tuple of str, optional
        Names to keep; None for all.
    jobs : int
        Processes.
    protocol : {"paper", "best"}
        As the authors' code runs, or as well as we can.
    folder : Path
        Where records, tables and pictures go.
    quick : bool
        A smoke test of a minute at most: one seed, few steps, small graphs.
    first_seed : int
        The first of the seeds; the tables of seeds 1 to 10 have the authors' own splits.
    """

    seeds: int = 10
    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    jobs: int = 1
    protocol: str = "paper"
    folder: Path = FOLDER
    quick: bool = False
    first_seed: int = 1

    @property
    def mean_of(self) -> str:
        """Seeds that a table is the mean of, in words."""
        last = self.all_seeds[-1]
        seeds = f"seeds {self.first_seed} to {last}" if last > self.first_seed else f"seed {last}"
        return "smoke test, the numbers mean nothing" if self.quick else f"mean of {self.seeds}, {seeds}"

    @property
    def compared(self) -> bool:
        """Whether the paper's numbers, which are of seeds 1 to 10, stand beside ours."""
        return not self.quick and self.first_seed <= AUTHORS_SEEDS

    @property
    def setting(self) -> str:
        """``Task.setting`` of a run that has no other."""
        return QUICK if self.quick else ""

    @property
    def all_seeds(self) -> range:
        """Seeds, one for each split; a smoke test has one."""
        return range(self.first_seed, self.first_seed + (1 if self.quick else self.seeds))


@dataclass(frozen=True)
class Result:
    """What an experiment found.

    Parameters
    ----------
    name, title : str
        Of the experiment, and a line above its table.
    columns : tuple of str
        Headings of the table in the terminal.
    rows : list of tuple of str
        Cells of the table in the terminal; markup of rich is understood.
    markdown : str
        The whole account, also written to one of ``files``.
    files : list of Path
        Written to the output folder.
    notes : tuple of str
        Lines below the table.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    markdown: str
    files: list[Path] = field(default_factory=list)
    notes: tuple[str, ...] = ()


Experiment = Callable[[Options, Advance], Result]


def find(name: str) -> Experiment:
    """The experiment of that name."""
    check_choice(name, tuple(EXPERIMENTS), "experiment")
    module, function = EXPERIMENTS[name][0].split(":")
    found: Experiment = getattr(import_module(module), function)
    return found


def refuse_unheeded(name: str, given: Collection[str]) -> None:
    """Refuse an option that was given and that the experiment would ignore; of "all", those of single ones."""
    heeded = SEEDS if name == "all" else EXPERIMENTS[name][1]
    for option in (*SEEDS, *NAMES, "protocol"):
        if option in given and option not in heeded:
            remedy = "name one experiment in place of all" if name == "all" else "leave it out"
            raise ValueError(f"--{option.replace('_', '-')} has no effect on {name}; {remedy}.")


def chosen(asked: tuple[str, ...] | None, known: tuple[str, ...], argument: str) -> tuple[str, ...]:
    """The names asked for, in the order of ``known``; all where none was asked for."""
    if asked is None:
        return known
    unknown = [name for name in asked if name not in known]
    if unknown or not asked:
        what = f"{argument}={', '.join(unknown)} is unknown" if unknown else f"{argument} is empty"
        raise ValueError(f"{what}; use {', '.join(known)}.")
    return tuple(name for name in known if name in asked)
