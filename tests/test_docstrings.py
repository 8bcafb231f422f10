"""Docstrings are numpydoc as numpydoc reads it: ``name : type``, and what it is on the indented lines below."""

import inspect
import re
from pathlib import Path

import pytest
from griffe import Class, Docstring, Function, Object, Parameter, Parameters, load

import residua

ROOT = Path(residua.__file__).parent
FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))

# Words of a sentence. A type is built of names, "of", "or", "by", "shape", "optional", and what is in quotes or braces.
PROSE = re.compile(
    r"\b(a|an|the|is|are|was|has|its?|each|every|all|that|which|what|where|when|whether|how|with|without|as|such|"
    r"if|unless|else|given|called|used|and|for|from|in|on|at|not|no|more|few|several|one|also)\b|[.;:!?](\s|$)"
)
QUOTED = re.compile(r"``[^`]*``|\"[^\"]*\"|'[^']*'|\([^()]*\)|\[[^\]]*\]|\{[^}]*\}")


@pytest.fixture(scope="module")
def package():
    """Every object of residua that is written in one of its files, by file."""
    found = {name: [] for name in FILES}

    def visit(scope: Object) -> None:
        for member in scope.members.values():
            if member.is_alias:
                continue
            found[str(member.filepath.relative_to(ROOT))].append(member)
            visit(member)

    visit(load("residua", search_paths=[str(ROOT.parent)], allow_inspection=False))
    return found


def entries(docstring: str, *kinds: str) -> list:
    """Entries of the sections named, as numpydoc reads them from the text alone."""
    sections = Docstring(inspect.cleandoc(docstring)).parse("numpy", warnings=False)
    return [entry for section in sections if section.kind.value in kinds for entry in section.value]


def expected_names(member: Object) -> set[str]:
    """Names that a Parameters section has to explain: those of the signature, or the fields of a data class."""
    function = member.members.get("__init__") if isinstance(member, Class) else member
    if isinstance(function, Function):
        return {parameter.name for parameter in function.parameters} - {"self", "cls"}
    return {name for name, field in member.members.items() if field.is_attribute and is_field(field)}


def is_field(attribute: Object) -> bool:
    return attribute.annotation is not None and "ClassVar" not in str(attribute.annotation) and attribute.is_public


def faults(member: Object):
    """What numpydoc would misread, or a reader would miss, in the docstring of one object."""
    if member.docstring is None:
        return
    text = member.docstring.value
    parameters = entries(text, "parameters", "other parameters")
    explained = {entry.name.lstrip("*") for entry in parameters}
    if parameters and isinstance(member, Class | Function) and "property" not in member.labels:
        expected = expected_names(member)
        attributes = {entry.name for entry in entries(text, "attributes")}
        if missing := expected - explained - attributes:
            yield f"{missing} of the signature have no entry"
        if unknown := explained - expected:
            yield f"{unknown} are not in the signature"
    for entry in parameters + entries(text, "attributes"):
        if not entry.description:
            yield f"{entry.name} has no description below its type"
        if not entry.annotation:
            yield f"{entry.name} has no type"
    for entry in parameters + entries(text, "attributes", "returns", "yields"):
        line = QUOTED.sub("", str(entry.annotation or ""))
        if PROSE.search(line):
            yield f"prose where the type belongs: {entry.annotation}"


@pytest.mark.parametrize("file", FILES)
def test_docstrings_are_numpydoc(file, package):
    wrong = [f"{member.path}: {fault}" for member in package[file] for fault in faults(member)]
    assert not wrong, "\n".join(wrong)


def test_a_variant_of_ones_own_is_refused():
    """The reader above sees what it is there to see."""
    text = "Do it.\n\nParameters\n----------\nx : what it is\ny : float\n    A number.\n"
    function = Function("f", parameters=Parameters(Parameter("x"), Parameter("y"), Parameter("z")))
    function.docstring = Docstring(text)
    assert list(faults(function)) == [
        "{'z'} of the signature have no entry",
        "x has no description below its type",
        "prose where the type belongs: what it is",
    ]
