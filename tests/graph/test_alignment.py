"""Tables matched to nodes by id: in any order, of any kind of id, or refused with a remedy that works."""

import re

import numpy as np
import pandas as pd
import pytest

from residua import Graph
from residua.graph.alignment import align, align_together, check_one_index, has_ids

DAYS = list(pd.date_range("2020-01-01", periods=5))
KINDS = {
    "text": ["e", "a", "d", "b", "c"],
    "numbers": [7, 3, 9, 1, 5],
    "counted": [0, 1, 2, 3, 4],
    "counted in another order": [2, 0, 4, 1, 3],
    "beyond float": [2**53, 2**53 + 1, 2**62, 2**62 + 1, 5],
    "beyond int64": [2**63, 2**63 + 1, 2**64 + 1, 2**70, 5],
    "tuples": [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)],
    "mixed": ["a", 1, ("a", 1), 2.5, DAYS[0]],
    "days": DAYS,
    "decimals": [0.5, 2.5, 1.5, 4.5, 3.5],
    "flags and text": [True, False, "a", "b", "c"],
}


def ring(ids):
    """The nodes in this order, on a ring."""
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 0])
    array = np.empty(5, object)
    array[:] = ids
    edges = [(ids[k], ids[(k + 1) % 5]) for k in range(5)]
    built = Graph.from_edges([a for a, _ in edges], [b for _, b in edges], nodes=pd.Index(array, tupleize_cols=False))
    assert built.n_edges == graph.n_edges
    return built


def by_id(ids, order):
    """Values 0 .. 4 of the ids, listed in another order."""
    index = pd.Index([ids[k] for k in order], tupleize_cols=False)
    return pd.Series(np.arange(5.0)[order], index=index)


def follow(message, tables, graph):
    """Each thing that a message says to pass, done."""
    remedies = re.findall(r"[Pp]ass (\S.*?)(?= if |, unknown there|; [a-z]|\.$|\. If)", message)
    assert remedies, message
    return [eval(text, {"pd": pd, "graph": graph, **tables}) for text in remedies]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [[4, 2, 0, 3, 1], [1, 0, 2, 3, 4], [0, 1, 2, 3, 4]])
def test_rows_follow_their_ids_in_any_order(kind, order):
    graph = ring(KINDS[kind])
    table = by_id(KINDS[kind], order)
    np.testing.assert_array_equal(align(table, graph.nodes, "y"), np.arange(5.0))
    frame = align(table.to_frame("a"), graph.nodes, "X")
    np.testing.assert_array_equal(frame["a"], np.arange(5.0))


@pytest.mark.parametrize(
    ("kind", "convert"),
    [
        ("text", lambda index: index.astype("category")),
        ("text", lambda index: index.astype(object)),
        ("text", lambda index: index.astype("string[python]")),
        ("numbers", lambda index: index.astype("int32")),
        ("numbers", lambda index: index.astype("uint64")),
        ("numbers", lambda index: index.astype("Int64")),
        ("numbers", lambda index: index.astype(object)),
        ("numbers", lambda index: index.astype("category")),
        ("tuples", lambda index: pd.MultiIndex.from_tuples(index)),
    ],
)
def test_how_an_index_stores_ids_does_not_matter(kind, convert):
    graph, table = ring(KINDS[kind]), by_id(KINDS[kind], [4, 2, 0, 3, 1])
    np.testing.assert_array_equal(align(table.set_axis(convert(table.index)), graph.nodes, "y"), np.arange(5.0))


@pytest.mark.parametrize("table", [np.arange(5.0), [0, 1, 2, 3, 4], pd.Series(np.arange(5.0)), None])
@pytest.mark.parametrize("kind", ["text", "counted", "tuples"])
def test_what_has_no_ids_is_in_order_already(table, kind):
    assert align(table, ring(KINDS[kind]).nodes, "y") is table


def test_a_default_index_is_nobodys_choice_and_a_named_one_is():
    table = pd.DataFrame({"id": [0, 1, 2], "a": [1.0, 2.0, 3.0]})
    assert not has_ids(table)
    assert not has_ids(table[table["a"] > 0])
    assert has_ids(table.set_index("id"))  # a RangeIndex too
    assert has_ids(table.iloc[[2, 0, 1]])
    assert has_ids(table.set_axis([1, 2, 3]))


