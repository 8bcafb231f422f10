"""Tables become graphs, features and labels as they are written; what does not fit is refused with its place."""

import json
import warnings
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import residua
from residua.io.model_file import ModelFileError
from residua.io.model_file.recipe import unpack_recipe
from residua.io.model_file.values import Table as JsonTable
from residua.io.tables.columns import Table
from residua.io.tables.graphs import Columns, read_again, read_tables, rows_like
from residua.io.tables.predictions import prediction_table, write_table
from residua.io.tables.recipe import Recipe
from tables import edit, town, write

PRICE = Columns(target="price")


@pytest.fixture
def files(tmp_path):
    return write(tmp_path, *town())


def refusal(nodes, edges, columns=PRICE):
    with pytest.raises((ValueError, OSError)) as error:
        read_tables(nodes, edges, columns)
    message = str(error.value)
    assert "\n" not in message
    return message


def node_file(tmp_path, text, edges="source,target\na,b\nb,c\nc,d\n"):
    (tmp_path / "n.csv").write_text(text, encoding="utf-8")
    (tmp_path / "e.csv").write_text(edges, encoding="utf-8")
    return tmp_path / "n.csv", tmp_path / "e.csv"


# What is read


def test_ids_stay_as_they_are_written_and_empty_targets_are_unknown(files):
    nodes, _ = town()
    data = read_tables(*files, PRICE)
    assert list(data.graph.nodes) == list(nodes["id"])
    assert data.graph.nodes[7] == "007"
    np.testing.assert_allclose(data.y, nodes["price"])
    assert data.graph.n_edges == len(town()[1])


def test_text_becomes_a_column_for_each_value(files):
    data = read_tables(*files, PRICE)
    nodes, _ = town()
    assert list(data.X) == ["size", "quarter=north", "quarter=old town", "quarter=south"]
    np.testing.assert_array_equal(data.X["quarter=south"], nodes["quarter"] == "south")
    np.testing.assert_allclose(data.X["size"], nodes["size"])


def test_empty_cells_take_the_median_or_a_value_of_their_own(tmp_path):
    nodes, edges = town()
    nodes.loc[[3, 5], "size"] = np.nan
    nodes.loc[4, "quarter"] = None
    data = read_tables(*write(tmp_path, nodes, edges), PRICE)
    assert data.filled == {"size": 2, "quarter": 1}
    assert data.X["size"][3] == data.X["size"][5] == pytest.approx(nodes["size"].median())
    assert data.X["quarter=(empty)"].sum() == data.X["quarter=(empty)"][4] == 1


def test_the_transformer_is_scikit_learns(files):
    from sklearn.compose import ColumnTransformer

    assert isinstance(read_tables(*files, PRICE).recipe.encoding.transformer, ColumnTransformer)


def test_columns_that_cannot_be_features_are_named(tmp_path):
    nodes, edges = town()
    nodes.insert(1, "name", [f"house {k}" for k in range(len(nodes))])
    nodes["nothing"], nodes["land"] = None, "here"
    data = read_tables(*write(tmp_path, nodes, edges), PRICE)
    assert data.left_out.keys() == {"name", "nothing", "land"}
    assert "81 different values" in data.left_out["name"]
    assert data.edge_columns_left == ["kind", "width"]


@pytest.mark.parametrize(("values", "used"), [(40, True), (41, False)])
def test_text_is_used_where_its_values_occur_twice_on_average(values, used, tmp_path):
    nodes, edges = town()
    nodes["street"] = [f"street {k % values}" for k in range(len(nodes))]  # 81 rows
    data = read_tables(*write(tmp_path, nodes, edges), PRICE)
    assert ("street" in data.recipe.values) is used
    assert data.left_out == ({} if used else {"street": "text with 41 different values, more than 40"})


def test_dates_and_unnamed_columns_are_left_out_by_name(tmp_path):
    nodes, edges = town()
    nodes["built"] = pd.Timestamp("2001-02-03")
    paths = write(tmp_path, nodes, edges, "parquet")
    assert read_tables(*paths, PRICE).left_out.keys() == {"built"}
    town()[0].to_csv(tmp_path / "indexed.csv")  # with an index, whose column has no name
    assert read_tables(tmp_path / "indexed.csv", paths[1], PRICE).left_out == {"": "it has no name"}


