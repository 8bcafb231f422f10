"""A quote that was left open swallows no lines, and a cell that is quoted may hold anything."""

import csv

import pandas as pd
import pytest

from residua.io.tables import files as table_files
from residua.io.tables.columns import Table

ROWS = [f"{i},{i + 1}" for i in range(200)]
STRAY = {
    "open in the last cell": ('50,"51', '150,"151'),
    "open in the first cell": ('"50,51', '"150,151'),
    "alone in a cell": ('50,"', '150,"'),
    "alone in the first cell": ('",51', '",151'),
    "open, then at the end": ('50,"51', '150,151"'),
    "escaped by a backslash": (r'50,"5\"1"', r'150,"15\"1"'),
}


@pytest.mark.parametrize("breaks", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("kind", STRAY)
def test_a_quote_left_open_swallows_no_lines(tmp_path, kind, separator, breaks):
    rows = list(ROWS)
    rows[50], rows[150] = STRAY[kind]
    text = breaks.join(["source,target", *rows, ""]).replace(",", separator)
    (tmp_path / "edges.csv").write_text(text, newline="")
    with pytest.raises(ValueError, match=r"edges\.csv line 52.*: a quote is opened") as caught:
        Table.read(tmp_path / "edges.csv")
    assert "close" in str(caught.value)


def test_neighbouring_lines_are_not_swallowed_either(tmp_path):
    (tmp_path / "n.csv").write_text('id,x,y\n1,2,3\n2,",5\n3,",7\n4,8,9\n')
    with pytest.raises(ValueError, match=r"n\.csv line 3, column 'x': a quote is opened and not closed before line 4"):
        Table.read(tmp_path / "n.csv")


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
def test_quoted_cells_may_hold_anything(tmp_path, quoting, breaks):
    notes = ["two\nlines", "5, Main St\nTown, X", 'he said ""', '"', "a\n\n\nb", "one\ntwo\nthree, four", ",", "plain"]
    table = pd.DataFrame({"id": [f"n{k}" for k in range(len(notes))], "note": notes, "y": "7"})
    table.to_csv(tmp_path / "n.csv", index=False, quoting=quoting, lineterminator=breaks)
    pd.testing.assert_frame_equal(Table.read(tmp_path / "n.csv").frame.astype(str), table.astype(str))


def test_a_quote_inside_a_plain_cell_is_a_letter(tmp_path):
    (tmp_path / "n.csv").write_text('id,size,y\n1,5" pipe,3\n2,"6"" pipe",5\n3,7" x 8",7\n')
    assert Table.read(tmp_path / "n.csv").frame["size"].tolist() == ['5" pipe', '6" pipe', '7" x 8"']


def test_a_clean_file_is_not_read_line_by_line(tmp_path, monkeypatch):
    rows = [f'"{k}","n ""{k}""\nb"\n' for k in range(100)]
    (tmp_path / "n.csv").write_text('"id","note"\n' + "".join(rows))
    seen = []
    records = table_files._records
    monkeypatch.setattr(table_files, "_records", lambda *given: (seen.append(r) or r for r in records(*given)))
    assert len(Table.read(tmp_path / "n.csv").frame) == 100
    assert len(seen) <= 10