@pytest.mark.parametrize("kind", ["numbers", "counted in another order", "beyond int64", "decimals"])
def test_a_default_index_beside_numbers_in_another_order_is_refused(kind):
    graph = ring([*KINDS[kind][1:], KINDS[kind][0]])
    y = pd.Series(np.arange(5.0))
    with pytest.raises(ValueError, match=r"y has the default index 0, 1, 2, .* numbers in another order \(") as error:
        align(y, graph.nodes, "y")
    np.testing.assert_array_equal(align(y.set_axis(graph.nodes), graph.nodes, "y"), np.arange(5.0))
    if kind.startswith("counted"):
        assert "y.loc[graph.nodes] if they are ids" in str(error.value)
        np.testing.assert_array_equal(align(y.loc[graph.nodes], graph.nodes, "y"), graph.nodes)
    assert align(y.to_numpy(), graph.nodes, "y") is not None


def test_a_default_index_beside_the_same_numbers_as_text_is_refused_in_another_order():
    y = pd.Series(np.arange(5.0))
    assert align(y, ring(list("01234")).nodes, "y") is y
    assert align(y, ring(list("45678")).nodes, "y") is y
    with pytest.raises(ValueError, match="numbers in another order"):
        align(y, ring(list("10234")).nodes, "y")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unknown", [False, True])
def test_one_wrong_id_is_refused_with_its_name_and_a_remedy_that_works(kind, unknown):
    ids = KINDS[kind]
    graph, table = ring(ids), by_id(ids, [4, 2, 0, 3, 1])
    index = list(table.index)
    cases = {
        "renamed": (table.set_axis(pd.Index([*index[:4], "no such"], tupleize_cols=False)), "'no such'"),
        "missing": (table.iloc[:4], repr(ids[1])),
        "twice": (table.iloc[[0, 1, 2, 3, 4, 4]], repr(ids[1])),
        "foreign": (
            pd.Series([*table, 9.0], index=pd.Index([*index, "no such"], tupleize_cols=False)),
            "'no such'",
        ),
        "instead": (table.iloc[[0, 1, 2, 3, 3]], repr(ids[3])),
    }
    for case, (wrong, example) in cases.items():
        with pytest.raises(ValueError, match=r"^y (has|is indexed by) ") as error:
            align(wrong, graph.nodes, "y", unknown=unknown)
        message = str(error.value)
        assert example in message, (case, message)
        assert "\n" not in message
        if case in ("foreign", "twice"):
            wrong = wrong[~wrong.index.duplicated()] if case == "twice" else wrong
            (mended,) = [wrong] if case == "twice" else follow(message, {"y": wrong}, graph)
            np.testing.assert_array_equal(align(mended, graph.nodes, "y"), np.arange(5.0))
        elif case == "missing" and unknown:
            (mended,) = follow(message, {"y": wrong}, graph)
            np.testing.assert_array_equal(align(mended, graph.nodes, "y"), [0, np.nan, 2, 3, 4])
        elif case in ("renamed", "instead"):
            mended = follow(message, {"y": wrong}, graph)[-1]
            np.testing.assert_array_equal(align(mended, graph.nodes, "y"), wrong)


@pytest.mark.parametrize(
    ("ids", "index", "remedy"),
    [
        ([7, 3, 9, 1, 5], ["3", "7", "1", "9", "5"], "astype('int64')"),
        ([7, 3, 9, 1, 5], ["3.0", "7.0", "1.0", "9.0", "5.0"], "astype(float).astype('int64')"),
        (["7", "3", "9", "1", "5"], [3, 7, 1, 9, 5], "astype(str)"),
        (["01007", "01003", "01009", "01001", "01005"], [1003, 1007, 1001, 1009, 1005], "str.zfill(5)"),
        (["07", "03", "09", "01", "05"], ["3", "7", "1", "9", "5"], "str.zfill(2)"),
    ],
)
def test_ids_of_another_type_are_refused_and_the_remedy_converts_them(ids, index, remedy):
    graph, table = ring(ids), pd.Series([1.0, 0.0, 3.0, 2.0, 4.0], index=index)
    with pytest.raises(ValueError, match=r"none of them an id of the graph.*differ in type") as error:
        align(table, graph.nodes, "y")
    assert remedy in str(error.value)
    mended = follow(str(error.value), {"y": table}, graph)[0]
    np.testing.assert_array_equal(align(mended, graph.nodes, "y"), np.arange(5.0))


