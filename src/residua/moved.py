"""Modules under the names that they had in version 0.1: imports still work, and say the new name."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

MOVED = {
    "residua.datasets.catalogue": "residua.reproduction.datasets.catalogue",
    "residua.gaussian": "residua.field",
    "residua.graph_report": "residua.graph.report",
    "residua.numerics": "residua.linalg",
    "residua.report": "residua.views",
    "residua.report.html": "residua.views.page.html",
    "residua.report.plots": "residua.views.figures",
    "residua.report.positions": "residua.views.positions",
}


class MovedModules(MetaPathFinder, Loader):
    """Finds a module under its old name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module is now, with a warning; None for a name that it never had."""
        if name not in MOVED:
            return None
        warnings.warn(f"{name} is now {MOVED[name]}; import it from there.", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a module of the old name with what the new one holds."""
        module = types.ModuleType(spec.name)
        vars(module).update({k: v for k, v in vars(import_module(MOVED[spec.name])).items() if k[:2] != "__"})
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module is whole."""


if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
    sys.meta_path.insert(0, MovedModules())  # before folders of that name that an older checkout left behind