def test_codes_with_leading_zeros_are_text_and_numbers_may_be_read_as_text(tmp_path):
    nodes, edges = town()
    nodes["code"] = [f"0{k % 4}" for k in range(len(nodes))]
    nodes["floor"] = np.arange(len(nodes)) % 3
    paths = write(tmp_path, nodes, edges)
    recipe = read_tables(*paths, PRICE).recipe
    assert recipe.values["code"] == ("00", "01", "02", "03")
    assert "floor" in recipe.medians
    assert read_tables(*paths, Columns("price", categorical=("floor",))).recipe.values["floor"] == ("0", "1", "2")
    assert "floor" not in read_tables(*paths, Columns("price", exclude=("floor",))).recipe.medians


def test_a_column_counts_as_numbers_where_at_least_half_of_its_cells_are(tmp_path):
    """Exactly half too: then the words among them are named, and not taken for as many values of text."""
    nodes, edges = town()
    nodes = nodes.iloc[:-1]  # 80 rows
    edges = edges[edges["target"].isin(nodes["id"]) & edges["source"].isin(nodes["id"])]
    for words, text in ((40, False), (41, True)):
        nodes["floor"] = np.where(np.arange(80) < words, "high", "2")
        paths = write(tmp_path, nodes, edges)
        if text:
            assert read_tables(*paths, PRICE).recipe.values["floor"] == ("2", "high")
        else:
            assert "'high' is not a number (and 39 more)" in refusal(*paths)


def test_features_asked_for_are_those_used(files):
    data = read_tables(*files, Columns("price", features=("size",)))
    assert list(data.X) == ["size"]
    assert data.left_out == {"quarter": "not among --features"}


def test_words_may_stand_for_empty_cells(files):
    nodes, _ = town()
    nodes = nodes.astype({"size": object})
    nodes.loc[2, "size"] = "NA"
    nodes.to_csv(files[0], index=False)
    assert "--missing NA" in refusal(*files)
    assert read_tables(*files, Columns("price", missing=("NA",))).filled["size"] == 1


def test_edge_types_and_weights_are_read(files):
    data = read_tables(*files, Columns("price", edge_type="kind", weight="width"))
    assert data.graph.edge_types == ("street", "path")
    assert data.graph.describe().weighted


def test_parquet_says_the_same_as_csv(tmp_path):
    csv, parquet = (read_tables(*write(tmp_path, *town(), suffix), PRICE) for suffix in ("csv", "parquet"))
    np.testing.assert_allclose(csv.X, parquet.X)
    np.testing.assert_allclose(csv.y, parquet.y)
    assert list(csv.graph.nodes) == list(parquet.graph.nodes)


def test_numbers_as_ids_stay_numbers_unless_the_tables_differ(tmp_path):
    nodes, edges = town()
    nodes["id"] = nodes["id"].astype(int)
    edges[["source", "target"]] = edges[["source", "target"]].astype(int)
    numbers = write(tmp_path, nodes, edges, "parquet")
    text = write(tmp_path, nodes, edges)
    assert read_tables(*numbers, PRICE).graph.nodes.dtype == np.int64
    assert list(read_tables(numbers[0], text[1], PRICE).graph.nodes[:2]) == ["0", "1"]
    nodes["id"] = nodes["id"].astype(float)
    nodes.to_parquet(numbers[0])
    assert list(read_tables(*numbers, PRICE).graph.nodes[:2]) == ["0", "1"]


ODD = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=("Cs",)), min_size=1)


