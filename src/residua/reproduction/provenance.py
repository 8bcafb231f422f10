"""Which command a figure came from, when, and with which versions."""

from __future__ import annotations

import platform
import shlex
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("residua", "numpy", "scipy", "numba", "scikit-learn", "torch", "torch_geometric")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages that are installed; the others are left out."""
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def provenance(command: str | None = None, packages: Iterable[str] = PACKAGES) -> dict[str, Any]:
    """The command, by default the one that runs, the date and the versions."""
    return {
        "command": command or shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "versions": {"Python": platform.python_version(), **versions(packages)},
    }


def footer(about: dict[str, Any] | None = None) -> str:
    """One line to stand under a table or a picture, by default of the command that runs."""
    about = about or provenance()
    threads = [f"threads: {about['threads']}"] if "threads" in about else []
    numbers = [f"{name} {number}" for name, number in about["versions"].items()]
    return ", ".join([f"`{about['command']}`", about["date"], *threads, *numbers])
