"""How a node table became features, kept with the model so that a new table becomes the same features.

Most bases need numbers, as ``residua.encoding`` makes them; trees take the table as it is, empty cells and text too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from residua.encoding import MOST_VALUES, NONE, Encoding
from residua.io.tables.columns import EMPTY, NUMBERS, OTHER, TEXT, Table, as_option, shown
from residua.io.tables.coordinates import find_positions
from residua.io.tables.dates import need_dates, part_of, parts_of, read_dates
from residua.io.tables.numerals import Notation

if TYPE_CHECKING:
    from residua.io.tables.graphs import Columns

MOST_ASKED = 1000
MOST_SHOWN = 5


@dataclass(frozen=True)
class Recipe:
    """Names of the columns of both tables, and what is needed to encode the features.

    Parameters
    ----------
    id, target : str
        Columns of the node table.
    source, to : str
        Columns of the edge table with the ends of an edge.
    weight, edge_type, length : str, optional
        Columns of the edge table.
    missing : tuple of str
        Words that stand for an empty cell.
    thousands, decimal, units : str, str, bool
        How numbers are written, as in ``Notation``.
    duplicates : str
        What rows become that list one edge; files of before add those in one direction up.
    medians : dict of str to float
        The median of each column of numbers, by its name.
    dates : dict of str to tuple of str
        Of the columns of numbers those that are made of dates: by the name of the feature, the column and its part,
        "days", "sine" or "cosine", as in ``residua.io.tables.dates``.
    positions : tuple of str
        Columns with the position of a node, eastward and northward; none where no columns are recognised.
    values : dict of str to tuple of str
        The values of each column of text, by its name, in the order of the features.
    as_is : bool
        Whether the features are the columns themselves, for a base that takes empty cells and text.
    """

    id: str
    target: str
    source: str
    to: str
    weight: str | None = None
    edge_type: str | None = None
    missing: tuple[str, ...] = ()
    thousands: str = ""
    decimal: str = "."
    units: bool = False
    duplicates: str = "error"
    length: str | None = None
    medians: dict[str, float] = field(default_factory=dict)
    dates: dict[str, tuple[str, str]] = field(default_factory=dict)
    positions: tuple[str, ...] = ()
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    as_is: bool = False

    @property
    def notation(self) -> Notation:
        """How cells are written."""
        return Notation(self.missing, self.thousands, self.decimal, self.units)

    @property
    def encoding(self) -> Encoding:
        """How cells become numbers."""
        return Encoding(self.medians, self.values)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return self.encoding.columns if self.as_is else self.encoding.feature_names

    def encode(self, nodes: Table) -> tuple[pd.DataFrame | None, dict[str, int], list[str]]:
        """Features of every row (None if there are none), the empty cells of each column, and notes."""
        named = {name: self.dates[name][0] if name in self.dates else name for name in (*self.medians, *self.values)}
        if not named:
            return None, {}, []
        cells: dict[str, Any] = {}
        for name, column in named.items():
            nodes.need(column, "a feature of the model")
            if name in self.dates:
                cells[name] = part_of(need_dates(nodes, column), self.dates[name][1])
            else:
                cells[name] = nodes.numbers(name, other_reading(name)) if name in self.medians else nodes.text(name)
        table = pd.DataFrame(cells)
        filled = table.isna().sum()
        said = {c: table[c].dropna() if self.as_is else table[c].fillna(NONE) for c in self.values}
        unknown = {column: sorted(set(said[column]) - set(values)) for column, values in self.values.items()}
        notes = [
            f"{nodes.path} column {column!r} has values that the model has not seen: "
            f"{shown(values, MOST_SHOWN)}; they count as {'missing' if self.as_is else 'none of its values'}."
            for column, values in unknown.items()
            if values
        ]
        X = table if self.as_is else self.encoding.transform(table)
        return X, {str(column): int(count) for column, count in filled.items() if count}, notes


def other_reading(column: str) -> str:
    """Say what else may be done about a column that is not quite numbers."""
    name = as_option(column)
    return f", or read the column as text: --categorical {name}, or leave it out: --exclude {name}"


def learn_features(recipe: Recipe, nodes: Table, columns: Columns) -> tuple[Recipe, dict[str, str]]:
    """Return the recipe of the features, those asked for or else all that can be, and why other columns are none."""
    features, taken = columns.features, {recipe.id, recipe.target}
    for option in ("features", "categorical", "exclude"):
        for name in getattr(columns, option) or ():
            nodes.need(name, f"--{option}")
    wrong = [name for name in features or () if name in taken]
    if wrong:
        raise ValueError(f"--features names {wrong[0]!r}, which is the id or the target; leave it out.")
    chosen: dict[str, list[str]] = {NUMBERS: [], TEXT: []}
    left_out = {}
    dates: dict[str, tuple[str, str]] = {}
    positions = find_positions(nodes, taken)
    for column in (name for name in nodes.columns if name not in {*taken, *columns.exclude}):
        if features is not None and column not in features:
            left_out[column] = "not among --features"
            continue
        if column in positions and features is None and columns.coordinates != "features":
            left_out[column] = "the position of a node, for the map; --coordinates features uses it too"
            continue
        if column not in columns.categorical and (found := read_dates(nodes.cells(column))) is not None:
            if found.nunique() == 1 and features is None:
                left_out[column] = "the same date in every cell"
            else:
                dates |= {name: (column, part) for name, part in parts_of(column, found).items()}
            continue
        as_text = column in columns.categorical
        if not as_text and nodes.kind(column) == TEXT and (read := nodes.advice(column)):
            raise ValueError(
                f"{nodes.path} column {column!r} is text that looks like numbers: {read}{other_reading(column)}."
            )
        kind, reason = _kind_of_feature(nodes, column, features is not None, as_text)
        if not reason:
            chosen[kind].append(column)
        elif features is not None or as_text:
            raise ValueError(f"{nodes.path} column {column!r} cannot be a feature: {reason}; leave it out.")
        else:
            left_out[column] = reason
    medians = {c: float(np.nanmedian(nodes.numbers(c, other_reading(c)))) for c in chosen[NUMBERS]}
    medians |= {
        name: float(np.nanmedian(part_of(need_dates(nodes, column), part))) for name, (column, part) in dates.items()
    }
    values = {c: tuple(sorted(set(nodes.text(c).fillna(NONE)))) for c in chosen[TEXT]}
    learned = replace(recipe, medians=medians, values=values, dates=dates, positions=positions)
    if not recipe.as_is:
        _check_names(nodes, learned)
    return learned, left_out


def _check_names(nodes: Table, recipe: Recipe) -> None:
    """Refuse text whose value makes a feature of the name that another feature has."""
    names = pd.Index(recipe.feature_names)
    for name in names[names.duplicated()]:
        column, value = next((c, v) for c, values in recipe.values.items() for v in values if f"{c}={v}" == name)
        raise ValueError(
            f"{nodes.path} column {column!r} has the value {value!r}, which makes a feature {name!r}, and there is "
            f"another of that name; rename a column, or leave one out: --exclude."
        )


def _kind_of_feature(nodes: Table, column: str, asked: bool, as_text: bool) -> tuple[str, str]:
    """Return whether a column is numbers or text as a feature, and the reason why it cannot be one, if any."""
    kind = nodes.kind(column)
    if not asked and (not column.strip() or column.startswith("__index_level_")):
        return kind, "it has no name"
    if kind == EMPTY:
        return kind, "every cell is empty"
    if kind != TEXT and not as_text:
        return kind, f"{nodes.cells(column).dtype}, neither numbers nor text" if kind == OTHER else ""
    count = nodes.text(column).nunique()
    most = MOST_ASKED if asked or as_text else min(MOST_VALUES, len(nodes.frame) // 2)  # few enough to occur again
    if count > most:
        return TEXT, f"text with {count:,} different values, more than {most:,}"
    return TEXT, "the same text in every cell" if count == 1 and not asked else ""
