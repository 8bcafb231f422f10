"""Seconds on the wall or, where other programs share the machine, seconds of the processor.

Processor seconds count every thread, waiting ones too, so they are for one thread. ``--clock`` chooses.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
KIND = os.environ.get("RESIDUA_PEERS_CLOCK", "wall")
now = CLOCKS[KIND]


def best_seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several."""
    times = []
    for _ in range(repeats):
        gc.collect()
        begin = now()
        task()
        times.append(now() - begin)
    return min(times)