@given(st.lists(ODD, min_size=4, max_size=8, unique=True))
def test_any_text_can_be_an_id(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("odd")
    nodes = pd.DataFrame({"id": ids, "y": np.arange(len(ids), dtype=float)})
    edges = pd.DataFrame({"source": ids[:-1], "target": ids[1:]})
    paths = folder / "n.csv", folder / "e.csv"
    for path, table in zip(paths, (nodes, edges), strict=True):
        table.to_csv(path, index=False, quoting=1, lineterminator="\n")
    data = read_tables(*paths, Columns("y"))
    assert list(data.graph.nodes) == ids
    assert data.graph.n_edges == len(ids) - 1


@pytest.mark.parametrize(
    "ids", [["0123", "123", "00", "0"], ["007", "7", "7.0", "+7"], ["New York", " a", "ü", "北京"]]
)
def test_ids_that_look_alike_are_different_nodes(tmp_path, ids):
    a, b, c, d = ids
    paths = node_file(tmp_path, f"id,y\n{a},1\n{b},2\n{c},3\n{d},\n", f"source,target\n{a},{b}\n{b},{c}\n{c},{d}\n")
    data = read_tables(*paths, Columns("y"))
    write_table(pd.DataFrame({"id": data.graph.nodes}), tmp_path / "out.csv")
    assert Table.read(tmp_path / "out.csv").frame["id"].tolist() == ids


def test_semicolons_tabs_byte_order_marks_and_quotes_are_understood(tmp_path):
    for separator in ";\t":
        text = 'id,y,"a b"\n1,2,3\n2,3,4\n3,,5\n'.replace(",", separator)
        paths = node_file(tmp_path, "\ufeff" + text, "source,target\n1,2\n2,3\n")
        assert list(read_tables(*paths, Columns("y")).X) == ["a b"]


# What is refused


@pytest.mark.parametrize(
    ("line", "old", "new", "words"),
    [
        (5, "003,", "002,", ["nodes.csv line 5, column 'id': id '002'", "in line 4", "one line"]),
        (6, "004,", ",", ["line 6, column 'id'", "the id is empty"]),
        (1, "price", "cost", ["nodes.csv has no column 'price'", "it has id, size, quarter, cost"]),
        (1, "size", "id", ["line 1: 2 columns have the name 'id'"]),
        (9, ",", ",n/a", ["nodes.csv line 9, column 'size': 'n/a", "is not a number", "leave the cell empty"]),
        (9, ",", ",inf ", ["line 9, column 'size'", "is not a number"]),
        (7, ",", ",1,", ["nodes.csv line 7 has 5 cells", "names 4 columns"]),
        (8, "006,", '006,"', ["nodes.csv line 8: a quote is opened and never closed"]),
    ],
)
def test_a_wrong_node_table_is_named_with_its_line(files, line, old, new, words):
    edit(files[0], line, old, new)
    message = refusal(*files)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("line", "old", "new", "words"),
    [
        (
            3,
            "001",
            "01",
            ["edges.csv line 3, column 'source': node '01' is not in", "there is '001'", "--skip-unknown"],
        ),
        (3, "001", "", ["line 3, column 'source': the id is empty"]),
        (4, "street,", ",", ["line 4, column 'kind': the edge type is empty"]),
        (4, ",3.0", ",wide", ["line 4, column 'width': 'wide' is not a number"]),
        (4, ",3.0", ",-3.0", ["line 4, column 'width': the weight is -3"]),
        (4, ",3.0", ",", ["line 4, column 'width': the weight is empty"]),
    ],
)
def test_a_wrong_edge_table_is_named_with_its_line(files, line, old, new, words):
    edit(files[1], line, old, new)
    message = refusal(*files, Columns("price", edge_type="kind", weight="width"))
    assert all(word in message for word in words), message


def test_ids_that_became_decimal_numbers_are_told_so(tmp_path):
    nodes = pd.DataFrame({"id": [236, 237, 238], "price": [1.0, 2.0, 3.0]})
    edges = pd.DataFrame({"source": ["236.0", "237.0"], "target": ["237.0", "238.0"]})
    message = refusal(*write(tmp_path, nodes, edges), PRICE)
    assert "node '236.0' is not in" in message
    assert "(there is 236: ids were written as decimal numbers here), nor are those of 1 more line;" in message


def test_lines_are_counted_as_an_editor_does(tmp_path):
    paths = node_file(tmp_path, 'id,note,y\na,"two\nlines",1\n\nb,x,2\nc,x,3\nd,x,4\ne,x,oops\n')
    assert "n.csv line 8, column 'y': 'oops'" in refusal(*paths, Columns("y"))


def test_names_of_columns_may_have_the_other_separators_in_them(tmp_path):
    text = "id;income, in $;price, 2020, net;y\na;2,5;3;4\nb;3,1;4;\nc;1,0;2;3\nd;4,2;4;5\n"
    frame = Table.read(node_file(tmp_path, text)[0]).frame
    assert list(frame) == ["id", "income, in $", "price, 2020, net", "y"]


