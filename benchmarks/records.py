"""Results on disk: what was run, with which versions, when, on how many threads, and what came out."""

import json
from pathlib import Path

import numba

from residua.reproduction.provenance import provenance

FOLDER = Path("docs") / "results"
PACKAGES = ("residua", "numpy", "scipy", "numba", "scikit-learn", "pyarrow", "torch", "sparse_dot_mkl", "mkl")


def about(command: str) -> dict:
    """The command and what it ran on."""
    return provenance(command, PACKAGES) | {"threads": numba.get_num_threads()}


def read(name: str) -> dict:
    """What was recorded before under this name; empty if nothing was."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(name: str, record: dict, text: str) -> None:
    """``docs/results/NAME.json``, and the same for people in ``NAME.md``."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (FOLDER / f"{name}.md").write_text(text)


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, numbers to the right but for the first column."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
