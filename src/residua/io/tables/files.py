"""Files of columns, CSV, Parquet or maps, read whole or refused with the line at fault.

A CSV file is read as text, so that an id such as 0123 stays as it is written; only an empty cell is a missing one.
Parquet columns keep their types.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd
import psutil
import pyarrow as pa

from residua.caller import warn
from residua.io.tables.databases import EXCEL, read_tables_file, split_name
from residua.io.tables.quotes import Quotes, count_lines, swallowed
from residua.maps import is_map, read_map
from residua.validation import printable

NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
SEPARATORS = "".join(NAMES)
BLOCK = 1 << 24  # bytes; pyarrow refuses a row that is longer


def read_file(path: Path) -> tuple[pd.DataFrame, str | None]:
    """Return the columns of a file, and its separator if it is CSV; an error names the file, the line, the remedy."""
    path, name = split_name(path)
    if path.is_file() and is_map(path):
        return _read_map(path), None
    data = _bytes(path)
    separator, frame = None, read_tables_file(path, data, name)
    if name is not None and frame is None:
        raise ValueError(f"{path} is no workbook and no database, of which {name!r} could be a table; leave it out.")
    if frame is None and data.startswith(b"PAR1"):
        frame = _read_parquet(path, data)
    elif frame is None and data.startswith((b"ARROW1", b"FEA1")):
        frame = _read_arrow(path, data)
    elif frame is None:
        frame, separator = _read_csv(path, data)
    if len(set(frame.columns)) < len(frame.columns):
        raise ValueError(f"{path} has two columns of one name: {list(frame.columns)}; give each a name of its own.")
    if not len(frame):
        raise ValueError(f"{path} has a header and no rows; give a line for each row.")
    for name in frame.columns:
        if "\0" in name:  # pandas does not find such a column again
            raise ValueError(f"{path} has a NUL character in the name of column {printable(name)!r}; give it another.")
    return frame, separator


def _read_map(path: Path) -> pd.DataFrame:
    """Return the columns of a map, without its geometry."""
    places = read_map(path)
    frame = pd.DataFrame(places[[name for name, kind in places.dtypes.items() if str(kind) != "geometry"]])
    if not len(frame) or not len(frame.columns):
        raise ValueError(f"{path} has {len(frame)} places with {len(frame.columns)} columns; give ids and numbers too.")
    return frame.reset_index(drop=True)


def _bytes(path: Path) -> bytes:
    """Return what is in a file, unless it is plainly no table."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a CSV or Parquet file.")
    if str(path) == "-":
        return _standard_input()
    try:
        data = path.read_bytes()
        data = data if path.suffix.lower() in (".parquet", ".pq") else unpacked(data, path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} not found; check the name, and the folder you are in.") from None
    except OSError as error:
        raise OSError(f"{path} cannot be read ({error.strerror}); check the file and its permissions.") from error
    if not data.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ValueError(f"{path} is empty; give a header line with the columns' names, then a line for each row.")
    if path.suffix.lower() in (".parquet", ".pq") and not data.startswith(b"PAR1"):
        raise ValueError(f"{path} is no Parquet file (it does not begin with PAR1); write it again, or name it .csv.")
    archive = data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"))
    if archive and path.suffix.lower() not in EXCEL:
        raise ValueError(
            f"{path} is an old spreadsheet or a zip archive; save it as .xlsx or CSV (UTF-8), and give that."
        )
    return data


_READ: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # what standard input had: it can be read once


def _standard_input() -> bytes:
    """Return what comes by standard input, which is asked for more than once where an error names a line."""
    stream = sys.stdin
    if stream not in _READ:
        if stream.isatty():
            raise ValueError(
                "- stands for standard input, which is this terminal; pipe a table into it, or name a file."
            )
        _READ[stream] = unpacked(stream.buffer.read(), Path("-"))
    if not _READ[stream].strip():
        raise ValueError("- is empty: nothing came by standard input; give a table with a header, or name a file.")
    return _READ[stream]