@pytest.mark.parametrize(
    ("above", "below", "found"), [(",", ";", "semicolons"), (";", ",", "commas"), (",", "\t", "tabs")]
)
def test_a_header_with_other_separators_than_the_lines_is_told(tmp_path, above, below, found):
    text = "id,x,y\n".replace(",", above) + "a,2,3\nb,3,4\nc,1,\n".replace(",", below)
    message = refusal(*node_file(tmp_path, text), Columns("y"))
    assert f"n.csv line 2 has {found} between its cells but the header has " in message


@pytest.mark.parametrize("kind", [pa.decimal128(20), pa.decimal128(22, 2), pa.uint64(), pa.int64(), pa.string()])
def test_ids_of_64_bits_stay_apart_in_parquet(tmp_path, kind):
    ids = [2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, 7]
    typed = pa.array([str(node) for node in ids]).cast(kind)
    parquet.write_table(pa.table({"id": typed, "y": [1.0, 2.0, 3.0, 4.0, None]}), tmp_path / "n.parquet")
    edges = pd.DataFrame({"source": ids[:-1], "target": ids[1:]})
    edges.to_parquet(tmp_path / "e.parquet")
    graph = read_tables(tmp_path / "n.parquet", tmp_path / "e.parquet", Columns("y")).graph
    assert [int(node) for node in graph.nodes] == ids
    np.testing.assert_array_equal(graph.adjacency().toarray(), np.eye(5, k=1) + np.eye(5, k=-1))


@pytest.mark.parametrize("kind", [float, "category"])
def test_ids_that_were_rounded_are_refused(tmp_path, kind):
    nodes = pd.DataFrame({"id": [1.0, 2.0, 2.0**53], "y": [1.0, 2.0, 3.0]}).astype({"id": kind})
    message = refusal(
        *write(tmp_path, nodes, pd.DataFrame({"source": [1, 2], "target": [2, 1]}), "parquet"), Columns("y")
    )
    assert "row 3, column 'id': the id 9007199254740992.0 is a float that stands for more than one" in message


def test_decimal_numbers_of_parquet_are_numbers(tmp_path):
    table = pa.table(
        {"id": ["a", "b", "c"], "x": pa.array(["1.50", "2.25", None]).cast(pa.decimal128(10, 2)), "y": [1, 2, 3]}
    )
    parquet.write_table(table, tmp_path / "n.parquet")
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    edges.to_parquet(tmp_path / "e.parquet")
    data = read_tables(tmp_path / "n.parquet", tmp_path / "e.parquet", Columns("y"))
    assert data.X["x"].tolist() == [1.5, 2.25, 1.875]


@pytest.mark.parametrize(("columns", "value", "name"), [("a,a=u", "u", "a=u"), ("a,a=u", "u=1", "a=u=1")])
def test_features_of_one_name_are_refused(tmp_path, columns, value, name):
    text = f"id,{columns},y\nk,{value},1,1\nl,v,2,2\nm,{value},1,\nn,v,2,4\n"
    options = Columns("y", categorical=("a=u",) if "1" in name else ())
    message = refusal(*node_file(tmp_path, text), options)
    assert f"column 'a' has the value {value!r}, which makes a feature {name!r}, and there is another of" in message


def test_a_row_of_parquet_is_named(tmp_path):
    nodes, edges = town()
    nodes.loc[4, "id"] = "003"
    assert "nodes.parquet row 5, column 'id'" in refusal(*write(tmp_path, nodes, edges, "parquet"))


def test_a_number_of_parquet_is_named_as_it_is_written(tmp_path):
    nodes = pd.DataFrame({"id": [1, 2, 3], "price": [1.0, 2.0, np.nan]})
    edges = pd.DataFrame({"source": [1, 2], "target": [2, 9]})
    assert "node 9 is not in" in refusal(*write(tmp_path, nodes, edges, "parquet"))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(files, content):
    files[1].write_bytes(content)
    assert "edges.csv is empty" in refusal(*files)