@pytest.mark.parametrize("index", [[0.5, 1, 2, 3, 4], list("01234"), [2**53, 1, 2, 3, 4], [(k,) for k in range(5)]])
def test_what_is_no_id_of_the_graph_is_refused(index):
    nodes = ring(KINDS["counted"]).nodes
    with pytest.raises(ValueError, match=r"(none of them an id of the graph|that the graph has not)"):
        align(pd.Series(np.arange(5.0), index=pd.Index(index, dtype=object, tupleize_cols=False)), nodes, "y")


def test_floats_match_where_they_are_exact_and_flags_never():
    nodes = ring(KINDS["counted"]).nodes
    y = pd.Series(np.arange(5.0), index=[4.0, 3.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(align(y, nodes, "y"), [4, 3, 2, 1, 0])
    with pytest.raises(
        ValueError, match=r"the index of y has 9007199254740992.0 at row 0, a float that stands for more"
    ):
        align(y.set_axis([2.0**53, 2.0**53 + 2, 2.0, 1.0, 0.0]), nodes, "y")
    with pytest.raises(ValueError, match=r"the index of y has False at row 1 but graph.nodes has 0 at row 0"):
        align(y.set_axis(pd.Index([True, False, 2, 3, 4], dtype=object)), nodes, "y")


def test_an_empty_id_is_refused_with_its_row():
    with pytest.raises(ValueError, match=r"the index of y is missing .* at row 2"):
        align(pd.Series(np.arange(5.0), index=["e", "a", None, "b", "c"]), ring(KINDS["text"]).nodes, "y")


def test_tables_that_belong_together_are_all_matched():
    ids = KINDS["text"]
    X, y = by_id(ids, [4, 2, 0, 3, 1]).to_frame("a"), by_id(ids, [1, 0, 2, 4, 3])
    found = align_together(ring(ids).nodes, {"X": X, "y": y, "known": None})
    np.testing.assert_array_equal(found[0]["a"], found[1])
    assert found[2] is None


@pytest.mark.parametrize("bare", [np.arange(5.0), pd.Series(np.arange(5.0)), list(range(5)), np.ones((5, 2))])
def test_a_table_without_ids_contradicts_one_in_another_order(bare):
    ids = KINDS["text"]
    graph, X = ring(ids), by_id(ids, [4, 2, 0, 3, 1])
    for tables in ({"X": X, "y": bare}, {"y": bare, "X": X}):
        with pytest.raises(ValueError, match=r"X is indexed by ids in another order .*, and y has no ids") as error:
            align_together(graph.nodes, tables)
    like_X, ordered = follow(str(error.value), tables, graph)
    found = align_together(graph.nodes, {"X": X, "y": like_X})
    np.testing.assert_array_equal(found[1], np.asarray(bare)[np.argsort([4, 2, 0, 3, 1])])
    found = align_together(graph.nodes, {"X": ordered, "y": bare})
    np.testing.assert_array_equal(found[0], np.arange(5.0))
    assert found[1] is bare


def test_what_has_another_length_is_refused_for_that():
    ids = KINDS["text"]
    nodes, X = ring(ids).nodes, by_id(ids, [4, 2, 0, 3, 1])
    for short in (np.arange(4.0), [], 3.0, "abcde"[:4], {"e": 1.0, "a": 2.0, "d": 0.0, "b": 0.0, "c": 0.0}, X.iloc[:0]):
        assert align_together(nodes, {"X": X, "y": short})[1] is short


def test_a_table_in_the_order_of_the_graph_goes_with_arrays():
    ids, y = KINDS["text"], np.arange(5.0)
    assert align_together(ring(ids).nodes, {"X": by_id(ids, [0, 1, 2, 3, 4]), "y": y})[1] is y


def test_columns_row_by_row_have_one_index():
    ids = KINDS["text"]
    ours, theirs = by_id(ids, [0, 1, 2, 3, 4]), by_id(ids, [4, 2, 0, 3, 1])
    check_one_index({"y": ours, "std": np.ones(5), "mean": pd.Series(np.ones(5)), "other": ours + 1})
    with pytest.raises(ValueError, match=r"mean is not indexed like y; .*mean.loc\[y.index\]"):
        check_one_index({"y": ours, "std": np.ones(5), "mean": theirs})
