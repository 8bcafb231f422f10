"""The licences of everything that ``requirements.lock`` installs, as a page.

    python tools/licences.py > docs/licences.md

Read from the metadata of the installed packages: a licence expression, else classifiers, else the first line given.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, files, metadata
from pathlib import Path

HEAD = """# Licences

What `requirements.lock` installs, and under which licence, as the packages say themselves. The page is written by
`python tools/licences.py`. None of it is part of residua, which is under the MIT licence.

Data that are part of residua: elect80, CC0, from spData; columbus, sids and baltimore, BSD 3-clause, copyright PySAL
Developers, from libpysal, whose licence is beside them (`src/residua/datasets/data/maps/LICENSE.libpysal.txt`).

| package | version | licence |
|---|---|---|"""


def pins(lock: Path) -> list[str]:
    """Names of the packages that a lock file pins."""
    lines = lock.read_text().splitlines()
    return [line.split("==")[0].strip() for line in lines if "==" in line and not line.startswith((" ", "#"))]


def licence(name: str) -> str:
    about = metadata(name)
    if about["License-Expression"]:
        return about["License-Expression"]
    named = [c.rsplit(" :: ", 1)[-1] for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    named = [text for text in named if text != "OSI Approved"]
    if named:
        return ", ".join(named)
    given = (about["License"] or "").strip() or license_text(name)
    return given.splitlines()[0] if given else "not said"


def license_text(name: str) -> str:
    """What stands in the licence file of a package that says nothing else."""
    found = [path for path in files(name) or () if path.name.upper().startswith(("LICENSE", "LICENCE", "COPYING"))]
    return found[0].read_text().strip() if found else ""


def row(name: str) -> str:
    try:
        return f"| {name} | {metadata(name)['Version'].partition('+')[0]} | {licence(name)} |"
    except PackageNotFoundError:
        raise SystemExit(f"{name} is locked but not installed; run make first.") from None


if __name__ == "__main__":
    print("\n".join([HEAD, *map(row, pins(Path(sys.argv[1] if len(sys.argv) > 1 else "requirements.lock")))]))
