"""Nothing that only Linux has where it need not be, and a page that says what was tried."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import residua

ROOT = Path(__file__).parents[1]
PACKAGE = Path(residua.__file__).parent
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
UNIX = {"fcntl", "grp", "posix", "pwd", "resource", "termios", "tty", "pty", "syslog"}


def unguarded(tree: ast.AST) -> set[str]:
    """Modules that only Unix has and that a file imports where it does not expect them to be missing."""
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    guarded = {inner for node in tries if "ImportError" in ast.unparse(node) for inner in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if node not in guarded and isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node not in guarded and isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found & UNIX


@pytest.mark.parametrize("file", FILES)
def test_no_file_needs_a_module_that_only_unix_has(file):
    assert not unguarded(ast.parse(FILES[file].read_text(encoding="utf-8")))


def test_the_check_above_sees_what_it_is_there_to_see():
    assert unguarded(ast.parse("import fcntl")) == {"fcntl"}
    assert unguarded(ast.parse("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None")) == set()


@pytest.mark.parametrize("file", FILES)
def test_text_files_name_their_encoding(file):
    """Windows would take another one."""
    source = FILES[file].read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
        if name in ("read_text", "write_text"):
            words = ast.unparse(node)
            assert "encoding=" in words or "'ascii'" in words or "'utf-8'" in words, f"line {node.lineno}: {words}"


def test_processes_are_not_forked():
    forks = [f for f, p in FILES.items() if re.search(r"os\.fork\(|get_context\(.fork", p.read_text(encoding="utf-8"))]
    assert not forks


def test_every_python_of_the_classifiers_is_on_the_page():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert named == ["3.11", "3.12", "3.13", "3.14"]
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert all(f"| Python {version}" in page for version in named)
    assert project["requires-python"] == f">={named[0]}"
    assert sys.version_info >= (3, 11)
