"""Workspaces: factors, draws and answers that a value computes when asked, and that pickling leaves behind."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class Workspace:
    """Base of values whose cached properties are a workspace: pickles and copies are made without it.

    What is in a workspace follows from the rest of the value, so a copy computes the same bits anew.
    """

    def __getstate__(self) -> dict[str, Any]:
        kept = vars(self).items()
        return {name: value for name, value in kept if not isinstance(getattr(type(self), name, None), cached_property)}

    def computed(self, name: str) -> bool:
        """Return whether the cached property of this name has been computed."""
        return name in vars(self)
