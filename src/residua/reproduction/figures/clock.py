"""Times that other work on the machine disturbs least."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def best_seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """Time a call several times and return the shortest: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)