def unpacked(data: bytes, path: Path) -> bytes:
    """Return what gzip has compressed, up to the memory of the machine; other bytes as they are."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    most, parts, size = psutil.virtual_memory().total // 4, [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while part := file.read(BLOCK):
                parts.append(part)
                size += len(part)
                if size > most:
                    raise ValueError(f"{path} unfolds to more than {most / 1e9:.0f} GB; unpack it, or split it.")
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is damaged gzip ({error}); copy it again if it was cut short.") from None
    return b"".join(parts)


def _read_arrow(path: Path, data: bytes) -> pd.DataFrame:
    """Return the columns of an Arrow or a Feather file."""
    from pyarrow import feather

    try:
        table = feather.read_table(pa.BufferReader(data))
        table.validate(full=True)
        return table.replace_schema_metadata().to_pandas()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is a damaged Arrow file ({_first_line(error)}); copy it again, or write it anew."
        ) from None


def _read_csv(path: Path, data: bytes) -> tuple[pd.DataFrame, str]:
    import pyarrow.csv as arrow

    names, separator = _header(data, path)
    parse = arrow.ParseOptions(delimiter=separator, newlines_in_values=True)
    types = dict.fromkeys(names, pa.string())
    convert = arrow.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    try:
        table = arrow.read_csv(pa.BufferReader(data), arrow.ReadOptions(block_size=BLOCK), parse, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        _explain(data, path, separator, len(names))
        raise ValueError(f"{path} cannot be read as CSV ({_first_line(error)}); write it again.") from None
    if b'"' in data:
        _check_quotes(table, data, path, separator)
    if not data.endswith((b"\n", b"\r")):
        warn(f"{path} does not end with a line break; if it was cut short, its last line is not whole.")
    return table.to_pandas(), separator


def _check_quotes(table: pa.Table, data: bytes, path: Path, separator: str) -> None:
    """Refuse a file where a quote that is not closed takes other lines into its cell, as pyarrow lets it."""
    quotes, d = Quotes.read(data, separator), table.num_columns
    if not quotes.sound and _explain(data, path, separator, d) != table.num_rows + 1:
        raise ValueError(f"{path} has quotes that can be read in two ways; put quotes around all cells, or none.")
    records = table.num_rows + 1
    if count_lines(data) == records or (quotes.sound and quotes.cells == d * records):
        return  # where every cell is quoted, one whose quote is missing has been noticed
    for row, column, breaks in swallowed(table, separator):
        line = line_of(path, separator, row)
        raise ValueError(
            f"{path} line {line}, column {column!r}: a quote is opened and not closed before line {line + breaks}, and "
            "the lines between read as rows of their own; close it, or quote all cells if this is one."
        )


def _header(data: bytes, path: Path) -> tuple[list[str], str]:
    """Return the names of the columns, each once (one may be empty), and the separator between them."""
    try:
        separator = _separator(data)
        names = next(record for _, record in _records(data, separator))
    except UnicodeDecodeError:
        _check_utf8(data, path)
        raise
    except csv.Error as error:
        raise ValueError(f"{path} line 1: the columns' names cannot be read ({error.args[0]}); mend it.") from None
    for name in names:
        if names.count(name) > 1:
            called = f"the name {name!r}" if name else "no name"
            raise ValueError(f"{path} line 1: {names.count(name)} columns have {called}; give each a name of its own.")
    return names, separator


def _separator(data: bytes) -> str:
    """Return the separator that cuts the first lines into as many cells each; else that most frequent in the first."""
    line = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode("utf-8-sig")
    likely = sorted((s for s in SEPARATORS if s in line), key=line.count, reverse=True)  # the first of equals
    for separator in likely if len(likely) > 1 else []:
        with suppress(csv.Error, UnicodeDecodeError):
            if len({len(record) for _, record in islice(_records(data, separator), 10)}) == 1:
                return separator
    return likely[0] if likely else SEPARATORS[0]


def _records(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its cells; empty lines are none. An error has its line as well."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(str(error), line) from None


def _explain(data: bytes, path: Path, separator: str, width: int) -> int:
    """Find the line for which a CSV file is refused, slowly and carefully; else return the number of its records."""
    _check_utf8(data, path)
    records = 0
    try:
        for line, record in _records(data, separator):
            records += 1
            if len(record) != width:
                raise ValueError(f"{path} line {line} {_wrong_width(record, width, separator)}")
    except csv.Error as error:
        reason, line = error.args
        what = "a quote is opened and never closed; close it, or copy the file again if it was cut short."
        if "expected after" in reason:
            what = (
                "a quote is opened, and the next quote stands in the middle of a cell; close the first one on its "
                "line, and double a quote that is part of a cell."
            )
        if "field limit" in reason:
            limit = f"{csv.field_size_limit():,} characters"
            what = f"a cell has more than {limit}; close a quote that is open there, or shorten the cell."
        raise ValueError(f"{path} line {line}: {what}") from None
    return records


def _wrong_width(record: list[str], width: int, separator: str) -> str:
    """Say what is wrong with a line that has more or fewer cells than the header."""
    other = next((s for s in SEPARATORS if len(record) == 1 and s != separator and s in record[0]), None)
    if other is not None:
        return (
            f"has {NAMES[other]} between its cells but the header has {NAMES[separator]}; write both with one of them, "
            "and put quotes around a name or a cell with a separator in it."
        )
    return (
        f"has {len(record)} cells but the header names {width} columns; complete the line, put quotes around a cell "
        "with a separator in it, or copy the file again if it was cut short."
    )


def _check_utf8(data: bytes, path: Path) -> None:
    """Name the first line that is not UTF-8."""
    coding = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "WINDOWS-1252"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = len(data[: error.start + 1].splitlines())
        raise ValueError(
            f"{path} line {line} is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as CSV UTF-8, "
            f"for instance: iconv -f {coding} -t UTF-8 {path.name} > new.csv."
        ) from None


def line_of(path: Path, separator: str, row: int) -> int:
    """The line of a CSV file on which a row of the table begins."""
    with suppress(csv.Error, StopIteration):  # a cell that is longer than Python's reader takes
        return next(islice(_records(_bytes(path), separator), row + 1, None))[0]
    return row + 2


def _read_parquet(path: Path, data: bytes) -> pd.DataFrame:
    import pyarrow.parquet as parquet

    try:
        _check_size(parquet.read_metadata(pa.BufferReader(data)), path)
        table = parquet.read_table(pa.BufferReader(data))
        table.validate(full=True)  # text that is UTF-8, lengths that are there
        names = table.column_names
        if len(set(names)) < len(names):
            raise ValueError(f"{path} has two columns of one name: {names}; give each a name of its own.")
        # Without the metadata, of which an index would hide a column.
        return table.replace_schema_metadata().to_pandas()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is damaged Parquet ({_first_line(error)}); copy it again if it was cut short, or write it anew."
        ) from None


def _check_size(claimed: Any, path: Path) -> None:
    """Refuse a Parquet file whose rows take more memory than there is: a few bytes can stand for any number of them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 8 * claimed.num_rows * max(claimed.num_columns, 1) > memory:
        raise ValueError(
            f"{path} claims {claimed.num_rows:,} rows of {claimed.num_columns:,} columns, more than the "
            f"{memory / 1e9:.0f} GB of this machine hold; write it anew if it is damaged, or split it."
        )


def _first_line(error: Any) -> str:
    """The first sentence of what a library says, without the name of what it was given."""
    return printable(" ".join(str(error).split()).split("'<Buffer>': ")[-1].split(". ")[0][:160].rstrip("."))
