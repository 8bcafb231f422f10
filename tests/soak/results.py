"""The figures of a soak, printed and written with the command, the versions and the date that they belong to."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from residua.atomic import write_atomically
from residua.reproduction.provenance import footer
from soak.parts import Counts

PACKAGES = ("residua", "numpy", "scipy", "numba", "pandas", "pyarrow", "scikit-learn", "safetensors", "skops", "torch")


class Outcome(NamedTuple):
    """What came of a part; ``broken`` is the promise that it found broken."""

    name: str
    counts: Counts
    seconds: float
    broken: str | None = None


def totals(outcomes: list[Outcome]) -> Counts:
    """Inputs tried and faults survived, over all parts."""
    inputs = sum(outcome.counts.get("inputs", 0) + outcome.counts.get("bombs", 0) for outcome in outcomes)
    faults = ("kills survived", "interrupts survived", "writes refused", "trainings that went on", "commands refused")
    survived = sum(outcome.counts.get(name, 0) for outcome in outcomes for name in faults)
    broken = sum(outcome.broken is not None for outcome in outcomes)
    return {"inputs tried": inputs, "faults survived": survived, "promises broken": broken}


def page(outcomes: list[Outcome], about: dict[str, Any]) -> str:
    """The figures in Markdown."""
    rows = [f"| {o.name} | {shown(o.counts) if o.broken is None else o.broken} | {o.seconds:.0f} |" for o in outcomes]
    return "\n".join(
        [
            "# Reliability",
            "",
            f"{shown(totals(outcomes)).capitalize()}. What each part does is in [Reliability](../reliability.md).",
            "",
            "| part | figures | seconds |",
            "|---|---|---:|",
            *rows,
            "",
            footer(about),
            "",
        ]
    )


def shown(counts: Counts) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in counts.items())


def write_results(folder: Path, outcomes: list[Outcome], about: dict[str, Any]) -> None:
    """Both files, each whole or not at all."""
    parts = {o.name: {"counts": o.counts, "seconds": round(o.seconds, 1), "broken": o.broken} for o in outcomes}
    record = json.dumps(about | {"totals": totals(outcomes), "parts": parts}, indent=2) + "\n"
    for name, text in (("reliability.json", record), ("reliability.md", page(outcomes, about))):
        write_atomically(folder / name, lambda file, text=text: file.write(text.encode()), "writing the results")
