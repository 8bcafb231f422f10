"""Quotes of a CSV file: whether each opens or closes a cell, and whether one that was left open swallows lines.

    3,"4          a quote that is not closed takes what follows for its cell,
    5,6           up to the next quote, wherever that stands:
    7,"8          a record in place of three

A quoted cell may hold line breaks, so a file with more lines than records is not wrong for that. It is where a quote
opens or closes in the middle of a cell, or where the lines inside a cell have the separators of rows of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

QUOTE, BREAKS = ord('"'), b"\n\r"
BREAK = re.compile(r"\r\n|\r|\n")


class Quotes(NamedTuple):
    """What the quotes of a file say, looked at all at once."""

    sound: bool  # each opens a cell, closes one, or is doubled inside one
    cells: int  # that are quoted

    @classmethod
    def read(cls, data: bytes, separator: str) -> Quotes:
        """Look at the quotes of a file, of which every other one opens."""
        letters = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(letters == QUOTE)
        opening, closing = places[0::2], places[1::2]
        if len(opening) != len(closing):
            return cls(False, len(opening))
        doubled = np.concatenate([[False], opening[1:] == closing[:-1] + 1])  # inside a cell
        first = 3 if data.startswith(b"\xef\xbb\xbf") else 0  # past a byte order mark
        begins = (opening == first) | _is_edge(letters[opening - 1], separator) | doubled
        after = np.minimum(closing + 1, len(letters) - 1)
        ends = (closing == len(letters) - 1) | _is_edge(letters[after], separator) | np.append(doubled[1:], False)
        return cls(bool(begins.all() and ends.all()), int((~doubled).sum()))


def _is_edge(letters: np.ndarray, separator: str) -> np.ndarray:
    """Return where a letter stands between cells."""
    return (letters == ord(separator)) | (letters == BREAKS[0]) | (letters == BREAKS[1])


def count_lines(data: bytes) -> int:
    """Count the lines that are not empty."""
    letters = np.frombuffer(data, np.uint8)
    ends = _is_edge(letters, "\n")
    return int(np.count_nonzero(ends[:-1] & ~ends[1:])) + int(len(ends) > 0 and not ends[0])


def swallowed(table: pa.Table, separator: str) -> Iterator[tuple[int, str, int]]:
    """Yield the row and the column of each cell whose lines read as rows of the table, and how many line breaks it has.

    A cell in column i of d that was left open ends in column i of another row, or the cells of the record were not d.
    """
    d = table.num_columns
    for i, name in enumerate(table.column_names if d > 1 else []):
        column = table.column(i)
        for row in _rows_with_breaks(column):
            lines = BREAK.split(column[row].as_py())
            inner = [line.count(separator) for line in lines[1:-1] if line]
            as_rows = all(count == d - 1 for count in inner) and lines[0].count(separator) == d - 1 - i
            last = lines[-1].count(separator) == i and (inner or lines[-1][-1:] in ("", separator))
            if as_rows and last:
                yield row, name, len(lines) - 1


def _rows_with_breaks(column: Any) -> list[int]:
    found = pc.or_(pc.match_substring(column, "\n"), pc.match_substring(column, "\r"))
    return pc.indices_nonzero(found.fill_null(False)).to_pylist()
