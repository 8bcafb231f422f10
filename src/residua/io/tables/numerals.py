"""Numbers as people write them: a mark between thousands, a decimal comma, a unit or a currency beside the digits.

358,001 (--thousands ,)    12,5 (--decimal ,)    652 m², $1,200, 45 % (--units)

A column whose cells all read as plain numbers is taken as it is, unless the mark between thousands is a point.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

import numpy as np
import pandas as pd

SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"
THOUSANDS, DECIMALS = (",", ".", " ", "'"), (".", ",")
NEARLY_ALL = 0.9  # of the cells read as numbers, where a column looks like numbers
LOOKED_AT = 10_000  # cells, to tell what a column looks like
BESIDE = rf"(?:[$€£¥]|[A-Z]{{3}}(?=[{SPACES}\d]))?"  # a currency before the digits
UNIT = r"(?:[%‰°$€£¥]|[^\W\d_][\w²³/°%.]{0,7})?"
NAMES = {",": "a comma", ".": "a point", " ": "a space", "'": "an apostrophe"}


@dataclass(frozen=True)
class Notation:
    """How cells are written.

    Parameters
    ----------
    missing : tuple of str
        Words that stand for an empty cell.
    thousands : str
        The mark between thousands; empty for none.
    decimal : str
        The decimal mark.
    units : bool
        Whether a unit or a currency may stand beside a number, the same in a whole column.
    """

    missing: tuple[str, ...] = ()
    thousands: str = ""
    decimal: str = "."
    units: bool = False

    def __post_init__(self) -> None:
        for option, value, allowed in (
            ("thousands", self.thousands, ("", *THOUSANDS)),
            ("decimal", self.decimal, DECIMALS),
        ):
            if value not in allowed:
                marks = " ".join(shlex.quote(mark) for mark in allowed if mark)
                raise ValueError(f"--{option} {shlex.quote(value)} is no such mark; use one of {marks}")
        if self.thousands == self.decimal:
            other = "," if self.decimal == "." else "."
            raise ValueError(
                f"--thousands and --decimal are both {NAMES[self.decimal]}; give the other one too, such as "
                f"--decimal {other}"
            )

    def parse(self, cells: pd.Series) -> np.ndarray:
        """Return floats (n,); NaN where a cell is empty or no number in this notation."""
        plain = pd.to_numeric(cells, errors="coerce").to_numpy(float, na_value=np.nan)
        if not _is_marked(self) or pd.api.types.is_numeric_dtype(cells.dtype):
            return plain
        if self.thousands != "." and not (np.isnan(plain) & cells.notna().to_numpy()).any():
            return plain
        text = cells.astype(object).where(cells.notna(), "").astype(str)
        found = text.str.extract(self._pattern())
        if self.units:
            units = found[["before", "after"]].fillna("").agg("".join, axis=1)
            known = units[units != ""]
            if len(known):  # cells of another unit are no numbers in this one
                found = found.where((units == "") | (units == known.mode()[0]))
        digits = (
            found["number"].str.replace(f"[{re.escape(self._marks())}]", "", regex=True)
            if self.thousands
            else (found["number"])
        )
        return pd.to_numeric(digits.str.replace(self.decimal, ".", regex=False), errors="coerce").to_numpy(float)

    def _marks(self) -> str:
        return SPACES if self.thousands == " " else self.thousands

    def _pattern(self) -> str:
        grouped = rf"\d{{1,3}}(?:[{re.escape(self._marks())}]\d{{3}})+|" if self.thousands else ""
        number = rf"(?P<number>[+-]?(?:{grouped}\d*)(?:{re.escape(self.decimal)}\d*)?(?:[eE][+-]?\d+)?)"
        space = f"[{SPACES}]?"
        before, after = (BESIDE, UNIT) if self.units else ("", "")
        return rf"^(?P<before>{before}){space}{number}{space}(?P<after>{after})$"

    def option(self) -> str:
        """Return the options that ask for this notation of numbers."""
        words = [f"--thousands {shlex.quote(self.thousands)}"] if self.thousands else []
        words += [f"--decimal {shlex.quote(self.decimal)}"] if self.decimal != "." else []
        return " ".join(words + (["--units"] if self.units else []))


def _is_marked(notation: Notation) -> bool:
    return bool(notation.thousands or notation.decimal != "." or notation.units)


def looks_like(cells: pd.Series, notation: Notation) -> list[Notation]:
    """Return the notations that read nearly all cells of a column of text which ``notation`` does not read."""
    known = cells.dropna()[:LOOKED_AT]
    if not len(known) or np.isfinite(notation.parse(known)).all():
        return []
    here = np.isfinite(notation.parse(known)).sum()
    marks = [(",", "."), ("", ","), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("", ".")]
    found: list[Notation] = []
    for units in (False, True):
        for thousands, decimal in marks:
            other = Notation(notation.missing, thousands, decimal, units)
            reads = np.isfinite(other.parse(known)).sum() if _is_marked(other) else 0
            if reads > here and reads >= NEARLY_ALL * len(known):
                found.append(other)
        if found:
            break
    least = min((one.option().count("--") for one in found), default=0)
    return [one for one in found if one.option().count("--") == least]


def advice(cells: pd.Series, notation: Notation) -> str:
    """Return what a column looks like and which option reads it; empty where it does not look like numbers."""
    found = looks_like(cells, notation)
    if not found:
        return ""
    known = cells.dropna()
    marked = known[~np.isfinite(notation.parse(known))]
    ways = []
    for one in found:
        value = one.parse(known)[~np.isfinite(notation.parse(known))]
        readable = np.flatnonzero(np.isfinite(value))[:1]
        ways += [f"{one.option()} reads {marked.iloc[k]!r} as {value[k]:.10g}" for k in readable]
    return ", ".join(ways)
