"""The parts of a soak: each a function(budget, random_state) that counts what it tried, and raises where a
promise is broken.

A further part is one line here: its name, where its function is (a module of ``tests`` and a function in it), and its
share of the time.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

Counts = dict[str, float]
Run = Callable[[float, int], Counts]


class Part(NamedTuple):
    """Where a part is, and its share of the time."""

    where: str
    share: float = 1.0

    def find(self) -> Run:
        module, _, function = self.where.partition(":")
        return getattr(import_module(module), function)


PARTS: dict[str, Part] = {
    "model files": Part("soak.model_files:run", 3),
    "tables": Part("soak.table_files:run", 3),
    "tables matched by id": Part("soak.tables_by_id:run", 1),
    "maps": Part("soak.shape_files:run", 1),
    "data sets": Part("soak.data_files:run", 2),
    "checkpoints": Part("soak.checkpoint_files:run", 1),
    "bombs": Part("soak.bombs:run", 0.2),
    "kill -9": Part("soak.faults:kills", 8),
    "Ctrl-C": Part("soak.faults:interrupts", 2),
    "shared folders": Part("soak.faults:shared_folders", 1),
    "full disks": Part("soak.full_disks:run", 1),
    "commands without room or rights": Part("soak.full_disks:commands", 0.5),
    "numerical edges": Part("nasty:explore", 2),
    "calibration": Part("true_draws:soak", 2),
    "null data": Part("null_data:soak", 2),
}