def test_a_header_alone_is_refused(files):
    files[0].write_text("id,price\n")
    assert "has a header and no rows" in refusal(*files)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_file_cut_in_half_is_refused(tmp_path, suffix, which):
    paths = write(tmp_path, *town(), suffix)
    whole = paths[which].read_bytes()
    paths[which].write_bytes(whole[: len(whole) // 2 - 1])
    assert "cut short" in refusal(*paths)


def test_a_cut_that_cannot_be_told_is_warned_of(files):
    files[1].write_bytes(files[1].read_bytes().rstrip())
    with pytest.warns(UserWarning, match=r"edges\.csv does not end with a line break"):
        read_tables(*files, PRICE)


def test_other_encodings_are_refused_with_the_line(files):
    raw = files[0].read_bytes().replace(b"old town", b"Altst\xe4dt", 1)
    files[0].write_bytes(raw)
    line = raw[: raw.index(b"Altst")].count(b"\n") + 1
    message = refusal(*files)
    assert f"line {line} is not UTF-8 (byte 0xe4)" in message
    assert "iconv -f WINDOWS-1252" in message
    files[0].write_bytes(files[0].read_bytes().decode("latin-1").encode("utf-16"))
    assert "iconv -f UTF-16" in refusal(*files)


def test_other_kinds_of_files_are_told(files):
    for head, word in ((b"PK\x03\x04", "spreadsheet"), (b"\x1f\x8b", "damaged gzip")):
        files[0].write_bytes(head + bytes(99))
        assert word in refusal(*files)
    files[0].rename(files[0].with_suffix(".parquet"))
    assert "is no Parquet file" in refusal(files[0].with_suffix(".parquet"), files[1])


def test_a_file_that_is_not_there_and_a_folder_are_refused(files, tmp_path):
    assert "gone.csv not found" in refusal(tmp_path / "gone.csv", files[1])
    assert "is a folder" in refusal(tmp_path, files[1])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (Columns("prize"), "did you mean 'price'?"),
        (Columns("quarter"), "holds text such as 'north', not numbers"),
        (Columns("price", id="price"), "cannot be the id too"),
        (Columns("price", id="key"), "has no column 'key' (--id)"),
        (Columns("price", features=("size", "siz")), "has no column 'siz' (--features)"),
        (Columns("price", features=("price",)), "which is the id or the target"),
        (Columns("price", source="target"), "cannot be both ends"),
        (Columns("price", weight="w"), "has no column 'w' (--weight)"),
        (Columns("price", edge_type="t"), "has no column 't' (--edge-type)"),
        (Columns("price", weight="kind"), "holds text such as 'street'"),
    ],
)
def test_wrong_names_of_columns_are_refused(files, columns, words):
    assert words in refusal(*files, columns)


def test_text_with_too_many_values_is_refused_when_asked_for(tmp_path):
    n = 1100
    nodes = pd.DataFrame({"id": range(n), "name": [f"house {k}" for k in range(n)], "y": np.arange(n) % 7})
    edges = pd.DataFrame({"source": range(n - 1), "target": range(1, n)})
    message = refusal(*write(tmp_path, nodes, edges), Columns("y", features=("name",)))
    assert "column 'name' cannot be a feature: text with 1,100 different values" in message


def test_weights_that_disagree_name_the_file(tmp_path):
    paths = node_file(tmp_path, "id,y\na,1\nb,2\nc,3\n", "source,target,w\na,b,1\nb,a,2\nb,c,1\n")
    message = refusal(*paths, Columns("y", weight="w"))
    assert message.startswith(f"{paths[1]} line 3: the edge 'a' - 'b' of line 2 is listed the other way round")


def test_unknown_nodes_may_be_skipped(files):
    edit(files[1], 3, "001", "x")
    data = read_tables(*files, Columns("price", skip_unknown=True))
    assert data.graph.n_edges == len(town()[1]) - 1
    assert "1 edges to nodes that are not in" in data.notes[0]


def test_edges_of_other_nodes_alone_are_refused(files):
    edges = town()[1]
    edges[["source", "target"]] += "x"
    edges.to_csv(files[1], index=False)
    assert "no edge between nodes" in refusal(*files, Columns("price", skip_unknown=True))


# Once more, for a fitted model


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    nodes, edges = town()
    nodes.loc[3, "size"] = np.nan
    data = read_tables(*write(folder, nodes, edges), Columns("price", edge_type="kind", missing=("NA",)))
    model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    model.recipe_ = data.recipe
    model.save(folder / "m.residua")
    return folder, data, residua.load(folder / "m.residua")


def test_the_recipe_comes_back_with_the_model(fitted):
    _, data, again = fitted
    assert again.recipe_ == data.recipe


