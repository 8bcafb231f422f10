"""Tables in and out: a node table and an edge table, CSV or Parquet, as a graph, features and labels.

    nodes: id, features, target (empty where unknown)        edges: source, target [, weight] [, type]

Cells are taken as they are written; what does not fit is refused with its file, line, column and the remedy.
"""

from residua.io.tables.columns import Table
from residua.io.tables.graphs import Columns, NodeData, read_again, read_labels, read_tables, rows_like
from residua.io.tables.predictions import check_output, prediction_table, write_table
from residua.io.tables.recipe import Recipe

__all__ = [
    "Columns",
    "NodeData",
    "Recipe",
    "Table",
    "check_output",
    "prediction_table",
    "read_again",
    "read_labels",
    "read_tables",
    "rows_like",
    "write_table",
]
