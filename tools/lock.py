"""Add to pinned requirements the hash of every file that may be installed for them.

    python tools/lock.py pins.txt > requirements.lock

The hashes are those that the package index tells of a version: of every platform and Python. torch is left out: which
of its builds is right depends on the machine, so it is pinned by its version alone, in pyproject.toml.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.models.index import PyPI

INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")


def file_version(filename: str) -> Version | None:
    """The version of a wheel or source archive; None of any other file."""
    try:
        parse = parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename
        return parse(filename)[1]
    except (InvalidSdistFilename, InvalidWheelFilename):
        return None


def index_hashes(name: str, version: Version) -> Iterator[str]:
    """Of all files of a version on the index."""
    request = Request(f"{INDEX}/{canonicalize_name(name)}/", headers={"Accept": "text/html"})
    with urlopen(request, timeout=60) as answer:
        page = answer.read().decode()
    for link in re.findall(r'href="([^"]+)"', page):
        address, _, digest = unescape(link).partition("#sha256=")
        if digest and file_version(unquote(address.rsplit("/", 1)[-1])) == version:
            yield digest


def locked(pin: str) -> str:
    """A requirement with its hashes, one on each line."""
    name, _, text = pin.partition("==")
    version = Version(text.partition(";")[0].strip())
    hashes = sorted(set(index_hashes(name, version)))
    if not hashes:
        raise SystemExit(f"{pin}: the package index has no file of this version.")
    return " \\\n".join([pin, *(f"    --hash=sha256:{value}" for value in hashes)])


def main(path: str) -> None:
    lines = (line.strip() for line in Path(path).read_text().splitlines())
    pins = [line for line in lines if line and not line.startswith("torch==")]
    with ThreadPoolExecutor(8) as pool:
        print("\n".join(pool.map(locked, pins)))


if __name__ == "__main__":
    main(*sys.argv[1:])
