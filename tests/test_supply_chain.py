"""What is imported is declared, what is declared is pinned, what is pinned has hashes and a licence."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TREES = {
    "src": ("gnn", "dask", "geo", "cholmod", "files"),
    "tests": ("gnn", "dask", "geo", "files", "dev"),
    "benchmarks": ("gnn", "dask", "geo", "dev"),
    "examples": ("gnn", "dask", "geo", "dev"),
    "tools": ("geo", "dev"),
    "docs": ("gnn", "dev"),
}
UNPINNED = {"scikit-sparse"}  # of the extra cholmod, which dev leaves out: parts of it are GPL
# Packages that need not be installed here, by the name under which they would be.
ELSEWHERE = {"sksparse": "scikit-sparse", "primate": "scikit-primate", "sknetwork": "scikit-network"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(text: str) -> str:
    """The name in a requirement such as ``dask[dataframe]>=2025.1``."""
    return canonical(re.match(r"[A-Za-z0-9._-]+", text)[0])


def pins(lock: str) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of each package in a lock file."""
    found = {}
    for entry in re.split(r"(?<!\\)\n", (ROOT / lock).read_text()):
        match = re.match(r"([A-Za-z0-9._-]+)==(\S+)", entry)
        if match:
            found[canonical(match[1])] = match[2], re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
    return found


LOCK = pins("requirements.lock")
MAKEFILE = (ROOT / "Makefile").read_text()
TORCH = re.search(r"^TORCH := (torch==\S+)$", MAKEFILE, re.MULTILINE)[1]
PINNED = LOCK.keys() | {"torch"}  # by its version alone: which build is right depends on the machine
SHOWN = {"lightning"}  # what an example shows the use of; its reader has it, and its test is skipped elsewhere
INSTALLED = packages_distributions()
OURS = {"residua", "benchmarks", "tests", "tools", "pip"} | {p.stem for p in (ROOT / "tests").iterdir()}


def third_party(path: Path) -> set[str]:
    """Top-level packages that a file imports and that are neither Python's nor ours."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.split(".")[0])
    beside = {p.stem for p in path.parent.iterdir()}
    return names - set(sys.stdlib_module_names) - OURS - beside


def distributions(package: str) -> set[str]:
    """Names under which an imported package may be installed; its own where it is not."""
    return {canonical(name) for name in INSTALLED.get(package, [ELSEWHERE.get(package, package)])}


def declared(extras: tuple[str, ...]) -> set[str]:
    wanted = PROJECT["dependencies"] + [line for extra in extras for line in EXTRAS[extra]]
    return {requirement(line) for line in wanted}


@pytest.mark.parametrize("tree", TREES)
def test_every_import_is_declared_and_pinned(tree):
    # Other libraries that benchmarks compare with have an environment, and pins, of their own.
    peers = pins("benchmarks/peers-requirements.txt").keys() if tree in ("benchmarks", "tests") else set()
    known, lost = declared(TREES[tree]) | peers, []
    for path in sorted((ROOT / tree).rglob("*.py")):
        for package in third_party(path) - (SHOWN if tree == "examples" else set()):
            names = distributions(package)
            if not names & known:
                lost.append(f"{path.relative_to(ROOT)} imports {package}, which pyproject.toml does not name")
            elif not names & (PINNED | UNPINNED | peers):
                lost.append(f"{path.relative_to(ROOT)} imports {package}, which requirements.lock does not pin")
    assert not lost, "\n".join(lost)


def test_an_undeclared_import_would_be_found(tmp_path):
    (tmp_path / "wild.py").write_text("import os\nfrom leftpad.deep import x\ndef f():\n    import numpy, requests\n")
    assert third_party(tmp_path / "wild.py") == {"leftpad", "numpy", "requests"}
    assert not distributions("leftpad") & declared(("dev",))


def test_what_is_declared_is_pinned():
    assert declared(tuple(EXTRAS)) - {"residua"} - UNPINNED <= PINNED


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_every_pin_has_a_hash(lock):
    entries = pins(lock)
    assert entries
    assert not [name for name, (_, hashes) in entries.items() if not hashes]
    # Each line that is not a hash is a pin: nothing comes in by a range, an address or a path.
    rest = [
        line for line in (ROOT / lock).read_text().splitlines() if line and not line.startswith(("    --hash", "#"))
    ]
    assert len(rest) == len(entries)


def test_make_installs_by_hash_all_but_torch():
    values = dict(re.findall(r"^(\w+) := (.*)$", MAKEFILE, re.MULTILINE))
    assert {"--require-hashes", "--no-deps", "requirements.lock"} <= set(values["LOCKED"].split())
    others = [line for line in MAKEFILE.replace(values["LOCKED"], "").splitlines() if "-r requirements.lock" in line]
    assert all("pip-audit" in line for line in others)
    assert "torch" not in LOCK


def test_the_extra_asks_for_a_range_of_torch_that_has_the_pinned_one():
    wanted = Requirement(next(line for line in EXTRAS["gnn"] if requirement(line) == "torch")).specifier
    assert TORCH.removeprefix("torch==") in wanted
    assert not any(part.operator == "==" for part in wanted)


def test_every_pin_has_its_licence_on_the_page():
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \|$", (ROOT / "docs" / "licences.md").read_text(), re.MULTILINE)
    page = {canonical(name): version for name, version, _ in rows[1:]}
    assert page.pop("torch").partition("+")[0] == TORCH.removeprefix("torch==")
    assert page == {name: version for name, (version, _) in LOCK.items()}
    assert not [name for name, _, text in rows if text.strip() in ("", "not told", "UNKNOWN")]
