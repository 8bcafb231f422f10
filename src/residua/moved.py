"""Modules under the names that they had in version 0.1: imports still work, and say the new name."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from residua.caller import warn

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

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return where the module is now, with a warning; None for a name that it never had."""
        if name not in MOVED:
            return None
        warn(f"{name} is now {MOVED[name]}; import it from there.", DeprecationWarning)
        return ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Give the module of the old name what the new one holds."""
        found = vars(import_module(MOVED[module.__name__]))
        vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


sys.meta_path.insert(0, MovedModules())  # before folders of that name that an older checkout left behind
