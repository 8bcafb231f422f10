"""Compare the numbers of two files of records, run by run: ``python tools/records.py one.jsonl other.jsonl``.

Prints how many runs both files have and the largest differences; times are left out.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path


def numbers(values: object, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number of nested lists and dictionaries with the way to it."""
    if isinstance(values, dict | list):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from numbers(value, f"{name}.{key}" if name else str(key))
    elif isinstance(values, int | float):
        yield name, float(values)


def runs(path: str) -> dict[str, dict[str, float]]:
    """Return the results of each run of a file by its task."""
    records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return {json.dumps(r["task"], sort_keys=True): dict(numbers(r["results"])) for r in records if "task" in r}


def differences(one: str, other: str) -> list[tuple[float, str, float, float]]:
    """Return each number that both files have, by how far it differs, the largest first."""
    a, b = runs(one), runs(other)
    found = [
        (abs(value - b[task][name]), f"{task} {name}", value, b[task][name])
        for task, values in a.items()
        if task in b
        for name, value in values.items()
        if name in b[task]
    ]
    print(f"{len(a)} and {len(b)} runs, {len(a.keys() & b.keys())} in both, {len(found)} numbers")
    return sorted(found, reverse=True)


if __name__ == "__main__":
    for size, where, one, other in differences(*sys.argv[1:3])[:10]:
        print(f"{size:.2e}  {where}: {one:.8g}, {other:.8g}")
