"""Warnings that name the line which called this library, however deep inside they come about."""

from __future__ import annotations

import os
import warnings
from inspect import currentframe

LIBRARY = os.path.join(os.path.dirname(__file__), "")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside of this library; from Python 3.12 on, ``skip_file_prefixes`` does the same."""
    level, frame = 1, currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
