"""What begins with an underscore stays in its class or its file, read from the source."""

import ast
from pathlib import Path

import pytest

import residua

ROOT = Path(residua.__file__).parent
FILES = {str(path.relative_to(ROOT)): path for path in ROOT.rglob("*.py")}

# Names of other libraries that are public in spite of their underscore.
PUBLIC = {
    *("_asdict", "_fields", "_replace"),  # of a named tuple
    "_exit",  # of os: ends a process without its clean-up
    "_version",  # of a tensor: counts its changes in place, and has no other name
}


def reaches(tree: ast.AST):
    """Lines on which something other than ``self`` and ``cls`` is asked for what is private."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"line {node.lineno}: import of {a.name}" for a in node.names if is_private(a.name))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr", "setattr"):
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            if is_private(name) and getattr(node.args[0], "id", "") not in ("self", "cls"):
                yield f"line {node.lineno}: {ast.unparse(node)}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


@pytest.mark.parametrize("file", sorted(FILES))
def test_nothing_reaches_for_the_underscore_of_another(file):
    found = list(reaches(ast.parse(FILES[file].read_text(encoding="utf-8"))))
    assert not found, "; ".join(found)


@pytest.mark.parametrize(
    "line",
    ["model._own", "from a import _b", "a.b._c()", "getattr(model, '_own')", "self.likelihood._precisions"],
)
def test_a_reach_is_seen(line):
    assert list(reaches(ast.parse(line)))


@pytest.mark.parametrize("line", ["self._own", "cls._from(x)", "a.__class__", "from residua import __version__"])
def test_what_is_ones_own_is_free(line):
    assert not list(reaches(ast.parse(line)))