def test_new_tables_are_encoded_as_those_of_the_fit(fitted, tmp_path):
    folder, data, again = fitted
    same = read_again(folder / "nodes.csv", folder / "edges.csv", again.recipe_)
    np.testing.assert_array_equal(same.X, data.X)
    np.testing.assert_allclose(prediction_table(again, same)["prediction"], prediction_table(again)["prediction"])
    nodes, edges = town(seed=1)
    nodes.loc[0, "size"], nodes.loc[1, "quarter"] = np.nan, "new town"
    other = read_again(*write(tmp_path, nodes.drop(columns="price"), edges), again.recipe_)
    assert np.isnan(other.y).all()
    assert other.X["size"][0] == data.recipe.medians["size"]
    assert other.X.filter(like="quarter=").loc[1].sum() == 0
    assert "new town" in other.notes[0]


def test_a_new_table_has_to_have_the_features(fitted, tmp_path):
    nodes, edges = town()
    paths = write(tmp_path, nodes.drop(columns="size"), edges)
    with pytest.raises(ValueError, match=r"nodes\.csv has no column 'size'"):
        read_again(*paths, fitted[2].recipe_)
    with pytest.raises(ValueError, match=r"edges\.csv has no column 'kind'"):
        read_again(*write(tmp_path, nodes, edges.drop(columns="kind")), fitted[2].recipe_)


def test_predictions_add_up(fitted):
    _, data, model = fitted
    table = prediction_table(model, coverage=0.8)
    assert list(table) == ["id", "prediction", "std", "lower", "upper", "base", "correction", "known", "leave_one_out"]
    assert list(table["id"]) == list(data.graph.nodes)
    np.testing.assert_allclose(table["base"] + table["correction"], table["prediction"])
    known = ~np.isnan(data.y)
    np.testing.assert_array_equal(table["prediction"][known], data.y[known])
    lower, upper = model.predict_interval(coverage=0.8)
    np.testing.assert_allclose(table["lower"], lower)
    np.testing.assert_allclose(table["upper"], upper)
    assert (table["lower"] < table["prediction"])[~known].all()
    np.testing.assert_allclose(table[["lower", "upper"]].T, model.predict_interval(coverage=0.8))


def test_rows_follow_the_nodes_of_a_model(fitted, tmp_path):
    _, data, model = fitted
    nodes = town()[0].iloc[::-1]
    path = write(tmp_path, nodes, town()[1])[0]
    rows = rows_like(path, data.graph, model.recipe_, ("size",))
    assert list(rows["id"]) == list(data.graph.nodes)
    assert rows["size"].dtype == float
    nodes.iloc[1:].to_csv(path, index=False)
    with pytest.raises(ValueError, match="lacks 1 of the 81 nodes of the model, such as '080'"):
        rows_like(path, data.graph, model.recipe_)


def test_a_stale_recipe_is_not_saved(fitted, tmp_path):
    _, data, _ = fitted
    other = residua.load(fitted[0] / "m.residua").fit(data.X[["size"]], data.y, graph=data.graph)
    other.save(tmp_path / "m.residua")
    assert not hasattr(residua.load(tmp_path / "m.residua"), "recipe_")


@pytest.mark.parametrize(
    "change",
    [
        {"id": 3},
        {"weight": 3},
        {"missing": "NA"},
        {"missing": ["NA", "NA"]},
        {"medians": {"size": "nan"}},
        {"medians": {"size": None}},
        {"values": {"quarter": []}},
        {"values": {"quarter": ["north", 3]}},
        {"values": {}},
    ],
)
def test_a_damaged_recipe_is_refused(fitted, change):
    _, data, _ = fitted
    names = np.array(data.recipe.feature_names, object)

    def unpacked(recipe):
        return unpack_recipe(json.loads(json.dumps(recipe), object_hook=JsonTable), names)

    packed = asdict(data.recipe)
    assert unpacked(packed) == data.recipe
    with pytest.raises(ModelFileError, match="damaged"):
        unpacked(packed | change)


def test_a_recipe_without_features_needs_none(files):
    recipe = Recipe("id", "price", "source", "target")
    assert read_again(*files, recipe).X is None


def test_reading_gives_no_warning(files):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_tables(*files, PRICE)
