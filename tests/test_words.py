"""Names are the field's terms: words of our own that once stood for several things do not come back."""

import ast
import re
from pathlib import Path

import pytest

import residua

ROOT = Path(residua.__file__).parent
FILES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}

# A word that leads astray, and what a reader would search for.
DIALECT = {
    "told": "condition_on, given",
    "alone": "base_out_of_fold_error, unreached",
    "lonely": "unreached, remote",
    "held": "out_of_sample",
    "honest": "out_of_sample, calibrated",
    "heights": "logdets",
}


def names(tree: ast.AST):
    """Names that a file gives: of functions, classes, arguments, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@pytest.mark.parametrize("file", FILES)
def test_names_are_the_terms_of_the_field(file):
    given = {name.strip("_").lower(): name for name in names(ast.parse(FILES[file].read_text(encoding="utf-8")))}
    found = {given[word]: better for word, better in DIALECT.items() if word in given}
    assert not found, "; ".join(f"{name}: say {better}" for name, better in found.items())


@pytest.mark.parametrize("file", FILES)
def test_a_docstring_is_more_than_the_tail_of_a_sentence(file):
    """ "Of the base." leaves a reader to find out what is of the base."""
    for node in ast.walk(ast.parse(FILES[file].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = (ast.get_docstring(node) or "").split("\n")[0]
            assert not re.match(r"(Of|For|With|Without|Over|At|In|From|By)\b", first), f"{node.name}: {first}"
