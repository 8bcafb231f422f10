"""No function takes more than eight arguments without a value that groups them."""

import ast
from pathlib import Path

import pytest

import residua

ROOT = Path(residua.__file__).parent
MOST = 8
# What may take more, and why.
EXCEPTIONS = {
    "cli/compare.py compare": "typer makes an option of each argument",
    "cli/edges.py edges": "typer makes an option of each argument",
    "cli/fit.py fit": "typer makes an option of each argument",
    "cli/predict.py predict": "typer makes an option of each argument",
    "cli/reproduce.py reproduce": "typer makes an option of each argument",
    "estimator.py GraphRegressor.__init__": "public; all have a default and most go by name",
    "comparison.py compare": "public; all but three go by name and have a default",
    "interval_predictor.py IntervalPredictor.predict_interval": "public; all have a default and most go by name",
    "interval_predictor.py IntervalPredictor.predict_frame": "public; all have a default and most go by name",
    "backends/dask/pipeline.py fit": "public; all go by name, and columns and settings have a default",
    "backends/dask/graph.py DistributedGraph.from_parquet": "public; columns go by name and have a default",
    "views/figures.py strip": "public; all but two go by name and have a default",
    "nn.py CorrelatedResidual.__init__": "public; all but two go by name and have a default",
    "field/conditional.py Conditional.__init__": "public; all but three have a default, and most go by name",
}
COMPILED = {"compiled", "compiled_twice", "intrinsic", "njit"}  # numba takes arrays, and no value that groups them


def functions(tree: ast.AST, inside: str = ""):
    """Every function and method, with its name in the file."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        name = f"{inside}{node.name}" if named else inside
        if named and not isinstance(node, ast.ClassDef):
            yield name, node
        yield from functions(node, f"{name}." if named else inside)


def is_compiled(function: ast.FunctionDef) -> bool:
    return any(COMPILED & {n.id for n in ast.walk(d) if isinstance(n, ast.Name)} for d in function.decorator_list)


def arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def crowded(path: Path) -> set[str]:
    """Functions of a file that take too many arguments."""
    found = functions(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name, function in found if len(arguments(function)) > MOST and not is_compiled(function)}


@pytest.mark.parametrize("file", sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")))
def test_no_function_takes_more_than_eight_arguments(file):
    allowed = {name.split(" ")[1] for name in EXCEPTIONS if name.split(" ")[0] == file}
    assert crowded(ROOT / file) <= allowed


def test_no_exception_outlives_its_function():
    assert all(name.split(" ")[1] in crowded(ROOT / name.split(" ")[0]) for name in EXCEPTIONS)
