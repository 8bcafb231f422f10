"""What the documentation shows is what happens: every code block, example script and docstring runs."""

import doctest
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name, walk_packages

import numpy as np
import pytest
from typer.testing import CliRunner

import residua
from residua.cli.app import app
from residua.cli.demo import run_demo
from tables import town, write

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MODULES = sorted(module.name for module in walk_packages(residua.__path__, "residua."))
OPTIONAL = ("geopandas", "lightning.pytorch", "libpysal.weights", "networkx", "torch_geometric.data")

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def names(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_code_blocks_of_a_page_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    need_optional(text)
    namespace = {"__name__": "__page__"}
    blocks = [*FENCE.finditer(text), None]
    for block, following in pairwise(blocks):
        line = text.count("\n", 0, block.start()) + 1
        if block[1] == "python":
            printed = run(block[2], namespace, f"{page.name}, line {line}")
        elif block[1] == "bash" and block[2].startswith("residua "):
            printed = "".join(run_command(command) for command in block[2].strip().splitlines())
        else:
            continue
        if following and following[1] == "text" and not text[block.end() : following.start()].strip():
            assert_same_text(printed, following[2], f"{page.name}, line {line}")


def need_optional(text):
    """Skip what names a library that is not here; its import may warn of itself."""
    for optional in OPTIONAL:
        if optional in text:
            pytest.importorskip(optional)


def run(code, namespace, where):
    """What the code prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(code, where, "exec"), namespace)
    return out.getvalue()


def run_command(command):
    """What a command of residua prints, in the current folder."""
    _, *words = shlex.split(command)
    done = CliRunner().invoke(app, words, env={"COLUMNS": "100"})
    assert done.exit_code == 0, f"{command}\n{done.output}{done.exception!r}"
    return done.stdout


def test_the_program_that_is_installed_runs():
    program = Path(sys.executable).with_name("residua")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == residua.__version__


def assert_same_text(printed, shown, where):
    """The same words, and numbers that agree up to the last digit or two: other processors round otherwise."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split(), f"{where} prints\n{printed}"
    for got, expected in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        digits = len(expected.partition(".")[2])
        close = pytest.approx(number(expected), rel=0.02, abs=2 * 10.0**-digits if digits else 0)
        assert number(got) == close, f"{where} prints\n{printed}"


def number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize("script", EXAMPLES, ids=names(EXAMPLES))
def test_example_runs_and_tells_something(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    need_optional(script.read_text(encoding="utf-8"))
    runpy.run_path(str(script), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 3
    assert len(script.read_text(encoding="utf-8").splitlines()) < 60
    assert not list(tmp_path.iterdir()), "an example leaves no file behind"


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name):
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed")
    need_optional("".join(re.findall(r">>> (.*\n)", Path(module.__file__).read_text(encoding="utf-8"))))
    failed, _ = doctest.testmod(module)
    assert not failed


def test_commands_of_the_readme_run_one_after_the_other(tmp_path, monkeypatch):
    pytest.importorskip("torch_geometric.data")
    monkeypatch.chdir(tmp_path)
    nodes, edges = town()
    write(tmp_path, nodes.rename(columns={"price": "turnout"}), edges)
    commands = re.findall(r"^residua .*?(?=  +#)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert [command.split()[1] for command in commands] == ["fit", "predict", "compare", "report"]
    for command in commands:
        assert run_command(command).strip()


def test_readme_shows_the_table_of_the_demo():
    with pytest.warns(UserWarning, match="components have no label"):  # two islands, by propagation
        rows = run_demo().scores
    lines = re.findall(r"^\| (base|propagated|learned) \| (.+?) \|$", (ROOT / "README.md").read_text(), re.M)
    assert len(lines) == len(rows)
    for name, cells in lines:
        row = rows[name]
        assert_same_text(f"{row.r2:.3f} | {row.coverage:.1%} | {row.width:.3f}", cells, name)


def means_of(name, method, key="score"):
    """Means over seeds of a method's test score, by data set, as text with three digits."""
    scores = {}
    lines = (ROOT / "docs" / "results" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    for record in map(json.loads, lines):
        if method in record.get("results", ()):
            scores.setdefault(record["task"]["dataset"], []).append(record["results"][method][key])
    return {dataset: f"{np.mean(found):.3f}".removeprefix("0") for dataset, found in scores.items()}


def test_scores_of_the_readme_are_those_of_the_records():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sets = [name.lower() for name in re.search(r"^\| \| (income .+) \|$", readme, re.M)[1].split(" | ")]
    for command, name, method in (("reproduce table1", "table1", "C-GNN"), ("--protocol best", "best", "average")):
        shown = re.search(rf"^\| .+ `{command}` \| (.+) \|$", readme, re.M)[1].split(" | ")
        means = means_of(name, method)
        assert shown == [means[dataset] for dataset in sets]


def test_scores_past_the_paper_are_those_of_the_records():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w()+-]+)(?:, generated)? \| [^|]+ ((?:\| \.\d{3} ){5})\|$", page, re.M)
    assert len(rows) == 10
    names = {"ising(+)": "ising+", "ising(-)": "ising-", "contacts": "contacts-simulated"}
    columns = [means_of("best", method) for method in ("paper's C-GNN", "chosen", "average")]
    columns += [means_of("best", method, "told") for method in ("paper's C-GNN", "average")]
    for name, shown in rows:
        dataset = names.get(name.lower(), name.lower())
        assert shown.strip("| ").split(" | ") == [means[dataset] for means in columns]


def test_readme_names_the_commands_and_the_picture():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    assert pictures
    for picture in pictures:
        assert os.path.getsize(ROOT / picture) < 400_000


def test_links_between_files_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_reference_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert [name for name in residua.__all__ if not re.search(rf"^::: residua\.{name}\b", page, re.M)] == []


def test_functions_of_the_mathematics_page_are_there():
    page = (ROOT / "docs" / "mathematics.md").read_text("utf-8").split("## Which function computes what")[1]
    cells = re.findall(r"^\| .+ \| (.+) \|$", page.split("\n## ")[0], re.M)
    named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 20
    for name in named:
        assert resolve_name(f"residua.{name}"), name


def test_files_of_the_glossary_are_there_and_every_term_is_there_once():
    rows = re.findall(r"^\| (.+?) \| .+ \| `([^`]+)` \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.M)
    terms = [term for cell, _ in rows for term in cell.split(", ")]
    assert len(terms) == len(set(terms)) > 60
    assert [file for _, file in rows if not (ROOT / "src" / "residua" / file).is_file()] == []


def test_changelog_has_an_unreleased_section():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[?Unreleased\]?$", changelog, re.MULTILINE)
