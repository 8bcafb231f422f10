"""Tables in files of many tables: sheets of an Excel workbook, tables of an SQLite or a DuckDB file.

    town.xlsx:Houses    town.sqlite:houses    town.duckdb:houses

The name of the table stands behind a colon; where there is only one it may be left out. An Excel file without a name
gives its first sheet.
"""

from __future__ import annotations

import io
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from residua.extras import needs
from residua.validation import printable

EXCEL = (".xlsx", ".xlsm")
SQLITE, DUCKDB = b"SQLite format 3\x00", b"DUCK"


def split_name(path: Path) -> tuple[Path, str | None]:
    """Return the file and the name of the table behind its colon, if there is one."""
    head, colon, name = str(path).rpartition(":")
    return (Path(head), name) if colon and name and not path.exists() and Path(head).is_file() else (path, None)


def read_tables_file(path: Path, data: bytes, name: str | None) -> pd.DataFrame | None:
    """Return a table of a workbook or a database; None where the file is neither."""
    if data.startswith(SQLITE):
        return _read_sqlite(path, name)
    if data[8:12] == DUCKDB:
        return _read_duckdb(path, name)
    if data.startswith(b"PK\x03\x04") and path.suffix.lower() in EXCEL:
        return _read_excel(path, data, name)
    return None


def _chosen(path: Path, there: list[str], name: str | None, first: bool = False) -> str:
    """Return the name of the table to read, or refuse to guess."""
    if name is None and (len(there) == 1 or (first and there)):
        return there[0]
    listed = ", ".join(map(printable, there[:12])) or "none"
    if name is None:
        raise ValueError(
            f"{path} has several tables or none ({listed}); name one: {path}:{there[0] if there else 'name'}."
        )
    if name not in there:
        raise ValueError(f"{path} has no table {printable(name)!r}; its tables are {listed}.")
    return name


def _read_sqlite(path: Path, name: str | None) -> pd.DataFrame:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            found = base.execute("select name from sqlite_master where type in ('table', 'view') order by name")
            table = _chosen(path, [row[0] for row in found if not row[0].startswith("sqlite_")], name)
            rows = base.execute(f"select * from {_quoted(table)}")
            names = [column[0] for column in rows.description]
            return _frame(rows.fetchall(), names)
    except sqlite3.Error as error:
        raise ValueError(f"{path} cannot be read as an SQLite file ({printable(str(error))}); write it anew.") from None


def _read_duckdb(path: Path, name: str | None) -> pd.DataFrame:
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(needs(f"reading {path}", "duckdb", "files", error, "write the table as Parquet")) from None
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as base:
            found = base.execute("select table_name from information_schema.tables order by table_name").fetchall()
            rows = base.execute(f"select * from {_quoted(_chosen(path, [row[0] for row in found], name))}")
            return rows.df()
    except duckdb.Error as error:
        said = printable(" ".join(str(error).split())[:160])
        raise ValueError(f"{path} cannot be read as a DuckDB file ({said}); write it anew.") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_excel(path: Path, data: bytes, name: str | None) -> pd.DataFrame:
    """Return a sheet, whose first row has the names of the columns; formulas by the values that were stored."""
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(needs(f"reading {path}", "openpyxl", "files", error, "save the sheet as CSV UTF-8")) from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if 4 * size > psutil.virtual_memory().total:
            raise ValueError(f"{path} unfolds to {size / 1e9:.0f} GB; save the sheet as CSV UTF-8 and give that.")
        with closing(openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)) as book:
            sheet = book[_chosen(path, list(book.sheetnames), name, first=True)]
            rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as a workbook ({printable(str(error))[:160]}); save it again, or as CSV UTF-8."
        ) from None
    if not rows:
        raise ValueError(f"{path} has an empty sheet; give a line with the names of the columns, and a line a row.")
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    kept = [k for k, cell in enumerate(names) if cell or any(row[k] is not None for row in rows[1:])]
    return _frame([[row[k] for k in kept] for row in rows[1:]], [names[k] for k in kept])


def _frame(rows: list[Any], names: list[str]) -> pd.DataFrame:
    """Return rows as columns: of numbers, of dates, or of text, where a column has several kinds."""
    frame = pd.DataFrame({name: pd.Series([row[k] for row in rows], dtype=object) for k, name in enumerate(names)})
    for name in frame:
        cells = frame[name]
        known = cells.dropna()
        if any(isinstance(cell, str) for cell in known) and not all(isinstance(cell, str) for cell in known):
            frame[name] = cells.map(_text, na_action="ignore")
        else:
            frame[name] = cells.infer_objects()
    return frame


def _text(cell: Any) -> str:
    """Return a cell as a person would type it, whole numbers without a decimal point."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
