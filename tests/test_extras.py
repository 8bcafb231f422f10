"""What is missing is asked for in a way that works: there is no release yet, so from a checkout."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from residua.extras import how_to_install

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py"), *ROOT.glob("src/residua/**/*.py")]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_no_page_and_no_message_installs_a_release_that_is_not_there():
    told = {path.name: re.findall(r"residua\\?\[\w+\]", path.read_text(encoding="utf-8")) for path in PAGES}
    assert {name: found for name, found in told.items() if found} == {}


def test_every_extra_that_a_page_names_is_there():
    written = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    named = {*re.findall(r"""pip install ["']\.\[(\w+)\]["']""", written), *re.findall(r"the extra `+(\w+)`", written)}
    assert {"gnn", "dask", "geo"} <= named <= EXTRAS.keys()


@pytest.mark.parametrize(
    ("missing", "code", "extra"),
    [
        ("torch", "import residua.nn", "gnn"),
        ("torch", "from residua.bases.registry import make_base; make_base('gcn')", "gnn"),
        ("distributed", "import residua.distributed", "dask"),
    ],
)
def test_an_extra_that_is_missing_is_named_with_the_command_that_brings_it(missing, code, extra):
    program = f"import sys; sys.path[:0] = {sys.path}; sys.modules[{missing!r}] = None; {code}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert how_to_install(extra) in last
    assert f'pip install ".[{extra}]"' in last
