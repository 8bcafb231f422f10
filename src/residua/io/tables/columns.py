"""Columns of a table as ids, numbers or text; a cell that does not fit is named with its file, line and column."""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from residua.atomic import PathLike
from residua.graph.ids import rounded, show
from residua.io.tables.files import line_of, read_file
from residua.io.tables.numerals import Notation, advice
from residua.validation import one_line, printable

NUMBERS, TEXT, EMPTY, OTHER = "numbers", "text", "empty", "other"  # what is in a column
LONGEST_WORD = 40  # that stands for an empty cell
CODE = r"[+-]?0\d+"  # digits after a zero are a code, not a number


@dataclass(frozen=True)
class Table:
    """A file and its columns, and how its cells are written; words for an empty cell are none among ids."""

    path: Path
    frame: pd.DataFrame
    separator: str | None  # None: Parquet
    notation: Notation = field(default_factory=Notation)

    @classmethod
    def read(cls, path: PathLike, notation: Notation | None = None) -> Table:
        return cls(Path(path), *read_file(Path(path)), notation or Notation())

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def place(self, row: int) -> str:
        """Return where a row is, as an editor or a viewer shows it."""
        return f"row {row + 1}" if self.separator is None else f"line {line_of(self.path, self.separator, row)}"

    def refuse(self, wrong: Any, column: str, problem: Callable[[int], str]) -> None:
        """Refuse the column for its first cell that is ``wrong``, if any is: ``problem`` says what is at that row."""
        if np.any(wrong):
            row = int(np.argmax(wrong))
            raise ValueError(f"{self.path} {self.place(row)}, column {column!r}: {problem(row)}")

    def need(self, column: str, option: str) -> str:
        """Return ``column``, or refuse it where the file has none of that name."""
        if column in self.frame:
            return column
        near = difflib.get_close_matches(column, self.columns, 1)
        guess = f" did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{self.path} has no column {column!r} ({option});{guess} it has {shown(self.columns)}.")

    def cells(self, column: str) -> pd.Series:
        """The column with missing cells as such."""
        cells = _values(self.frame[column])
        if cells.dtype == object and pd.api.types.infer_dtype(cells) == "decimal":
            cells = cells.astype(float)
        missing = self.notation.missing
        return cells.mask(cells.isin(missing)) if missing and _is_text(cells) else cells

    def ids(self, column: str) -> pd.Series:
        """Return the column as ids: int64 where the file says that they are whole, else text as it is written."""
        cells = _values(self.frame[column])
        self.refuse(cells.isna(), column, lambda row: "the id is empty; fill it in, or drop the line.")
        what = "is a float that stands for more than one whole number; write ids as integers or as text."
        self.refuse(rounded(cells), column, lambda row: f"the id {cells.iloc[row]} {what}")
        if pd.api.types.is_integer_dtype(cells.dtype) and cells.max() <= np.iinfo(np.int64).max:
            return cells.astype(np.int64)
        return as_text(cells)

    def numbers(self, column: str, remedy: str = "", settled: bool = False) -> np.ndarray:
        """Return floats (n,), NaN where a cell is empty; ``settled``: no option changes column or meaning of words."""
        cells = self.cells(column)
        if not (pd.api.types.is_numeric_dtype(cells.dtype) or _is_text(cells) or cells.isna().all()):
            raise ValueError(f"{self.path} column {column!r} holds {cells.dtype}, not numbers; give numbers{remedy}.")
        values = self.notation.parse(cells)
        wrong = ~np.isfinite(values) & ~cells.isna().to_numpy()
        if wrong.any() and not np.isfinite(values).any() and not settled:
            found = f"text such as {short(cells[wrong].iloc[0])}, not numbers"
            read = self.advice(column)
            other = f"it looks like numbers: {read}; or name another column." if read else "name another column."
            raise ValueError(f"{self.path} column {column!r} holds {found}; {other}")

        def problem(row: int) -> str:
            word, empty = str(cells.iloc[row]), f"leave the cell empty{' (null)' if self.separator is None else ''}"
            ways = f"or {empty}"
            if not settled:
                can_be_named = word == word.strip() and word.isprintable() and 0 < len(word) <= LONGEST_WORD
                named = f", or say that the word means empty: --missing {as_option(word)}" if can_be_named else ""
                read = self.advice(column)
                ways = f"or as it is: {read}{remedy}" if read else f"{empty}{named}{remedy}"
            return f"{short(cells.iloc[row])} is not a number{and_more(wrong)}; write a number, {ways}."

        self.refuse(wrong, column, problem)
        return values

    def text(self, column: str) -> pd.Series:
        """Text as it is written, missing where a cell is empty."""
        return as_text(self.cells(column))

    def advice(self, column: str) -> str:
        """Return which options read a column of text that looks like numbers; empty where it does not."""
        cells = self.cells(column)
        codes = not _is_text(cells) or cells.dropna().str.fullmatch(CODE).any()
        return "" if codes else advice(cells, self.notation)

    def kind(self, column: str) -> str:
        """What is in a column: numbers, text, nothing, or something else such as dates or lists.

        Text counts as numbers where at least half of the cells read as such, and none as a code like 0123.
        """
        cells = self.cells(column)
        known = cells.dropna()
        if not len(known):
            return EMPTY
        if not _is_text(cells):
            real = pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_complex_dtype(cells.dtype)
            return NUMBERS if real else OTHER
        numeric = (
            2 * np.isfinite(self.notation.parse(known)).sum() >= len(known) and not known.str.fullmatch(CODE).any()
        )
        return NUMBERS if numeric else TEXT


def as_text(cells: pd.Series) -> pd.Series:
    """Cells as text, missing ones as None; 7, 7.0 and a decimal 7.00 are all "7"."""
    if not _is_text(cells):
        cells = cells.astype(object).map(_written, na_action="ignore")
    return cells.astype(object).where(cells.notna(), None)


def _values(cells: pd.Series) -> pd.Series:
    """Return a column of categories as what they stand for."""
    return cells.astype(cells.cat.categories.dtype) if isinstance(cells.dtype, pd.CategoricalDtype) else cells


def _written(value: Any) -> str:
    """Return a value as text, whole numbers without a decimal point."""
    whole = isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value)
    return str(int(value) if whole else value)


def _is_text(cells: pd.Series) -> bool:
    if pd.api.types.is_object_dtype(cells.dtype):
        return all(isinstance(value, str) for value in cells.dropna())
    return pd.api.types.is_string_dtype(cells.dtype)


def as_option(word: str) -> str:
    """Return a word as it is typed after an option: in quotes where a list of names or a shell would cut it."""
    listed = '"' + word.replace('"', '""') + '"' if set(word) & set(',"') else word
    return shlex.quote(listed)


def short(value: Any) -> str:
    return one_line(show(value), 40)


def and_more(wrong: np.ndarray) -> str:
    """Say how many are wrong beside the first."""
    return f" (and {wrong.sum() - 1:,} more)" if wrong.sum() > 1 else ""


def shown(names: list[str], most: int = 12) -> str:
    """Join names for a message, not too many of them."""
    return ", ".join(map(printable, names[:most])) + (f", ... ({len(names)} in all)" if len(names) > most else "")
