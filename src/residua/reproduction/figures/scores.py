"""Scores over seeds, in numbers and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from residua.reproduction.runs import Record
from residua.reproduction.summary import spread


def scores_of(records: list[Record], method: str, **task: Any) -> np.ndarray:
    """Scores of a method over the seeds, from the records whose task has these fields; (seeds, ...)."""
    found = [r for r in records if method in r.results and all(getattr(r.task, k) == v for k, v in task.items())]
    return np.array([record.results[method]["score"] for record in found])


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it is one."""
    return f"{number} {noun}{'s' * (number != 1)}"


def mean_and_spread(scores: np.ndarray) -> str:
    """A mean, and the standard deviation over seeds where there are several."""
    return f"{scores.mean():.3f} ± {spread(scores):.3f}" if len(scores) > 1 else f"{scores.mean():.3f}"
