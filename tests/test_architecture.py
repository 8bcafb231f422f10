"""Imports point down: the layers of the design, read from the source."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import residua

ROOT = Path(residua.__file__).parent

# A layer, and the layers that its files may import besides their own.
BELOW = {
    "atomic": set(),
    "linalg": set(),
    "graph": {"linalg"},
    "metrics": {"graph"},
    "validation": {"graph"},
    "field": {"linalg", "graph", "validation"},
    "bases": {"atomic", "linalg", "graph", "validation"},
    "datasets": {"graph", "validation"},
}
BELOW["estimator"] = set(BELOW) - {"views"}
BELOW["views"] = {"graph", "metrics", "datasets", "validation", "estimator", "atomic", "bases"}
BELOW["io"] = {"atomic", "linalg", "graph", "validation", "field", "bases", "estimator"}
BELOW["backends"] = {"atomic", "linalg", "graph", "validation", "field", "bases", "estimator", "io"}
BELOW["comparison"] = set(BELOW)
BELOW["reproduction"] = set(BELOW)
BELOW["cli"] = set(BELOW)

# Files directly under residua/ that belong to a layer of another name.
LAYER = {
    "average": "estimator",
    "nn": "estimator",
    "diagnosis": "estimator",
    "prediction": "estimator",
    "plot": "views",
    "distributed": "backends",
    "resources": "comparison",
}

TORCH = {"residua.nn"} | {
    f"residua.bases.networks.{name}" for name in ("layers", "base", "architectures", "stack", "training")
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
INNER = [name for name in FILES if name != "residua"]


def layer(module: str) -> str | None:
    """The layer of a dotted name; None for the package itself."""
    parts = module.split(".")
    return LAYER.get(parts[1], parts[1]) if len(parts) > 1 else None


def under_type_checking(tree: ast.Module) -> set[ast.AST]:
    """Nodes that only a type checker reads."""
    tests = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    return {inner for test in tests for statement in test.body for inner in ast.walk(statement)}


def inside_functions(tree: ast.Module) -> set[ast.AST]:
    """Nodes that run when a function is called, not when the module is imported."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    return {inner for function in functions for inner in ast.walk(function)}


def imports(module: str, *, at_import: bool = False) -> set[str]:
    """Modules that a file imports; all of them, or only those that load with it."""
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
    return found


def inner_imports(module: str, **options) -> set[str]:
    """Modules of residua itself; the package alone stands for its version and lazy names."""
    return {name for name in imports(module, **options) if name.startswith("residua.")}


def test_every_file_has_a_layer():
    unknown = {name for name in INNER if layer(name) not in BELOW}
    assert not unknown, f"{unknown}: say in LAYER to which layer they belong"


@pytest.mark.parametrize("module", INNER)
def test_imports_point_down(module):
    allowed = BELOW[layer(module)] | {layer(module)}
    lazy = {"residua.io.model_file", "residua.views.notebook"} if layer(module) == "estimator" else set()
    wrong = {name for name in inner_imports(module) - lazy if layer(name) not in allowed}
    assert not wrong, f"{module} ({layer(module)}) may not import {wrong}"


def test_named_modules_exist():
    """An import of a file that is not there would pass unseen where it is lazy."""
    missing = {(m, name) for m in INNER for name in inner_imports(m) if name not in FILES}
    assert not missing


def test_layers_themselves_have_no_circle():
    remaining = dict(BELOW)
    while remaining:
        lowest = {name for name, below in remaining.items() if not below & remaining.keys()}
        assert lowest, f"circle among {set(remaining)}"
        remaining = {name: below for name, below in remaining.items() if name not in lowest}


@pytest.mark.parametrize("top", ["cli", "views", "reproduction"])
def test_nothing_below_imports_the_top(top):
    order = ["reproduction", "views", "cli"]
    above = set(order[order.index(top) :])
    users = {m for m in INNER if any(layer(name) == top for name in inner_imports(m, at_import=True))}
    assert {layer(m) for m in users} <= above


@pytest.mark.parametrize("module", FILES)
def test_torch_stays_where_it_belongs(module):
    roots = {name.split(".")[0] for name in imports(module)}
    if module not in TORCH:
        assert not roots & {"torch", "torch_geometric"}


@pytest.mark.parametrize("module", [m for m in FILES if layer(m) in ("linalg", "field")])
def test_the_mathematics_needs_numpy_scipy_and_numba_alone(module):
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
