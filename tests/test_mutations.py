"""Every place that mutations change is still there, once; whether tests notice is for `python -m tests.mutations`."""

import ast
from functools import cache
from pathlib import Path

import pytest
from tests.mutations import __main__ as mutations
from tests.mutations.mutation import Mutation
from tests.mutations.places import PLACES

import residua

ROOT = Path(__file__).parents[1]
SOURCE = Path(residua.__file__).parent


@cache
def functions(path):
    return {
        node.name for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))) if hasattr(node, "name")
    }


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_place_to_mutate_is_there_once(place):
    assert (SOURCE / place.file).read_text(encoding="utf-8").count(place.right) == 1
    assert place.right != place.wrong
    assert place.tests
    for test in place.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        assert not name or name.partition("[")[0] in functions(path)


def test_names_of_places_are_unique():
    assert len({place.name for place in PLACES}) == len(PLACES)


def test_every_folder_has_a_place():
    folders = {path.parent for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}
    assert {folder.relative_to(SOURCE) for folder in folders} == {Path(place.file).parent for place in PLACES}


def test_a_dozen_follows_from_its_turn_and_every_place_gets_one():
    assert mutations.dozen("a") == mutations.dozen("a") != mutations.dozen("b")
    turns = [mutations.dozen(str(k)) for k in range(300)]
    for chosen in turns:
        assert len({place.file for place in chosen}) == len(chosen) == mutations.DOZEN
    assert {place for chosen in turns for place in chosen} == set(PLACES)


# The tool itself, on a package of one line


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A package with a test that holds its numbers to the last digit but one."""
    files = {
        "src/residua/__init__.py": "",
        "src/residua/sums.py": "def total(a, b):\n    return a + b\n",
        "tests/test_sums.py": "from residua.sums import total\n\ndef test_two():\n    assert total(2, 3) == 5\n\n"
        "def test_zero():\n    assert total(2, 0) == 2\n\ndef test_wrong():\n    assert total(2, 2) == 5\n",
        "benchmarks/none": "",
        "pyproject.toml": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    return tmp_path


def place(wrong, test):
    return Mutation("sum", "sums.py", "a + b", wrong, (f"tests/test_sums.py::{test}",))


def test_changes_that_no_test_notices_are_counted(tiny, capsys):
    assert mutations.run([place("a - b", "test_two"), place("a - b", "test_zero")]) == {"killed": 1, "survived": 1}
    said = capsys.readouterr().out
    assert said.startswith("all green before any change")
    assert [line.split()[0] for line in said.splitlines()[1:]] == ["killed", "survived", "1"]
    assert (tiny / "src/residua/sums.py").read_text() == "def total(a, b):\n    return a + b\n"


@pytest.mark.parametrize("test", ["test_wrong", "test_nowhere"])
def test_a_test_that_does_not_pass_before_any_change_ends_the_run(tiny, test):
    with pytest.raises(SystemExit, match="The tests do not pass as things are"):
        mutations.run([place("a - b", "test_two"), place("a - b", test)])


def test_a_change_that_makes_a_test_hang_is_noticed(tiny, monkeypatch):
    monkeypatch.setattr(mutations, "PATIENCE", 1.0)
    assert mutations.run([place("__import__('time').sleep(99)", "test_two")])["killed"] == 1


def test_a_place_that_is_gone_ends_the_run(tiny):
    gone = Mutation("sum", "sums.py", "a * b", "a + b", ("tests/test_sums.py::test_two",))
    with pytest.raises(SystemExit, match=r"sum: sums\.py has 0 times 'a \* b'"):
        mutations.run([gone])
