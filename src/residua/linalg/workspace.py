"""Workspaces: factors, draws and answers that a value computes when asked, and that pickling leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # which sees no difference
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A property computed once and kept, as that of functools but without a lock.

        Python 3.11 has one lock for all instances, on which threads that hold a part of the rows each, and have to
        compute together, would wait for one another for ever.
        """

        def __init__(self, compute):
            self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = vars(instance)[self.name] = self.compute(instance)
            return value


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
