"""The contact network from files of one's own."""

import pandas as pd
import pytest

from residua.datasets import load_contacts
from residua.reproduction.datasets.contacts import PEOPLE, TIES

DECOYS = {
    # rid: study, sex, race, behaviour
    9001: (2, 0, 1, 1),  # another study
    9002: (1, -9, 1, 1),  # sex unknown
    9003: (1, 0, 1, 1),  # known only by a tie of another type
    9004: (1, 0, 1, 2),  # 9004 and 9005: a small component
    9005: (1, 1, 2, 0),
}


def write_contacts(data, folder):
    """Write a contact network in the two files of ICPSR 22140, among rows that a reader must leave out."""
    people = data.nodes.rename(columns=str.upper).rename_axis("RID").reset_index().assign(STUDYNUM=1, AGE=30)
    decoys = pd.DataFrame(
        [(rid, *row) for rid, row in DECOYS.items()], columns=["RID", "STUDYNUM", "SEX", "RACE", "BEHAV"]
    )
    edges = data.graph.adjacency().tocoo()
    once = edges.row < edges.col
    pairs = [(data.graph.nodes[a], data.graph.nodes[b]) for a, b in zip(edges.row[once], edges.col[once], strict=True)]
    first, last = data.graph.nodes[[0, -1]]
    ties = [(1, b, a, 3) for a, b in pairs]
    ties += [(1, *pairs[0], 3), (1, first, first, 3), (1, first, last, 1), (2, first, last, 3), (2, 9001, first, 3)]
    ties += [(1, 9002, first, 3), (1, 9003, first, 2), (1, 9004, 9005, 3), (1, 9999, first, 3)]
    tables = {
        PEOPLE: pd.concat([decoys, people.iloc[::-1]])[["AGE", "STUDYNUM", "RID", "SEX", "RACE", "BEHAV"]],
        TIES: pd.DataFrame(ties, columns=["STUDYNUM", "ID1", "ID2", "TIETYPE"]),
    }
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True)
        table.to_csv(folder / name, sep="\t", index=False, na_rep=" ")


def test_contacts_come_back_from_files_as_they_were(contacts, tmp_path):
    write_contacts(contacts, tmp_path)
    loaded = load_contacts(tmp_path)
    assert (loaded.graph.nodes == contacts.graph.nodes).all()
    assert (loaded.graph.adjacency() != contacts.graph.adjacency()).nnz == 0
    pd.testing.assert_frame_equal(loaded.X, contacts.X)
    assert (loaded.y == contacts.y).all()
    assert repr(loaded) == "Dataset('contacts': 1,888 nodes, 2,096 edges, 6 features)"
    assert loaded.notes[0] == "Of 1,892 people of study 1, 1 of unknown sex were dropped."
    assert "Of 1,890 people with a tie, the largest connected part keeps 1,888." in loaded.notes


def test_the_unpacked_folder_may_lie_in_the_one_named(contacts, tmp_path):
    write_contacts(contacts, tmp_path / "ICPSR_22140")
    assert load_contacts(str(tmp_path)).graph.n_nodes == 1888


def test_missing_contacts_say_where_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ICPSR requires your own copy.*simulate_contacts") as caught:
        load_contacts(tmp_path)
    assert str(tmp_path / PEOPLE) in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (PEOPLE, "STUDYNUM\tRID\tSEX\n1\t2\t0\n", r"lacks the columns RACE, BEHAV"),
        (PEOPLE, "", r"0001-Data\.tsv is malformed"),
        (PEOPLE, "STUDYNUM\tRID\tSEX\tRACE\tBEHAV\n1\t2\t0\t1\t1\n1\t2\t1\t1\t1\n", r"RID is missing or repeated"),
        (PEOPLE, "STUDYNUM\tRID\tSEX\tRACE\tBEHAV\n1\tx\t0\t1\t1\n", r"RID is missing or repeated"),
        (TIES, "STUDYNUM\tID1\tID2\tTIETYPE\n", r"has no tie of type 3"),
        (TIES, "STUDYNUM,ID1,ID2,TIETYPE\n1,2,3,3\n", r"lacks the columns STUDYNUM, ID1, ID2, TIETYPE"),
    ],
)
def test_malformed_contacts_are_refused_in_one_line(contacts, tmp_path, file, content, message):
    write_contacts(contacts, tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_contacts(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / file) in str(caught.value)
