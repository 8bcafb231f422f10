"""The picture is the test: every import is held to the drawing in ``docs/architecture.md``, every file to its table."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import residua

ROOT = Path(residua.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")

TORCH = {"residua.nn"} | {
    f"residua.bases.networks.{name}"
    for name in ("layers", "base", "architectures", "device", "edges", "stack", "training")
}


def section(title: str) -> str:
    """The text of the page between this heading and the next."""
    return re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]


def cells(text: str) -> list[list[str]]:
    """Rows of the tables in a text, without headings and rules; of a cell in backquotes what is between them."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in re.findall(r"^\|.*\|$", text, re.M)]
    return [row for row in rows if row[0].startswith("`")]


def quoted(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def drawing() -> list[set[str]]:
    """Rows of the drawing from the top: the names before the words that explain them."""
    lines = re.search(r"```text\n(.*?)```", section("Layers"), re.S)[1].splitlines()
    return [set(re.split(r" {2,}", line)[0].split(" | ")) for line in lines]


ROWS = drawing()
DEPTH = {name: depth for depth, names in enumerate(ROWS) for name in names}
EXCEPTIONS = {(a, b) for row in cells(section("Layers")) for a in quoted(row[0]) for b in quoted(row[1])}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
INNER = [name for name in FILES if name != "residua"]


def layer(module: str) -> str | None:
    """The name in the drawing to which a dotted name belongs; None for the package itself."""
    return [*module.split("."), None][1]


def under_type_checking(tree: ast.Module) -> set[ast.AST]:
    """Nodes that only a type checker reads."""
    tests = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    return {inner for test in tests for statement in test.body for inner in ast.walk(statement)}


def inside_functions(tree: ast.Module) -> set[ast.AST]:
    """Nodes that run when a function is called, not when the module is imported."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    return {inner for function in functions for inner in ast.walk(function)}


def imports(module: str, *, at_import: bool = False) -> set[str]:
    """Modules that a file imports, those looked up by name included; all, or only those that load with it."""
    tree = ast.parse(FILES[module].read_text())
    skipped = under_type_checking(tree) | inside_functions(tree) if at_import else set()
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively in line {node.lineno}; name the package"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = names & FILES.keys()
            found |= modules | ({node.module} if modules != names else set())
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            found |= set(re.findall(r"residua(?:\.\w+)+", ast.unparse(node)))
    return found


def inner_imports(module: str, **options) -> set[str]:
    """Modules of residua itself; the package as such stands for its version and lazy names."""
    return {name for name in imports(module, **options) if name.startswith("residua.")}


def arrows(module: str) -> set[tuple[str, str]]:
    """From the layer of a module to the other layers that it imports."""
    return {(layer(module), layer(name)) for name in inner_imports(module)} - {(layer(module), layer(module))}


def test_the_drawing_names_every_folder_and_file_of_the_package_once():
    assert sorted(name for row in ROWS for name in row) == sorted({layer(name) for name in INNER})


@pytest.mark.parametrize("module", INNER)
def test_imports_point_down(module):
    wrong = {(a, b) for a, b in arrows(module) - EXCEPTIONS if DEPTH[a] >= DEPTH[b]}
    assert not wrong, f"{module}: not as drawn in docs/architecture.md"


def test_exceptions_are_few_used_and_wait_until_they_are_called():
    all_arrows = {arrow for module in INNER for arrow in arrows(module)}
    assert not EXCEPTIONS - all_arrows, "an exception that nothing uses"
    loading = {(layer(m), layer(name)) for m in INNER for name in inner_imports(m, at_import=True)}
    assert not EXCEPTIONS & loading
    assert len(EXCEPTIONS) <= 4


def test_only_the_command_line_imports_the_reproduction():
    users = {layer(m) for m in INNER if any(layer(name) == "reproduction" for name in inner_imports(m))}
    assert users <= {"reproduction", "cli"} | {a for a, b in EXCEPTIONS if b == "reproduction"}


def test_the_table_lists_every_file():
    """A row with a folder stands for its ``__init__.py``."""
    listed = [name for row in cells(section("Files")) for name in quoted(row[0])]
    there = {str(path.relative_to(ROOT)).replace("/__init__.py", "/") for path in FILES.values()}
    assert sorted(listed) == sorted(there)


def test_named_modules_exist():
    """An import of a file that is not there would pass unseen where it is lazy."""
    missing = {(m, name) for m in INNER for name in inner_imports(m) if name not in FILES}
    assert not missing


@pytest.mark.parametrize("module", FILES)
def test_torch_stays_where_it_belongs(module):
    roots = {name.split(".")[0] for name in imports(module)}
    if module not in TORCH:
        assert not roots & {"torch", "torch_geometric"}


@pytest.mark.parametrize("module", [m for m in FILES if layer(m) in ("linalg", "field")])
def test_the_mathematics_needs_only_numpy_scipy_and_numba(module):
    roots = {name.split(".")[0] for name in imports(module)} - set(sys.stdlib_module_names)
    optional = {"residua.linalg.factor": {"sksparse"}, "residua.linalg.kernels.registers": {"llvmlite"}}
    optional = optional.get(module, set())
    assert roots <= {"residua", "numpy", "scipy", "numba"} | optional


def test_no_module_waits_for_itself():
    """Imports that run on loading form no circle; a package stands before its parts only where it loads them."""
    waits = defaultdict(set)
    for module in INNER:
        waits[module] = inner_imports(module, at_import=True) & FILES.keys()
    path: list[str] = []
    done: set[str] = set()

    def visit(module: str) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for name in sorted(waits[module]):
            visit(name)
        path.pop()
        done.add(module)

    for module in INNER:
        visit(module)


def test_import_of_the_package_loads_nothing_heavy():
    heavy = ("torch", "numba", "sklearn", "pandas", "matplotlib", "dask", "distributed")
    code = f"import sys, residua; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_tests_and_the_processes_that_they_begin_import_this_checkout(tmp_path):
    """Not a package that is installed from elsewhere."""
    code = "import residua, graphs; print(residua.__file__, graphs.__file__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    here = Path(__file__).parents[1]
    assert Path(residua.__file__) == here / "src" / "residua" / "__init__.py"
    assert run.stdout.split() == [residua.__file__, str(here / "tests" / "graphs.py")]
